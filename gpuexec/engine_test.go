package gpuexec

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/geniemq/geniemq/gpuexec/flatscan"
	"github.com/geniemq/geniemq/index"
)

// checkAnswers compares answers with the definition.
func checkAnswers(t *testing.T, w *world, plans []Plan, answers []Answer) {
	t.Helper()
	for i := range plans {
		a := &answers[i]
		if bound := w.index.CountBound(&plans[i].Match.Query); bound > 1<<32-1 {
			if _, ok := a.Err.(*PlanError); !ok {
				t.Fatalf("plan %d with count bound %d: error %v, want a *PlanError", i, bound, a.Err)
			}
			continue
		}
		if a.Err != nil {
			t.Fatalf("plan %d: %v", i, a.Err)
		}
		want, mck := w.search(&plans[i].Match)
		if !slices.Equal(a.Hits, want) || a.MCK != mck || !a.Exact {
			t.Fatalf("plan %d (%d objects, %+v):\ngot  %v mc_k %d exact %v\nwant %v mc_k %d", i, len(w.objects), plans[i].Match, a.Hits, a.MCK, a.Exact, want, mck)
		}
	}
}

// checkFlatScan: the yardstick of the benchmarks is right, too.
func checkFlatScan(t *testing.T, w *world, plans []Plan, answers []Answer) {
	t.Helper()
	for i := range plans {
		if answers[i].Err == nil {
			sameAsFlatScan(t, flatscan.New(w.index), plans[i:i+1], answers[i:i+1])
		}
	}
}

func search(t *testing.T, s Searcher, plans []Plan) []Answer {
	t.Helper()
	answers := make([]Answer, len(plans))
	if err := s.Search(context.Background(), plans, answers); err != nil {
		t.Fatal(err)
	}
	return answers
}

func (w *world) randomPlans(rng interface{ IntN(int) int }, make func() Plan) []Plan {
	var plans []Plan
	for range 1 + rng.IntN(12) {
		plans = append(plans, make())
	}
	return plans
}

// TestEngineAgainstBruteForce compares with the definition on random collections of up to a few hundred objects, in
// every form: 1,200 collections, some 8,000 plans.
func TestEngineAgainstBruteForce(t *testing.T) {
	rng := newRand(t)
	for range rounds(make([]struct{}, 1200)) {
		w := randomWorld(t, rng, []int{0, 1, 2, 7, 8, 9, 63, 64, 65, rng.IntN(300), rng.IntN(300)}[rng.IntN(11)])
		s := w.load(t, CPUOptions{Workers: 1 + rng.IntN(3), NibbleCounters: rng.IntN(2) == 0})
		plans := w.randomPlans(rng, func() Plan { return w.randomPlan(rng) })
		answers := search(t, s, plans)
		checkAnswers(t, w, plans, answers)
		checkFlatScan(t, w, plans, answers)
	}
}

// TestEngineAcrossTiles does the same for collections of several tiles, around their borders.
func TestEngineAcrossTiles(t *testing.T) {
	rng := newRand(t)
	const tile = index.TileObjects
	for _, n := range rounds([]int{tile - 1, tile, tile + 1, 1<<16 + 1, 2 * tile, 2*tile + 1, 3*tile + 100}) {
		w := randomWorld(t, rng, n)
		for _, nibbles := range []bool{false, true} {
			s := w.load(t, CPUOptions{Workers: 1 + rng.IntN(3), NibbleCounters: nibbles})
			plans := w.randomPlans(rng, func() Plan { return w.randomPlan(rng) })
			checkAnswers(t, w, plans, search(t, s, plans))
		}
	}
}

// TestCrewEach: every unit once, whatever the stretches.
func TestCrewEach(t *testing.T) {
	for _, workers := range []int{1, 3} {
		c := newCrew(workers)
		for _, units := range []int{0, 1, 2, 7, 1000} {
			for _, work := range []int{0, 250_000, 1_000_000_000} {
				done := make([]atomic.Int32, units)
				if err := c.each(context.Background(), units, work, func(i int) { done[i].Add(1) }); err != nil {
					t.Fatal(err)
				}
				for i := range done {
					if n := done[i].Load(); n != 1 {
						t.Fatalf("%d workers, %d units: unit %d was executed %d times", workers, units, i, n)
					}
				}
			}
		}
	}
}
