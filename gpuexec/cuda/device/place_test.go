//go:build cuda

package device

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// deviceWith opens a device with so much memory beside the batches.
func deviceWith(t *testing.T, memory int64) *Engine {
	const batch = 64 << 20
	e := openDevice(t, gpuexec.CUDAOptions{InFlight: 2, BatchMemory: batch, Memory: 2*batch + memory}).(*Engine)
	if enginetest.Free(e.Host.Budget) != memory {
		t.Fatalf("%d bytes are free beside the batches, want %d", enginetest.Free(e.Host.Budget), memory)
	}
	return e
}

// TestCUDALoadAtOnce: of two indexes that are loaded at the same time, in the memory of one and a bit, one is streamed, both answer,
// and all memory is given back.
func TestCUDALoadAtOnce(t *testing.T) {
	rng := seeded.Rand(t)
	w := enginetest.SlicedWorld(t, rng, 4*store.TileObjects)
	memory := bareBytes(t, w.Index) + leastBytes(t, w.Index)
	e := deviceWith(t, memory)
	e.limits.PlanesOnly, e.kernels.BoundColumns = true, 0
	for range scaled(10) {
		var loaded [2]gpuexec.Searcher
		var errs [2]error
		var loading sync.WaitGroup
		for i := range loaded {
			loading.Go(func() {
				loaded[i], errs[i] = e.Load(context.Background(), w.Index)
			})
		}
		loading.Wait()
		if errs[0] != nil || errs[1] != nil {
			t.Fatal(errs)
		}
		a, b := onDevice(loaded[0]), onDevice(loaded[1])
		if (!a.resident.Streamed) == (!b.resident.Streamed) {
			t.Error("one of two should be streamed")
		}
		for _, s := range loaded {
			compareWithCPU(t, rng, w, s, scaled(64), false)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		if enginetest.Free(e.Host.Budget) != memory {
			t.Fatalf("%d bytes are missing after closing", memory-enginetest.Free(e.Host.Budget))
		}
	}
}

// TestCUDALoadEnds: a load that ends early, wherever it is, leaves nothing on the device, in the budget or in the way of the next.
func TestCUDALoadEnds(t *testing.T) {
	rng := seeded.Rand(t)
	e := openDevice(t, gpuexec.CUDAOptions{BatchMemory: 64 << 20, Workers: 1}).(*Engine)
	w := enginetest.SlicedWorld(t, rng, 4*store.TileObjects)
	snapshot := w.Index
	for _, partBytes := range []int64{0, partBytesOf(t, w.Index)} {
		e.limits.PartBytes = partBytes
		if err := enginetest.LoadOn(t, e, w.Index).Close(); err != nil { // so that what the driver keeps is there
			t.Fatal(err)
		}
		budget, before, failed := enginetest.Free(e.Host.Budget), driverFree(t, e), 0
		for _, panics := range []bool{false, true} {
			for after := int64(0); ; after++ {
				s, err := e.Load(endsAfter(after, panics), snapshot)
				if err == nil {
					compareWithCPU(t, rng, w, s, scaled(64), false)
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					break
				}
				var panicked *gpuexec.PanicError
				if panics != errors.As(err, &panicked) || !panics && !errors.Is(err, context.Canceled) {
					t.Fatalf("a load that ends after %d looks at the context: %v", after, err)
				}
				failed++
				if enginetest.Free(e.Host.Budget) != budget {
					t.Fatalf("%d bytes are missing in the budget after %v", budget-enginetest.Free(e.Host.Budget), err)
				}
			}
		}
		const blocks = 16 << 20 // the driver gives memory in blocks
		if lost := before - driverFree(t, e); failed < 8 || lost > blocks {
			t.Errorf("%d bytes of the device are lost after %d failed loads", lost, failed)
		}
	}
}

// TestCUDALoadLater: an index leaves room for one that is announced, without which that would be streamed.
func TestCUDALoadLater(t *testing.T) {
	rng := seeded.Rand(t)
	var w *enginetest.World
	var bare, full int64
	for full == bare { // nothing is sliced
		w = enginetest.SlicedWorld(t, rng, 4*store.TileObjects)
		p, err := placedIn(w.Index, plan.Limits{Memory: 1 << 40})
		if err != nil {
			t.Fatal(err)
		}
		bare, full = bareBytes(t, w.Index), p.DeviceBytes()
	}
	e := deviceWith(t, full+bare-1)
	snapshot := w.Index
	for _, announced := range []bool{false, true} {
		var later []gpuexec.Source
		if announced {
			later = append(later, snapshot)
		}
		first, err := e.Load(context.Background(), snapshot, later...)
		if err != nil {
			t.Fatal(err)
		}
		second, err := e.Load(context.Background(), snapshot)
		if err != nil {
			t.Fatal(err)
		}
		a, b := onDevice(first), onDevice(second)
		if a.resident.Streamed || announced == (b.resident.Streamed) {
			t.Errorf("announced %v: streamed %v, %v", announced, a.resident.Streamed, b.resident.Streamed)
		}
		for _, s := range []gpuexec.Searcher{first, second} {
			compareWithCPU(t, rng, w, s, scaled(64), false)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
