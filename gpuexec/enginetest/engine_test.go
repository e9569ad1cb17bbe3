package enginetest

import (
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestEngineAgainstBruteForce compares with the definition on random collections of up to a few hundred objects, in
// every form: 1,200 collections, some 8,000 plans.
func TestEngineAgainstBruteForce(t *testing.T) {
	rng := seeded.Rand(t)
	all := engines(t)
	for range Rounds(make([]struct{}, 1200)) {
		w := RandomWorld(t, rng, []int{0, 1, 2, 7, 8, 9, 63, 64, 65, rng.IntN(300), rng.IntN(300)}[rng.IntN(11)])
		e := all[rng.IntN(len(all))]
		s := LoadOn(t, e, w.Source())
		var filters []*filter.Filter
		plans := w.RandomPlans(rng, func() gpuexec.Plan { return w.RandomFilteredPlan(rng, &filters) })
		answers := Search(t, s, plans)
		CheckAnswers(t, w, plans, answers)
		if e.countsAll {
			checkFlatScan(t, w, plans, answers)
		}
		closeSearcher(t, s)
	}
}

// TestEngineAcrossTiles does the same for collections of several tiles, around their borders.
func TestEngineAcrossTiles(t *testing.T) {
	rng := seeded.Rand(t)
	all := engines(t)
	const tile = store.TileObjects
	for _, n := range Rounds([]int{tile - 1, tile, tile + 1, 1<<16 + 1, 2 * tile, 2*tile + 1, 3*tile + 100}) {
		w := RandomWorld(t, rng, n)
		for _, e := range all {
			s := LoadOn(t, e, w.Source())
			var filters []*filter.Filter
			plans := w.RandomPlans(rng, func() gpuexec.Plan { return w.RandomFilteredPlan(rng, &filters) })
			CheckAnswers(t, w, plans, Search(t, s, plans))
			closeSearcher(t, s)
		}
	}
}
