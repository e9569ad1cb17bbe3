package gpuexec

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index"
)

// TestPanicFailsOnePlan lets jobs panic, one before counting and one with its counters full; the others, which share
// workers and counters with them, are answered right, then and later.
func TestPanicFailsOnePlan(t *testing.T) {
	rng := newRand(t)
	w := randomWorld(t, rng, index.TileObjects+5000)
	for w.index.Attributes()[0].Postings < 1000 {
		w = randomWorld(t, rng, index.TileObjects+5000)
	}
	for _, workers := range []int{1, 2} {
		e := newCPUEngine(CPUOptions{}, newCrew(workers))
		s, err := e.loadTiles(context.Background(), extent{w.index, allTiles(w.index)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var plans []*MatchPlan
		var good []*matchJob
		for len(plans) < 20 {
			m := &w.randomPlanBelow(rng).Match
			bound := uint32(w.index.CountBound(&m.Query))
			if m.MinCount = max(1, m.MinCount); m.MinCount <= bound {
				plans = append(plans, m)
				good = append(good, &matchJob{query: &m.Query, k: min(m.K, len(w.objects)), minCount: m.MinCount, bound: bound})
			}
		}
		// What check would have refused: a keyword beyond the vocabulary, and k = 0, at which the gate fails.
		early := matchJob{query: new(index.Query), k: 1, minCount: 1, bound: 255}
		early.query.StartItem(0, 1)
		early.query.AddSpan(0, 1<<30)
		late := matchJob{query: new(index.Query), k: 0, minCount: 1, bound: 255}
		late.query.StartItem(0, 1)
		late.query.AddSpan(0, w.vocabulary[0])
		for _, jobs := range [][]*matchJob{slices.Insert(slices.Clone(good), len(good)/2, &early, &late), good} {
			if err := s.match(context.Background(), jobs); err != nil {
				t.Fatal(err)
			}
			for i, job := range good {
				want, _ := w.search(plans[i])
				slices.Reverse(job.entries)
				if job.err != nil || !slices.Equal(hitsOf(job.entries), want) {
					t.Fatalf("job %d beside panics: %v, %d entries, want %d", i, job.err, len(job.entries), len(want))
				}
			}
		}
		for _, bad := range []matchJob{early, late} {
			var panicked *PanicError
			if !errors.As(bad.err, &panicked) || len(panicked.Stack) == 0 {
				t.Errorf("the bad job's error is %v, want a *PanicError with a stack", bad.err)
			}
		}
	}
}

// hitsOf are entries as hits.
func hitsOf(entries []entry) (hits []Hit) {
	for _, e := range entries {
		hits = append(hits, Hit{ID: e.id(), Count: e.count(), Distance: NoDistance})
	}
	return hits
}
