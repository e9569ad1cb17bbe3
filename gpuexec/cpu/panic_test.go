package cpu

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestPanicFailsOnePlan lets jobs panic, one before counting and one with its counters full; the others, which share
// workers and counters with them, are answered right, then and later.
func TestPanicFailsOnePlan(t *testing.T) {
	rng := seeded.Rand(t)
	w := enginetest.RandomWorld(t, rng, store.TileObjects+5000)
	for w.Index.Attributes()[0].Postings < 1000 {
		w = enginetest.RandomWorld(t, rng, store.TileObjects+5000)
	}
	for _, workers := range []int{1, 2} {
		s, err := loadPostings(context.Background(), On(run.NewCrew(workers)).Host, run.Whole(w.Index), nil)
		if err != nil {
			t.Fatal(err)
		}
		var plans []*gpuexec.Plan
		var good []*run.Job
		for len(plans) < 20 {
			m := w.RandomPlanBelow(rng)
			bound := uint32(w.Index.CountBound(enginetest.Query(m)))
			if m.MinCount = max(1, m.MinCount); m.MinCount <= bound {
				plans = append(plans, m)
				good = append(good, &run.Job{Query: enginetest.Query(m), K: min(m.K, len(w.Objects)), MinCount: m.MinCount, Bound: bound})
			}
		}
		// What check would have refused: a keyword beyond the vocabulary, and k = 0, at which the gate fails.
		early := run.Job{Query: new(postings.MatchQuery), K: 1, MinCount: 1, Bound: 255}
		early.Query.(*postings.MatchQuery).StartItem(0, 1)
		early.Query.(*postings.MatchQuery).AddSpan(0, 1<<30)
		late := run.Job{Query: new(postings.MatchQuery), K: 0, MinCount: 1, Bound: 255}
		late.Query.(*postings.MatchQuery).StartItem(0, 1)
		late.Query.(*postings.MatchQuery).AddSpan(0, w.Vocabulary[0])
		for _, jobs := range [][]*run.Job{slices.Insert(slices.Clone(good), len(good)/2, &early, &late), good} {
			if err := s.Match(context.Background(), jobs, nil); err != nil {
				t.Fatal(err)
			}
			for i, job := range good {
				want, _ := w.Search(plans[i])
				slices.Reverse(job.Entries)
				if job.Err != nil || !slices.Equal(hitsOf(job.Entries), want) {
					t.Fatalf("job %d beside panics: %v, %d entries, want %d", i, job.Err, len(job.Entries), len(want))
				}
			}
		}
		for _, bad := range []run.Job{early, late} {
			var panicked *gpuexec.PanicError
			if !errors.As(bad.Err, &panicked) || len(panicked.Stack) == 0 {
				t.Errorf("the bad job's error is %v, want a *PanicError with a stack", bad.Err)
			}
		}
	}
}

// hitsOf are entries as hits.
func hitsOf(entries []topk.Entry) (hits []gpuexec.Hit) {
	for _, e := range entries {
		hits = append(hits, gpuexec.Hit{ID: e.ID(), Count: e.Count()})
	}
	return hits
}
