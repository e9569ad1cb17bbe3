package cells

import (
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// A finder finds the nearest centroids, of one query and of many, in whatever order centroids come: where the first are the nearest, guesses are too low.
func TestFinderFindsTheNearest(t *testing.T) {
	rng := seeded.Rand(t)
	s := new(Index).Searcher()
	dropped, missed := 0, 0
	for round := range 200 {
		w := someWorld(t, rng, 1+rng.IntN(3000))
		centroids, n := w.space, w.space.Len()
		if order := round % 4; order > 1 { // from the first query on, or towards it
			by := make([]metric.Hit, n)
			from := centroids.Of(0)
			for c := range by {
				by[c] = metric.Hit{Value: from.Value(uint32(c)), ID: uint32(c)}
			}
			ids := make([]uint32, n)
			for i, h := range sorted(by) {
				ids[i] = h.ID
			}
			if order == 3 {
				slices.Reverse(ids)
			}
			var err error
			if centroids, err = centroids.Permuted(ids); err != nil {
				t.Fatal(err)
			}
		} else if order == 1 {
			centroids = centroids.UsePanels()
		}
		f := &s.finder
		f.reset()
		askers, lists := make([]metric.Asker, 1+rng.IntN(20)), make([]list, 20)
		for i := range askers {
			askers[i] = centroids.Of(rng.Uint32N(n))
			lists[i].reset(1 + rng.IntN(int(n)+2))
			f.add(askers[i], &lists[i])
		}
		told := 0
		f.found = func(query int, cell uint32, value float64) { told++; f.take(query, cell, value) }
		f.find(askers[0], n)
		missed += len(f.askers)
		if told < len(askers)*int(n)/2 {
			dropped++
		}
		for i, near := range askers {
			var want []metric.Hit
			for c := range n {
				want = append(want, metric.Hit{Value: near.Value(c), ID: c})
			}
			want = sorted(want)[:min(lists[i].most, int(n))]
			if got := lists[i].sorted(); !slices.Equal(got, want) {
				at := 0
				for at < min(len(got), len(want)) && got[at] == want[at] {
					at++
				}
				t.Fatalf("%v, round %d, query %d of %d, the %d nearest of %d: %d, and from the %dth on they are not right", centroids.Metric(), round, i, len(askers), lists[i].most, n, len(got), at)
			}
		}
		f.release()
	}
	if dropped == 0 || missed == 0 {
		t.Errorf("%d searches drop most, and %d queries ask all once more: the test shows too little", dropped, missed)
	}
}
