package tree

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/geniemq/geniemq/index/metric"
)

// Search answers one query. The error is that of the context, or says what is wrong with the query.
func (t *Tree) Search(ctx context.Context, ask Ask) (Answer, error) {
	s, err := t.Begin(ask)
	if err != nil {
		return Answer{}, err
	}
	if !s.Run(metric.Until(ctx)) {
		return Answer{}, fmt.Errorf("searching a tree: %w", context.Cause(ctx))
	}
	return s.End(), nil
}

// Search is a query that is being answered, best first: it enters the node with the least bound, until every bound that is left is above what is wanted. So what is left is a heap of nodes,
// and a search that was stopped goes on with the same one. One goroutine at a time has it, from Begin to End, which gives its memory back.
type Search struct {
	asking
	todo      []open // a heap
	steps     []step
	distances []float64
	bounds    []float64
	at        uint32 // objects of the leaf that is entered next which are done
	budget    float64
}

// open is a node that may have to be entered.
type open struct {
	bound float64
	node  uint32
	step  int32 // the last of those that led to it; -1: none
}

// step is the distance to the pivot of a node that was entered, and the step before.
type step struct {
	distance float64
	before   int32
}

// Begin begins a search. The error says what is wrong with the query.
func (t *Tree) Begin(ask Ask) (*Search, error) {
	s := t.searches.Get()
	if err := s.ask(t, ask); err != nil {
		return nil, err
	}
	s.todo, s.steps, s.at, s.budget = s.todo[:0], s.steps[:0], 0, math.Inf(1)
	if !s.idle() {
		s.todo = append(s.todo, open{least, 0, -1})
	}
	return s, nil
}

// End is what the search has come to; the search is nobody's then.
func (s *Search) End() Answer {
	answer := s.answer()
	t := s.tree
	s.Ask, s.tree = Ask{}, nil
	t.searches.Put(s)
	return answer
}

// Run goes on until nothing is left that could be wanted, or the meter stops it, which is asked after each node.
func (s *Search) Run(meter metric.Meter) (done bool) {
	long, end := metric.Metered(s.Asker, meter)
	defer end()
	s.long = long
	each := s.tree.Work(s.tree.dims)
	for len(s.todo) > 0 && s.work.Distances < s.budget {
		next := s.pop()
		if next.bound > s.limit {
			break
		}
		before := s.work.Distances
		if !s.visit(next) {
			s.push(next) // where it was: nothing has changed
			return false
		}
		meter.Did(s.tree.capacity + int(s.work.Distances-before)*each)
		if meter.Stop() {
			return false
		}
	}
	return true
}

// visit enters a node; false: a comparison was stopped.
func (s *Search) visit(o open) bool {
	t := s.tree
	switch {
	case t.isLeaf(o.node):
		stopped := s.scan(o.node, s.above(o.step), s.at)
		s.at = stopped
		return stopped == 0
	case t.sides != nil:
		s.expandSides(o)
		return true
	}
	return s.expand(o)
}

func (s *Search) expand(o open) bool {
	d, ok := s.enter(o.node)
	if !ok {
		return false
	}
	s.steps = append(s.steps, step{d, o.step})
	last := int32(len(s.steps) - 1)
	for child := s.tree.first[o.node]; child < s.tree.first[o.node+1]; child++ {
		if bound := max(o.bound, s.bound(child, d)); bound <= s.limit {
			s.push(open{bound, child, last})
		}
	}
	return true
}

// expandSides is expand of a box tree whose boxes are held against the query side by side.
func (s *Search) expandSides(o open) {
	s.work.Nodes++
	t := s.tree
	first, n := t.first[o.node], t.first[o.node+1]-t.first[o.node]
	s.bounds = t.sides.Missed(s.bounds, o.node, n, s.q)
	for i, sum := range s.bounds {
		if bound := max(o.bound, t.outside(sum)); bound <= s.limit {
			s.push(open{bound, first + uint32(i), -1})
		}
	}
}

// above are the distances to the pivots that led to a leaf, the root's first.
func (s *Search) above(last int32) []float64 {
	s.distances = s.distances[:0]
	for ; last >= 0; last = s.steps[last].before {
		s.distances = append(s.distances, s.steps[last].distance)
	}
	slices.Reverse(s.distances)
	return s.distances
}

// sooner is the order in which nodes are entered. Of equal bounds the lower level is first, since it has the objects.
func (o open) sooner(other open) bool {
	return o.bound < other.bound || o.bound == other.bound && o.node > other.node
}

func (s *Search) push(o open) {
	s.todo = append(s.todo, o)
	h, i := s.todo, len(s.todo)-1
	for i > 0 && o.sooner(h[(i-1)/2]) {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = o
}

func (s *Search) pop() open {
	top, last := s.todo[0], len(s.todo)-1
	o := s.todo[last]
	h := s.todo[:last]
	s.todo = h
	if last == 0 {
		return top
	}
	i := 0
	for child := 1; child < last; child = 2*i + 1 {
		if child+1 < last && h[child+1].sooner(h[child]) {
			child++
		}
		if !h[child].sooner(o) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = o
	return top
}
