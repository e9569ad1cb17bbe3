//go:build cuda

package device

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestCUDASlicedAgainstCPU compares the shared-decode kernel with the CPU engine: batches of many sizes, hence blocks,
// slots and columns; weights for counters of each width; k below and above a group.
func TestCUDASlicedAgainstCPU(t *testing.T) {
	e := openDevice(t, gpuexec.CUDAOptions{})
	if len(e.(*Engine).kernels.sliced) == 0 {
		t.Skip("a block of this device has too little shared memory")
	}
	force(t, e, "sliced")
	rng := seeded.Rand(t)
	paths, worlds := comparedBy{}, 0
	for _, n := range []int{1, 31, 33, 1023, 1024, 1025, 5000, store.TileObjects - 1, store.TileObjects, store.TileObjects + 1, 3*store.TileObjects + 5} {
		if scaled(100) < 100 && n > 6000 {
			continue
		}
		for range scaled(3) {
			w := enginetest.SlicedWorld(t, rng, n)
			e.(*Engine).limits.PlanesOnly = rng.IntN(2) == 0
			s := enginetest.LoadOn(t, e, w.Index)
			path := []string{"sliced", "tile", "sliced"}[worlds%3]
			worlds++
			force(t, e, path)
			for _, l := range e.(*Engine).all {
				l.policy.Profile.Waves.FirstGroups, l.policy.Profile.Waves.Groups = 1+rng.IntN(2), 1+rng.IntN(4)
			}
			paths.add(path, compareWithCPU(t, rng, w, s, max(8, scaled([]int{40, 300, 1100}[rng.IntN(3)])), true))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	paths.report(t, "sliced", "tile")
}

// TestCUDAPaths: the policy takes each kernel where it should, large batches on long lists sharing decoding and a single query
// not, and each kernel that is forced takes all queries and gives the hits of the CPU engine.
func TestCUDAPaths(t *testing.T) {
	e := openDevice(t, gpuexec.CUDAOptions{}).(*Engine)
	wl := enginetest.DenseRows(300_000)
	x := wl.Build(t)
	s := onDevice(enginetest.LoadOn(t, e, x))
	defer s.Close()
	plans := wl.Plans()[:scaled(1024)]
	want := enginetest.Search(t, enginetest.LoadOn(t, cpu.New(gpuexec.CPUOptions{}), x), plans)
	paths := comparedBy{}
	for _, path := range []string{"tile", "sliced", "", "one"} {
		force(t, e, strings.TrimPrefix(path, "one"))
		plans := plans
		if path == "one" {
			plans = plans[:1]
		}
		c := compared{indexes: 1}
		got := c.search(t, s, plans)
		for i := range got {
			if !enginetest.SameHits(&got[i], &want[i]) {
				t.Fatalf("path %q, plan %d: %s", path, i, difference(&got[i], &want[i]))
			}
			checkPostings(t, s.matcher, &plans[i], &got[i], &want[i])
		}
		paths.add(path, c)
		if path == "" && len(plans) < 1024 {
			continue // so many of them that either may pay
		}
		tile, sliced := len(plans), 0
		if path == "sliced" || path == "" {
			tile, sliced = 0, len(plans)
		}
		if w := c.work; w.TileQueries != tile || w.SlicedQueries != sliced || w.BoundQueries != 0 {
			t.Errorf("path %q, %d queries: %+v", path, len(plans), w)
		}
	}
	paths.report(t, "tile", "sliced")
}

// TestCUDAParts streams indexes in parts: hits must be those of an index that stays, whatever the parts.
func TestCUDAParts(t *testing.T) {
	rng := seeded.Rand(t)
	const tiles = 20
	const objects = tiles*store.TileObjects - 1234 // so that no two tiles fit where one must
	testParts(t, rng, enginetest.RandomWorld(t, rng, objects), tiles)
	testParts(t, rng, enginetest.SlicedWorld(t, rng, objects), tiles)
}

func testParts(t *testing.T, rng *rand.Rand, w *enginetest.World, tiles int) {
	size := partBytesOf(t, w.Index)
	paths := comparedBy{}
	sliced := !slices.Contains(w.Layouts, schema.LayoutPostings) && !slices.Contains(w.Layouts, schema.LayoutRare) // shared decode can take all
	for _, want := range []int{1, 2, 5, tiles} {
		e := openDevice(t, gpuexec.CUDAOptions{BatchMemory: []int64{1 << 30, 64 << 20}[rng.IntN(2)]}).(*Engine)
		e.limits.PartBytes = size * int64((tiles+want-1)/want)
		s := onDevice(enginetest.LoadOn(t, e, w.Index))
		if !s.resident.Streamed || len(s.resident.Parts) < want || s.Capacity().Parts != len(s.resident.Parts) {
			t.Fatalf("%d parts, want at least %d, streamed", len(s.resident.Parts), want)
		}
		sliced = sliced && s.resident.Planes != nil
		for _, path := range []string{"sliced", "tile", ""} {
			force(t, e, path)
			paths.add(path, compareWithCPU(t, rng, w, s, scaled(64), false))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// By the memory: what remains beside the batches is less than the index.
	e := openDevice(t, gpuexec.CUDAOptions{BatchMemory: 64 << 20, InFlight: 1, Memory: 64<<20 + 6*size + tablesOf(t, w.Index)}).(*Engine)
	s := onDevice(enginetest.LoadOn(t, e, w.Index))
	if !s.resident.Streamed || len(s.resident.Parts) < 5 {
		t.Errorf("%d parts of an index of %d tiles in the memory of 6", len(s.resident.Parts), tiles)
	}
	paths.add("", compareWithCPU(t, rng, w, s, scaled(64), false))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if sliced {
		paths.report(t, "sliced", "tile")
	} else {
		paths.report(t, "tile")
	}
}

// TestCUDAStages: a batch's stages are measured, and add up to no more than the whole.
func TestCUDAStages(t *testing.T) {
	e := openDevice(t, gpuexec.CUDAOptions{})
	rng := seeded.Rand(t)
	w := enginetest.SlicedWorld(t, rng, 100_000)
	s := enginetest.LoadOn(t, e, w.Index)
	defer s.Close()
	plans := w.RandomPlans(rng, func() gpuexec.Plan { return w.RandomPlan(rng) })
	answers := make([]gpuexec.Answer, len(plans))
	for _, path := range []string{"tile", "sliced"} {
		force(t, e, path)
		var stages gpuexec.Trace
		err := s.Search(context.Background(), plans, answers, &stages)
		if err != nil || stages.Match <= 0 || stages.Plan <= 0 || stages.Upload <= 0 || stages.Select <= 0 || stages.Download <= 0 {
			t.Errorf("path %s: %+v %v", path, stages, err)
		}
	}
}
