package enginetest

import (
	"slices"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestRangesKnowLimits: what many cores find, each in some ranges of the objects, with limits that come of others' ranges, is what one finds in all of them: few queries and many, with hits that are
// alike in several ranges.
func TestRangesKnowLimits(t *testing.T) {
	rng := seeded.Rand(t)
	many, one := cpu.New(gpuexec.CPUOptions{Workers: 16}), cpu.New(gpuexec.CPUOptions{Workers: 1})
	sizes := []int{1, 7, 20, 130, 3, 60, 300}
	for _, n := range Rounds(sizes) {
		w := RandomDistanceWorld(t, rng, raced.Of(9_000, 3_000), false)
		if n%2 == 0 { // each object is in all ranges
			for i := range w.Places {
				w.Places[i] = w.Places[i%200]
			}
			w.Build(t)
		}
		queries, err := index.NewQueries(w.Index)
		if err != nil {
			t.Fatal(err)
		}
		plans := make([]gpuexec.Plan, n)
		for i := range plans {
			plans[i] = randomDistance(t, rng, w, queries).plan
		}
		want := make([]gpuexec.Answer, n)
		if err := LoadOn(t, one, w.Index).Search(t.Context(), plans, want, nil); err != nil {
			t.Fatal(err)
		}
		s := LoadOn(t, many, w.Index)
		for range 3 {
			got := make([]gpuexec.Answer, n)
			if err := s.Search(t.Context(), plans, got, nil); err != nil {
				t.Fatal(err)
			}
			for i, a := range got {
				if a.Err != nil || !slices.Equal(a.Hits, want[i].Hits) || !sameAnswer(a.Value.(*distance.Answer), want[i].Value.(*distance.Answer)) {
					t.Fatalf("query %d of %d, %s: %d hits, %+v, %v; want %d, %+v", i, n, w.Metric, len(a.Hits), a.Value, a.Err, len(want[i].Hits), want[i].Value)
				}
			}
		}
	}
}
