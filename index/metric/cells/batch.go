package cells

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/geniemq/geniemq/index/metric"
)

// Ask is a query of a batch: what Search is asked, and what it answers.
type Ask struct {
	Near, Asker metric.Asker // as one of the centroids; as one of the objects by position
	Want        metric.Want
	Probes      int
	Pass        func(id uint32) bool
	// Stop says now and then whether to give the query up: nil or no error goes on, an error is its Err.
	Stop func() error

	Result Result // its hits are the ask's
	Err    error
	// Left says that it was not answered, and that Search has to be asked: it is exact, or fewer than k objects of the cells that were visited pass.
	Left bool
}

// SearchAll answers a batch: the same as Search of each, in less time. Centroids are compared with all queries at once, and each cell with all queries that visit it, as a scan
// compares blocks with queries: objects are read once, and most are dropped by products of float32s.
//
// Cells are taken in rounds, the nearest of every query first, then some more, so that there is a bound when most are compared. Which cells a query visits does not depend on
// what was found, so neither does its answer. The error is that of the context; of one query alone it is in its ask.
func (s *Searcher) SearchAll(ctx context.Context, asks []Ask) error {
	b := together{Searcher: s, live: make([]visiting, 0, len(asks))}
	for i := range asks {
		a := &asks[i]
		if a.Probes <= 0 || a.Probes >= s.index.Cells() || a.Want.K < 1 || math.IsInf(a.Want.Most, -1) {
			a.Left = true
			continue
		}
		b.live = append(b.live, visiting{ask: a})
	}
	if len(b.live) == 0 {
		return nil
	}
	b.near()
	for from := 0; from < b.most; {
		to := min(b.most, 4*from+1)
		if err := b.round(ctx, from, to); err != nil {
			return err
		}
		from = to
	}
	for i := range b.live {
		b.finish(&b.live[i])
	}
	return nil
}

// together is some queries that are answered together.
type together struct {
	*Searcher
	live []visiting
	most int // probes of any query

	pairs  []pair
	askers []metric.Asker
	limits []float64
	of     []*visiting // of the queries that a cell is compared with
}

// visiting is a query that visits cells.
type visiting struct {
	ask    *Ask
	cells  []metric.Hit // to visit, in their order
	best   metric.Best
	passed int // objects that pass, counted as long as there are fewer than wanted
	result Result
}

// pair is a query and a cell that it visits.
type pair struct{ cell, query uint32 }

// near finds the cells that each query visits.
func (b *together) near() {
	b.askers, b.limits = b.askers[:0], b.limits[:0]
	for i := range b.live {
		v := &b.live[i]
		v.best.Reset(metric.Want{K: v.ask.Probes, Most: math.Inf(1)})
		b.askers, b.limits = append(b.askers, v.ask.Near), append(b.limits, math.Inf(1))
		b.most = max(b.most, v.ask.Probes)
	}
	metric.Scan(b.askers, 0, uint32(b.index.Cells()), b.limits, func(query int, cell uint32, value float64) {
		best := &b.live[query].best
		best.Add(metric.Hit{Value: value, ID: cell})
		b.limits[query] = best.Bound()
	})
	for i := range b.live {
		v := &b.live[i]
		v.cells = slices.Clone(v.best.Sorted())
		v.best.Reset(v.ask.Want)
		if v.ask.Want.K == math.MaxInt {
			v.passed = math.MaxInt // all within a radius is no number to reach
		}
	}
}

// round visits the cells from to to-1 of all queries, by cell.
func (b *together) round(ctx context.Context, from, to int) error {
	b.pairs = b.pairs[:0]
	for i := range b.live {
		v := &b.live[i]
		if v.ask.Err != nil || from >= len(v.cells) {
			continue
		}
		for _, c := range v.cells[from:min(to, len(v.cells))] {
			b.pairs = append(b.pairs, pair{c.ID, uint32(i)})
		}
	}
	slices.SortFunc(b.pairs, func(x, y pair) int { return cmp.Or(cmp.Compare(x.cell, y.cell), cmp.Compare(x.query, y.query)) })
	for first, compared := 0, 0; first < len(b.pairs); {
		cell, end := b.pairs[first].cell, first
		for end < len(b.pairs) && b.pairs[end].cell == cell {
			end++
		}
		if compared >= between || first == 0 {
			if ctx.Err() != nil {
				return fmt.Errorf("searching cells: %w", context.Cause(ctx))
			}
			b.stop()
			compared = 0
		}
		compared += (end - first) * int(b.index.starts[cell+1]-b.index.starts[cell])
		b.visitAll(cell, b.pairs[first:end])
		first = end
	}
	return nil
}

// between is how many objects are compared between two looks at who is to stop.
const between = 1 << 17

// stop gives up the queries that are to stop.
func (b *together) stop() {
	for i := range b.live {
		if a := b.live[i].ask; a.Stop != nil && a.Err == nil {
			a.Err = a.Stop()
		}
	}
}

// visitAll compares a cell with the queries that visit it.
func (b *together) visitAll(cell uint32, pairs []pair) {
	x := b.index
	lo, hi := x.starts[cell], x.starts[cell+1]
	b.askers, b.limits, b.of = b.askers[:0], b.limits[:0], b.of[:0]
	for _, p := range pairs {
		v := &b.live[p.query]
		if v.ask.Err != nil {
			continue
		}
		v.result.Visited++
		v.result.Compared += uint64(hi - lo)
		v.count(x.order[lo:hi])
		b.askers, b.limits, b.of = append(b.askers, v.ask.Asker), append(b.limits, v.best.Bound()), append(b.of, v)
	}
	metric.Scan(b.askers, lo, hi, b.limits, func(query int, position uint32, value float64) {
		v, id := b.of[query], x.order[position]
		if v.ask.Pass == nil || v.ask.Pass(id) {
			v.best.Add(metric.Hit{Value: value, ID: id})
			b.limits[query] = v.best.Bound()
		}
	})
}

// count counts which objects pass, until there are as many as are wanted.
func (v *visiting) count(ids []uint32) {
	if v.ask.Pass == nil {
		v.passed += min(len(ids), math.MaxInt-v.passed)
		return
	}
	for _, id := range ids {
		if v.passed >= v.ask.Want.K {
			return
		}
		if v.ask.Pass(id) {
			v.passed++
		}
	}
}

// finish ends a query.
func (b *together) finish(v *visiting) {
	a := v.ask
	if a.Err != nil {
		return
	}
	if v.passed < a.Want.K && v.result.Visited < b.index.Cells() {
		a.Left = true
		return
	}
	a.Result = v.result
	a.Result.Hits = v.best.Sorted()
	b.index.expect(&a.Result, a.Want, a.Probes, a.Pass)
}
