package cells

import (
	"context"
	"fmt"
	"math"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/recall"
)

// Result is what a search found. Its hits are the searcher's and hold until the next search.
type Result struct {
	Hits     []metric.Hit // in the order of (value, id)
	Compared uint64       // objects
	Visited  int          // cells
	// Exact: no other object can be a hit.
	Exact bool
	// Expected is what was measured for searches like this one, if Measured: of k neighbours that the table covers, with neither filter nor radius. What is exact
	// needs no measurement.
	Expected recall.Recall
	Measured bool
}

// Searcher searches an index. One goroutine at a time uses it; it keeps its memory.
type Searcher struct {
	index  *Index
	keys   []float64
	queue  queue
	values [512]float64
	best   metric.Best
	passed int // objects that pass, counted as long as there are fewer than wanted
	result Result
}

// Searcher returns a new one.
func (x *Index) Searcher() *Searcher { return &Searcher{index: x, keys: make([]float64, x.Cells())} }

// Search finds the hits that are wanted, whose ids are those of objects and not positions. near is the query as one of the centroids, a as one of the objects
// by position. With probes it visits so many cells, and more only as long as it has compared fewer than k objects that pass; with 0 probes, or as many as there are cells, it is
// exact. A filter, if any, says which objects pass.
func (s *Searcher) Search(ctx context.Context, near, a metric.Asker, want metric.Want, probes int, pass func(id uint32) bool) (Result, error) {
	if probes < 0 {
		return Result{}, fmt.Errorf("searching cells with %d probes: it has to be 1 or more, or 0 for an exact search", probes)
	}
	s.result = Result{}
	if want.K < 1 || math.IsInf(want.Most, -1) {
		return Result{Exact: true}, nil
	}
	s.best.Reset(want)
	near.Values(0, uint32(len(s.keys)), s.keys)
	visit := func(cell uint32) error {
		if s.result.Visited&63 == 0 && ctx.Err() != nil {
			return fmt.Errorf("searching cells: %w", context.Cause(ctx))
		}
		s.visit(a, cell, want.K, pass)
		return nil
	}
	var err error
	if probes == 0 || probes >= s.index.Cells() { // of all cells those that can have a hit
		err = s.proven(visit)
	} else {
		err = s.probed(visit, want.K, probes)
	}
	if err != nil {
		return Result{}, err
	}
	r := s.result
	r.Exact = r.Exact || r.Visited == s.index.Cells()
	r.Hits = s.best.Sorted()
	s.index.expect(&r, want, probes, pass)
	return r, nil
}

// expect says what was measured for searches like one.
func (x *Index) expect(r *Result, want metric.Want, probes int, pass func(uint32) bool) {
	if !r.Exact && pass == nil && math.IsInf(want.Most, 1) {
		r.Expected, r.Measured = x.recall.At(want.K, float64(probes))
	}
}

// probed visits the nearest cells.
func (s *Searcher) probed(visit func(cell uint32) error, k, probes int) error {
	s.passed = 0
	if k == math.MaxInt {
		s.passed = k // all within a radius is no number to reach
	}
	s.queue.reset(s.keys, probes)
	for s.result.Visited < probes || s.passed < k {
		next, ok := s.queue.next()
		if !ok {
			return nil
		}
		if err := visit(next.ID); err != nil {
			return err
		}
	}
	return nil
}

// proven visits cells until none can have a hit.
func (s *Searcher) proven(visit func(cell uint32) error) error {
	s.passed = math.MaxInt // nobody asks
	space := s.index.centroids
	m, dims := space.Metric(), space.Dims()
	for c, v := range s.keys {
		distance, radius := m.Distance(v), float64(s.index.radii[c])
		s.keys[c] = distance - radius - m.Slack(dims, distance, radius)
		if math.IsNaN(s.keys[c]) {
			s.keys[c] = math.Inf(-1) // of a radius that is no number: of it nothing is known
		}
	}
	s.queue.reset(s.keys, 32)
	for {
		next, ok := s.queue.next()
		if ok {
			most := s.best.Bound()
			ok = math.IsInf(most, 1) || !(next.Value > m.Distance(most))
		}
		if !ok {
			s.result.Exact = true
			return nil
		}
		if err := visit(next.ID); err != nil {
			return err
		}
	}
}

// visit compares the query with the objects of a cell. k is how many have to pass before it matters no more how many do.
func (s *Searcher) visit(a metric.Asker, cell uint32, k int, pass func(uint32) bool) {
	x := s.index
	s.result.Visited++
	s.result.Compared += uint64(x.starts[cell+1] - x.starts[cell])
	for lo, end := x.starts[cell], x.starts[cell+1]; lo < end; {
		hi := lo + min(end-lo, uint32(len(s.values)))
		bound := s.best.Bound()
		metric.ValuesTo(a, lo, hi, bound, s.values[:hi-lo])
		if pass == nil && s.passed < k {
			s.passed += int(hi - lo)
		}
		for i, v := range s.values[:hi-lo] {
			near := v <= bound
			if !near && (pass == nil || s.passed >= k) {
				continue
			}
			id := x.order[lo+uint32(i)]
			if pass != nil {
				if !pass(id) {
					continue
				}
				if s.passed < k {
					s.passed++
				}
			}
			if near {
				s.best.Add(metric.Hit{Value: v, ID: id})
				bound = s.best.Bound()
			}
		}
		lo = hi
	}
}

// queue gives cells in the order of (key, number): the first few, and more when these are used up, so that not all need sorting.
type queue struct {
	keys  []float64
	first metric.Best
	ready []metric.Hit
	given int
}

// reset begins with keys, of which so many may do.
func (q *queue) reset(keys []float64, expected int) {
	q.keys, q.ready, q.given = keys, nil, 0
	q.extend(expected)
}

func (q *queue) extend(to int) {
	q.first.Reset(metric.Want{K: to, Most: math.Inf(1)})
	for c, key := range q.keys {
		q.first.Add(metric.Hit{Value: key, ID: uint32(c)})
	}
	q.ready = q.first.Sorted()
}

func (q *queue) next() (metric.Hit, bool) {
	if q.given == len(q.ready) {
		if q.given == len(q.keys) {
			return metric.Hit{}, false
		}
		q.extend(16 * q.given)
	}
	q.given++
	return q.ready[q.given-1], true
}
