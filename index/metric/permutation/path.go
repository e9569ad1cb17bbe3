package permutation

import (
	"cmp"
	"slices"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/recall"
)

// path is the index as one that recall is measured of: a step is a candidate, in the order of (rank distance, id).
type path struct{ *Index }

// Steps is how many candidates there are, of all objects but the query.
func (x path) Steps(k uint32, fraction float64) uint32 {
	return x.Candidates(int(k), fraction, x.objects-1)
}

// Locator finds how many objects come before others.
func (x path) Locator() recall.Locator {
	s := x.Searcher()
	m := len(x.permutants)
	distances := make([]uint32, x.objects)
	var counts []uint32 // per rank distance: objects before all that have it, then before the next of them
	var order []int
	var steps []uint32
	step := func(i int, _ uint32) uint32 { return steps[i] }
	return func(query uint32, asker metric.Asker, objects []metric.Hit) func(int, uint32) uint32 {
		s.prepare(asker)
		for lo := 0; lo < len(distances); lo += len(s.distances) {
			hi := min(lo+len(s.distances), len(distances))
			x.distances(distances[lo:hi], x.ranks[lo*m:hi*m], s.packed, m)
		}
		most := slices.Max(distances)
		counts = slices.Grow(counts[:0], int(most)+2)[:most+2]
		clear(counts)
		for id, d := range distances {
			if uint32(id) != query {
				counts[d+1]++
			}
		}
		for d := range counts[1:] {
			counts[d+1] += counts[d]
		}
		// One walk by ascending id meets the objects of a distance in their order.
		order = order[:0]
		for i := range objects {
			order = append(order, i)
		}
		slices.SortFunc(order, func(a, b int) int { return cmp.Compare(objects[a].ID, objects[b].ID) })
		steps = slices.Grow(steps[:0], len(objects))[:len(objects)]
		next := 0
		for id, d := range distances {
			if uint32(id) == query {
				continue
			}
			if next < len(order) && objects[order[next]].ID == uint32(id) {
				steps[order[next]] = counts[d]
				next++
			}
			counts[d]++
		}
		return step
	}
}
