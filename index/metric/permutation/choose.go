package permutation

import (
	"context"
	"math"
	"slices"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/recall"
	"github.com/geniemq/geniemq/internal/spread"
)

// draws is how many objects are drawn for a permutant, of which the farthest from those before becomes it. docs/benchmarks has what 1, 4, 12 and 32 find.
const draws = 12

// drawn is an object that may become a permutant.
type drawn struct {
	id       uint32
	compared int     // with so many permutants, the first ones
	least    float64 // of its values of these; math.Inf(1): it has none
}

// far is what the farthest object has most of. One that has no value of any permutant is damaged: it would rank nothing.
func (d *drawn) far() float64 {
	if math.IsInf(d.least, 1) {
		return math.Inf(-1)
	}
	return d.least
}

// lots draws the objects of a space that permutants are chosen of, m at least, and those that recall is measured with. Both are parts of one draw. What is held out
// does not depend on how many are drawn for a permutant.
func (p *Parameters) lots(n, m uint32) (pool, held []uint32) {
	out := min(uint32(max(p.HeldOut, 0)), n-m)
	all := recall.Draw(n, m*uint32(p.draws)+out, p.Seed)
	return slices.Concat(all[:m], all[m+out:]), all[m : m+out]
}

// choose chooses m permutants of a pool. The first is the first of the pool. Each other is the one of the next few of the pool whose least value of all permutants before it is the
// greatest, the first of such: what Gonzalez (Clustering to minimize the maximum intercluster distance, 1985) takes of all objects, of which the farthest is often one that is
// like no other. Those that were not taken come again behind the others, so where there are few objects each is compared with each permutant once at most.
func choose(ctx context.Context, space metric.Space, pool []uint32, m, draws, workers int) ([]uint32, error) {
	if len(pool) == m {
		return pool, nil
	}
	permutants, queue := pool[:1:1], make([]drawn, 0, 2*len(pool))
	for _, id := range pool[1:] {
		queue = append(queue, drawn{id, 0, math.Inf(1)})
	}
	for len(permutants) < m {
		few := queue[:min(draws, len(queue))]
		err := spread.Run(ctx, workers, len(few), func() func(int) {
			return func(i int) { few[i].compare(space, permutants) }
		})
		if err != nil {
			return nil, err
		}
		best := 0
		for i := range few {
			if few[i].far() > few[best].far() {
				best = i
			}
		}
		permutants = append(permutants, few[best].id)
		queue = append(append(queue, few[:best]...), few[best+1:]...)[len(few):]
	}
	return permutants, nil
}

// compare compares an object with the permutants that are new to it.
func (d *drawn) compare(space metric.Space, permutants []uint32) {
	a, value := space.Of(d.id), [1]float64{}
	for _, p := range permutants[d.compared:] {
		metric.ValuesTo(a, p, p+1, d.least, value[:]) // what is farther does not matter
		d.least = min(d.least, value[0])
	}
	d.compared = len(permutants)
}
