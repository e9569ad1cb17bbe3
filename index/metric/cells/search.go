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

	// The search that was begun.
	near, asker metric.Asker // near is nil when the centroids were compared
	want        metric.Want
	probes      int // 0: it is exact
	pass        func(id uint32) bool
}

// Searcher returns a new one.
func (x *Index) Searcher() *Searcher { return &Searcher{index: x, keys: make([]float64, x.Cells())} }

// Search finds the hits that are wanted, as Begin says. A filter, if any, says which objects pass. The error is that of the context, or says what is wrong with the query.
func (s *Searcher) Search(ctx context.Context, near, a metric.Asker, want metric.Want, probes int, pass func(id uint32) bool) (Result, error) {
	if err := s.Begin(near, a, want, probes); err != nil {
		return Result{}, err
	}
	if !s.Run(pass, metric.Until(ctx)) || ctx.Err() != nil {
		return Result{}, fmt.Errorf("searching cells: %w", context.Cause(ctx))
	}
	return s.End(), nil
}

// Begin begins a search for the hits that are wanted, whose ids are those of objects and not positions. near is the query as one of the centroids, a as one of the objects
// by position. With probes it visits so many cells, and more only as long as it has compared fewer than k objects that pass; with 0 probes, or as many as there are cells, it is
// exact.
func (s *Searcher) Begin(near, a metric.Asker, want metric.Want, probes int) error {
	if probes < 0 {
		return fmt.Errorf("searching cells with %d probes: it has to be 1 or more, or 0 for an exact search", probes)
	}
	if probes >= s.index.Cells() {
		probes = 0 // of all cells those that can have a hit
	}
	s.near, s.asker, s.want, s.probes, s.result = near, a, want, probes, Result{}
	s.best.Reset(want)
	return nil
}

// Run goes on until all is found, or the meter stops it, which is asked after each cell. The filter says which objects pass, nil: all, and is alike in all calls.
func (s *Searcher) Run(pass func(id uint32) bool, meter metric.Meter) (done bool) {
	if s.want.K < 1 || math.IsInf(s.want.Most, -1) {
		s.result.Exact = true
		return true
	}
	s.pass = pass
	m, dims := s.index.centroids.Metric(), s.index.centroids.Dims()
	each := m.Work(dims)
	if s.near != nil {
		s.near.Values(0, uint32(len(s.keys)), s.keys)
		s.near = nil
		s.order(m, dims)
		if meter.Did(each * len(s.keys)); meter.Stop() {
			return false
		}
	}
	for s.goes() {
		next, ok := s.queue.next()
		if !ok || s.probes == 0 && s.beyond(m, next) {
			break
		}
		before := s.result.Compared
		s.visit(next.ID)
		if meter.Did(1 + each*int(s.result.Compared-before)); meter.Stop() {
			return false
		}
	}
	return true
}

// End is what was found. Nothing of the query is kept.
func (s *Searcher) End() Result {
	r := s.result
	r.Exact = r.Exact || s.probes == 0 || r.Visited == s.index.Cells()
	r.Hits = s.best.Sorted()
	s.index.expect(&r, s.want, s.probes, s.pass)
	s.near, s.asker, s.pass = nil, nil, nil
	return r
}

// order puts the cells into the order in which they are visited: the nearest first, or of what is exact those that may have the nearest object.
func (s *Searcher) order(m metric.Metric, dims int) {
	s.passed = 0
	if s.want.K == math.MaxInt || s.probes == 0 {
		s.passed = math.MaxInt // all within a radius is no number to reach, and of what is exact nobody asks
	}
	if s.probes > 0 {
		s.queue.reset(s.keys, s.probes)
		return
	}
	for c, v := range s.keys {
		distance, radius := m.Distance(v), float64(s.index.radii[c])
		s.keys[c] = distance - radius - m.Slack(dims, distance, radius)
		if math.IsNaN(s.keys[c]) {
			s.keys[c] = math.Inf(-1) // of a radius that is no number: of it nothing is known
		}
	}
	s.queue.reset(s.keys, 32)
}

// goes says that another cell is to be visited, if there is one.
func (s *Searcher) goes() bool {
	return s.probes == 0 || s.result.Visited < s.probes || s.passed < s.want.K
}

// beyond says that no object of a cell, nor of those after it, can be a hit.
func (s *Searcher) beyond(m metric.Metric, next metric.Hit) bool {
	most := s.best.Bound()
	return !math.IsInf(most, 1) && next.Value > m.Distance(most)
}

// expect says what was measured for searches like one.
func (x *Index) expect(r *Result, want metric.Want, probes int, pass func(uint32) bool) {
	if !r.Exact && pass == nil && math.IsInf(want.Most, 1) {
		r.Expected, r.Measured = x.recall.At(want.K, float64(probes))
	}
}

// visit compares the query with the objects of a cell. Once as many pass as are wanted, it matters no more how many do.
func (s *Searcher) visit(cell uint32) {
	x, a, k, pass := s.index, s.asker, s.want.K, s.pass
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
