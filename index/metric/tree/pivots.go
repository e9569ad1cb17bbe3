package tree

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/sorting"
	"github.com/geniemq/geniemq/internal/spread"
)

const (
	candidates = 16 // objects of a node of which one becomes its pivot
	witnesses  = 32 // objects to which their distances are computed
	// Nodes of fewer objects draw half as many of both where distances are whole numbers, as those of texts. So few numbers differ that more comparisons find
	// no better pivots (searches compare 0.1 % more), and were two thirds of all that a build compared.
	coarse = 2048
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
	if err := spread.Run(b.ctx, b.workers, len(pieces), func() func(int) {
		var own toPivot
		return func(i int) {
			p := pieces[i]
			items := b.items[p.begin:p.end]
			for j, d := range own.distances(b, p.pivot, len(items), func(j int) uint32 { return items[j].ID }) {
				items[j].Value = d
			}
		}
	}); err != nil {
		return err
	}
	if err := b.each(nodes, func(node uint32, workers int) {
		begin, end := t.begin[node], t.begin[node]+t.count[node]
		sorting.Sort(b.items[begin:end], b.spare[begin:end], workers)
	}); err != nil {
		return err
	}
	for i, node := range nodes {
		t.pivots[node] = chosen[i] // an object, until its position is known (layPaths)
	}
	return nil
}

// choose chooses a pivot: of sampled objects of the node the one whose distances to other sampled ones have the largest variance. A node whose
// distances are nearly alike cannot be told apart by them.
func (b *builder) choose(node uint32) uint32 {
	t := b.tree
	rng := rand.New(rand.NewPCG(t.seed, uint64(node)))
	items := b.items[t.begin[node] : t.begin[node]+t.count[node]]
	share := 1
	if t.whole && len(items) < coarse {
		share = 2
	}
	pivots, others := sample(rng, len(items), candidates/share), sample(rng, len(items), witnesses/share)
	best, most := items[pivots[0]].ID, -1.0
	var own toPivot
	for _, p := range pivots {
		if _, v := moments(own.distances(b, items[p].ID, len(others), func(i int) uint32 { return items[others[i]].ID })); v > most {
			best, most = items[p].ID, v
		}
	}
	return best
}

// toPivot is memory of comparing objects with a pivot.
type toPivot struct {
	own     metric.Asker // whose memory it is
	objects []uint32
	values  []float64
}

// distances are those of n objects of the tree to one, until they are asked for again.
func (c *toPivot) distances(b *builder, pivot uint32, n int, object func(i int) uint32) []float64 {
	c.objects, c.values = c.objects[:0], slices.Grow(c.values[:0], n)[:n]
	for i := range n {
		c.objects = append(c.objects, b.object(object(i)))
	}
	asker := b.space.Of(b.object(pivot))
	if c.own == nil {
		c.own = asker
	}
	metric.ValuesOf(c.own, asker, c.objects, math.Inf(1), c.values)
	for i, v := range c.values {
		c.values[i] = b.tree.distance(v)
	}
	return c.values
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

// encodePath keeps where the objects of a node lie in the intervals of its children.
func (b *builder) encodePath(node uint32) {
	t := b.tree
	path := b.paths[len(b.paths)-1]
	for child := t.first[node]; child < t.first[node+1]; child++ {
		for at := t.begin[child]; at < t.begin[child]+t.count[child]; at++ {
			path[b.items[at].ID] = cellOf(t.lo[child], t.hi[child], b.items[at].Value)
		}
	}
}

// layPaths puts the paths into the order of leaves, and positions in the place of pivots' objects.
func (b *builder) layPaths() error {
	t := b.tree
	t.path = make([]byte, int(t.objects)*t.height)
	position := make([]uint32, t.objects)
	if err := b.stretches(len(t.order), stretch, func(lo, hi int) {
		for at, object := range t.order[lo:hi] {
			position[object] = uint32(lo + at)
		}
	}); err != nil {
		return err
	}
	return b.stretches(int(t.nodes()), several, func(lo, hi int) {
		for node := uint32(lo); node < uint32(hi); node++ {
			if !t.isLeaf(node) {
				t.pivots[node] = position[t.pivots[node]]
				continue
			}
			depth, _ := slices.BinarySearch(t.levels, node+1)
			for level := range depth - 1 {
				column, objects := t.column(node, level), t.order[t.begin[node]:t.begin[node]+t.count[node]]
				for i, object := range objects {
					column[i] = b.paths[level][object]
				}
			}
		}
	})
}
