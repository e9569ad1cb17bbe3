package enginetest

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/refusal"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/index/verify"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// withFilter is a copy of a plan with another filter, that asks for the total.
func withFilter(p gpuexec.Plan, f *filter.Filter) gpuexec.Plan {
	q := OwnQuery(&p)
	q.Filter, q.Total = f, true
	return p
}

// negated is the filter that passes what a conjunction of clauses does not.
func negated(f *filter.Filter) *filter.Filter {
	not := *f
	not.Groups = []filter.Group{{Count: uint32(len(f.Clauses)), Negated: !f.Groups[0].Negated}}
	return &not
}

// TestFilterRelations checks what must hold between answers with filters, on collections of several tiles and all engines.
func TestFilterRelations(t *testing.T) {
	rng := seeded.Rand(t)
	for _, e := range engines(t) {
		w := RandomWorld(t, rng, 1+rng.IntN(3*store.TileObjects))
		s := LoadOn(t, e, w.Source())
		for range Rounds(make([]struct{}, 20)) {
			plan := w.RandomPlanBelow(rng)
			for len(Query(plan).Items) == 0 { // that would be a filter alone
				plan = w.RandomPlanBelow(rng)
			}
			one := &filter.Filter{}
			one.StartGroup(false)
			for range 1 + rng.IntN(2) {
				w.addClause(rng, one)
			}
			not := negated(one)
			both := &filter.Filter{Groups: append(slices.Clone(one.Groups), not.Groups...), Clauses: one.Clauses,
				Spans: one.Spans, Edges: one.Edges, Ranges: one.Ranges}
			most := *plan // all that match, so that they can be divided
			most.K = min(len(w.Objects), gpuexec.MaxK)
			a := Search(t, s, []gpuexec.Plan{withFilter(most, nil), withFilter(most, &filter.Filter{}), withFilter(most, one), withFilter(most, not),
				withFilter(most, both), withFilter(gpuexec.Plan{K: most.K}, one), withFilter(gpuexec.Plan{K: 3}, one), withFilter(gpuexec.Plan{K: 3}, both)})
			for i := range a {
				if a[i].Err != nil {
					t.Fatal(e.name, a[i].Err)
				}
			}
			none, everything, in, out, nobody, all, first := &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &a[6]
			if !slices.Equal(none.Hits, everything.Hits) || none.MCK != everything.MCK || none.Total != uint64(len(w.Objects)) || everything.Total != none.Total {
				t.Fatalf("%s: a filter that passes all is not like none: %d and %d hits, totals %d and %d", e.name, len(none.Hits), len(everything.Hits), none.Total, everything.Total)
			}
			if len(nobody.Hits) > 0 || nobody.Total != 0 || len(a[7].Hits) > 0 {
				t.Fatalf("%s: what is asked for and excluded has %d hits, total %d", e.name, len(nobody.Hits), nobody.Total)
			}
			if in.Total+out.Total != none.Total {
				t.Fatalf("%s: totals %d and %d of %d objects", e.name, in.Total, out.Total, none.Total)
			}
			if len(w.Objects) <= gpuexec.MaxK {
				if len(in.Hits)+len(out.Hits) != len(none.Hits) {
					t.Fatalf("%s: %d and %d hits of %d", e.name, len(in.Hits), len(out.Hits), len(none.Hits))
				}
				if uint64(len(all.Hits)) != in.Total {
					t.Fatalf("%s: a filter alone has %d hits, total %d", e.name, len(all.Hits), in.Total)
				}
			}
			if !slices.Equal(first.Hits, all.Hits[:min(3, len(all.Hits))]) || !slices.IsSortedFunc(all.Hits, func(a, b gpuexec.Hit) int { return int(a.ID) - int(b.ID) }) ||
				slices.ContainsFunc(all.Hits, func(h gpuexec.Hit) bool { return h.Count != 0 || !w.Passes(one, int(h.ID)) }) || all.MCK != 0 || !all.Exact {
				t.Fatalf("%s: a filter alone: %v, then %v", e.name, first.Hits, all.Hits[:min(10, len(all.Hits))])
			}
		}
		closeSearcher(t, s)
	}
}

// TestBadFilters: what no engine can execute is refused, and the plans beside it are answered.
func TestBadFilters(t *testing.T) {
	rng := seeded.Rand(t)
	w := RandomWorld(t, rng, 200)
	numbers := func() int {
		return slices.IndexFunc(w.Numbers, func(n [][]float64) bool { return n != nil })
	}
	for numbers() < 0 || w.Index.Attribute(numbers()).Exact || w.Index.Attribute(0).MaxPerObject == 0 {
		w = RandomWorld(t, rng, 200)
	}
	asked := uint32(numbers())
	plain := gpuexec.Plan{K: 5}
	Query(&plain).StartItem(0, 1)
	Query(&plain).AddSpan(0, w.Vocabulary[0])
	clause := func(change func(f *filter.Filter)) gpuexec.Plan {
		f := &filter.Filter{}
		f.StartGroup(false)
		f.StartClause(asked)
		f.AddSpan(0, 1)
		change(f)
		return withFilter(plain, f)
	}
	alone := func(change func(p *gpuexec.Plan)) gpuexec.Plan {
		p := withFilter(gpuexec.Plan{K: 5}, &filter.Filter{})
		change(&p)
		return p
	}
	good := clause(func(f *filter.Filter) { f.AddEdge(0, 1); f.AddRange(math.Inf(-1), 0) })
	bad := []gpuexec.Plan{
		clause(func(f *filter.Filter) { f.Groups[0].Count = 2 }),
		clause(func(f *filter.Filter) { f.Clauses[0].Attr = uint32(len(w.Vocabulary)) }),
		clause(func(f *filter.Filter) { f.Clauses[0].Spans.First = math.MaxUint32 }),
		clause(func(f *filter.Filter) { f.Spans[0].Hi = w.Vocabulary[asked] + 1 }),
		clause(func(f *filter.Filter) { f.Spans[0].Lo = 1 }),
		clause(func(f *filter.Filter) { f.AddEdge(0, 1) }), // no range
		clause(func(f *filter.Filter) { f.AddEdge(0, 1); f.AddRange(1, 0) }),
		clause(func(f *filter.Filter) { f.AddEdge(0, 1); f.AddRange(math.NaN(), 0) }),
		alone(func(p *gpuexec.Plan) { p.MinCount = 1 }),
		alone(func(p *gpuexec.Plan) { p.Certify = true }),
		alone(func(p *gpuexec.Plan) { p.Rescore = &verify.Nearest{K: 1, NGram: 3} }),
	}
	var plans []gpuexec.Plan
	for _, p := range bad {
		plans = append(plans, p, good)
	}
	for _, e := range engines(t) {
		s := LoadOn(t, e, w.Source())
		for i, a := range Search(t, s, plans) {
			refused := (*refusal.Error)(nil)
			if i%2 == 0 && !errors.As(a.Err, &refused) {
				t.Errorf("%s: bad filter %d: %v, want a refusal", e.name, i/2, a.Err)
			}
			if i%2 == 1 && a.Err != nil {
				t.Errorf("%s: beside a bad filter: %v", e.name, a.Err)
			}
		}
		closeSearcher(t, s)
		// An index that does not store its numbers cannot check edges.
		s = LoadOn(t, e, w.Index)
		if a := Search(t, s, []gpuexec.Plan{good})[0]; !errors.As(a.Err, new(*refusal.Error)) {
			t.Errorf("%s: an edge without stored values: %v", e.name, a.Err)
		}
		closeSearcher(t, s)
	}
}

// TestUnknownIsNotFilterOnly: a query for something unknown has no hits, with a filter too, and its total is that of the filter.
func TestUnknownIsNotFilterOnly(t *testing.T) {
	w := RandomWorld(t, seeded.Rand(t), 300)
	plan := withFilter(gpuexec.Plan{K: 5}, &filter.Filter{})
	plan.Query.(*postings.MatchQuery).StartItem(0, 1) // without spans
	for _, e := range engines(t) {
		s := LoadOn(t, e, w.Source())
		if a := Search(t, s, []gpuexec.Plan{plan})[0]; a.Err != nil || len(a.Hits) > 0 || a.Total != 300 || a.MCK != 0 || !a.Exact {
			t.Errorf("%s: %+v", e.name, a)
		}
		closeSearcher(t, s)
	}
}
