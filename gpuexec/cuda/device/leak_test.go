//go:build cuda

package device

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"gorgonia.org/cu"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// driverFree is the memory of the device that the driver has left, whatever the engine believes.
func driverFree(t testing.TB, e *Engine) (free int64) {
	t.Helper()
	err := e.do(func() (err error) {
		free, _, err = cu.MemInfo()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return free
}

// driverBlock is what the driver takes of the device at a time for small pieces, and may keep.
const driverBlock = 2 << 20

// nothingLeaked checks that the driver has as much left as before. Sanitizers, for which tests are scaled, take memory of
// their own.
func nothingLeaked(t testing.TB, e *Engine, before int64, format string, args ...any) {
	t.Helper()
	missing := before - driverFree(t, e)
	t.Logf("the driver misses %d bytes after "+format, append([]any{missing}, args...)...)
	if missing > driverBlock && scaled(100) == 100 {
		t.Errorf("%d bytes of the device are missing after "+format, append([]any{missing}, args...)...)
	}
}

// virtualBytes is the address space of the process, of which pinned memory is a part that Go does not know.
func virtualBytes(t testing.TB) int64 {
	t.Helper()
	runtime.GC()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// endingContext ends when it has been asked so often whether it has; or whoever asks panics.
type endingContext struct {
	context.Context
	left   atomic.Int64
	panics bool
}

func endsAfter(asked int64, panics bool) *endingContext {
	c := &endingContext{Context: context.Background(), panics: panics}
	c.left.Store(asked)
	return c
}

func (c *endingContext) Err() error {
	if c.left.Add(-1) >= 0 {
		return nil
	}
	if c.panics {
		panic("the end")
	}
	return context.Canceled
}

// TestCUDANothingLeaks: loading, searching and closing again and again, and loads that are cancelled anywhere, leave the
// device's memory and the pinned memory of the host as they were, in every form of an index.
func TestCUDANothingLeaks(t *testing.T) {
	e := openDevice(t, gpuexec.CUDAOptions{BatchMemory: 64 << 20}).(*Engine)
	e.kernels.Profile.Bound.Columns = 1 // so that there are codes
	rng := seeded.Rand(t)
	texts := make([]string, 100_000)
	for i := range texts {
		texts[i] = enginetest.RandomString(rng, "abcdefgh", 5+rng.IntN(30))
	}
	words, lists := enginetest.SequenceCollection(t, texts, 3), enginetest.Zipf("lists", 100_000, 20, 20_000, 4, 24, 50)
	lists.Layout = "rare"
	dense := enginetest.DenseRows(scaled(1_000_000))
	dense.Queries = 50
	var asked []gpuexec.Plan
	for range 20 {
		asked = append(asked, words.SequencePlan(t, texts[rng.IntN(len(texts))], 5, 50, false))
	}
	denseIndex := dense.Build(t)
	for _, form := range []struct {
		name   string
		Index  *index.Index
		plans  []gpuexec.Plan
		limits plan.Limits
		want   string
	}{
		{"planes, postings, codes", denseIndex, dense.Plans(), plan.Limits{}, "resident: planes, decoded postings"},
		{"streamed", denseIndex, dense.Plans(), plan.Limits{PartBytes: 2 * partBytesOf(t, denseIndex)}, "streamed: planes"},
		{"rare lists", lists.Build(t), lists.Plans(), plan.Limits{}, "resident: postings, rare lists"},
		{"texts", words.Index, asked, plan.Limits{}, "texts"},
	} {
		e.limits = form.limits
		cancelled, pinned, returned := 0, int64(0), int64(0)
		cycle := func(n int64) {
			s := onDevice(enginetest.LoadOn(t, e, form.Index))
			if !strings.Contains(s.matcher.residence.Form, form.want) {
				t.Fatalf("%s: the index is %s", form.name, s.matcher.residence.Form)
			}
			enginetest.Search(t, s, form.plans)
			pinned = 0
			for i := range s.resident.hosts {
				pinned += int64(len(s.resident.hosts[i]))
			}
			open := virtualBytes(t)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			returned = open - virtualBytes(t)
			again, err := e.Load(endsAfter(n, false), form.Index)
			switch {
			case err == nil:
				err = again.Close()
			case errors.Is(err, context.Canceled):
				cancelled, err = cancelled+1, nil
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		cycle(1 << 40) // warms up
		cycles := int64(scaled(20))
		before, budget, virtual := driverFree(t, e), enginetest.Free(e.Host.Budget), virtualBytes(t)
		for n := range cycles {
			cycle(n * n)
		}
		grown := virtualBytes(t) - virtual
		t.Logf("%s: %d of %d loads cancelled; of the address space %d bytes are pinned by a load, %d returned when it is closed, %d gone after all",
			form.name, cancelled, cycles, pinned, returned, grown)
		if cancelled == 0 {
			t.Errorf("%s: no load was cancelled", form.name)
		}
		if enginetest.Free(e.Host.Budget) != budget {
			t.Errorf("%s: %d bytes of the budget are missing", form.name, budget-enginetest.Free(e.Host.Budget))
		}
		// Go and the driver take address space too, a few tens of MiB at a time.
		if lost := cycles * pinned; grown > 128<<20 && grown > lost/2 && lost > 128<<20 {
			t.Errorf("%s: %d bytes of pinned memory a load, and the address space has grown by %d in %d loads", form.name, pinned, grown, cycles)
		}
		nothingLeaked(t, e, before, "%d loads, %s", cycles, form.name)
	}
}

// TestCUDAEnginesLeaveNothing: an engine that is closed leaves nothing, also where another keeps the device's context.
func TestCUDAEnginesLeaveNothing(t *testing.T) {
	const memory, opens = 512 << 20, 4
	// Threads that call C take address space of their own, and keep it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cycle := func() {
		e, err := newDevice(t, gpuexec.CUDAOptions{BatchMemory: memory})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	outer := openDevice(t, gpuexec.CUDAOptions{BatchMemory: 1 << 20, InFlight: 1}).(*Engine)
	cycle() // warms up
	before, virtual := driverFree(t, outer), virtualBytes(t)
	for range opens {
		cycle()
	}
	missing, grown := before-driverFree(t, outer), virtualBytes(t)-virtual
	t.Logf("%d engines: the driver misses %d bytes, the address space has grown by %d", opens, missing, grown)
	// The modules stay until the context goes: far less than the memory of a batch.
	if missing >= memory && scaled(100) == 100 {
		t.Errorf("%d bytes of the device are missing after %d engines", missing, opens)
	}
	// An engine pins a pair of buffers of 64 MiB for each lane: not one of them may stay.
	if grown >= opens*(inBytes+outBytes) && scaled(100) == 100 {
		t.Errorf("the address space has grown by %d bytes in %d engines", grown, opens)
	}
	if err := outer.Close(); err != nil {
		t.Fatal(err)
	}
	if _, active, err := outer.device.PrimaryCtxState(); err != nil || active != 0 {
		t.Errorf("the device's context is still there after all engines are closed: %v %v", active, err)
	}
}
