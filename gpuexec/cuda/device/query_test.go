//go:build cuda

package device

import (
	"slices"
	"testing"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/kernels"
)

// hostResident is what the host knows of an index that is resident on an H200, without a device.
func hostResident(t testing.TB, x *index.Index, limits residentLimits) *resident {
	t.Helper()
	layout, err := layoutResident(x, run.AllTiles(x), limits)
	if err != nil {
		t.Fatal(err)
	}
	r := &resident{index: x, tiles: layout.tiles, kernels: hostKernels(), parts: layout.parts, attributes: layout.attributes, postings: layout.postings,
		repeats: make([]uint32, layout.attributes)}
	for a := range r.repeats {
		r.repeats[a] = 1
	}
	if layout.sliced != nil {
		r.sliced = &slicedIndex{slicedLayout: layout.sliced}
	}
	if codes := newCodesLayout(x, layout, maxColumns, 0); codes != nil {
		r.codes = &residentCodes{codesLayout: codes}
	}
	r.planner = newPlanner(r)
	return r
}

// hostKernels are the kernels that an H200 has, without the functions.
func hostKernels() *cudaKernels {
	k := &cudaKernels{processors: 132}
	for _, variant := range kernels.MatchVariants {
		k.matches = append(k.matches, cudaMatch{Match: variant})
	}
	for _, planes := range []int{8, 16, 32} {
		k.sliced = append(k.sliced, cudaSliced{planes: planes, warps: 8, slots: 16, decoders: 8, stageOctets: 62})
	}
	return k
}

// TestPlan: what planning derives of a query holds for the objects, in each form that attributes can have on the device.
func TestPlan(t *testing.T) {
	rng := enginetest.NewRand(t)
	ranges := 0
	for range 200 {
		w := enginetest.RandomWorld(t, rng, 1+rng.IntN(300))
		r := hostResident(t, w.Index, residentLimits{memory: 1 << 40, planesOnly: rng.IntN(2) == 0})
		for a := range r.repeats {
			r.repeats[a] = uint32(repeatsOf(w, a))
		}
		r.planner = newPlanner(r)
		for range 30 {
			plan := w.RandomPlan(rng)
			m := &plan
			bound := w.Index.CountBound(enginetest.Query(m))
			if bound >= 1<<32 {
				continue
			}
			counts := w.Counts(enginetest.Query(m))
			q := r.plan(&run.Job{Query: enginetest.Query(m), K: 1, MinCount: 1, Bound: uint32(bound)})
			if most := slices.Max(counts); uint64(q.bound) < most || uint64(q.bound) > bound {
				t.Fatalf("%+v: the bound is %d, an object has %d", enginetest.Query(m), q.bound, most)
			}
			if q.counters < 0 {
				continue
			}
			var postings uint64
			var rows, bias uint32
			for _, item := range enginetest.Query(m).Items {
				codes := w.Index.Codes(int(item.Attr))
				if codes.Len() == 0 {
					continue
				}
				for _, span := range enginetest.Query(m).ItemSpans(item) {
					lo, hi := codes.Of(span.Lo), codes.Of(span.Hi)
					postings += codes.Before(hi) - codes.Before(lo)
					switch {
					case lo == hi:
					case hi == lo+1 || lo == 0:
						rows++
					default:
						ranges++
						rows += 2
						bias += item.Weight
					}
				}
			}
			if q.postings != postings || q.rows < rows || uint64(q.rows) > 2*uint64(q.spans) {
				t.Fatalf("%+v: %d postings, at most %d rows; there are %d and %d", enginetest.Query(m), q.postings, q.rows, postings, rows)
			}
			if planes := r.kernels.sliced[q.counters].planes; uint64(q.bound)+uint64(bias) >= 1<<planes {
				t.Fatalf("%+v: counters of %d bits for counts to %d and biases of %d", enginetest.Query(m), planes, q.bound, bias)
			}
		}
	}
	if ranges == 0 {
		t.Error("no range had two bounds")
	}
}

// repeatsOf is the most times that one object has one keyword of an attribute, at least 1.
func repeatsOf(w *enginetest.World, a int) int {
	most := 1
	for _, object := range w.Objects {
		times := map[uint32]int{}
		for _, keyword := range object[a] {
			times[keyword]++
			most = max(most, times[keyword])
		}
	}
	return most
}

// TestShare: the shares of ranges of tiles add up to all postings, however many these are.
func TestShare(t *testing.T) {
	rng := enginetest.NewRand(t)
	for range 100 {
		objects := 1 + rng.Uint64N(1<<32-1)
		postings := rng.Uint64() >> rng.IntN(64)
		var sum uint64
		for before := uint64(0); before < objects; {
			end := before + 1 + rng.Uint64N(objects-before)
			l := slicedLayout{objects: objects, before: before, end: end}
			sum += l.share(postings)
			before = end
		}
		if sum != postings {
			t.Fatalf("%d postings of %d objects: the shares are %d", postings, objects, sum)
		}
	}
}

// BenchmarkPlan is what the host does with a batch, on one core: planning, and encoding for the device.
func BenchmarkPlan(b *testing.B) {
	for _, c := range []struct {
		wl     workload
		limits residentLimits
		name   string
	}{
		{rows(70_000), residentLimits{memory: 1 << 40}, "w4"},
		{rows(70_000), residentLimits{memory: 1 << 40, planesOnly: true}, "w4 planes"},
		{hashed(20_000, 237), residentLimits{memory: 1 << 40}, "w1"},
		{zipf("w3", 400_000, 17, 1_000_000, 20, 12, 100), residentLimits{memory: 1 << 40}, "w3"},
		{zipf("w3", 400_000, 17, 1_000_000, 20, 12, 100), residentLimits{memory: 1 << 40}, "w3 rare"},
	} {
		if c.name == "w3 rare" {
			c.wl.layout = "rare"
		}
		x := c.wl.build(b)
		plans := c.wl.plans()
		r := hostResident(b, x, c.limits)
		jobs := make([]*run.Job, len(plans))
		spans := 0
		for i := range plans {
			bound, err := x.CheckQuery(plans[i].Query)
			if err != nil {
				b.Fatal(err)
			}
			jobs[i] = &run.Job{Query: enginetest.Query(&plans[i]), K: plans[i].K, MinCount: 1, Bound: bound}
			spans += len(enginetest.Query(&plans[i]).Spans)
		}
		queries := make([]laneQuery, len(jobs))
		perSpan := func(b *testing.B) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(spans), "ns/span")
		}
		b.Run(c.name+"/check", func(b *testing.B) {
			for b.Loop() {
				for i := range plans {
					_, _ = x.CheckQuery(plans[i].Query)
				}
			}
			perSpan(b)
		})
		b.Run(c.name+"/plan", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for i, job := range jobs {
					queries[i] = r.plan(job)
				}
			}
			perSpan(b)
		})
		all := 0
		for i := range queries {
			all += queries[i].spans
		}
		to := make([]abi.Span, all)
		b.Run(c.name+"/encode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				at := 0
				for i := range queries {
					r.planner.encodeSpans(to[at:at+queries[i].spans], queryOf(queries[i].job))
					at += queries[i].spans
				}
			}
			perSpan(b)
		})
		l := lane{resident: r, pieces: queries, waves: defaultWaves, policy: defaultPolicy, bytes: 1 << 30}
		b.Run(c.name+"/layout", func(b *testing.B) {
			for b.Loop() {
				l.layout()
			}
		})
	}
}
