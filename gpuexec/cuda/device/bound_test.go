//go:build cuda

package device

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// compare searches random plans in batches of random size.
func compareCoded(t *testing.T, w *enginetest.CodedWorld, rng *rand.Rand, s gpuexec.Searcher, count int) compared {
	t.Helper()
	c := compared{indexes: 1}
	cpu := enginetest.LoadOn(t, cpu.New(gpuexec.CPUOptions{Workers: runtime.GOMAXPROCS(0)}), w.Index)
	plans := make([]gpuexec.Plan, count)
	for i := range plans {
		plans[i] = w.Plan(rng)
	}
	want := enginetest.Search(t, cpu, plans)
	for first := 0; first < count; {
		end := min(count, first+1+rng.IntN(count))
		got := c.search(t, s, plans[first:end])
		for i := range got {
			if !enginetest.SameHits(&got[i], &want[first+i]) {
				m := &plans[first+i]
				t.Fatalf("%d objects, %d attributes, plan %d of %d (k %d, min_count %d, %d items):\n%s", w.Objects, len(w.Vocabulary), i,
					end-first, m.K, m.MinCount, len(enginetest.Query(m).Items), difference(&got[i], &want[first+i]))
			}
		}
		first = end
	}
	return c
}

// openBound opens the engine with the bound forced, on indexes of any number of narrow attributes.
func openBound(t testing.TB) *Engine {
	e := openDevice(t, gpuexec.CUDAOptions{}).(*Engine)
	if e.kernels.BoundColumns == 0 {
		t.Skip("the device has no matrix products that the bound could use")
	}
	e.kernels.Profile.Bound.Columns = 1
	force(t, e, "bound")
	return e
}

// randomBoundWaves sets waves of any size, and how soon a query is abandoned.
func randomBoundWaves(rng *rand.Rand, lanes []*lane) (w profile.Waves) {
	w = profile.Of("").Waves
	w.BoundFirst = []int{64, 128, 1024, 1024, 4096 + 64}[rng.IntN(5)]
	w.BoundMost = max(w.BoundFirst, []int{64, 1024, 8192 - 64, 65536, abi.BoundMarks, abi.BoundWave}[rng.IntN(6)])
	w.BoundShare = []int{1, 32, 1 << 20}[rng.IntN(3)]
	for _, l := range lanes {
		l.policy.Profile.Waves = w
	}
	return w
}

// TestCUDABoundAgainstCPU compares the bound with the CPU engine: around the borders of tiles, groups and waves, with rows of
// one to seven chunks, and any share of queries that are abandoned or not for the bound.
func TestCUDABoundAgainstCPU(t *testing.T) {
	e := openBound(t)
	rng := seeded.Rand(t)
	var sum compared
	const tile = store.TileObjects
	for _, n := range []int{1, 63, 64, 65, 1023, 1024, 1025, 2047, 2049, 5000, 20000, tile, tile + 1, 3*tile + 5, 10*tile + 700} {
		if scaled(100) < 100 && n > 6000 {
			continue
		}
		for range scaled(4) {
			attributes := min([]int{1, 2, 7, 8, 9, 15, 17, 63, 64, 65, 130, 237, 300, 448, 500}[rng.IntN(15)], max(1, 12_000_000/n))
			w := enginetest.NewCodedWorld(t, rng, n, attributes)
			waves := randomBoundWaves(rng, e.all)
			e.limits.PlanesOnly = rng.IntN(2) == 0
			s := onDevice(enginetest.LoadOn(t, e, w.Index))
			count := min(max(8, scaled([]int{40, 130, 300, 1100}[rng.IntN(4)])), 1+2_000_000_000/n/attributes)
			own := compareCoded(t, w, rng, s, count)
			t.Logf("%d objects, %d attributes, waves of %d to %d, share %d: %d queries", n, attributes,
				waves.BoundFirst, waves.BoundMost, waves.BoundShare, count)
			sum.add(own)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	sum.report(t)
	sum.took(t, "bound")
}

// TestCUDABoundAbandons: queries whose masks nearly every object meets are executed by another kernel, and the index is left
// alone for some batches.
func TestCUDABoundAbandons(t *testing.T) {
	e := openBound(t)
	force(t, e, "")
	const objects, attributes = 40_000, 40
	wl := enginetest.Workload{Layout: "sliced", Objects: objects, Attributes: attributes, Vocabulary: 200, K: 10, Queries: 300}
	wl.Object = func(dst [][2]uint32, id uint32) [][2]uint32 {
		for a := range uint32(attributes) {
			keyword := id // so that each occurs, and is its own code
			if id >= 200 {
				keyword = 5 + 32*(enginetest.Mix(id*31+a*7919)%6) // equal mod 32
			}
			dst = append(dst, [2]uint32{a, keyword})
		}
		return dst
	}
	wl.Query = func(dst [][2]uint32, q uint32) [][2]uint32 {
		return wl.Object(dst, 200+enginetest.Mix(q)%(objects-200))
	}
	x := wl.Build(t)
	s := onDevice(enginetest.LoadOn(t, e, x))
	defer s.Close()
	want := enginetest.Search(t, enginetest.LoadOn(t, cpu.New(gpuexec.CPUOptions{}), x), wl.Plans())
	got := make([]gpuexec.Answer, wl.Queries)
	for _, l := range e.all {
		l.policy.Profile.Bound.Step, l.policy.Profile.Bound.Wave, l.policy.Profile.Bound.Recount = 0, 0, 0 // it always seems to pay
		l.policy.Profile.Bound.Rest = 3
	}
	for round := range 10 {
		var stages gpuexec.Trace
		err := s.Search(context.Background(), wl.Plans(), got, &stages)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if !enginetest.SameHits(&got[i], &want[i]) {
				t.Fatalf("round %d, plan %d: %s", round, i, difference(&got[i], &want[i]))
			}
			if got[i].Units != want[i].Units {
				t.Fatalf("round %d, plan %d: %d postings, want %d", round, i, got[i].Units, want[i].Units)
			}
		}
		if n := stages.Work.BoundQueries; n != 0 {
			t.Errorf("round %d: the bound answered %d queries", round, n)
		}
		if rest := int(s.resident.Resting()); rest != 3-round%4 {
			t.Errorf("round %d: the bound rests for %d batches", round, rest)
		}
	}
}

// TestCUDASmallerPieces: where lanes have no room for the kernels of a whole batch, its pieces, between which queries are given up
// and executed again, are answered like those of the CPU engine, in the memory that there is.
func TestCUDASmallerPieces(t *testing.T) {
	e := openBound(t)
	rng := seeded.Rand(t)
	objects := 20_000
	if scaled(100) < 100 {
		objects = 2000
	}
	w := enginetest.NewCodedWorld(t, rng, objects, 60)
	s := enginetest.LoadOn(t, e, w.Index)
	defer s.Close()
	paths := comparedBy{}
	for range scaled(3) {
		for _, c := range []struct {
			path  string
			share int // 1: no query is given up
		}{{"bound", 1}, {"bound", 32}, {"bound", 1 << 20}, {"sliced", 1}, {"", 32}} {
			force(t, e, c.path)
			randomBoundWaves(rng, e.all)
			room := 10<<20 + rng.Int64N(10<<20) // the bound's marks alone take 32 KiB a query
			for _, l := range e.all {
				l.bytes, l.policy.Profile.Waves.BoundShare = room, c.share
			}
			own := compareCoded(t, w, rng, s, max(300, scaled(1000)))
			if own.work.Bytes > room {
				t.Errorf("path %q: a piece took %d of %d bytes", c.path, own.work.Bytes, room)
			}
			paths.add(c.path, own)
		}
	}
	paths.report(t, "bound", "sliced")
}

// TestCUDABoundConcurrent runs overlapping batches on two indexes.
func TestCUDABoundConcurrent(t *testing.T) {
	e := openBound(t)
	rng := seeded.Rand(t)
	randomBoundWaves(rng, e.all)
	var calls sync.WaitGroup
	var mu sync.Mutex
	var sum compared
	for range 2 {
		w := enginetest.NewCodedWorld(t, rng, 30_000, 50)
		s := enginetest.LoadOn(t, e, w.Index)
		defer s.Close()
		for range 4 {
			own := rand.New(rand.NewPCG(rng.Uint64(), 0))
			calls.Go(func() {
				for range 4 {
					c := compareCoded(t, w, own, s, scaled(100))
					mu.Lock()
					sum.add(c)
					mu.Unlock()
				}
			})
		}
	}
	calls.Wait()
	sum.report(t)
	sum.took(t, "bound")
}

// TestCUDABoundRanges: a device that holds a range of the tiles counts from its beginning.
func TestCUDABoundRanges(t *testing.T) {
	openBound(t) // skips
	g := openDeviceGroup(t, gpuexec.CUDAOptions{Mode: gpuexec.DeviceCapacity, BatchMemory: 256 << 20})
	rng := seeded.Rand(t)
	forceGroup(t, g, "bound")
	var sum compared
	for round := 0; round < scaled(3) || sum.work.BoundQueries == 0 && round < 20; round++ {
		attributes := 1 + rng.IntN(70)
		easy := sum.work.BoundQueries == 0 // many attributes, and no query is abandoned, so that the bound answers some
		if easy {
			attributes += 30
		}
		w := enginetest.NewCodedWorld(t, rng, (2+rng.IntN(4))*store.TileObjects+rng.IntN(2000), attributes)
		for _, e := range g.engines {
			e.kernels.Profile.Bound.Columns = 1
			randomBoundWaves(rng, e.all)
			for _, l := range e.all {
				if easy {
					l.policy.Profile.Waves.BoundShare = 1
				}
			}
		}
		s := enginetest.LoadOn(t, g, w.Index)
		sum.add(compareCoded(t, w, rng, s, scaled(200)))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	sum.report(t)
	sum.took(t, "bound")
}
