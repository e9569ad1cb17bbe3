package plan

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/filters"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestFiltersAsSent reads what is sent to the device as kernels/filter.cu does, and compares what passes with the definition: filters that
// are equal are sent once, in an order that the device can follow, with the values that it looks at.
func TestFiltersAsSent(t *testing.T) {
	rng := seeded.Rand(t)
	shared := 0
	for range enginetest.Rounds(make([]struct{}, 150)) {
		w := enginetest.RandomWorld(t, rng, 1+rng.IntN(300))
		x := hostIndex(t, w.Index, Limits{Memory: 1 << 40, PlanesOnly: rng.IntN(2) == 0, stored: w.Stored()})
		var jobs []*run.Job
		var earlier []*filter.Filter
		for range 20 {
			p := w.RandomFilteredPlan(rng, &earlier)
			if bound, err := x.Lists.CheckQuery(p.Query, w.Stored()); err == nil {
				jobs = append(jobs, &run.Job{Query: p.Query, K: min(p.K, len(w.Objects)), MinCount: max(1, p.MinCount), Bound: bound})
			}
		}
		b, err := NewBatch(context.Background(), x, jobs, run.NewCrew(1))
		if err != nil {
			t.Fatal(err)
		}
		b.Executes(*hostPolicy(), roomOf(1<<30), nil)
		in, out := make([]byte, 8<<20), make([]byte, 8<<20)
		for p := b.Next(); p != nil; p = b.Next() {
			for i := range in {
				in[i] = 0xee // of the batch before
			}
			if err := b.Encode(in); err != nil {
				t.Fatal(err)
			}
			f, n := &p.Filters, len(p.Queries)
			of := abi.Array[uint32](in, f.Of, n)
			used := 0
			for i := range p.Queries {
				q := queryOf(p.Queries[i].Job)
				if q.Filter == nil {
					if f.Count > 0 && of[i] != abi.NoFilter {
						t.Fatalf("a query without a filter has number %x", of[i])
					}
					continue
				}
				used++
				if _, only, _ := q.Filtering(); only != (of[i]&abi.FilterOnly != 0) {
					t.Fatalf("filter only: %v, sent as %x", only, of[i])
				}
				for id := range w.Objects {
					if got := passesAsSent(x, w, f, in, of[i]&^abi.FilterOnly, id); got != w.Passes(q.Filter, id) {
						t.Fatalf("object %d passes %v\n%+v", id, got, q.Filter)
					}
				}
			}
			if used > f.Count {
				shared++
			}
			for i, total := range abi.Array[uint64](in, f.Totals, f.Count) {
				if total != 0 {
					t.Fatalf("total %d begins at %d", i, total)
				}
			}
			clear(out)
			for i, total := range abi.Array[uint64](out, p.Totals-p.States, f.Count) {
				_ = total
				abi.Array[uint64](out, p.Totals-p.States, f.Count)[i] = uint64(1000 + i)
			}
			if err := b.Decode(t.Context(), out); err != nil {
				t.Fatal(err)
			}
			for i := range p.Queries {
				q := &p.Queries[i]
				want := uint64(0)
				if queryOf(q.Job).Total {
					want = uint64(len(w.Objects))
					if q.filter != nil {
						want = uint64(1000 + of[i]&^abi.FilterOnly)
					}
				}
				if q.Job.Total != want {
					t.Fatalf("total %d, want %d", q.Job.Total, want)
				}
			}
		}
		b.Close()
	}
	if shared == 0 {
		t.Error("no filter was shared")
	}
}

// passesAsSent is filter_tiles for one object.
func passesAsSent(x *Index, w *enginetest.World, f *filters.Layout, in []byte, number uint32, id int) bool {
	clauses := abi.Array[abi.Clause](in, f.Clauses, int(f.Spans-f.Clauses)/abi.ClauseBytes)
	spans := abi.Array[abi.Span](in, f.Spans, int(f.Ranges-f.Spans)/abi.SpanBytes)
	ranges := abi.Array[filter.Range](in, f.Ranges, int(f.Heads-f.Ranges)/abi.RangeBytes)
	head := abi.Array[abi.FilterHead](in, f.Heads, f.Count)[number]
	has := func(spans []abi.Span) bool {
		return slices.ContainsFunc(spans, func(s abi.Span) bool {
			return slices.ContainsFunc(w.Objects[id][s.Attribute], func(kw uint32) bool { return s.Lo <= kw && kw < s.Hi })
		})
	}
	result, group := true, false
	for _, c := range clauses[head.First : head.First+head.Clauses] {
		met := has(spans[c.First : c.First+c.Spans])
		if !met && c.Edges > 0 && has(spans[c.First+c.Spans:][:c.Edges]) {
			met = slices.ContainsFunc(numbersOnDevice(x, int(c.Attribute), id), func(v float64) bool {
				return slices.ContainsFunc(ranges[c.FirstRange:][:c.Ranges], func(r filter.Range) bool { return r.Min <= v && v <= r.Max })
			})
		}
		group = met && (group || c.Flags&abi.ClauseFirst != 0)
		if c.Flags&abi.ClauseLast != 0 {
			result = result && group != (c.Flags&abi.ClauseNot != 0)
		}
	}
	return result
}

// numbersOnDevice are the values of an object as they come to lie on the device.
func numbersOnDevice(x *Index, attribute, id int) (values []float64) {
	n := &x.Numbers
	own := &n.Attributes[slices.IndexFunc(n.Attributes, func(a filters.Number) bool { return a.Attribute == attribute })]
	n.EachTile(own, func(tile []float64) {
		values = append(values, tile...)
	})
	if own.Starts == 0 {
		return values[id : id+1]
	}
	starts := n.Starts(own)
	return values[starts[id]:starts[id+1]]
}

// TestNumbersOnDevice: values lie where the table says, behind each other, in tiles of either kind.
func TestNumbersOnDevice(t *testing.T) {
	rng := seeded.Rand(t)
	tried := 0
	for tried < 20 {
		w := enginetest.RandomWorld(t, rng, 1+rng.IntN(300))
		x := hostIndex(t, w.Index, Limits{Memory: 1 << 40, stored: w.Stored()})
		n := &x.Numbers
		if n.End == 0 {
			continue
		}
		tried++
		const memory = 1 << 20
		table := n.Table(memory)
		end := int64(abi.NumbersBytes * x.Attributes)
		for i := range n.Attributes {
			own := &n.Attributes[i]
			at := table[own.Attribute]
			if at.Values != abi.Pointer(memory+own.Values) || (own.Starts > 0) != (at.Starts != 0) || own.Values < end {
				t.Fatalf("%+v lies at %+v; what is before it ends at %d", own, at, end)
			}
			end = own.Values + 8*own.Count
			if own.Starts > 0 {
				if own.Starts < end {
					t.Fatalf("%+v overlaps", own)
				}
				end = own.Starts + 4*int64(len(w.Objects)+1)
			}
			for id := range w.Objects {
				got := slices.DeleteFunc(slices.Clone(numbersOnDevice(x, own.Attribute, id)), math.IsNaN)
				if !slices.Equal(got, w.Numbers[own.Attribute][id]) {
					t.Fatalf("object %d: %v, want %v", id, got, w.Numbers[own.Attribute][id])
				}
			}
		}
		if end > n.End || x.FixedBytes() < n.End {
			t.Fatalf("they end at %d, not %d", end, n.End)
		}
	}
}
