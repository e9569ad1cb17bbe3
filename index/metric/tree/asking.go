package tree

import (
	"fmt"
	"math"
	"slices"

	"github.com/geniemq/geniemq/index/metric"
)

// Ask is one query.
type Ask struct {
	// Asker counts objects by their positions in the tree (Positions makes one of an asker that counts by id). In a box tree it is a PlacedAsker.
	metric.Asker
	metric.Want                      // K 0 finds nothing, and counts if Total says so
	Pass        func(id uint32) bool // nil: every object does
	// Total counts all objects within Most, though there be more than K. So K does not narrow what is searched.
	Total bool
}

// Answer is what a query finds.
type Answer struct {
	Hits   []metric.Hit // in order
	Within uint64       // with Total: how many objects pass and are within Most
	Work   Work
}

// Work is what a search did, or what one does on average.
type Work struct {
	Nodes     float64 // inner nodes that were entered: each costs a distance to its pivot, or none in a box tree, and a test per child
	Blocks    float64 // leaves that were entered
	Distances float64 // objects whose value was computed: what the path lets through
	Hits      float64
}

// mostBounding is up to which K the values of pivots bound what is wanted: whether a pivot is kept already is looked up among the hits.
const mostBounding = 1024

// least is the bound of a root: values of cosine are negative.
const least = -math.MaxFloat64

// asking is a query that is being answered.
type asking struct {
	Ask
	tree   *Tree
	kept   metric.Best
	limit  float64   // what bounds are held against
	q      []float64 // coordinates
	within uint64
	work   Work
	seeds  []uint32 // leaves that are done

	alive  []bool // [object of a leaf]
	values []float64
}

func (t *Tree) asking(ask Ask) (*asking, error) {
	if ask.K < 0 || math.IsNaN(ask.Most) {
		return nil, fmt.Errorf("a search for the first %d objects within %v: neither may be negative or no number", ask.K, ask.Most)
	}
	a := &asking{Ask: ask, tree: t}
	a.kept.Reset(ask.Want)
	if t.bounds == Box {
		p, ok := ask.Asker.(metric.PlacedAsker)
		if !ok || len(p.Coordinates()) != t.dims {
			return nil, fmt.Errorf("a box tree over %d coordinates is searched by a query that has as many", t.dims)
		}
		a.q = slices.Clone(p.Coordinates())
		t.place(a.q)
	}
	a.narrow()
	return a, nil
}

// idle says that nothing can be found or counted.
func (a *asking) idle() bool {
	return a.tree.objects == 0 || a.Most < -1 || a.K == 0 && !a.Total
}

// most is the largest value that is still wanted.
func (a *asking) most() float64 {
	if a.Total {
		return a.Most
	}
	return a.kept.Bound()
}

// narrow brings the limit down to what is still wanted.
func (a *asking) narrow() { a.limit = a.tree.limit(a.most()) }

// bounding says whether pivots are hits.
func (a *asking) bounding() bool { return a.tree.bounds == Pivot && !a.Total && a.K <= mostBounding }

// enter computes the distance to the pivot of a node, and offers the pivot if it passes.
func (a *asking) enter(node uint32) float64 {
	a.work.Nodes++
	if a.tree.bounds == Box {
		return 0
	}
	position := a.tree.pivots[node]
	value := a.Value(position)
	if a.bounding() && value <= a.kept.Bound() {
		if id := a.tree.order[position]; (a.Pass == nil || a.Pass(id)) && !a.kept.Has(id) {
			a.kept.Add(metric.Hit{Value: value, ID: id})
			a.narrow()
		}
	}
	return a.tree.distance(value)
}

// bound is that of a child of a node to whose pivot the query has distance d.
func (a *asking) bound(child uint32, d float64) float64 {
	t := a.tree
	if t.bounds == Pivot {
		return t.interval(d, t.lo[child], t.hi[child])
	}
	size := 2 * t.dims
	return t.box(a.q, t.boxes[int(child)*size:int(child)*size+size])
}

// scan compares the objects of a leaf that the path lets through and that pass. The distances are those to the pivots above it, the root's first.
func (a *asking) scan(leaf uint32, distances []float64) {
	t := a.tree
	a.work.Blocks++
	begin, count := t.begin[leaf], t.count[leaf]
	if int(count) > len(a.alive) {
		a.alive, a.values = make([]bool, count), make([]float64, count)
	}
	alive := a.alive[:count]
	for i := range alive {
		alive[i] = true
	}
	if t.bounds == Pivot && !math.IsInf(a.limit, 1) {
		a.filter(leaf, distances, alive)
	}
	for i := uint32(0); i < count; i++ {
		if !alive[i] || !a.passes(begin+i) {
			continue
		}
		run := i + 1
		for run < count && alive[run] && a.passes(begin+run) {
			run++
		}
		a.compare(begin+i, begin+run)
		i = run // the object there is none
	}
	a.narrow()
}

// filter strikes out the objects whose path shows that they are too far.
func (a *asking) filter(leaf uint32, distances []float64, alive []bool) {
	t := a.tree
	child := leaf
	for level := len(distances) - 1; level >= 0; level-- {
		d, lo, hi := distances[level], t.lo[child], t.hi[child]
		reach := a.limit + t.slack(d, float64(hi))
		first, last := cells(lo, hi, d-reach, d+reach)
		if first > 0 || last < 255 {
			keep(alive, t.column(leaf, level), first, last)
		}
		child = t.parent[child]
	}
}

// keep strikes out what is not in the cells first to last.
func keep(alive []bool, column []byte, first, last int) {
	if first > last {
		clear(alive)
		return
	}
	from, span := byte(first), byte(last-first)
	for i, b := range column {
		if b-from > span {
			alive[i] = false
		}
	}
}

// passes says whether the object at a position may be a hit. A pivot that is a hit already is none again.
func (a *asking) passes(position uint32) bool {
	if a.Pass != nil && !a.Pass(a.tree.order[position]) {
		return false
	}
	if a.bounding() && a.tree.pivotal[position/64]>>(position%64)&1 != 0 {
		return !a.kept.Has(a.tree.order[position])
	}
	return true
}

// compare offers the objects at the positions begin to end-1.
func (a *asking) compare(begin, end uint32) {
	values, most := a.values[:end-begin], a.most()
	metric.ValuesTo(a.Asker, begin, end, most, values)
	a.work.Distances += float64(len(values))
	for i, value := range values {
		if value <= most {
			a.within++
			a.kept.Add(metric.Hit{Value: value, ID: a.tree.order[begin+uint32(i)]})
		}
	}
}

func (a *asking) answer() Answer {
	answer := Answer{Hits: a.kept.Sorted(), Work: a.work}
	if a.Total {
		answer.Within = a.within
	}
	answer.Work.Hits = float64(len(answer.Hits))
	return answer
}

// Positions makes an asker that counts objects by id one that counts them by position.
func (t *Tree) Positions(a metric.Asker) metric.Asker { return &positioned{a, t} }

type positioned struct {
	metric.Asker
	tree *Tree
}

func (p *positioned) Value(position uint32) float64 {
	return p.Asker.Value(p.tree.order[position])
}

func (p *positioned) Values(lo, hi uint32, dst []float64) {
	p.ValuesTo(lo, hi, math.Inf(1), dst)
}

// ValuesTo stops early where the asker can.
func (p *positioned) ValuesTo(lo, hi uint32, most float64, dst []float64) {
	for i := lo; i < hi; i++ {
		id := p.tree.order[i]
		metric.ValuesTo(p.Asker, id, id+1, most, dst[i-lo:])
	}
}

// Coordinates are those of the query, if it has any.
func (p *positioned) Coordinates() []float64 {
	if q, ok := p.Asker.(metric.PlacedAsker); ok {
		return q.Coordinates()
	}
	return nil
}
