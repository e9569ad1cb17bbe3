package cells

import (
	"context"
	"fmt"
	"math"
	"slices"

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
	queue  queue
	best   metric.Best
	passed int // objects that pass, counted as long as there are fewer than least
	result Result

	// The search that was begun.
	near    metric.Asker
	ordered bool // the centroids were compared
	want    metric.Want
	probes  int // 0: it is exact
	least   int // it visits cells until it has seen so many objects that pass, at least
	pass    func(id uint32) bool

	// What Scan is given.
	asker  [1]metric.Asker
	limit  [1]float64
	found  metric.Found
	finder finder

	together together // of the last batch: memory
}

// Searcher returns a new one.
func (x *Index) Searcher() *Searcher {
	s := &Searcher{index: x, together: together{index: x}}
	s.found, s.finder.found = s.take, s.finder.take
	s.together.found, s.together.finder.found = s.together.take, s.together.finder.take
	return s
}

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
// by position. With probes it visits so many cells, and more only as long as it has compared fewer objects that pass than k, or than what was measured speaks of (recall.Table.Neighbours); with 0 probes, or as many as there are cells, it is
// exact.
func (s *Searcher) Begin(near, a metric.Asker, want metric.Want, probes int) error {
	if probes < 0 {
		return fmt.Errorf("searching cells with %d probes: it has to be 1 or more, or 0 for an exact search", probes)
	}
	if probes >= s.index.Cells() {
		probes = 0 // of all cells those that can have a hit
	}
	s.near, s.ordered, s.asker[0], s.want, s.probes, s.least, s.result = near, false, a, want, probes, s.index.recall.Neighbours(want.K), Result{}
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
	if !s.ordered {
		s.ordered = true
		s.order(m, dims)
		if meter.Did(each * s.index.Cells()); meter.Stop() {
			return false
		}
	}
	for s.goes() {
		if s.queue.given == len(s.queue.ready) && !s.more() {
			break
		}
		next := s.queue.next()
		if s.probes == 0 && s.beyond(m, next) {
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
	s.near, s.asker[0], s.pass = nil, nil, nil
	return r
}

// order puts the cells into the order in which they are visited: the nearest first, or of what is exact those that may have the nearest object.
func (s *Searcher) order(m metric.Metric, dims int) {
	s.passed = 0
	if s.want.K == math.MaxInt || s.probes == 0 {
		s.passed = math.MaxInt // all within a radius is no number to reach, and of what is exact nobody asks
	}
	q := &s.queue
	if s.probes > 0 { // as a scan: most centroids are dropped by a bound
		q.reset(q.keys[:0], s.probes)
		s.finder.reset()
		s.finder.add(s.near, &q.first)
		s.finder.find(s.near, uint32(s.index.Cells()))
		s.finder.release()
		q.ready = q.first.sorted()
		return
	}
	for c, v := range s.compareAll() {
		distance, radius := m.Distance(v), float64(s.index.radii[c])
		q.keys[c] = distance - radius - m.Slack(dims, distance, radius)
		if math.IsNaN(q.keys[c]) {
			q.keys[c] = math.Inf(-1) // of a radius that is no number: of it nothing is known
		}
	}
	q.reset(q.keys, 32)
	q.extend(32)
}

// compareAll finds the values of all centroids.
func (s *Searcher) compareAll() []float64 {
	q, count := &s.queue, s.index.Cells()
	q.keys = slices.Grow(q.keys[:0], count)[:count]
	s.near.Values(0, uint32(count), q.keys)
	return q.keys
}

// more gets more cells than were expected to do, if there are any.
func (s *Searcher) more() bool {
	q, count := &s.queue, s.index.Cells()
	if q.given == count {
		return false
	}
	if len(q.keys) == 0 {
		s.compareAll()
	}
	q.extend(min(count, 16*q.given))
	return true
}

// goes says that another cell is to be visited, if there is one.
func (s *Searcher) goes() bool {
	return s.probes == 0 || s.result.Visited < s.probes || s.passed < s.least
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

// visit compares the query with the objects of a cell.
func (s *Searcher) visit(cell uint32) {
	lo, hi := s.index.starts[cell], s.index.starts[cell+1]
	s.result.Visited++
	s.result.Compared += uint64(hi - lo)
	s.passed = count(s.passed, s.least, s.pass, s.index.order[lo:hi])
	s.limit[0] = s.best.Bound()
	metric.Scan(s.asker[:], lo, hi, s.limit[:], s.found)
}

// take takes an object whose value is not beyond the limit.
func (s *Searcher) take(_ int, position uint32, value float64) {
	if id := s.index.order[position]; s.pass == nil || s.pass(id) {
		s.best.Add(metric.Hit{Value: value, ID: id})
		s.limit[0] = s.best.Bound()
	}
}

// count adds those of some objects that pass to a number, until there are as many as are wanted: then it matters no more.
func count(passed, wanted int, pass func(id uint32) bool, ids []uint32) int {
	if pass == nil {
		return passed + min(len(ids), math.MaxInt-passed)
	}
	for _, id := range ids {
		if passed >= wanted {
			break
		}
		if pass(id) {
			passed++
		}
	}
	return passed
}

// queue gives cells in the order of (key, number): the first few, and more when these are used up, so that not all need sorting.
type queue struct {
	keys  []float64 // of all cells; none: they are not known
	first list
	ready []metric.Hit
	given int
}

// reset begins with keys, of which so many may do.
func (q *queue) reset(keys []float64, expected int) {
	q.keys, q.ready, q.given = keys, nil, 0
	q.first.reset(expected)
}

// extend makes ready so many, of which those that were given come first again.
func (q *queue) extend(to int) {
	q.first.reset(to)
	for c, key := range q.keys {
		if key <= q.first.bound {
			q.first.add(metric.Hit{Value: key, ID: uint32(c)})
		}
	}
	q.ready = q.first.sorted()
}

func (q *queue) next() metric.Hit {
	q.given++
	return q.ready[q.given-1]
}
