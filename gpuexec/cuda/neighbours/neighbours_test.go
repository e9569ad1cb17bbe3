//go:build cuda

package neighbours

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	hosted "github.com/geniemq/geniemq/gpuexec/cpu/nearest"
	"github.com/geniemq/geniemq/gpuexec/cuda/device"
	"github.com/geniemq/geniemq/gpuexec/cuda/nearest"
	"github.com/geniemq/geniemq/gpuexec/cuda/room"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/flatscan"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index"
	columns "github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric"
	asked "github.com/geniemq/geniemq/index/nearest"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/kernels"
)

// open opens a device, with waves so small that small worlds have several. Without a device the test is skipped, or fails where GENIEMQ_REQUIRE_CUDA is 1.
func open(t testing.TB, opts gpuexec.CUDAOptions) *device.Engine {
	t.Helper()
	opts.Untried, opts.Workers = true, 2
	e := openEngine(t, opts)
	waves := &e.Device().Profile.Near
	waves.First, waves.Growth, waves.Least, waves.Sieved, waves.List, waves.SievedHits, waves.Grouped, waves.Levelled = 128, 3, 300, 512, 96, 40, 4, 0
	waves.LevelSteps, waves.LevelsLeave = 1, 1
	waves.Sample, waves.SampleHits, waves.SampleShare = 128, 300, 1
	waves.Element = 1e6 // so that few queries are sieved too
	return e
}

// openEngine opens a device as it is, but that tests of what is untried have room for few hits within a radius at first.
func openEngine(t testing.TB, opts gpuexec.CUDAOptions) *device.Engine {
	t.Helper()
	images, err := kernels.Modules()
	if err != nil {
		t.Fatal(err)
	}
	e, err := device.Open(opts, 0, run.NewCrew(opts.Workers), images)
	if errors.Is(err, gpuexec.ErrNoCUDA) && os.Getenv("GENIEMQ_REQUIRE_CUDA") != "1" {
		t.Skipf("needs a CUDA device: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, test := t.(*testing.T); test && opts.Untried {
		e.Device().Profile.Near.Places = 5
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	e.Loaders[distance.FamilyName] = Loader(e)
	return e
}

// scaled is how often a randomised test repeats; GENIEMQ_ROUNDS scales it in percent.
func scaled(n int) int {
	if percent, err := strconv.Atoi(os.Getenv("GENIEMQ_ROUNDS")); err == nil {
		return max(1, n*percent/100)
	}
	return n
}

// scanOf is the path of an index that is loaded for it alone.
func scanOf(t testing.TB, e *device.Engine, x *index.Index) *scan {
	t.Helper()
	host, err := hosted.Load(e.Host, run.Whole(x))
	if err != nil {
		t.Fatal(err)
	}
	paths, err := pathsOf(t.Context(), e, room.For(e, e.Host, run.Whole(x), nil), host, run.Whole(x))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := nearest.New(host, paths...).Close(); err != nil {
			t.Error(err)
		}
	})
	return scanAmong(t, paths)
}

// scanAmong is the scan of vectors and points.
func scanAmong(t testing.TB, paths []nearest.Path) *scan {
	t.Helper()
	i := slices.IndexFunc(paths, func(p nearest.Path) bool { _, ok := p.(*scan); return ok })
	if i < 0 {
		t.Fatal("nothing scans vectors and points")
	}
	return paths[i].(*scan)
}

// request is one for vectors or points of a world.
func request(rng *rand.Rand, w *enginetest.DistanceWorld) *index.Request {
	near := w.Random(rng)
	r := &index.Request{Total: rng.IntN(4) == 0, Near: asked.Near{K: []int{1, 2, 10, 39, 41, len(w.Places), len(w.Places) + 1}[rng.IntN(7)], Method: "scan"}}
	r.Near.K = max(1, r.Near.K)
	if i := rng.IntN(len(w.Places)); rng.IntN(2) == 0 && w.Places[i].Vector != nil && w.Places[i].Point != nil {
		near = w.Places[i]
	}
	name := "vector"
	if rng.IntN(4) == 0 {
		name = "point"
		r.Point = &asked.Point{Lat: near.Point[0], Lon: near.Point[1]}
	} else {
		r.Vector = near.Vector
	}
	if rng.IntN(3) == 0 {
		value := columns.StringValue(enginetest.ClassName(rng.IntN(4)))
		r.Filter = []columns.Condition{{Attr: "class", Value: &value}}
	}
	if c := w.Index.Distances().Column(name); rng.IntN(3) == 0 {
		radius := 0.0
		if space, err := c.Space(); err == nil && rng.IntN(4) > 0 {
			if id := rng.Uint32N(c.Objects); c.Has(id) {
				radius = c.Metric.Report(space.Of(id).Value(rng.Uint32N(c.Objects))) // of some object to the bit
			}
		}
		r.Near.Radius = &radius
		if r.Near.CountOnly = rng.IntN(5) == 0; r.Near.CountOnly {
			r.Near.K = 0
		}
	}
	return r
}

// plansOf plans requests.
func plansOf(t testing.TB, x *index.Index, requests []*index.Request) []gpuexec.Plan {
	t.Helper()
	queries, err := index.NewQueries(x)
	if err != nil {
		t.Fatal(err)
	}
	plans := make([]gpuexec.Plan, len(requests))
	for i, r := range requests {
		made, err := queries.Plan(new(postings.MatchQuery), r)
		if err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		plans[i] = gpuexec.Plan{Family: made.Family, Query: made.Query, K: max(1, made.Query.(*distance.Query).K)}
	}
	return plans
}

// check holds answers against the flat definition, to the bit.
func check(t testing.TB, w *enginetest.DistanceWorld, plans []gpuexec.Plan, requests []*index.Request, answers []gpuexec.Answer) {
	t.Helper()
	for i := range plans {
		q := plans[i].Query.(*distance.Query)
		space, err := q.Column.Space()
		if err != nil {
			t.Fatal(err)
		}
		asker, err := q.Asker(space)
		if err != nil {
			t.Fatal(err)
		}
		want, within := flatscan.Nearest(asker, uint32(len(w.Places)), metric.Want{K: q.K, Most: q.Most}, func(id uint32) bool {
			p := &w.Places[id]
			passes := len(requests[i].Filter) == 0 || enginetest.ClassName(p.Class) == requests[i].Filter[0].Value.String
			return q.Column.Has(id) && passes
		})
		a := &answers[i]
		if a.Err != nil {
			t.Fatalf("query %d: %v", i, a.Err)
		}
		same, differs := len(a.Hits) == len(want), 0
		for ; same && differs < len(want); differs++ {
			same = a.Hits[differs].ID == want[differs].ID && math.Float64bits(a.Hits[differs].Score) == math.Float64bits(want[differs].Value)
		}
		did := a.Value.(*distance.Answer)
		if counted := q.Total || q.K == 0; !same || !a.Exact || did.Counted != counted || counted && did.Within != within {
			from := max(0, differs-1)
			t.Fatalf("query %d of %s %s, dims %d, %d objects: %d hits, from %d on %v, within %d; want %d, %v, %d: exact %v, %+v, %+v", i, q.Column.Metric.Kind, q.Column.Storage, q.Column.Dims,
				len(w.Places), len(a.Hits), from, some(a.Hits, from), did.Within, len(want), some(want, from), within, a.Exact, did, q)
		}
	}
}

// answered asks a searcher, and checks what it answers.
func answered(t testing.TB, s gpuexec.Searcher, w *enginetest.DistanceWorld, requests []*index.Request) []gpuexec.Answer {
	t.Helper()
	plans := plansOf(t, w.Index, requests)
	answers := make([]gpuexec.Answer, len(plans))
	if err := s.Search(t.Context(), plans, answers, nil); err != nil {
		t.Fatal(err)
	}
	check(t, w, plans, requests, answers)
	return answers
}

// some are a few hits from one on.
func some[T any](hits []T, from int) []T { return hits[min(len(hits), from):min(len(hits), from+8)] }

// TestCUDADistances: vectors of every metric and storage, and points, of worlds with many ties, are answered as by the flat definition, to the bit, by scans and
// by sieves.
func TestCUDADistances(t *testing.T) {
	e := open(t, gpuexec.CUDAOptions{BatchMemory: 4 << 20, InFlight: 1})
	rng := seeded.Rand(t)
	var total, byDevice int
	spared := make(map[string]int)
	sizes := []int{1, 127, 129, 300, 1500}
	for round := range scaled(120) {
		w := enginetest.RandomDistanceWorld(t, rng, sizes[round%len(sizes)], false)
		requests := make([]*index.Request, 1+rng.IntN(150))
		for i := range requests {
			requests[i] = request(rng, w)
		}
		near := &e.Device().Profile.Near
		near.List, near.Grouped, near.Sample = []int{16, 96, 4096}[rng.IntN(3)], []int{2, 1000}[rng.IntN(2)], []int{128, 256}[rng.IntN(2)]
		s := enginetest.LoadOn(t, e, w.Index)
		answers := answered(t, s, w, requests)
		for i := range answers {
			total++
			if answers[i].Rescoring == 0 {
				byDevice++
			}
			if d := answers[i].Value.(*distance.Answer).Distances; d > 0 && d < uint64(len(w.Places)) {
				spared[w.Metric]++
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d queries, %d on the device, of which the sieve has spared some distances, by metric: %v", total, byDevice, spared)
	if byDevice < total*9/10 || total > 5000 && len(spared) == 0 {
		t.Errorf("of %d queries %d were on the device, and sieved %v", total, byDevice, spared)
	}
}

// sieved are the metrics of vectors that have a sieve.
func sieved() []string {
	return []string{"l1", "l2", "cosine", "angular", "ip", "linf", "hamming", "l3", "l4", "l5", "l6", "l7", "l8"}
}

// largestOf is the size that elements have at most: lp refuses larger ones.
func largestOf(metric string) float32 {
	if metric >= "l3" && metric <= "l8" {
		return 0x1p100
	}
	return 3e38
}

// adversary makes a vector of a sort that bounds may get wrong, near to others of its sort.
func adversary(rng *rand.Rand, sort, dims int, base []float32, largest float32) []float32 {
	v := make([]float32, dims)
	size := math.Pow(10, rng.Float64()*60-30)
	for i := range v {
		switch x := float32(rng.NormFloat64()); sort {
		case 0: // norms from 1e-30 to 1e30
			v[i] = float32(size) * x
		case 1: // distances that differ by a unit in the last place, or not at all
			v[i] = base[i]
			if rng.IntN(4) == 0 {
				v[i] = math.Nextafter32(base[i], float32(rng.IntN(3)-1)*math.MaxFloat32)
			}
		case 2: // a large common mean
			v[i] = 1e6 + base[i] + x/1024
		case 3: // numbers that are not normal
			v[i] = math.Float32frombits(rng.Uint32N(1<<20) | rng.Uint32N(2)<<31)
		case 4: // one direction
			v[i] = base[i] * float32(math.Ldexp(1, int(size)%8))
		case 5: // one far away from all others
			v[i] = x
			if rng.IntN(2000) == 0 {
				v[i] = 3e38
			}
		case 7: // two places far apart, around each vectors that float16s do not tell apart
			v[i] = base[i]*1000 + x/64
			if size > 1 {
				v[i] = -v[i]
			}
		case 6: // just beyond what float16s tell apart
			v[i] = base[i] * (1 + x/4096)
		}
		v[i] = max(-largest, min(largest, v[i])) // what is infinite is refused
	}
	if v[0] == 0 {
		v[0] = math.SmallestNonzeroFloat32
	}
	return v
}

// TestCUDADistancesAdversarial: no hit is lost by the sieve, whatever vectors are made to mislead it. The share of objects that are compared exactly is reported.
func TestCUDADistancesAdversarial(t *testing.T) {
	e := open(t, gpuexec.CUDAOptions{BatchMemory: 8 << 20, InFlight: 1})
	e.Device().Profile.Near.List = 2048
	rng := seeded.Rand(t)
	for sort := range 8 {
		var compared, all uint64
		for range scaled(8) {
			n, of := adversarial(t, e, rng, sort, sieved()[rng.IntN(len(sieved()))])
			compared, all = compared+n, all+of
		}
		t.Logf("sort %d: %.1f %% of the objects are compared exactly", sort, 100*float64(compared)/float64(all))
	}
}

// TestCUDAProducts is the same of products, whose float16s are moved by no mean: vectors near each other are told apart by none. Some are spared all the same.
func TestCUDAProducts(t *testing.T) {
	e := open(t, gpuexec.CUDAOptions{BatchMemory: 8 << 20, InFlight: 1})
	e.Device().Profile.Near.List = 2048
	rng := seeded.Rand(t)
	var compared, all uint64
	for sort := range 8 {
		for range 1 + scaled(4) {
			n, of := adversarial(t, e, rng, sort, "ip")
			compared, all = compared+n, all+of
		}
	}
	if compared > all/10*9 {
		t.Errorf("%d of %d products are computed exactly: the sieve spares nothing", compared, all)
	}
}

// adversarial asks a world of one sort by one metric, and returns how many distances were computed, of how many.
func adversarial(t *testing.T, e *device.Engine, rng *rand.Rand, sort int, by string) (compared, all uint64) {
	t.Helper()
	w := &enginetest.DistanceWorld{Metric: by, Storage: "f32", Dims: []int{1, 3, 8, 17, 32, 100}[rng.IntN(6)]}
	largest := largestOf(w.Metric)
	base := adversary(rng, 5, w.Dims, nil, largest)
	for range 1400 {
		p := w.Random(rng)
		p.Vector = adversary(rng, sort, w.Dims, base, largest)
		w.Places = append(w.Places, p)
	}
	w.Build(t)
	requests := make([]*index.Request, 24)
	for i := range requests {
		r := &index.Request{Vector: adversary(rng, sort, w.Dims, base, largest), Near: asked.Near{K: 1 + rng.IntN(40), Method: "scan"}}
		if rng.IntN(2) == 0 {
			r.Vector = w.Places[rng.IntN(len(w.Places))].Vector
		}
		requests[i] = r
	}
	return comparedOf(t, e, w, requests)
}

// comparedOf asks a world, and returns how many distances were computed, of how many.
func comparedOf(t *testing.T, e *device.Engine, w *enginetest.DistanceWorld, requests []*index.Request) (compared, all uint64) {
	t.Helper()
	s := enginetest.LoadOn(t, e, w.Index)
	answers := answered(t, s, w, requests)
	for i := range answers {
		compared, all = compared+answers[i].Value.(*distance.Answer).Distances, all+uint64(len(w.Places))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return compared, all
}

// TestCUDADistancesWide: many dimensions, for which queries take several pieces of shared memory; those that it does not hold are scanned.
func TestCUDADistancesWide(t *testing.T) {
	e := open(t, gpuexec.CUDAOptions{BatchMemory: 8 << 20, InFlight: 1})
	rng := seeded.Rand(t)
	for i, dims := range []int{16, 32, 33, 257, 282, 1500, 4096, 32, 282, 1500} {
		of := rng.IntN(len(sieved()))
		if i > 6 { // these at least
			of = 4 + (i+of)%(len(sieved())-4)
		}
		w := &enginetest.DistanceWorld{Metric: sieved()[of], Storage: []string{"f32", "f16", "u8"}[rng.IntN(3)], Dims: dims}
		for range 700 {
			w.Places = append(w.Places, w.Random(rng))
		}
		w.Build(t)
		requests := make([]*index.Request, 12)
		for i := range requests {
			requests[i] = &index.Request{Vector: w.Random(rng).Vector, Near: asked.Near{K: 1 + rng.IntN(30), Method: "scan"}}
		}
		s := enginetest.LoadOn(t, e, w.Index)
		widest, ok := map[string]int{"l1": 1700, "hamming": 1700, "l2": 800, "cosine": 800, "angular": 800, "ip": 800, "linf": 800}[w.Metric]
		if !ok { // lp
			widest = 400
		}
		if c := scanOf(t, e, w.Index).columns[0]; c == nil || (c.Sieve != nil) != (dims < widest) {
			t.Errorf("%s of %d dimensions: the column is %+v", w.Metric, dims, c)
		}
		answered(t, s, w, requests)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCUDADistancesNoRoom: columns for which there is no room stay on the host, and all memory is given back.
func TestCUDADistancesNoRoom(t *testing.T) {
	e := open(t, gpuexec.CUDAOptions{BatchMemory: 4 << 20, InFlight: 1})
	rng := seeded.Rand(t)
	w := enginetest.RandomDistanceWorld(t, rng, 1500, false)
	free := enginetest.Free(e.Host.Budget)
	for _, left := range []int64{free, 64 << 10, 100} {
		release, err := e.Host.Budget.Reserve(gpuexec.Holding{Owner: "test", Form: "nothing", Bytes: free - left})
		if err != nil {
			t.Fatal(err)
		}
		host, err := hosted.Load(e.Host, run.Whole(w.Index))
		if err != nil {
			t.Fatal(err)
		}
		paths, err := pathsOf(t.Context(), e, room.For(e, e.Host, run.Whole(w.Index), nil), host, run.Whole(w.Index))
		if err != nil {
			t.Fatal(err)
		}
		here := 0
		for _, c := range scanAmong(t, paths).columns {
			if c != nil {
				here++
			}
		}
		if left == free && here != 2 || left == 100 && here != 0 { // between, it depends on how wide the columns are
			t.Errorf("with %d bytes %d columns are on the device", left, here)
		}
		if err := nearest.New(host, paths...).Close(); err != nil {
			t.Fatal(err)
		}
		release()
	}
	if got := enginetest.Free(e.Host.Budget); got != free {
		t.Errorf("%d bytes are free, and %d were", got, free)
	}
}

// TestCUDADistancesOfTiles: a device that holds a range of an index's tiles answers for these, with the ids of the whole; a query whose deadline has passed
// ends with that. Blocks go through two tiles, of which the second one's vectors are larger, lose more to rounding, and are as far as what is asked reaches.
func TestCUDADistancesOfTiles(t *testing.T) {
	if scaled(100) < 10 {
		t.Skip("of many objects: GENIEMQ_ROUNDS=10 or more")
	}
	e := open(t, gpuexec.CUDAOptions{BatchMemory: 64 << 20, InFlight: 1})
	waves := &e.Device().Profile.Near
	waves.First, waves.Growth, waves.Least, waves.Sieved, waves.List = 1024, 8, 1<<16, 1<<20, 1<<17
	e.Device().Processors = 3
	const far = 1000
	rng := seeded.Rand(t)
	w := &enginetest.DistanceWorld{Metric: "l2", Storage: "f32", Dims: 2}
	for i := range run.TileObjects + 700 {
		p := w.Random(rng)
		p.Vector = []float32{rng.Float32(), rng.Float32()}
		if i >= run.TileObjects {
			sin, cos := math.Sincos(rng.Float64() * 2 * math.Pi)
			r := far + rng.Float64() - .5
			p.Vector = []float32{float32(r * sin), float32(r * cos)}
		}
		if rng.IntN(9) == 0 {
			p.Vector = nil
		}
		w.Places = append(w.Places, p)
	}
	w.Build(t)
	requests := make([]*index.Request, 6)
	for i := range requests {
		requests[i] = &index.Request{Vector: []float32{rng.Float32(), rng.Float32()}, Total: i%3 == 1, Near: asked.Near{K: 1 + rng.IntN(30), Method: "scan"}}
		if i%2 == 0 {
			value := columns.StringValue(enginetest.ClassName(i % 4))
			requests[i].Filter = []columns.Condition{{Attr: "class", Value: &value}}
		}
	}
	requests[3].Near = asked.Near{CountOnly: true, Radius: new(float64(far)), Method: "scan"}
	requests[5].Vector, requests[5].Point = nil, &asked.Point{Lat: 12, Lon: 34}
	plans := plansOf(t, w.Index, requests)
	for _, tiles := range []run.Tiles{{First: 1, End: 2}, {First: 0, End: 2}} {
		own := run.Extent{Source: w.Index, Tiles: tiles}
		jobs := func() (jobs []*run.Job) {
			for i := range plans {
				jobs = append(jobs, &run.Job{Query: plans[i].Query, K: plans[i].K})
			}
			return jobs
		}
		host, err := hosted.Load(e.Host, own)
		if err != nil {
			t.Fatal(err)
		}
		want, got := jobs(), jobs()
		if err := host.Match(t.Context(), want, nil); err != nil {
			t.Fatal(err)
		}
		m, err := e.Loaders[distance.FamilyName].Load(t.Context(), e.Host, own, nil)
		if err != nil {
			t.Fatal(err)
		}
		late := &run.Job{Query: plans[0].Query, K: plans[0].K, Deadline: time.Now().Add(-time.Second)}
		if err := m.Match(t.Context(), append(got, late), nil); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(late.Err, gpuexec.ErrDeadline) {
			t.Errorf("a query whose deadline has passed ends with %v", late.Err)
		}
		for i := range got {
			a, b := got[i].Value.(*distance.Answer), want[i].Value.(*distance.Answer)
			if got[i].Err != nil || got[i].Spent != 0 || len(got[i].Hits) == 0 && a.Within == 0 || !slices.Equal(got[i].Hits, want[i].Hits) || got[i].Total != want[i].Total || a.Within != b.Within {
				t.Fatalf("tiles %v, query %d: %v (%v), %+v; want %v, %+v", tiles, i, some(got[i].Hits, 0), got[i].Err, a, some(want[i].Hits, 0), b)
			}
		}
		if err := errors.Join(m.Close(), host.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
