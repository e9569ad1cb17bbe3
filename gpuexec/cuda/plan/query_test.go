package plan

import (
	"slices"
	"testing"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/kernels"
)

// hostDevice is what planning knows of an H200, without one.
func hostDevice() *Device {
	d := &Device{Processors: 132, BoundColumns: MaxColumns, ScanObjects: 1024, ScanFarthest: 4096, Profile: profile.Of("NVIDIA H200")}
	for _, variant := range kernels.MatchVariants {
		d.Tile = append(d.Tile, TileVariant{Bits: variant.Bits, Blocks: variant.Blocks})
	}
	for _, planes := range []int{8, 16, 32} {
		d.Sliced = append(d.Sliced, SlicedVariant{Planes: planes, Warps: 8, Slots: 16, Decoders: 8, StageOctets: 62})
	}
	return d
}

// hostPolicy is that of an H200.
func hostPolicy() *Policy { return &Policy{Profile: hostDevice().Profile} }

// placed is the placement of an index that has its codes, whatever the memory.
func placed(t testing.TB, x *index.Index, limits Limits) Placement {
	t.Helper()
	r, err := newResident(listsOf(x), run.AllTiles(x), limits)
	if err != nil {
		t.Fatal(err)
	}
	return Placement{Resident: r, Codes: newCodes(r, MaxColumns, profile.Of("").Bound.Columns)}
}

// listsOf are the postings of an index.
func listsOf(x *index.Index) *postings.Lists {
	return x.Structure(postings.FamilyName).(*postings.Lists)
}

// hostIndex is an index that is resident on an H200, to who plans for it.
func hostIndex(t testing.TB, x *index.Index, limits Limits) *Index {
	t.Helper()
	return NewIndex(hostDevice(), placed(t, x, limits), slices.Repeat([]uint32{1}, len(x.Attributes())))
}

// The kernels are compiled for the index's tiles and groups.
var (
	_ = [1]struct{}{}[run.TileObjects-abi.TileObjects]
	_ = [1]struct{}{}[postings.GroupObjects-abi.GroupObjects]
)

// TestPlan: what planning derives of a query holds for the objects, in each form that attributes can have on the device.
func TestPlan(t *testing.T) {
	rng := seeded.Rand(t)
	ranges := 0
	for range 200 {
		w := enginetest.RandomWorld(t, rng, 1+rng.IntN(300))
		repeats := make([]uint32, len(w.Index.Attributes()))
		for a := range repeats {
			repeats[a] = uint32(repeatsOf(w, a))
		}
		r := NewIndex(hostDevice(), placed(t, w.Index, Limits{Memory: 1 << 40, PlanesOnly: rng.IntN(2) == 0}), repeats)
		for range 30 {
			p := w.RandomPlan(rng)
			m := &p
			bound := w.Index.CountBound(enginetest.Query(m))
			if bound >= 1<<32 {
				continue
			}
			counts := w.Counts(enginetest.Query(m))
			q := r.Plan(&run.Job{Query: enginetest.Query(m), K: 1, MinCount: 1, Bound: uint32(bound)})
			if most := slices.Max(counts); uint64(q.Bound) < most || uint64(q.Bound) > bound {
				t.Fatalf("%+v: the bound is %d, an object has %d", m.Query, q.Bound, most)
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
			if q.postings != postings || q.rows < rows || q.rows > 2*q.spans {
				t.Fatalf("%+v: %d postings, at most %d rows; there are %d and %d", m.Query, q.postings, q.rows, postings, rows)
			}
			if planes := r.device.Sliced[q.counters].Planes; uint64(q.Bound)+uint64(bias) >= 1<<planes {
				t.Fatalf("%+v: counters of %d bits for counts to %d and biases of %d", m.Query, planes, q.Bound, bias)
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
	rng := seeded.Rand(t)
	for range 100 {
		objects := 1 + rng.Uint64N(1<<32-1)
		postings := rng.Uint64() >> rng.IntN(64)
		var sum uint64
		for before := uint64(0); before < objects; {
			end := before + 1 + rng.Uint64N(objects-before)
			l := Planes{objects: objects, before: before, end: end}
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
		wl     enginetest.Workload
		limits Limits
		name   string
	}{
		{enginetest.Rows(70_000), Limits{Memory: 1 << 40}, "w4"},
		{enginetest.Rows(70_000), Limits{Memory: 1 << 40, PlanesOnly: true}, "w4 planes"},
		{enginetest.Hashed(20_000, 237), Limits{Memory: 1 << 40}, "w1"},
		{enginetest.Zipf("w3", 400_000, 17, 1_000_000, 20, 12, 100), Limits{Memory: 1 << 40}, "w3"},
		{enginetest.Zipf("w3", 400_000, 17, 1_000_000, 20, 12, 100), Limits{Memory: 1 << 40}, "w3 rare"},
	} {
		if c.name == "w3 rare" {
			c.wl.Layout = "rare"
		}
		x := c.wl.Build(b)
		plans := c.wl.Plans()
		r := hostIndex(b, x, c.limits)
		jobs := make([]*run.Job, len(plans))
		spans := 0
		for i := range plans {
			bound, err := listsOf(x).CheckQuery(plans[i].Query, nil)
			if err != nil {
				b.Fatal(err)
			}
			jobs[i] = &run.Job{Query: enginetest.Query(&plans[i]), K: plans[i].K, MinCount: 1, Bound: bound}
			spans += len(enginetest.Query(&plans[i]).Spans)
		}
		queries := make([]Query, len(jobs))
		perSpan := func(b *testing.B) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(spans), "ns/span")
		}
		b.Run(c.name+"/check", func(b *testing.B) {
			for b.Loop() {
				for i := range plans {
					_, _ = listsOf(x).CheckQuery(plans[i].Query, nil)
				}
			}
			perSpan(b)
		})
		b.Run(c.name+"/plan", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for i, job := range jobs {
					queries[i] = r.Plan(job)
				}
			}
			perSpan(b)
		})
		all := 0
		for i := range queries {
			all += int(queries[i].spans)
		}
		to := make([]abi.Span, all)
		b.Run(c.name+"/encode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				at := uint32(0)
				for i := range queries {
					r.encodeSpans(to[at:at+queries[i].spans], queryOf(queries[i].Job))
					at += queries[i].spans
				}
			}
			perSpan(b)
		})
		piece, room, policy := new(Piece), Room{1 << 30, 32 << 20, 32 << 20}, hostPolicy()
		b.Run(c.name+"/piece", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := r.planPiece(piece, queries, room, policy); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
