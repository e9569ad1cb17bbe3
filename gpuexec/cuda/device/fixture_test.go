//go:build cuda

package device

import (
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index"
)

// loadHost makes an index resident on a CPU engine, to compare with.
func loadHost(t testing.TB, x *index.Index, opts gpuexec.CPUOptions) gpuexec.Searcher {
	t.Helper()
	return enginetest.LoadOn(t, cpu.New(opts), x)
}

// placedIn is the placement of an index without codes.
func placedIn(x *index.Index, limits plan.Limits) (plan.Placement, error) {
	return plan.Place(&plan.Device{Profile: plan.ProfileOf("")}, run.Extent{Index: x, Tiles: run.AllTiles(x)}, nil, nil, limits)
}

// bareBytes is what an index must have to stay on the device.
func bareBytes(t testing.TB, x *index.Index) int64 {
	t.Helper()
	p, err := placedIn(x, plan.Limits{Memory: 1 << 40, PlanesOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	return p.DeviceBytes()
}

// leastBytes is what an index must have to be on the device at all.
func leastBytes(t testing.TB, x *index.Index) int64 {
	return min(bareBytes(t, x), tablesOf(t, x)+2*partBytesOf(t, x))
}

// partBytesOf is the memory of the largest tile.
func partBytesOf(t testing.TB, x *index.Index) int64 {
	t.Helper()
	if _, err := placedIn(x, plan.Limits{Memory: 1 << 40, PartBytes: 1}); err == nil { // an index without anything
		return 1
	}
	for bytes := int64(1 << 10); ; bytes += bytes/64 + 16 {
		if p, err := placedIn(x, plan.Limits{Memory: 1 << 40, PartBytes: bytes}); err == nil {
			return p.BufferBytes()
		}
	}
}

// tablesOf is the memory of what is not streamed.
func tablesOf(t testing.TB, x *index.Index) int64 {
	t.Helper()
	p, err := placedIn(x, plan.Limits{Memory: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	return p.FixedBytes()
}
