//go:build cuda

package device

import (
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
	"github.com/geniemq/geniemq/gpuexec/cuda/rescoring"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/verify"
)

// loadHost makes an index resident on a CPU engine, to compare with.
func loadHost(t testing.TB, x *index.Index, opts gpuexec.CPUOptions) gpuexec.Searcher {
	t.Helper()
	return enginetest.LoadOn(t, cpu.New(opts), x)
}

// loadedIndex is an index on one device, and what of it the tests look at.
type loadedIndex struct {
	gpuexec.Searcher
	matcher  *matcher
	resident *resident
}

// onDevice looks into a searcher of one device.
func onDevice(s gpuexec.Searcher) loadedIndex {
	m := matcherOf(s)
	return loadedIndex{s, m, m.resident}
}

// matcherOf is nil for a group of devices.
func matcherOf(s gpuexec.Searcher) *matcher {
	if l, ok := s.(loadedIndex); ok {
		return l.matcher
	}
	if s, ok := s.(*run.Searcher); ok {
		return s.Matcher(postings.FamilyName).(*matcher)
	}
	return nil
}

// scanFor asks for a scan, for objects at a distance of at most within.
func scanFor(texts verify.Texts, ngram int, text []rune, k, within int, minCount uint32) *run.ScanJob {
	return &run.ScanJob{Rescorer: enginetest.Sought(texts, ngram, text, k, within), MinCount: minCount}
}

// placedIn is the placement of an index without codes.
func placedIn(x *index.Index, limits plan.Limits) (plan.Placement, error) {
	return plan.Place(&plan.Device{Profile: profile.Of("")}, plan.Extent{Lists: postingsOf(x), Tiles: run.AllTiles(x)}, rescoring.Originals{}, nil, limits)
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

// takeMemory takes memory of an engine's budget, until it is released.
func takeMemory(t testing.TB, e *Engine, bytes int64) (release func()) {
	t.Helper()
	release, err := e.Host.Budget.Reserve(gpuexec.Holding{Owner: "test", Form: "nothing", Bytes: bytes})
	if err != nil {
		t.Fatal(err)
	}
	return release
}

// What jobs ask for whose texts are compared.
func nearestOf(job *run.Job) *verify.Nearest { return job.Rescore.(*verify.Nearest) }

func sequencesOf(job *run.ScanJob) *verify.SequenceRescorer {
	return job.Rescorer.(*verify.SequenceRescorer)
}

func patternOf(job *run.ScanJob) []rune { return sequencesOf(job).Nearest().Text }

func withinOf(job *run.ScanJob) int { return sequencesOf(job).Within() }
