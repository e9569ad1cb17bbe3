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
	Pivots bool // each node was a distance to its pivot
}

// Work is what a search did, or what one does on average.
type Work struct {
	Nodes     float64 // inner nodes that were entered: each costs a distance to its pivot, or none in a box tree, and a test per child
	Blocks    float64 // leaves that were entered
	Distances float64 // objects whose value was computed: what the path lets through
	Hits      float64
}

// Add adds what another search did.
func (w *Work) Add(o Work) {
	w.Nodes, w.Blocks, w.Distances, w.Hits = w.Nodes+o.Nodes, w.Blocks+o.Blocks, w.Distances+o.Distances, w.Hits+o.Hits
}

// Times is so many times as much.
func (w Work) Times(x float64) Work {
	return Work{x * w.Nodes, x * w.Blocks, x * w.Distances, x * w.Hits}
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
	long   metric.Pausing // the asker, if comparisons may be stopped

	alive  []byte // [object of a leaf] 0: its path shows that it is too far
	values []float64
}

// ask makes it ready for a query.
func (a *asking) ask(t *Tree, ask Ask) error {
	if ask.K < 0 || math.IsNaN(ask.Most) {
		return fmt.Errorf("a search for the first %d objects within %v: neither may be negative or no number", ask.K, ask.Most)
	}
	a.Ask, a.tree, a.within, a.work, a.long = ask, t, 0, Work{}, nil
	a.kept.Reset(ask.Want)
	if t.bounds == Box {
		a.q = a.q[:0]
		if p, ok := ask.Asker.(metric.PlacedAsker); ok {
			a.q = append(a.q, p.Coordinates()...)
		}
		if len(a.q) != t.dims {
			return fmt.Errorf("a box tree over %d coordinates is searched by a query that has as many", t.dims)
		}
		t.place(a.q)
	}
	a.narrow()
	return nil
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

// enter computes the distance to the pivot of a node, and offers the pivot if it passes; false: that was stopped.
func (a *asking) enter(node uint32) (distance float64, ok bool) {
	if a.tree.bounds == Box {
		a.work.Nodes++
		return 0, true
	}
	position := a.tree.pivots[node]
	value := a.Value(position)
	if a.long != nil && a.long.Paused() {
		return 0, false
	}
	a.work.Nodes++
	if a.bounding() && value <= a.kept.Bound() {
		if id := a.tree.order[position]; (a.Pass == nil || a.Pass(id)) && !a.kept.Has(id) {
			a.kept.Add(metric.Hit{Value: value, ID: id})
			a.narrow()
		}
	}
	return a.tree.distance(value), true
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

// scan compares the objects of a leaf, from one on, that the path lets through and that pass. The distances are those to the pivots above it, the root's first. It returns at which object it
// was stopped, counted from 1; 0: nowhere.
func (a *asking) scan(leaf uint32, distances []float64, from uint32) (stopped uint32) {
	t := a.tree
	begin, count := t.begin[leaf], t.count[leaf]
	if from == 0 {
		a.work.Blocks++
	} else {
		from--
	}
	a.alive = slices.Grow(a.alive[:0], int(count))[:count]
	a.values = slices.Grow(a.values[:0], int(count))[:count]
	for i := range a.alive {
		a.alive[i] = 1
	}
	if t.bounds == Pivot && !math.IsInf(a.limit, 1) {
		a.filter(leaf, distances, a.alive)
	}
	for i := from; i < count; i++ {
		if a.alive[i] == 0 || !a.passes(begin+i) {
			continue
		}
		run := i + 1
		for a.long == nil && run < count && a.alive[run] != 0 && a.passes(begin+run) {
			run++
		}
		if !a.compare(begin+i, begin+run) {
			return i + 1
		}
		i = run - 1
	}
	a.narrow()
	return 0
}

// filter strikes out the objects whose path shows that they are too far.
func (a *asking) filter(leaf uint32, distances []float64, alive []byte) {
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

// compare compares the objects at the positions begin to end-1, which pass; false: that was stopped.
func (a *asking) compare(begin, end uint32) bool {
	values := a.values[:end-begin]
	metric.ValuesTo(a.Asker, begin, end, a.most(), values)
	if a.long != nil && a.long.Paused() {
		return false
	}
	pass := a.Pass
	a.Pass = nil // who was asked already
	a.offer(begin, values)
	a.Pass = pass
	return true
}

// offer takes notice of objects from a position on.
func (a *asking) offer(begin uint32, values []float64) {
	a.work.Distances += float64(len(values))
	most := a.most()
	for i, value := range values {
		if value > most {
			continue
		}
		id := a.tree.order[begin+uint32(i)]
		if a.Pass != nil && !a.Pass(id) {
			continue
		}
		a.within++
		a.kept.Add(metric.Hit{Value: value, ID: id})
		most = a.most()
	}
}

func (a *asking) answer() Answer {
	answer := Answer{Hits: slices.Clone(a.kept.Sorted()), Work: a.work, Pivots: a.tree.bounds == Pivot}
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
	metric.ValuesOf(p.Asker, p.Asker, p.tree.order[lo:hi], most, dst)
}

// Coordinates are those of the query, if it has any.
func (p *positioned) Coordinates() []float64 {
	if q, ok := p.Asker.(metric.PlacedAsker); ok {
		return q.Coordinates()
	}
	return nil
}
