package gpuexec

import (
	"testing"

	"github.com/geniemq/geniemq/index"
)

// TestEngineAgainstBruteForce compares with the definition on random collections of up to a few hundred objects, in
// every form: 1,200 collections, some 8,000 plans.
func TestEngineAgainstBruteForce(t *testing.T) {
	rng := newRand(t)
	for range rounds(make([]struct{}, 1200)) {
		w := randomWorld(t, rng, []int{0, 1, 2, 7, 8, 9, 63, 64, 65, rng.IntN(300), rng.IntN(300)}[rng.IntN(11)])
		s := loadCPU(t, w.index, CPUOptions{Workers: 1 + rng.IntN(3), NibbleCounters: rng.IntN(2) == 0})
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
			s := loadCPU(t, w.index, CPUOptions{Workers: 1 + rng.IntN(3), NibbleCounters: nibbles})
			plans := w.randomPlans(rng, func() Plan { return w.randomPlan(rng) })
			checkAnswers(t, w, plans, search(t, s, plans))
		}
	}
}
