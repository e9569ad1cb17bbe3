package descent

import (
	"fmt"
	"math"
	"slices"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/tree"
)

// Search is a query that is being answered. What is left of it is its stack, so a search that was stopped goes on with the same one. One goroutine at a time has it, from Begin to End, which gives
// its memory back.
type Search struct {
	tree   *Tree
	want   metric.Want
	total  bool
	q      [Most]float64
	kept   metric.Best
	within uint64
	work   tree.Work

	stack  []open // the nearest child of the deepest node is last
	bounds []float64
	values []float64
}

// open is a node that may have to be entered.
type open struct {
	bound float64 // before what rounding may have added
	node  uint32
}

// Begin begins a search by coordinates; total: all objects within want.Most are counted. The error says what is wrong with the query.
func (t *Tree) Begin(q []float64, want metric.Want, total bool) (*Search, error) {
	switch {
	case want.K < 0 || math.IsNaN(want.Most):
		return nil, fmt.Errorf("a search for the first %d objects within %v: neither may be negative or no number", want.K, want.Most)
	case len(q) != t.dims:
		return nil, fmt.Errorf("a query of %d coordinates in a tree over %d", len(q), t.dims)
	}
	s := t.searches.Get()
	s.tree, s.want, s.total, s.within, s.work = t, want, total, 0, tree.Work{}
	copy(s.q[:], q)
	s.kept.Reset(want)
	s.stack = slices.Grow(s.stack[:0], t.deepest)
	if len(t.order) > 0 && (want.K > 0 || total) {
		s.stack = append(s.stack, open{})
	}
	return s, nil
}

// End is what the search has come to, with hits behind those that are given; the search is nobody's then.
func (s *Search) End(hits []metric.Hit) tree.Answer {
	found := s.kept.Sorted()
	a := tree.Answer{Hits: append(hits, found...), Work: s.work}
	a.Work.Hits = float64(len(found))
	if s.total {
		a.Within = s.within
	}
	t := s.tree
	s.tree = nil
	t.searches.Put(s)
	return a
}

// most is the largest value that is still wanted.
func (s *Search) most() float64 {
	if s.total {
		return s.want.Most
	}
	return s.kept.Bound()
}

// reach is the largest bound that has to be looked behind, where values up to most are wanted: a computed one may be too large by share, and what it lost below the least numbers.
func (s *Search) reach(most float64) float64 { return most + math.Abs(most)*s.tree.share + 0x1p-1049 }

// Run goes on until nothing is left that could be wanted, or the meter stops it, which is asked after each leaf. pass says which objects may be hits, nil: all, and is alike in all calls.
func (s *Search) Run(pass func(id uint32) bool, meter metric.Meter) (done bool) {
	t := s.tree
	each := 3 + t.dims/5
	reach := s.reach(s.most())
	for len(s.stack) > 0 {
		next := s.stack[len(s.stack)-1]
		s.stack = s.stack[:len(s.stack)-1]
		if next.bound > reach {
			continue
		}
		n := t.nodes[next.node]
		if !n.leaf {
			s.expand(next.node, n, reach)
			continue
		}
		s.scan(next.node, n, pass)
		reach = s.reach(s.most())
		meter.Did(t.dims + int(n.count)*each)
		if meter.Stop() {
			return len(s.stack) == 0
		}
	}
	return true
}

// sorted is how many of a node's children are on the stack in order, the nearest of them. What is below has to be passed over, mostly: to sort it would take longer.
const sorted = 8

// expand puts the children of a node that are within reach onto the stack, the nearest last.
func (s *Search) expand(at uint32, n node, reach float64) {
	s.work.Nodes++
	s.missed(at, n)
	bottom := len(s.stack)
	for i, bound := range s.bounds {
		if bound > reach {
			continue
		}
		s.stack = append(s.stack, open{})
		j := len(s.stack) - 1
		for least := max(bottom, j-sorted); j > least && s.stack[j-1].bound < bound; j-- {
			s.stack[j] = s.stack[j-1]
		}
		s.stack[j] = open{bound, n.first + uint32(i)}
	}
}

// missed finds by how much the boxes of a node's children are missed.
func (s *Search) missed(at uint32, n node) {
	t := s.tree
	if t.boxes != nil {
		s.bounds = t.boxes.Missed(s.bounds, at, n.count, s.q[:t.dims])
		return
	}
	s.bounds = s.bounds[:0]
	for child := n.first; child < n.first+n.count; child++ {
		lo := t.sides[2*t.dims*int(child):][:t.dims]
		hi := t.sides[2*t.dims*int(child)+t.dims:][:t.dims]
		sum, most := 0.0, 0.0
		for j, x := range s.q[:t.dims] {
			gap := max(float64(lo[j])-x, x-float64(hi[j]), 0)
			sum += gap
			most = max(most, gap)
		}
		if t.metric == metric.Linf {
			sum = most
		}
		s.bounds = append(s.bounds, sum)
	}
}

// scan compares the objects of a leaf.
func (s *Search) scan(leaf uint32, n node, pass func(id uint32) bool) {
	t := s.tree
	s.values = t.rows.values(s.values, leaf, n, &s.q)
	s.work.Blocks++
	s.work.Distances += float64(n.count)
	most := s.most()
	for i, v := range s.values {
		if v > most {
			continue
		}
		id := t.order[n.first+uint32(i)]
		if pass != nil && !pass(id) {
			continue
		}
		s.within++
		s.kept.Add(metric.Hit{Value: v, ID: id})
		most = s.most()
	}
}
