package tree

import (
	"math"
	"slices"

	"github.com/geniemq/geniemq/index/metric"
)

// count counts what searches in a tree would do for the objects that are asked for. A tree over a part of the objects stands for a larger one of its shape.
func (c *calibrator) count(t *Tree, members []uint32) ([]Row, error) {
	counters := make([]*counter, len(c.asked))
	err := parallel(c.ctx, c.options.Workers, len(c.asked), func(i int) {
		counters[i] = newCounter(t, c.asked[i], c.space.Of(c.asked[i].object), members)
		counters[i].stride = 1 + t.objects/looked
		counters[i].turn = uint32(i)
		counters[i].enter(0, least, 0, 0)
	})
	if err != nil {
		return nil, err
	}
	n := float64(c.space.Len())
	nearest, often, seldom := wanted()
	var rows []Row
	for _, k := range nearest {
		rows = append(rows, Row{K: k, Work: Work{Hits: math.Min(float64(k), n)}})
	}
	for _, s := range slices.Concat(often, []float64{0, 0, 0}, seldom) {
		rows = append(rows, Row{Share: s, Work: Work{Hits: max(1, s*n)}})
	}
	for r := range rows {
		row, asked := &rows[r], 0.0
		row.Bounds, row.Capacity, row.Leaf, row.Height = t.bounds, t.capacity, t.leaf, t.height
		for _, counter := range counters {
			asked += counter.add(row, r)
		}
		w, scale := &row.Work, n/float64(t.objects)/asked
		w.Nodes, w.Blocks, w.Distances = w.Nodes*scale, w.Blocks*scale, w.Distances*scale
		if row.K > 0 {
			w.Distances = t.unbounded(*w, float64(row.K))
		}
		row.Reach = min(row.Reach/asked, math.MaxFloat64) // of damaged objects it is infinite
	}
	return rows, nil
}

// unbounded adds the distances that a search for the nearest computes before it has k hits, when the path lets everything through.
func (t *Tree) unbounded(w Work, k float64) float64 {
	s := t.Shape()
	leaf := float64(t.objects) / float64(s.Leaves)
	leaves := min(math.Ceil(k/leaf), w.Blocks)
	if w.Blocks == 0 || leaf == 0 {
		return w.Distances
	}
	return w.Distances + leaves*max(0, leaf-w.Distances/w.Blocks)
}

// counter goes down a tree once for all that is wanted of a query, which differ in their limits only: what enters a node for one enters it for all larger ones.
type counter struct {
	tree    *Tree
	asker   metric.Asker
	asked   asked
	members []uint32
	limits  []float64 // ascending
	q       []float64

	// [limit] What this one enters and the one before does not.
	nodes, blocks, distances []float64

	stride, turn uint32    // one leaf in so many is looked at
	path         []float64 // distances to pivots
	gaps         []float64 // [object of a leaf]
}

func newCounter(t *Tree, a asked, asker metric.Asker, members []uint32) *counter {
	c := &counter{tree: t, asker: asker, asked: a, members: members, path: make([]float64, t.height), gaps: make([]float64, t.leaf)}
	c.nodes, c.blocks, c.distances = make([]float64, len(a.limits)), make([]float64, len(a.limits)), make([]float64, len(a.limits))
	for _, v := range a.limits {
		c.limits = append(c.limits, t.limit(v))
	}
	if t.bounds == Box {
		c.q = slices.Clone(asker.(metric.PlacedAsker).Coordinates())
		t.place(c.q)
	}
	return c
}

// add adds what was counted for a row, and returns of how many: 0 where it was not asked for.
func (c *counter) add(row *Row, r int) float64 {
	at := slices.Index(c.asked.rows, r)
	if at < 0 {
		return 0
	}
	for i := range at + 1 {
		row.Work.Nodes += c.nodes[i]
		row.Work.Blocks += c.blocks[i]
		row.Work.Distances += c.distances[i]
	}
	row.Reach += c.tree.distance(c.asked.limits[at])
	return 1
}

// from is the first limit, of those from i on, that lets a bound pass.
func (c *counter) from(i int, bound float64) int {
	for i < len(c.limits) && bound > c.limits[i] {
		i++
	}
	return i
}

func (c *counter) enter(node uint32, bound float64, i, depth int) {
	t := c.tree
	if t.isLeaf(node) {
		c.blocks[i]++
		if node%c.stride == c.turn%c.stride {
			c.look(node, i, depth)
		}
		return
	}
	c.nodes[i]++
	d := 0.0
	if t.bounds == Pivot {
		object := t.order[t.pivots[node]]
		if c.members != nil {
			object = c.members[object]
		}
		d = t.distance(c.asker.Value(object))
		c.path[depth] = d
	}
	a := asking{tree: t, q: c.q}
	for child := t.first[node]; child < t.first[node+1]; child++ {
		bound := max(bound, a.bound(child, d))
		if first := c.from(i, bound); first < len(c.limits) {
			c.enter(child, bound, first, depth+1)
		}
	}
}

// look counts the objects of a leaf that the path lets through.
func (c *counter) look(leaf uint32, i, depth int) {
	t := c.tree
	if t.bounds == Box {
		c.distances[i] += float64(t.count[leaf] * c.stride)
		return
	}
	gaps := c.gaps[:t.count[leaf]]
	clear(gaps)
	child := leaf
	for level := depth - 1; level >= 0; level-- {
		d, lo, hi := c.path[level], t.lo[child], t.hi[child]
		slack := t.slack(d, float64(hi))
		for o, b := range t.column(leaf, level) {
			gap := max(d-cellMost(lo, hi, int(b)), cellLeast(lo, hi, int(b))-d) - slack
			gaps[o] = max(gaps[o], gap)
		}
		child = t.parent[child]
	}
	for _, bound := range gaps {
		if at := c.from(i, bound); at < len(c.limits) {
			c.distances[at] += float64(c.stride)
		}
	}
}
