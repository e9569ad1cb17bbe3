//go:build cuda

package device

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index"
)

// slicedWorld is a collection of at most one keyword an object and attribute: few and many keywords, skewed, missing.
func slicedWorld(t testing.TB, rng *rand.Rand, n int) *enginetest.World {
	w := &enginetest.World{}
	for range 1 + rng.IntN(14) {
		w.Vocabulary = append(w.Vocabulary, uint32([]int{1, 2, 7, 8, 15, 16, 67, 255, 256, 257, 1024, 2100}[rng.IntN(12)]))
	}
	missing := make([]int, len(w.Vocabulary))
	for a := range missing {
		missing[a] = []int{0, 0, 10, 60}[rng.IntN(4)]
	}
	equal := 1 + rng.IntN(2)*rng.IntN(3000)
	for id := range n {
		if id%equal != 0 {
			w.Objects = append(w.Objects, w.Objects[id-1])
			continue
		}
		object := make([][]uint32, len(w.Vocabulary))
		for a, v := range w.Vocabulary {
			if rng.IntN(100) >= missing[a] {
				kw := uint32(rng.IntN(int(v)))
				if a%2 == 0 {
					kw = min(kw, uint32(rng.IntN(int(v))), uint32(rng.IntN(int(v))))
				}
				object[a] = []uint32{kw}
			}
		}
		w.Objects = append(w.Objects, object)
	}
	w.Layouts = make([]index.Layout, len(w.Vocabulary))
	for a := range w.Layouts {
		w.Layouts[a] = index.LayoutSliced
	}
	if rng.IntN(5) == 0 { // queries for the (query, tile) kernel
		w.Layouts[rng.IntN(len(w.Layouts))] = index.LayoutPostings
	}
	w.Build(t)
	return w
}

// TestCUDASlicedAgainstCPU compares the shared-decode kernel with the CPU engine: batches of many sizes, hence blocks,
// slots and columns; weights for counters of each width; k below and above a group.
func TestCUDASlicedAgainstCPU(t *testing.T) {
	e := openDevice(t, gpuexec.CUDAOptions{})
	if len(e.(*cudaEngine).kernels.sliced) == 0 {
		t.Skip("a block of this device has too little shared memory")
	}
	force(t, e, "sliced")
	rng := enginetest.NewRand(t)
	paths, worlds := comparedBy{}, 0
	for _, n := range []int{1, 31, 33, 1023, 1024, 1025, 5000, index.TileObjects - 1, index.TileObjects, index.TileObjects + 1, 3*index.TileObjects + 5} {
		if scaled(100) < 100 && n > 6000 {
			continue
		}
		for range scaled(3) {
			w := slicedWorld(t, rng, n)
			e.(*cudaEngine).limits.planesOnly = rng.IntN(2) == 0
			s := enginetest.LoadOn(t, e, w.Index)
			path := []string{"sliced", "tile", "sliced"}[worlds%3]
			worlds++
			force(t, e, path)
			for _, l := range e.(*cudaEngine).all {
				l.waves.firstGroups, l.waves.groups = 1+rng.IntN(2), 1+rng.IntN(4)
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
	e := openDevice(t, gpuexec.CUDAOptions{}).(*cudaEngine)
	wl := denseRows(300_000)
	x := wl.build(t)
	s := onDevice(enginetest.LoadOn(t, e, x))
	defer s.Close()
	plans := wl.plans()[:scaled(1024)]
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
		if w := c.work; w.TileQueries != tile || w.SlicedQueries != sliced || w.FilterQueries != 0 {
			t.Errorf("path %q, %d queries: %+v", path, len(plans), w)
		}
	}
	paths.report(t, "tile", "sliced")
}

// TestLaunchPolicyOnRows: the same choice, without a device.
func TestLaunchPolicyOnRows(t *testing.T) {
	wl := denseRows(300_000)
	r := hostResident(t, wl.build(t), residentLimits{memory: 1 << 40})
	plans := wl.plans()
	for _, count := range []int{1, 16, len(plans)} {
		queries := make([]laneQuery, count)
		for i := range queries {
			m := &plans[i]
			queries[i] = r.plan(&run.Job{Query: enginetest.Query(m), K: m.K, MinCount: 1, Bound: uint32(r.index.CountBound(enginetest.Query(m)))})
		}
		policy := defaultPolicy
		policy.choose(queries, r.slicedLayout(), r.kernels.sliced, policyDevice{processors: r.kernels.processors, tiles: r.tiles.Len(), groups: r.groups()})
		for i := range queries {
			if q := &queries[i]; q.sliced != (count == len(plans)) {
				t.Fatalf("query %d of %d: shared decode %v", i, count, q.sliced)
			}
		}
	}
}

// denseRows makes a workload of 24 columns of 8 keywords, too few columns for the filter, asked by ranges of five: lists so long
// that 1,024 queries are three times as fast by shared decode, and one is a hundred times slower.
func denseRows(objects int) workload {
	wl := workload{layout: "sliced", name: "dense", objects: objects, attributes: 24, vocabulary: 8, k: 10, queries: 1024, reach: 2}
	wl.object = func(dst [][2]uint32, id uint32) [][2]uint32 {
		for c := range uint32(wl.attributes) {
			dst = append(dst, [2]uint32{c, mix(id*31+c*7919) % wl.vocabulary})
		}
		return dst
	}
	wl.query = func(dst [][2]uint32, q uint32) [][2]uint32 { return wl.object(dst, mix(q)%uint32(objects)) }
	return wl
}

// TestCUDAParts streams indexes in parts: hits must be those of an index that stays, whatever the parts.
func TestCUDAParts(t *testing.T) {
	rng := enginetest.NewRand(t)
	const tiles = 20
	const objects = tiles*index.TileObjects - 1234 // so that no two tiles fit where one must
	testParts(t, rng, enginetest.RandomWorld(t, rng, objects), tiles)
	testParts(t, rng, slicedWorld(t, rng, objects), tiles)
}

func testParts(t *testing.T, rng *rand.Rand, w *enginetest.World, tiles int) {
	size := partBytesOf(t, w.Index)
	paths := comparedBy{}
	sliced := !slices.Contains(w.Layouts, index.LayoutPostings) && !slices.Contains(w.Layouts, index.LayoutRare) // shared decode can take all
	for _, want := range []int{1, 2, 5, tiles} {
		e := openDevice(t, gpuexec.CUDAOptions{BatchMemory: []int64{1 << 30, 64 << 20}[rng.IntN(2)]}).(*cudaEngine)
		e.limits.partBytes = size * int64((tiles+want-1)/want)
		s := onDevice(enginetest.LoadOn(t, e, w.Index))
		if s.resident.stream == nil || len(s.resident.parts) < want || s.Capacity().Parts != len(s.resident.parts) {
			t.Fatalf("%d parts, want at least %d, streamed", len(s.resident.parts), want)
		}
		sliced = sliced && s.resident.sliced != nil
		for _, path := range []string{"sliced", "tile", ""} {
			force(t, e, path)
			paths.add(path, compareWithCPU(t, rng, w, s, scaled(64), false))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// By the memory: what remains beside the batches is less than the index.
	e := openDevice(t, gpuexec.CUDAOptions{BatchMemory: 64 << 20, InFlight: 1, Memory: 64<<20 + 6*size + tablesOf(t, w.Index)}).(*cudaEngine)
	s := onDevice(enginetest.LoadOn(t, e, w.Index))
	if s.resident.stream == nil || len(s.resident.parts) < 5 {
		t.Errorf("%d parts of an index of %d tiles in the memory of 6", len(s.resident.parts), tiles)
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

// partBytesOf is the memory of the largest tile.
func partBytesOf(t testing.TB, x *index.Index) (most int64) {
	if _, err := layoutResident(x, run.AllTiles(x), residentLimits{memory: 1 << 40, partBytes: 1}); err == nil { // an index without anything
		return 1
	}
	for bytes := int64(1 << 10); ; bytes += bytes/64 + 16 {
		if layout, err := layoutResident(x, run.AllTiles(x), residentLimits{memory: 1 << 40, partBytes: bytes}); err == nil {
			return layout.bufferBytes()
		}
	}
}

// tablesOf is the memory of what is not streamed.
func tablesOf(t testing.TB, x *index.Index) int64 {
	layout, err := layoutResident(x, run.AllTiles(x), residentLimits{memory: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	return layout.fixedBytes()
}

// TestCUDAStages: a batch's stages are measured, and add up to no more than the whole.
func TestCUDAStages(t *testing.T) {
	e := openDevice(t, gpuexec.CUDAOptions{})
	rng := enginetest.NewRand(t)
	w := slicedWorld(t, rng, 100_000)
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

// TestCutParts: parts are contiguous, no larger than allowed, and as few as first fit makes them.
func TestCutParts(t *testing.T) {
	rng := enginetest.NewRand(t)
	for range 200 {
		tileUnits := make([]int64, 1+rng.IntN(40))
		for i := range tileUnits {
			tileUnits[i] = int64(rng.IntN(100))
		}
		most := slices.Max(tileUnits) + int64(rng.IntN(200))
		tile, at := 0, int64(0)
		for i, part := range cutParts(tileUnits, most) {
			var sum int64
			for _, n := range tileUnits[part.firstTile : part.firstTile+part.tiles] {
				sum += n
			}
			if part.firstTile != tile || part.tiles < 1 || part.at != at || part.units != sum || sum > most {
				t.Fatalf("%v, at most %d: part %d is %+v", tileUnits, most, i, part)
			}
			tile += part.tiles
			at += sum
			if tile < len(tileUnits) && sum+tileUnits[tile] <= most {
				t.Fatalf("%v, at most %d: part %d could be larger: %+v", tileUnits, most, i, part)
			}
		}
		if tile != len(tileUnits) {
			t.Fatalf("%v, at most %d: parts end at tile %d", tileUnits, most, tile)
		}
		if cutParts(tileUnits, slices.Max(tileUnits)-1) != nil {
			t.Fatal("a tile that does not fit is in a part")
		}
	}
}

// TestResidentLayout: sections and planes of a part lie apart and inside, for each form that memory allows.
func TestResidentLayout(t *testing.T) {
	rng := enginetest.NewRand(t)
	for range 60 {
		w := enginetest.RandomWorld(t, rng, 1+rng.IntN(3000))
		if rng.IntN(2) == 0 {
			w = slicedWorld(t, rng, 1+rng.IntN(3000))
		}
		x := w.Index
		full, err := layoutResident(x, run.AllTiles(x), residentLimits{memory: 1 << 30})
		if err != nil {
			t.Fatal(err)
		}
		limits := []residentLimits{
			{memory: full.deviceBytes()}, {memory: full.deviceBytes() - 1}, {memory: 1 << 30, planesOnly: true},
			{memory: 1 << 30, partBytes: partBytesOf(t, x)},
		}
		for i, limit := range limits {
			l, err := layoutResident(x, run.AllTiles(x), limit)
			if err != nil {
				if i == 1 { // what is left out may be no more than what alignment fills, and a buffer is as large as the whole
					continue
				}
				t.Fatal(err)
			}
			if l.deviceBytes() > limit.memory && l.units > 0 || l.postings && limit.planesOnly || i == 0 && (l.streamed || l.postings != (l.sliced != nil)) {
				t.Errorf("layout %d: %d of %d bytes, %+v", i, l.deviceBytes(), limit.memory, l)
			}
			for _, part := range l.parts {
				at := int64(part.groups) * int64(planesOf(l)) * abi.RowUnits
				for tile := part.firstTile; tile < part.firstTile+part.tiles; tile++ {
					for a := range l.attributes {
						size, _ := l.size(x, tile, a)
						section := l.sections[tile*l.attributes+a]
						if size == (sectionSize{}) {
							continue
						}
						if int64(section.Words) < at || int64(section.Starts) != int64(section.Words)+size.words || int64(section.Ids) != int64(section.Starts)+size.starts {
							t.Fatalf("layout %d, attribute %d: %+v of %+v at %d", i, a, section, size, at)
						}
						at = int64(section.Ids) + size.ids
					}
				}
				if at > part.units {
					t.Fatalf("layout %d: %d units in a part of %d", i, at, part.units)
				}
			}
		}
	}
}

func planesOf(l *residentLayout) int {
	if l.sliced == nil {
		return 0
	}
	return l.sliced.planesOfGroup
}

// TestLongestRun: repeats do not go on from list to list.
func TestLongestRun(t *testing.T) {
	for _, c := range []struct {
		starts, ids []uint32
		want        uint32
	}{
		{[]uint32{0}, nil, 1}, {[]uint32{0, 0, 1, 2}, []uint32{5, 5}, 1}, {[]uint32{0, 3, 5}, []uint32{1, 5, 5, 5, 5}, 2},
		{[]uint32{0, 1, 5}, []uint32{1, 1, 1, 1, 2}, 3},
	} {
		if got := longestRun(c.starts, c.ids); got != c.want {
			t.Errorf("%v of %v: %d, want %d", c.ids, c.starts, got, c.want)
		}
	}
}

// TestLaunchPolicy: large batches on skewed attributes share decoding, single queries and short lists do not.
func TestLaunchPolicy(t *testing.T) {
	if s := fmt.Sprint(defaultPolicy); !strings.Contains(s, "by cost") {
		t.Errorf("the policy prints as %q", s)
	}
	layout := &slicedLayout{octets: 237 * 9}
	variants := []cudaSliced{{planes: 8, warps: 8, slots: 16, decoders: 8, stageOctets: 62}}
	device := policyDevice{processors: 132, tiles: 70, groups: 4395}
	chosen := func(policy launchPolicy, count, k int, postings uint64, device policyDevice) (sliced int) {
		queries := make([]laneQuery, count)
		for i := range queries {
			queries[i] = laneQuery{spans: 237, rows: 237, weightedRows: 237, weights: 1, postings: postings, job: &run.Job{K: k}}
		}
		policy.choose(queries, layout, variants, device)
		for _, q := range queries {
			if q.sliced {
				sliced++
			}
		}
		return sliced
	}
	forced := defaultPolicy
	forced.path = pathSliced
	never := defaultPolicy
	never.path = pathTile
	for _, c := range []struct {
		policy   launchPolicy
		count, K int
		postings uint64
		want     int
	}{
		{defaultPolicy, 1024, 100, 33_000_000, 1024},
		{defaultPolicy, 256, 100, 33_000_000, 256},
		{defaultPolicy, 64, 100, 33_000_000, 0},
		{defaultPolicy, 1, 100, 33_000_000, 0},
		{defaultPolicy, 1024, 100, 9_000_000, 0},
		{defaultPolicy, 1024, 100, 600_000, 0},
		{defaultPolicy, 1024, 3000, 33_000_000, 0},
		{forced, 1, 100, 100, 1},
		{never, 1024, 100, 33_000_000, 0},
	} {
		if got := chosen(c.policy, c.count, c.K, c.postings, device); got != c.want {
			t.Errorf("%d queries of %d postings, k %d, %v: %d go to the shared-decode kernel, want %d", c.count, c.postings, c.K, c.policy.path, got, c.want)
		}
	}
	// Each part of a streamed index is a launch, and a piece that need not be one is a copy.
	for _, c := range []struct {
		parts  int
		copied int64
		want   int
	}{{1, 0, 1024}, {4, 0, 1024}, {40, 0, 0}, {1, 1 << 20, 1024}, {1, 1 << 30, 0}} {
		device := device
		device.parts, device.copied = c.parts, c.copied
		if got := chosen(defaultPolicy, 1024, 100, 33_000_000, device); got != c.want {
			t.Errorf("%d parts, %d bytes copied: %d queries go to the shared-decode kernel, want %d", c.parts, c.copied, got, c.want)
		}
	}
	// One copy serves all variants: it pays for two of 512 queries where it does not for one.
	queries := make([]laneQuery, 1024)
	var half slicedLoad
	var tiles float64
	for i := range queries {
		queries[i] = laneQuery{spans: 237, rows: 237, weightedRows: 237, weights: 1, postings: 33_000_000, job: &run.Job{K: 100}, counters: i / 512}
		if i < 512 {
			half.add(&queries[i])
			tiles += defaultPolicy.tile(&queries[i], device)
		}
	}
	saving := tiles - defaultPolicy.sliced(&half, layout, &variants[0], device)
	device.copied = int64(1.5 * saving / defaultPolicy.copying / float64(device.processors))
	for _, count := range []int{512, 1024} {
		defaultPolicy.choose(queries[:count], layout, []cudaSliced{variants[0], variants[0]}, device)
		for i := range queries {
			if want := count == 1024; queries[i].sliced != want {
				t.Fatalf("%d queries of two variants, a copy for %.0f ns: query %d to the shared-decode kernel: %v", count, 1.5*saving, i, !want)
			}
		}
	}
	// A variant that does not pay stays where it is, whatever another one saves.
	device.copied = 0
	for i := range queries {
		queries[i].sliced, queries[i].postings = false, []uint64{33_000_000, 100}[queries[i].counters]
	}
	defaultPolicy.choose(queries, layout, []cudaSliced{variants[0], variants[0]}, device)
	for i := range queries {
		if want := queries[i].counters == 0; queries[i].sliced != want {
			t.Fatalf("query %d, of variant %d, to the shared-decode kernel: %v", i, queries[i].counters, !want)
		}
	}
}
