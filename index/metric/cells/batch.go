package cells

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/geniemq/geniemq/index/metric"
)

// Ask is a query of a batch: what Search is asked, and what it answers.
type Ask struct {
	Near, Asker metric.Asker // as one of the centroids; as one of the objects by position
	Want        metric.Want
	Probes      int
	Pass        func(id uint32) bool

	Result Result // its hits are the searcher's: they are good until it is asked again
	Err    error
	// Left says that it was not answered, and that Search has to be asked: it is exact, or fewer than k objects of the cells that were visited pass.
	Left bool
}

// SearchAll answers a batch: the same as Search of each, in less time. Centroids are compared with all queries at once, and each cell with all queries that visit it, as a scan
// compares blocks with queries: objects are read once, and most are dropped by products of float32s.
//
// Cells are taken in rounds, the nearest of every query first, then some more, so that there is a bound when most are compared. Which cells a query visits does not depend on
// what was found, so neither does its answer. Stop says now and then whether to give a query up, by its number: an error is its Err; a nil stop gives none up. The error is that of the
// context; of one query alone it is in its ask.
func (s *Searcher) SearchAll(ctx context.Context, asks []Ask, stop func(ask int) error) error {
	b := &s.together
	b.stop = stop
	defer b.release()
	for i := range asks {
		a := &asks[i]
		if a.Probes <= 0 || a.Probes >= s.index.Cells() || a.Want.K < 1 || math.IsInf(a.Want.Most, -1) {
			a.Left = true
			continue
		}
		b.join(a, i)
	}
	if len(b.live) == 0 {
		return nil
	}
	b.findCells()
	from := 0
	for _, to := range b.ends {
		if err := b.round(ctx, from, to); err != nil {
			return err
		}
		from = to
	}
	hits := 0
	for i := range b.live {
		hits += len(b.live[i].best.Sorted())
	}
	b.hits = slices.Grow(b.hits[:0], hits)
	for i := range b.live {
		b.finish(&b.live[i])
	}
	return nil
}

// together is some queries that are answered together, and the memory of them, which the next ones have.
type together struct {
	index *Index
	live  []visiting
	ends  []int // of rounds: how many cells of a query were visited then
	stop  func(ask int) error

	near   metric.Asker // memory for comparing queries with all centroids
	finder finder
	pairs  []pair
	sorted []pair
	counts []uint32
	askers []metric.Asker
	limits []float64
	of     []*visiting  // of the queries that a cell is compared with
	hits   []metric.Hit // of all answers
	found  metric.Found // take
}

// visiting is a query that visits cells.
type visiting struct {
	ask    *Ask
	number int  // the ask's
	cells  list // to visit, in their order
	best   metric.Best
	passed int // objects that pass, counted as long as there are fewer than least
	least  int // as Searcher's
	result Result
}

// pair is a cell and a query that visits it, in the order of both.
type pair uint64

func pairOf(cell uint32, query int) pair { return pair(cell)<<32 | pair(query) }

func (p pair) cell() uint32  { return uint32(p >> 32) }
func (p pair) query() uint32 { return uint32(p) }

// join takes in a query.
func (b *together) join(a *Ask, number int) {
	n := len(b.live)
	b.live = slices.Grow(b.live, 1)[:n+1] // what is behind is memory of earlier ones
	v := &b.live[n]
	v.ask, v.number, v.result, v.passed, v.least = a, number, Result{}, 0, b.index.recall.Neighbours(a.Want.K)
	if a.Want.K == math.MaxInt {
		v.passed = math.MaxInt // all within a radius is no number to reach
	}
	v.cells.reset(a.Probes)
	v.best.Reset(a.Want)
}

// release leaves nothing but memory, and the hits.
func (b *together) release() {
	if len(b.live) > 0 {
		metric.Release(b.live[0].ask.Asker)
	}
	for i := range b.live {
		b.live[i].ask, b.live[i].result = nil, Result{}
	}
	clear(b.askers[:cap(b.askers)])
	b.finder.release()
	metric.Release(b.near)
	b.live, b.stop = b.live[:0], nil
}

// findCells finds the cells that each query visits.
func (b *together) findCells() {
	most := 0
	b.finder.reset()
	for i := range b.live {
		v := &b.live[i]
		b.finder.add(v.ask.Near, &v.cells)
		most = max(most, v.ask.Probes)
	}
	b.ends = b.ends[:0]
	for to := 0; to < most; {
		to = min(most, 4*to+1)
		b.ends = append(b.ends, to)
	}
	if b.near == nil {
		b.near = metric.Scratch(b.index.centroids)
	}
	b.finder.find(b.near, uint32(b.index.Cells()))
	for i := range b.live {
		b.live[i].cells.rounds(b.ends)
	}
}

// round visits the cells from to to-1 of all queries, by cell.
func (b *together) round(ctx context.Context, from, to int) error {
	b.pairs = b.pairs[:0]
	for i := range b.live {
		v := &b.live[i]
		if cells := v.cells.hits; v.ask.Err == nil && from < len(cells) {
			for _, c := range cells[from:min(to, len(cells))] {
				b.pairs = append(b.pairs, pairOf(c.ID, i))
			}
		}
	}
	b.sort()
	for first, compared := 0, 0; first < len(b.pairs); {
		cell, end := b.pairs[first].cell(), first
		for end < len(b.pairs) && b.pairs[end].cell() == cell {
			end++
		}
		if compared >= between || first == 0 {
			if ctx.Err() != nil {
				return fmt.Errorf("searching cells: %w", context.Cause(ctx))
			}
			b.giveUp()
			compared = 0
		}
		compared += (end - first) * int(b.index.starts[cell+1]-b.index.starts[cell])
		b.visitAll(cell, b.pairs[first:end])
		first = end
	}
	return nil
}

// sort puts pairs, which are in the order of queries, into that of cells: by counting, a digit after the other.
func (b *together) sort() {
	all := bits.Len(uint(b.index.Cells() - 1))
	digits := max(1, (all+mostDigit-1)/mostDigit)
	width := (all + digits - 1) / digits
	if len(b.pairs) < 1<<width/16 { // of which there are fewer steps than digits to count
		slices.Sort(b.pairs)
		return
	}
	b.counts = slices.Grow(b.counts[:0], 1<<width)[:1<<width]
	b.sorted = slices.Grow(b.sorted[:0], len(b.pairs))[:len(b.pairs)]
	for digit := range digits {
		shift := 32 + digit*width
		clear(b.counts)
		for _, p := range b.pairs {
			b.counts[p>>shift&(1<<width-1)]++
		}
		before := uint32(0)
		for i, n := range b.counts {
			b.counts[i] = before
			before += n
		}
		for _, p := range b.pairs {
			at := &b.counts[p>>shift&(1<<width-1)]
			b.sorted[*at] = p
			*at++
		}
		b.pairs, b.sorted = b.sorted, b.pairs
	}
}

// mostDigit is how many bits of a cell's number are counted at a time, at most.
const mostDigit = 12

// between is how many objects are compared between two looks at who is to stop.
const between = 1 << 17

// giveUp gives up the queries that are to stop.
func (b *together) giveUp() {
	if b.stop == nil {
		return
	}
	for i := range b.live {
		if v := &b.live[i]; v.ask.Err == nil {
			v.ask.Err = b.stop(v.number)
		}
	}
}

// visitAll compares a cell with the queries that visit it, in the memory of one of the batch.
func (b *together) visitAll(cell uint32, pairs []pair) {
	x := b.index
	lo, hi := x.starts[cell], x.starts[cell+1]
	b.askers, b.limits, b.of = b.askers[:0], b.limits[:0], b.of[:0]
	for _, p := range pairs {
		v := &b.live[p.query()]
		if v.ask.Err != nil {
			continue
		}
		v.result.Visited++
		v.result.Compared += uint64(hi - lo)
		v.passed = count(v.passed, v.least, v.ask.Pass, x.order[lo:hi])
		b.askers, b.limits, b.of = append(b.askers, v.ask.Asker), append(b.limits, v.best.Bound()), append(b.of, v)
	}
	metric.ScanWith(b.live[0].ask.Asker, b.askers, lo, hi, b.limits, b.found)
}

// take takes an object whose value for a query of those that are compared is not beyond the limit.
func (b *together) take(query int, position uint32, value float64) {
	v, id := b.of[query], b.index.order[position]
	if v.ask.Pass == nil || v.ask.Pass(id) {
		v.best.Add(metric.Hit{Value: value, ID: id})
		b.limits[query] = v.best.Bound()
	}
}

// finish ends a query.
func (b *together) finish(v *visiting) {
	a := v.ask
	if a.Err != nil {
		return
	}
	if v.passed < v.least && v.result.Visited < b.index.Cells() {
		a.Left = true
		return
	}
	a.Result = v.result
	from := len(b.hits)
	b.hits = append(b.hits, v.best.Sorted()...)
	a.Result.Hits = b.hits[from:len(b.hits):len(b.hits)]
	b.index.expect(&a.Result, a.Want, a.Probes, a.Pass)
}
