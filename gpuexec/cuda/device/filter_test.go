//go:build cuda

package device

import (
	"context"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index"
)

// A codedWorld is a collection of many attributes of few keywords, at most one an object: what the filter is for. Objects
// are made of centres, so that some are much nearer to a query than others, and a few attributes may be of other kinds.
type codedWorld struct {
	vocabulary []uint32
	objects    int
	object     func(id int, a uint32) (keyword uint32, ok bool)
	index      *index.Index
}

func newCodedWorld(t testing.TB, rng *rand.Rand, objects, attributes int) *codedWorld {
	w := &codedWorld{objects: objects}
	var layouts []string
	size := []int{2, 33, 256}[rng.IntN(3)]
	var missing []uint32
	for range attributes {
		v, layout := uint32(1+rng.IntN(min(size, 255))), "sliced"
		switch rng.IntN(10 + 4*attributes) {
		case 0:
			v = 254 + uint32(rng.IntN(3))
		case 1:
			layout = "postings"
		case 2:
			v = 1000
		}
		w.vocabulary, layouts = append(w.vocabulary, v), append(layouts, layout)
		missing = append(missing, []uint32{10, 60, 100, 0}[min(rng.IntN(40), 3)])
	}
	salt, centres, noise, equal := rng.Uint32(), uint32(1+rng.IntN(2000)), uint32(rng.IntN(101)), 1+rng.IntN(2)*rng.IntN(3000)
	w.object = func(id int, a uint32) (uint32, bool) {
		own := mix(uint32(id/equal)*2654435761 ^ salt)
		h := mix(own + a*40503)
		if h%100 < missing[a] {
			return 0, false
		}
		if h>>8%100 < noise {
			return mix(h) % w.vocabulary[a], true
		}
		return mix(own%centres*7919+a*31+salt) % w.vocabulary[a], true
	}
	schema, err := index.ParseSchema(enginetest.RowsSchema)
	if err != nil {
		t.Fatal(err)
	}
	var specs []index.AttributeSpec
	for a, v := range w.vocabulary {
		specs = append(specs, index.AttributeSpec{Name: "a" + strconv.Itoa(a), Type: index.Ordinal, Keywords: v, Layout: layouts[a]})
	}
	b, err := index.NewBuilder(schema, specs, index.BuilderOptions{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	for id := range objects {
		for a := range w.vocabulary {
			if kw, ok := w.object(id, uint32(a)); ok {
				if err := b.AddOrdinal(a, kw); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := b.EndObject("", nil, ""); err != nil {
			t.Fatal(err)
		}
	}
	w.index = enginetest.OpenBuilt(t, b)
	return w
}

// plan makes a query like an object: of each attribute that it asks its keyword, or another, or a range; and now and then
// what the filter cannot count.
func (w *codedWorld) plan(rng *rand.Rand) gpuexec.Plan {
	var p gpuexec.Plan
	m := &p
	enginetest.Query(m) // also of no item
	like, asked, other, reach := rng.IntN(w.objects), 1+rng.IntN(100), rng.IntN(60), uint32(rng.IntN(3)*rng.IntN(40))
	odd := rng.IntN(8) == 0
	order := rng.Perm(len(w.vocabulary))
	for _, a := range order {
		if rng.IntN(100) >= asked {
			continue
		}
		weight := uint32(1)
		if odd && rng.IntN(20) == 0 {
			weight = 2
		}
		enginetest.Query(m).StartItem(uint32(a), weight)
		v := w.vocabulary[a]
		kw, ok := w.object(like, uint32(a))
		if !ok || rng.IntN(100) < other {
			kw = uint32(rng.IntN(int(v)))
		}
		lo, hi := kw-min(kw, reach), min(kw+reach+1, v)
		if odd && rng.IntN(20) == 0 && lo > 1 {
			enginetest.Query(m).AddSpan(0, 1)
		}
		enginetest.Query(m).AddSpan(lo, hi)
		if odd && rng.IntN(20) == 0 {
			enginetest.Query(m).Items = append(enginetest.Query(m).Items, enginetest.Query(m).Items[rng.IntN(len(enginetest.Query(m).Items))])
		}
	}
	m.K = []int{1, 2, 10, 100, 100, 1 + rng.IntN(300), 1000, 1 + rng.IntN(5000), w.objects + 1}[rng.IntN(9)]
	m.K = min(m.K, 8000)
	if rng.IntN(4) == 0 {
		m.MinCount = uint32(rng.IntN(len(enginetest.Query(m).Items) + 2))
	}
	return p
}

// compare searches random plans in batches of random size.
func (w *codedWorld) compare(t *testing.T, rng *rand.Rand, s gpuexec.Searcher, count int) compared {
	t.Helper()
	c := compared{indexes: 1}
	cpu := enginetest.LoadOn(t, cpu.New(gpuexec.CPUOptions{Workers: runtime.GOMAXPROCS(0)}), w.index)
	plans := make([]gpuexec.Plan, count)
	for i := range plans {
		plans[i] = w.plan(rng)
	}
	want := enginetest.Search(t, cpu, plans)
	for first := 0; first < count; {
		end := min(count, first+1+rng.IntN(count))
		got := c.search(t, s, plans[first:end])
		for i := range got {
			if !enginetest.SameHits(&got[i], &want[first+i]) {
				m := &plans[first+i]
				t.Fatalf("%d objects, %d attributes, plan %d of %d (k %d, min_count %d, %d items):\n%s", w.objects, len(w.vocabulary), i,
					end-first, m.K, m.MinCount, len(enginetest.Query(m).Items), difference(&got[i], &want[first+i]))
			}
		}
		first = end
	}
	return c
}

// openFilter opens the engine with the filter forced, on indexes of any number of narrow attributes.
func openFilter(t testing.TB) *cudaEngine {
	e := openDevice(t, gpuexec.CUDAOptions{}).(*cudaEngine)
	if e.kernels.filter.columns == 0 {
		t.Skip("the device has no matrix products that the filter could use")
	}
	e.limits.narrow = 1
	force(t, e, "filter")
	return e
}

// randomFilterWaves sets waves of any size, and how soon a query is abandoned.
func randomFilterWaves(rng *rand.Rand, lanes []*lane) (w wavePolicy) {
	w = defaultWaves
	w.filterFirst = []int{64, 128, 1024, 1024, 4096 + 64}[rng.IntN(5)]
	w.filterMost = max(w.filterFirst, []int{64, 1024, 8192 - 64, 65536, abi.BoundMarks, abi.BoundWave}[rng.IntN(6)])
	w.filterShare = []int{1, 32, 1 << 20}[rng.IntN(3)]
	for _, l := range lanes {
		l.waves = w
	}
	return w
}

// TestCUDAFilterAgainstCPU compares the filter with the CPU engine: around the borders of tiles, groups and waves, with rows of
// one to seven chunks, and any share of queries that are abandoned or not for the filter.
func TestCUDAFilterAgainstCPU(t *testing.T) {
	e := openFilter(t)
	rng := enginetest.NewRand(t)
	var sum compared
	const tile = index.TileObjects
	for _, n := range []int{1, 63, 64, 65, 1023, 1024, 1025, 2047, 2049, 5000, 20000, tile, tile + 1, 3*tile + 5, 10*tile + 700} {
		if scaled(100) < 100 && n > 6000 {
			continue
		}
		for range scaled(4) {
			attributes := min([]int{1, 2, 7, 8, 9, 15, 17, 63, 64, 65, 130, 237, 300, 448, 500}[rng.IntN(15)], max(1, 12_000_000/n))
			w := newCodedWorld(t, rng, n, attributes)
			waves := randomFilterWaves(rng, e.all)
			e.limits.planesOnly = rng.IntN(2) == 0
			s := onDevice(enginetest.LoadOn(t, e, w.index))
			count := min(max(8, scaled([]int{40, 130, 300, 1100}[rng.IntN(4)])), 1+2_000_000_000/n/attributes)
			own := w.compare(t, rng, s, count)
			t.Logf("%d objects, %d attributes, waves of %d to %d, share %d: %d queries", n, attributes,
				waves.filterFirst, waves.filterMost, waves.filterShare, count)
			sum.add(own)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	sum.report(t)
	sum.took(t, "filter")
}

// TestCUDAFilterAbandons: queries whose masks nearly every object meets are executed by another kernel, and the index is left
// alone for some batches.
func TestCUDAFilterAbandons(t *testing.T) {
	e := openFilter(t)
	force(t, e, "")
	const objects, attributes = 40_000, 40
	wl := workload{layout: "sliced", objects: objects, attributes: attributes, vocabulary: 200, k: 10, queries: 300}
	wl.object = func(dst [][2]uint32, id uint32) [][2]uint32 {
		for a := range uint32(attributes) {
			keyword := id // so that each occurs, and is its own code
			if id >= 200 {
				keyword = 5 + 32*(mix(id*31+a*7919)%6) // equal mod 32
			}
			dst = append(dst, [2]uint32{a, keyword})
		}
		return dst
	}
	wl.query = func(dst [][2]uint32, q uint32) [][2]uint32 { return wl.object(dst, 200+mix(q)%(objects-200)) }
	x := wl.build(t)
	s := onDevice(enginetest.LoadOn(t, e, x))
	defer s.Close()
	want := enginetest.Search(t, enginetest.LoadOn(t, cpu.New(gpuexec.CPUOptions{}), x), wl.plans())
	got := make([]gpuexec.Answer, wl.queries)
	for _, l := range e.all {
		l.filters.step, l.filters.wave, l.filters.recount = 0, 0, 0 // it always seems to pay
		l.filters.rest = 3
	}
	for round := range 10 {
		var stages gpuexec.Trace
		err := s.Search(context.Background(), wl.plans(), got, &stages)
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
		if n := stages.Work.FilterQueries; n != 0 {
			t.Errorf("round %d: the filter answered %d queries", round, n)
		}
		if rest := int(s.resident.codes.rest.Load()); rest != 3-round%4 {
			t.Errorf("round %d: the filter rests for %d batches", round, rest)
		}
	}
}

// TestCUDASmallerPieces: where lanes have no room for the kernels of a whole batch, its pieces, between which queries are given up
// and executed again, are answered like those of the CPU engine, in the memory that there is.
func TestCUDASmallerPieces(t *testing.T) {
	e := openFilter(t)
	rng := enginetest.NewRand(t)
	objects := 20_000
	if scaled(100) < 100 {
		objects = 2000
	}
	w := newCodedWorld(t, rng, objects, 60)
	s := enginetest.LoadOn(t, e, w.index)
	defer s.Close()
	paths := comparedBy{}
	for range scaled(3) {
		for _, c := range []struct {
			path  string
			share int // 1: no query is given up
		}{{"filter", 1}, {"filter", 32}, {"filter", 1 << 20}, {"sliced", 1}, {"", 32}} {
			force(t, e, c.path)
			randomFilterWaves(rng, e.all)
			room := 10<<20 + rng.Int64N(10<<20) // the filter's marks alone take 32 KiB a query
			for _, l := range e.all {
				l.bytes, l.waves.filterShare = room, c.share
			}
			own := w.compare(t, rng, s, max(300, scaled(1000)))
			if own.work.Bytes > room {
				t.Errorf("path %q: a piece took %d of %d bytes", c.path, own.work.Bytes, room)
			}
			paths.add(c.path, own)
		}
	}
	paths.report(t, "filter", "sliced")
}

// TestCUDAFilterConcurrent runs overlapping batches on two indexes.
func TestCUDAFilterConcurrent(t *testing.T) {
	e := openFilter(t)
	rng := enginetest.NewRand(t)
	randomFilterWaves(rng, e.all)
	var calls sync.WaitGroup
	var mu sync.Mutex
	var sum compared
	for range 2 {
		w := newCodedWorld(t, rng, 30_000, 50)
		s := enginetest.LoadOn(t, e, w.index)
		defer s.Close()
		for range 4 {
			own := rand.New(rand.NewPCG(rng.Uint64(), 0))
			calls.Go(func() {
				for range 4 {
					c := w.compare(t, own, s, scaled(100))
					mu.Lock()
					sum.add(c)
					mu.Unlock()
				}
			})
		}
	}
	calls.Wait()
	sum.report(t)
	sum.took(t, "filter")
}

// TestCUDAFilterRanges: a device that holds a range of the tiles counts from its beginning.
func TestCUDAFilterRanges(t *testing.T) {
	openFilter(t) // skips
	g := openDeviceGroup(t, gpuexec.CUDAOptions{Mode: gpuexec.DeviceCapacity, BatchMemory: 256 << 20})
	rng := enginetest.NewRand(t)
	forceGroup(t, g, "filter")
	var sum compared
	for round := 0; round < scaled(3) || sum.work.FilterQueries == 0 && round < 20; round++ {
		attributes := 1 + rng.IntN(70)
		easy := sum.work.FilterQueries == 0 // many attributes, and no query is abandoned, so that the filter answers some
		if easy {
			attributes += 30
		}
		w := newCodedWorld(t, rng, (2+rng.IntN(4))*index.TileObjects+rng.IntN(2000), attributes)
		for _, e := range g.engines {
			e.limits.narrow = 1
			randomFilterWaves(rng, e.all)
			for _, l := range e.all {
				if easy {
					l.waves.filterShare = 1
				}
			}
		}
		s := enginetest.LoadOn(t, g, w.index)
		sum.add(w.compare(t, rng, s, scaled(200)))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	sum.report(t)
	sum.took(t, "filter")
}

// TestFilterable: what the filter can count.
func TestFilterable(t *testing.T) {
	c := &codesLayout{columnOf: []uint32{0, 1, noColumn, nothingThere, 2}, wide: []bool{false, true, true}}
	type item struct{ attribute, weight, lo, hi uint32 }
	for _, test := range []struct {
		items []item
		ok    bool
		dense int
	}{
		{nil, true, 0},
		{[]item{{0, 1, 3, 4}, {4, 1, 7, 8}}, true, 1},
		{[]item{{4, 1, 7, 8}, {3, 5, 1, 2}, {1, 1, 0, 100}}, true, 33},
		{[]item{{0, 1, 0, 30}}, true, 0},
		{[]item{{0, 2, 3, 4}}, false, 0},
		{[]item{{2, 1, 3, 4}}, false, 0},
		{[]item{{1, 1, 3, 4}, {0, 1, 3, 4}, {1, 1, 5, 6}}, false, 0},
	} {
		var q index.Query
		for _, i := range test.items {
			q.StartItem(i.attribute, i.weight)
			q.AddSpan(i.lo, i.hi)
		}
		q.StartItem(2, 7) // without spans
		if ok, dense := c.filterable(&q); ok != test.ok || dense != test.dense {
			t.Errorf("%v: %v with %d bits", test.items, ok, dense)
		}
	}
	var q index.Query
	q.StartItem(0, 1)
	q.AddSpan(0, 1)
	q.AddSpan(4, 5)
	if ok, _ := c.filterable(&q); ok {
		t.Error("a set is filterable")
	}
}

// TestFilterWaves: waves cover the objects once, in order, of whole tiles, none larger than all before it or than the most.
func TestFilterWaves(t *testing.T) {
	rng := enginetest.NewRand(t)
	for range 200 {
		p := wavePolicy{filterFirst: abi.BoundTile * (1 + rng.IntN(20))}
		p.filterMost = p.filterFirst + abi.BoundTile*rng.IntN(300)
		objects, next := index.GroupObjects*rng.IntN(300), 0
		for first, count := range p.filterWaves(objects) {
			if first != next || count < 1 || count%abi.BoundTile != 0 || count > p.filterMost || first > 0 && count > first {
				t.Fatalf("%+v, %d objects: a wave of %d at %d", p, objects, count, first)
			}
			next = first + count
		}
		if next != objects {
			t.Fatalf("%+v: waves end at %d of %d", p, next, objects)
		}
	}
}

// TestCodesLayout: codes are there where they pay and what they hold fits a byte.
func TestCodesLayout(t *testing.T) {
	rng := enginetest.NewRand(t)
	for range 20 {
		w := newCodedWorld(t, rng, 1+rng.IntN(2000), 1+rng.IntN(100))
		layout, err := layoutResident(w.index, run.AllTiles(w.index), residentLimits{memory: 1 << 30})
		if err != nil {
			t.Fatal(err)
		}
		most := 1 + rng.IntN(maxColumns)
		c := newCodesLayout(w.index, layout, most, 0)
		columns := 0
		for a := range w.vocabulary {
			if s := layout.sliced; s != nil && s.has(a) && s.attributes[a].Codes <= abi.MaxCodes {
				columns++
			}
		}
		columns = min(columns, most)
		if (c == nil) != (columns < minColumns) {
			t.Fatalf("%d columns have codes: %v", columns, c != nil)
		}
		if c == nil {
			continue
		}
		row, steps := c.rowBytes(), c.steps()
		if len(c.columns) != columns || row < columns || row%abi.ChunkColumns != 0 || steps*abi.StepColumns < columns || steps%2 != 0 ||
			steps*abi.StepColumns > row || c.objects < w.objects || c.end != c.rows+int64(c.objects*row) {
			t.Errorf("%d columns of %d objects: %+v", columns, w.objects, c)
		}
		for column, a := range c.columns {
			if c.columnOf[a] != uint32(column) {
				t.Errorf("column %d is of attribute %d, which has column %d", column, a, c.columnOf[a])
			}
		}
		r := hostResident(t, w.index, residentLimits{memory: 1 << 30})
		r.codes = &residentCodes{codesLayout: c}
		for range 20 {
			plan := w.plan(rng)
			bound, err := w.index.CheckQuery(plan.Query)
			if err != nil {
				t.Fatal(err)
			}
			q := r.plan(&run.Job{Query: enginetest.Query(&plan), K: plan.K, MinCount: 1, Bound: bound})
			if q.filterable && q.spans > columns {
				t.Errorf("%d spans on %d columns", q.spans, columns)
			}
		}
		layout.streamed = true
		if newCodesLayout(w.index, layout, most, 1) != nil {
			t.Error("an index that is streamed has codes")
		}
	}
}

// TestFilterPolicy: large batches of many attributes are the filter's, and an index on which it does not pay has a rest.
func TestFilterPolicy(t *testing.T) {
	const objects = 4_500_000 / index.GroupObjects * index.GroupObjects
	c := &residentCodes{codesLayout: &codesLayout{columns: make([]uint32, 237), objects: objects}}
	k := &cudaKernels{processors: 132, sliced: []cudaSliced{{planes: 8, warps: 8, slots: 16, decoders: 8, stageOctets: 62}}}
	r := &resident{kernels: k, codes: c, sliced: &slicedIndex{slicedLayout: &slicedLayout{octets: 237 * 9}}}
	device := policyDevice{processors: 132, tiles: 70, groups: objects / index.GroupObjects}
	chosen := func(path launchPath, count, k, dense int) (filtered int) {
		l := &lane{resident: r, waves: defaultWaves, policy: defaultPolicy, filters: defaultFilters}
		l.policy.path = path
		for range count {
			l.pieces = append(l.pieces, laneQuery{job: &run.Job{K: k}, spans: 237, rows: 237, weightedRows: 237, weights: 1,
				postings: 33_000_000, filterable: true, dense: dense})
		}
		l.policy.choose(l.pieces, r.slicedLayout(), r.kernels.sliced, device)
		l.filters.choose(l, c, device)
		for _, q := range l.pieces {
			if q.filter {
				filtered++
			}
		}
		return filtered
	}
	for _, test := range []struct {
		path            launchPath
		count, K, dense int
		want            int
	}{
		{pathByCost, 1024, 100, 237, 1024},
		{pathByCost, 256, 100, 237, 256},
		{pathByCost, 1, 100, 237, 0},
		{pathByCost, 1024, 100, 237 * 25, 0},
		{pathByCost, 1024, gpuexec.MaxK, 237, 0},
		{pathFilter, 1, gpuexec.MaxK, 237 * 25, 1},
		{pathSliced, 1024, 100, 237, 0},
		{pathTile, 1024, 100, 237, 0},
	} {
		if got := chosen(test.path, test.count, test.K, test.dense); got != test.want {
			t.Errorf("%v, %d queries, k %d, %d bits: %d by the filter, want %d", test.path, test.count, test.K, test.dense, got, test.want)
		}
	}
	f := filterPolicy{rest: 2}
	f.learn(c, 80, 10)
	if c.rest.Load() != 0 {
		t.Error("a rest after few abandoned queries")
	}
	f.learn(c, 80, 11)
	for _, want := range []int{0, 0, 1024} {
		if got := chosen(pathByCost, 1024, 100, 237); got != want {
			t.Errorf("%d queries by the filter, want %d", got, want)
		}
	}
}
