//go:build cuda

package device

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index"
)

// hostEngine is an engine without a device, for placing indexes.
func hostEngine(memory int64) *cudaEngine {
	e := &cudaEngine{kernels: hostKernels(), free: memory}
	e.kernels.filter.columns = maxColumns
	return e
}

func extentOf(x *index.Index) tiledIndex { return tiledIndex{Index: x, Tiles: run.AllTiles(x)} }

// bareBytes is what an index must have to stay on the device.
func bareBytes(t testing.TB, x *index.Index) int64 {
	t.Helper()
	l, err := layoutResident(x, run.AllTiles(x), residentLimits{memory: 1 << 40, planesOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	return l.deviceBytes()
}

// TestPlaceLater: forms that only make an index faster leave room for indexes that are announced, take all where none is, and the
// budget is kept.
func TestPlaceLater(t *testing.T) {
	rng := enginetest.NewRand(t)
	unannounced, spared, full := 0, 0, 0
	for range 60 {
		build := func() *index.Index {
			if rng.IntN(3) == 0 {
				return enginetest.RandomWorld(t, rng, 1+rng.IntN(3000)).Index
			}
			return newCodedWorld(t, rng, 1+rng.IntN(3000), 40+rng.IntN(60)).index
		}
		first, second := build(), build()
		bare := bareBytes(t, first) + bareBytes(t, second)
		alone, err := hostEngine(1<<40).place(extentOf(first), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		both := func(memory int64, later ...tiledIndex) (placement, placement, bool) {
			e := hostEngine(memory)
			a, err := e.place(extentOf(first), nil, later)
			if err != nil {
				t.Fatal(err)
			}
			b, err := e.place(extentOf(second), nil, nil)
			taken := a.deviceBytes()
			if err == nil {
				taken += b.deviceBytes()
			}
			if e.free < 0 || e.free != memory-taken {
				t.Fatalf("%d of %d bytes are left beside %d", e.free, memory, taken)
			}
			return a, b, err == nil && !b.layout.streamed
		}
		memory := bare + rng.Int64N(alone.deviceBytes())
		if _, _, stays := both(memory); !stays {
			unannounced++
		}
		a, _, stays := both(memory, extentOf(second))
		if a.layout.streamed || !stays {
			t.Fatalf("%d bytes, two indexes need %d, and one of them does not stay", memory, bare)
		}
		if a.deviceBytes() < alone.deviceBytes() {
			spared++
		}
		// With room for all, an announced index takes nothing away.
		if a, _, _ := both(alone.deviceBytes()+bareBytes(t, second), extentOf(second)); a.deviceBytes() != alone.deviceBytes() {
			t.Fatalf("an index has %d bytes, and %d where another one is announced for which there is room", alone.deviceBytes(), a.deviceBytes())
		}
		if alone.codes != nil && alone.layout.postings {
			full++
		}
	}
	if unannounced < 5 || spared < 5 || full < 5 {
		t.Errorf("%d indexes have no room if they are not announced, %d others take less for one that is, %d have all forms", unannounced, spared, full)
	}
}

// TestPlaceTexts: texts are placed where there is room, never at the cost of the index, and before its codes.
func TestPlaceTexts(t *testing.T) {
	rng := enginetest.NewRand(t)
	var there, left int
	for range 100 {
		x := newCodedWorld(t, rng, 1+rng.IntN(300), 30+rng.IntN(10)).index
		texts := &textsLayout{tiles: run.AllTiles(x), objects: int(x.Objects()), units: 1 + rng.Int64N(10_000)}
		bare := bareBytes(t, x)
		memory := bare + rng.Int64N(2*texts.deviceBytes())
		e := hostEngine(memory)
		e.limits.planesOnly = true
		p, err := e.place(extentOf(x), texts, nil)
		if err != nil || p.layout.streamed || (p.texts != nil) != (memory-bare >= texts.deviceBytes()) {
			t.Fatalf("an index of %d bytes and texts of %d, in %d: %+v %v", bare, texts.deviceBytes(), memory, p, err)
		}
		if e.free < 0 || e.free != memory-p.deviceBytes() {
			t.Fatalf("%d of %d bytes are left beside %d", e.free, memory, p.deviceBytes())
		}
		if p.texts != nil {
			there++
		} else {
			left++
		}
	}
	if there == 0 || left == 0 {
		t.Errorf("%d indexes have their texts, %d have not", there, left)
	}
}

// TestPlaceLeavesRoom: an index leaves announced ones the memory without which they have no place, though it has to be streamed
// for that.
func TestPlaceLeavesRoom(t *testing.T) {
	rng := enginetest.NewRand(t)
	x := slicedWorld(t, rng, 11*index.TileObjects).Index
	first, later := tiledIndex{Index: x, Tiles: run.Tiles{First: 0, End: 8}}, []tiledIndex{{Index: x, Tiles: run.Tiles{First: 8, End: 10}}, {Index: x, Tiles: run.Tiles{First: 10, End: 11}}}
	own, others := leastBytes(first), leastBytes(later[0])+leastBytes(later[1])
	whole, err := layoutResident(x, first.Tiles, residentLimits{memory: 1 << 40, planesOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	starved := 0
	for i := range 100 {
		memory := own + others + rng.Int64N(own)
		if i%2 == 0 { // it would have room without the others
			memory = whole.deviceBytes() + rng.Int64N(others)
		}
		all := func(announced bool) (taken int64, err error) {
			e := hostEngine(memory)
			for i, x := range append([]tiledIndex{first}, later...) {
				following := later[i:]
				if !announced {
					following = nil
				}
				p, err := e.place(x, nil, following)
				if err != nil {
					return taken, err
				}
				if i == 0 {
					taken = p.deviceBytes()
				}
			}
			return taken, nil
		}
		taken, err := all(true)
		if err != nil {
			t.Fatalf("%d bytes, %d and %d are enough: %v", memory, own, others, err)
		}
		alone, err := all(false)
		if err != nil {
			starved++
		}
		if taken > alone {
			t.Errorf("of %d bytes an index takes %d, and %d where others are announced", memory, alone, taken)
		}
	}
	if starved == 0 {
		t.Error("no index would have been without a place")
	}
}

// TestPlaceAtOnce: of two indexes that are placed at the same time, in the memory of one and a bit, one is streamed.
func TestPlaceAtOnce(t *testing.T) {
	rng := enginetest.NewRand(t)
	x := slicedWorld(t, rng, 4*index.TileObjects).Index
	memory := bareBytes(t, x) + leastBytes(extentOf(x))
	for range 500 {
		e := hostEngine(memory)
		e.limits.planesOnly, e.kernels.filter.columns = true, 0
		var placed [2]placement
		var errs [2]error
		var placing sync.WaitGroup
		start := make(chan struct{})
		for i := range placed {
			placing.Go(func() {
				<-start
				placed[i], errs[i] = e.place(extentOf(x), nil, nil)
			})
		}
		close(start)
		placing.Wait()
		if errs[0] != nil || errs[1] != nil {
			t.Fatalf("%d bytes: %v, %v", memory, errs[0], errs[1])
		}
		if placed[0].layout.streamed == placed[1].layout.streamed || e.free != memory-placed[0].deviceBytes()-placed[1].deviceBytes() {
			t.Fatalf("streamed: %v, %v; %d bytes of %d are left", placed[0].layout.streamed, placed[1].layout.streamed, e.free, memory)
		}
	}
}

// TestStreamedPart: a streamed index takes no more memory than it has use for, and always enough for a tile.
func TestStreamedPart(t *testing.T) {
	const tile = streamedBytes / abi.UnitBytes
	for _, c := range []struct {
		tiles        []int64
		memory, want int64
	}{
		{nil, 1 << 40, streamedBytes},
		{[]int64{5, tile / 3, 7}, 1 << 40, streamedBytes},
		{[]int64{5, 3 * tile, 7}, 1 << 40, 3 * streamedBytes},
		{[]int64{5, 3 * tile, 7}, 4 * streamedBytes, 2 * streamedBytes},
		{[]int64{5}, streamedBytes, streamedBytes / 2},
	} {
		if got := streamedPart(c.tiles, c.memory); got != c.want {
			t.Errorf("tiles of %v units, %d bytes: parts of %d, want %d", c.tiles, c.memory, got, c.want)
		}
	}
}

// deviceWith opens a device with so much memory beside the batches.
func deviceWith(t *testing.T, memory int64) *cudaEngine {
	const batch = 64 << 20
	e := openDevice(t, gpuexec.CUDAOptions{InFlight: 2, BatchMemory: batch, Memory: 2*batch + memory}).(*cudaEngine)
	if e.free != memory {
		t.Fatalf("%d bytes are free beside the batches, want %d", e.free, memory)
	}
	return e
}

// TestCUDALoadAtOnce: of two indexes that are loaded at the same time, in the memory of one and a bit, one is streamed, both answer,
// and all memory is given back.
func TestCUDALoadAtOnce(t *testing.T) {
	rng := enginetest.NewRand(t)
	w := slicedWorld(t, rng, 4*index.TileObjects)
	memory := bareBytes(t, w.Index) + leastBytes(extentOf(w.Index))
	e := deviceWith(t, memory)
	e.limits.planesOnly, e.kernels.filter.columns = true, 0
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
		if (a.resident.stream == nil) == (b.resident.stream == nil) {
			t.Error("one of two should be streamed")
		}
		for _, s := range loaded {
			compareWithCPU(t, rng, w, s, scaled(64), false)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		if e.free != memory {
			t.Fatalf("%d bytes are missing after closing", memory-e.free)
		}
	}
}

// TestCUDALoadEnds: a load that ends early, wherever it is, leaves nothing on the device, in the budget or in the way of the next.
func TestCUDALoadEnds(t *testing.T) {
	rng := enginetest.NewRand(t)
	e := openDevice(t, gpuexec.CUDAOptions{BatchMemory: 64 << 20, Workers: 1}).(*cudaEngine)
	w := slicedWorld(t, rng, 4*index.TileObjects)
	snapshot := w.Index
	for _, partBytes := range []int64{0, partBytesOf(t, w.Index)} {
		e.limits.partBytes = partBytes
		if err := enginetest.LoadOn(t, e, w.Index).Close(); err != nil { // so that what the driver keeps is there
			t.Fatal(err)
		}
		budget, before, failed := e.free, driverFree(t, e), 0
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
				if e.free != budget {
					t.Fatalf("%d bytes are missing in the budget after %v", budget-e.free, err)
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
	rng := enginetest.NewRand(t)
	var w *enginetest.World
	var bare, full int64
	for full == bare { // nothing is sliced
		w = slicedWorld(t, rng, 4*index.TileObjects)
		layout, err := layoutResident(w.Index, run.AllTiles(w.Index), residentLimits{memory: 1 << 40})
		if err != nil {
			t.Fatal(err)
		}
		bare, full = bareBytes(t, w.Index), layout.deviceBytes()
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
		if a.resident.stream != nil || announced == (b.resident.stream != nil) {
			t.Errorf("announced %v: streamed %v, %v", announced, a.resident.stream != nil, b.resident.stream != nil)
		}
		for _, s := range []gpuexec.Searcher{first, second} {
			compareWithCPU(t, rng, w, s, scaled(64), false)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
