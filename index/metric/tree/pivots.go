package tree

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
)

const (
	candidates = 16 // objects of a node of which one becomes its pivot
	witnesses  = 32 // objects to which their distances are computed
	stretch    = 4096
)

// cutByPivots chooses a pivot for each of some nodes of a level and sorts their objects by (distance to it, object).
func (b *builder) cutByPivots(nodes []uint32) error {
	t := b.tree
	if len(nodes) == 0 {
		return b.ctx.Err()
	}
	b.paths = append(b.paths, make([]byte, t.objects))
	chosen := make([]uint32, len(nodes))
	if err := parallel(b.ctx, b.workers, len(nodes), func(i int) { chosen[i] = b.choose(nodes[i]) }); err != nil {
		return err
	}
	type piece struct{ pivot, begin, end uint32 }
	var pieces []piece
	for i, node := range nodes {
		end := t.begin[node] + t.count[node]
		for at := t.begin[node]; at < end; at += min(stretch, end-at) {
			pieces = append(pieces, piece{chosen[i], at, min(at+stretch, end)})
		}
	}
	if err := parallel(b.ctx, b.workers, len(pieces), func(i int) {
		p := pieces[i]
		pivot := b.space.Of(b.object(p.pivot))
		for at := p.begin; at < p.end; at++ {
			b.items[at].distance = t.distance(pivot.Value(b.object(b.items[at].object)))
		}
	}); err != nil {
		return err
	}
	spare := max(1, b.workers/len(nodes)) // goroutines for each node
	if err := parallel(b.ctx, b.workers, len(nodes), func(i int) {
		begin, end := t.begin[nodes[i]], t.begin[nodes[i]]+t.count[nodes[i]]
		sortItems(b.items[begin:end], b.spare[begin:end], spare)
	}); err != nil {
		return err
	}
	for i, node := range nodes {
		t.pivots[node] = chosen[i] // an object, until its position is known (layPaths)
	}
	return nil
}

// choose chooses a pivot: of 16 sampled objects of the node the one whose distances to 32 sampled ones have the largest variance. A node whose
// distances are nearly alike cannot be told apart by them.
func (b *builder) choose(node uint32) uint32 {
	t := b.tree
	rng := rand.New(rand.NewPCG(t.seed, uint64(node)))
	items := b.items[t.begin[node] : t.begin[node]+t.count[node]]
	pivots, others := sample(rng, len(items), candidates), sample(rng, len(items), witnesses)
	best, most := items[pivots[0]].object, -1.0
	distances := make([]float64, len(others))
	for _, p := range pivots {
		asker := b.space.Of(b.object(items[p].object))
		for i, o := range others {
			distances[i] = t.distance(asker.Value(b.object(items[o].object)))
		}
		if _, v := moments(distances); v > most {
			best, most = items[p].object, v
		}
	}
	return best
}

// sample draws different numbers below n, all of them if there are no more than wanted.
func sample(rng *rand.Rand, n, want int) []int {
	drawn := make([]int, 0, want)
	if n <= want {
		for i := range n {
			drawn = append(drawn, i)
		}
		return drawn
	}
	for len(drawn) < want {
		if i := rng.IntN(n); !slices.Contains(drawn, i) {
			drawn = append(drawn, i)
		}
	}
	return drawn
}

// moments are the mean and the variance.
func moments(x []float64) (mean, variance float64) {
	for _, v := range x {
		mean += v
	}
	mean /= float64(len(x))
	for _, v := range x {
		variance += float64((v - mean) * (v - mean))
	}
	return mean, variance / float64(len(x))
}

// sortItems sorts by (distance, object), which no two share, so that any way of sorting gives the same.
func sortItems(items, spare []item, workers int) {
	if workers < 2 || len(items) < 1<<14 {
		slices.SortFunc(items, compareItems)
		return
	}
	half := len(items) / 2
	var group sync.WaitGroup
	group.Go(func() { sortItems(items[:half], spare[:half], workers/2) })
	sortItems(items[half:], spare[half:], workers-workers/2)
	group.Wait()
	left, right := items[:half], items[half:]
	for i := range spare {
		if len(right) == 0 || len(left) > 0 && compareItems(left[0], right[0]) < 0 {
			spare[i], left = left[0], left[1:]
		} else {
			spare[i], right = right[0], right[1:]
		}
	}
	copy(items, spare)
}

func compareItems(a, b item) int {
	return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.object, b.object))
}

// encodePath keeps where the objects of a node lie in the intervals of the children that they are in, which begin with child.
func (b *builder) encodePath(node, child uint32) {
	t := b.tree
	path := b.paths[len(b.paths)-1]
	for end := t.begin[node] + t.count[node]; child < t.nodes(); child++ {
		for at := t.begin[child]; at < t.begin[child]+t.count[child] && at < end; at++ {
			path[b.items[at].object] = cellOf(t.lo[child], t.hi[child], b.items[at].distance)
		}
	}
}

// layPaths puts the paths into the order of leaves, and positions in the place of pivots' objects.
func (b *builder) layPaths() {
	t := b.tree
	t.path = make([]byte, int(t.objects)*t.height)
	position := make([]uint32, t.objects)
	for at, item := range b.items {
		position[item.object] = uint32(at)
	}
	for depth := range t.height + 1 {
		for node := t.levels[depth]; node < t.levels[depth+1]; node++ {
			if !t.isLeaf(node) {
				t.pivots[node] = position[t.pivots[node]]
				continue
			}
			for level := range depth {
				for i, column := uint32(0), t.column(node, level); i < t.count[node]; i++ {
					column[i] = b.paths[level][t.order[t.begin[node]+i]]
				}
			}
		}
	}
}
