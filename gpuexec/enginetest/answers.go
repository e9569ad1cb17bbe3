package enginetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/flatscan"
	"github.com/geniemq/geniemq/index/refusal"
)

// CheckAnswers compares answers with the definition.
func CheckAnswers(t *testing.T, w *World, plans []gpuexec.Plan, answers []gpuexec.Answer) {
	t.Helper()
	for i := range plans {
		a := &answers[i]
		if bound := w.Index.CountBound(Query(&plans[i])); bound > 1<<32-1 {
			if bad := (*refusal.Error)(nil); !errors.As(a.Err, &bad) {
				t.Fatalf("plan %d with count bound %d: error %v, want a refusal", i, bound, a.Err)
			}
			continue
		}
		if a.Err != nil {
			t.Fatalf("plan %d: %v", i, a.Err)
		}
		want, mck := w.Search(&plans[i])
		if total := w.Total(Query(&plans[i])); !slices.Equal(a.Hits, want) || a.MCK != mck || !a.Exact || a.Total != total {
			t.Fatalf("plan %d (%d objects, %+v, %+v):\ngot  %v mc_k %d exact %v total %d\nwant %v mc_k %d total %d",
				i, len(w.Objects), plans[i], Query(&plans[i]), a.Hits, a.MCK, a.Exact, a.Total, want, mck, total)
		}
	}
}

// checkFlatScan: the yardstick of the benchmarks is right, too.
func checkFlatScan(t *testing.T, w *World, plans []gpuexec.Plan, answers []gpuexec.Answer) {
	t.Helper()
	scanner := flatscan.New(w.Index.Lists)
	scanner.Stored = w.Stored()
	for i := range plans {
		if answers[i].Err == nil {
			sameAsFlatScan(t, scanner, plans[i:i+1], answers[i:i+1])
		}
	}
}

func Search(t *testing.T, s gpuexec.Searcher, plans []gpuexec.Plan) []gpuexec.Answer {
	t.Helper()
	answers := make([]gpuexec.Answer, len(plans))
	if err := s.Search(context.Background(), plans, answers, nil); err != nil {
		t.Fatal(err)
	}
	return answers
}

func (w *World) RandomPlans(rng interface{ IntN(int) int }, make func() gpuexec.Plan) []gpuexec.Plan {
	var plans []gpuexec.Plan
	for range 1 + rng.IntN(12) {
		plans = append(plans, make())
	}
	return plans
}

// SameHits compares what a plan is answered, without what it cost.
func SameHits(a, b *gpuexec.Answer) bool {
	return slices.Equal(a.Hits, b.Hits) && a.MCK == b.MCK && a.Total == b.Total && a.Exact == b.Exact && a.Scored == b.Scored && reflect.DeepEqual(a.Err, b.Err)
}

// SameAnswers compares everything that a group promises to keep.
func SameAnswers(t *testing.T, plans []gpuexec.Plan, got, want []gpuexec.Answer) {
	t.Helper()
	for i := range want {
		g, w := &got[i], &want[i]
		if w.Err != nil {
			if g.Err == nil || g.Err.Error() != w.Err.Error() {
				t.Fatalf("plan %d: error %v, want %v", i, g.Err, w.Err)
			}
			continue
		}
		if g.Err != nil || len(g.Hits) != len(w.Hits) || len(w.Hits) > 0 && !reflect.DeepEqual(g.Hits, w.Hits) ||
			g.MCK != w.MCK || g.Total != w.Total || g.Exact != w.Exact || g.Units != w.Units || g.Candidates < uint64(len(g.Hits)) && !g.Scored || g.Scored != w.Scored {
			t.Fatalf("plan %d (%+v):\ngot  %+v\nwant %+v", i, plans[i], *g, *w)
		}
	}
}

// sameAsFlatScan compares answers with the plain scan.
func sameAsFlatScan(t testing.TB, scanner *flatscan.Scanner, plans []gpuexec.Plan, answers []gpuexec.Answer) {
	t.Helper()
	for i := range plans {
		m := &plans[i]
		want, stats := scanner.Search(nil, Query(m), m.K, m.MinCount)
		got := make([]flatscan.Hit, len(answers[i].Hits))
		for j, h := range answers[i].Hits {
			got[j] = flatscan.Hit{ID: h.ID, Count: h.Count}
		}
		if answers[i].Err != nil || !slices.Equal(got, want) || Query(m).Total && answers[i].Total != stats.Total {
			t.Fatalf("query %d: got %v, want %v (error %v), total %d, want %d", i, got, want, answers[i].Err, answers[i].Total, stats.Total)
		}
		// A query whose count bound is below its least count need not be scanned.
		if answers[i].Units != stats.Postings && len(want) > 0 {
			t.Fatalf("query %d: %d postings scanned, there are %d", i, answers[i].Units, stats.Postings)
		}
	}
}

// RandomPlanBelow is a random plan whose counts fit 32 bits.
func (w *World) RandomPlanBelow(rng *rand.Rand) *gpuexec.Plan {
	for {
		if plan := w.RandomPlan(rng); w.Index.CountBound(Query(&plan)) < 1<<32 {
			return &plan
		}
	}
}
