package distance

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/cells"
	"github.com/geniemq/geniemq/index/metric/cost"
	"github.com/geniemq/geniemq/index/metric/recall"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

const cellsName = "cells"

// cellsPath is the access path of cells: to a recall that is wanted, or exact.
func cellsPath() Path {
	return Path{Name: cellsName, Section: SectionCells, Rows: SectionCellRows, Of: []Values{Vectors}, Check: checkCells, Build: buildCells, Open: openCells}
}

func checkCells(c *schema.Column) error {
	if c.Metric == "hamming" {
		return fmt.Errorf("index cells is no way to search by hamming, of which a mean is none: use tree or permutation")
	}
	return nil
}

func buildCells(ctx context.Context, c *schema.Column, space metric.Space, workers int, aid *metric.Aid) (Built, error) {
	var p cells.Parameters
	if o := c.Cells; o != nil {
		p.Cells, p.Seed = int(o.Cells), o.Seed
	}
	x, err := cells.Build(ctx, space.(*metric.Vectors), p, workers, aid)
	if err != nil {
		return Built{}, err
	}
	s := x.Sections()
	return Built{[][]byte{s.Head, store.Raw(s.Starts), store.Raw(s.Order), store.Raw(s.Centroids), store.Raw(s.Radii)}, s.Order}, nil
}

func openCells(c *schema.Column, m metric.Metric, kept Kept, objects uint32) (Opened, error) {
	parts := kept.Parts
	if len(parts) != 5 {
		return nil, store.Corrupt("cells of %d parts", len(parts))
	}
	for _, p := range parts[1:] {
		if len(p)%4 != 0 {
			return nil, store.Corrupt("%d bytes are no numbers of 4 bytes", len(p))
		}
	}
	x, err := cells.Open(cells.Sections{
		Head: parts[0], Starts: store.View[uint32](parts[1]), Order: store.View[uint32](parts[2]),
		Centroids: store.View[float32](parts[3]), Radii: store.View[float32](parts[4]),
	}, m, c.Dims, objects)
	if err != nil {
		return nil, store.Corrupt("%v", err)
	}
	return openedCells{x, newRows(c, kept.Rows)}, nil
}

type openedCells struct {
	*cells.Index
	rows rows
}

// Cells are the column's cells; nil where it has none.
func (c *Column) Cells() *cells.Index {
	if x, ok := c.Path(cellsName).(openedCells); ok {
		return x.Index
	}
	return nil
}

func (openedCells) Exact() bool      { return false }
func (openedCells) Counts() bool     { return false }
func (x openedCells) String() string { return fmt.Sprintf("%d cells", x.Cells()) }

// Recall implements Opened.
func (x openedCells) Recall() (*recall.Table, string) { return x.Index.Recall(), "cells visited" }

// Price implements Opened: every centroid is compared, and put in order, then the objects of so many cells of the mean size. Exactness takes nearly all cells as a rule. Of n centroids in any
// order the first p are kept: most are dropped, and p (1 + ln(n/p)) of them have been among the first when they were looked at.
func (x openedCells) Price(on On) Price {
	d := on.Device
	centroid := d.Distance(cost.Object{Metric: x.Centroids().Metric(), Dims: x.Centroids().Dims()})
	queue, offer := d.Of(cost.Constant{Name: "queue", Reference: 3}), d.Of(offerConstant)
	count := float64(x.Cells())
	return func(a *Asked) float64 {
		probes, first, each := count, count*(centroid.Alone+queue), a.Distance.Sieved
		if a.Query.Recall > 0 {
			passing := max(1, a.Objects/max(1, count)*a.Share)
			probes = min(count, max(float64(x.Probes(a.Among(a.Passing), a.Query.Recall)), float64(a.K)/passing))
			if d.Measured() && probes < count {
				first = count*centroid.Sieved + probes*(1+math.Log(count/probes))*(centroid.Alone+queue)
			}
		}
		mean := a.Objects / max(1, count)
		if d.Measured() { // else prices stay, by which it is chosen which answers are given
			each += a.Far
			if k := min(float64(a.K), probes*mean); k > 0 {
				first += offer * k * (1 + math.Log(probes*mean/k))
			}
		}
		return first + probes*(a.Apart+mean*each)
	}
}

// Verify implements Opened.
func (x openedCells) Verify(_ context.Context, space metric.Space) error {
	if err := x.Index.Verify(space.(*metric.Vectors)); err != nil {
		return err
	}
	return x.rows.verify(space, x.Order())
}

// Bind implements Opened.
func (x openedCells) Bind(space metric.Space) (Searcher, error) {
	v, ok := space.(*metric.Vectors)
	if !ok || v.Len() != x.Len() {
		return nil, store.Corrupt("the cells are over %d objects, and %d have a value", x.Len(), space.Len())
	}
	ordered, err := x.rows.space(v, x.Order())
	if err != nil {
		return nil, err
	}
	s := &cellsSearcher{cells: x.Index, space: ordered.(*metric.Vectors), bytes: x.rows.bytes(space) + x.Centroids().PanelBytes()}
	s.searchers.New = func() any { return &cellsMemory{Searcher: x.Searcher()} }
	return s, nil
}

type cellsSearcher struct {
	cells     *cells.Index
	space     *metric.Vectors // in the order of cells
	bytes     int64
	searchers sync.Pool // of *cellsMemory
}

// cellsMemory is a searcher, and what a batch is asked with. Askers of one batch are the memory of the next one's.
type cellsMemory struct {
	*cells.Searcher
	asks []cells.Ask
	of   []int // the number of each as the batch has it
}

// join makes room for one more ask: the askers of an earlier one are in it.
func (m *cellsMemory) join(number int) *cells.Ask {
	n := len(m.asks)
	m.asks, m.of = slices.Grow(m.asks, 1)[:n+1], append(m.of, number)
	return &m.asks[n]
}

// leave takes the last ask back.
func (m *cellsMemory) leave() {
	n := len(m.asks) - 1
	m.asks[n] = cells.Ask{Near: m.asks[n].Near, Asker: m.asks[n].Asker}
	m.asks, m.of = m.asks[:n], m.of[:n]
}

// askers are a query as a centroid and as an object, in the memory of earlier ones.
func (s *cellsSearcher) askers(q *Query, near, a *metric.Asker) (err error) {
	if *near, err = s.cells.Centroids().QueryIn(*near, q.Vector); err == nil {
		*a, err = s.space.QueryIn(*a, q.Vector)
	}
	return err
}

// probes is how many cells a query visits; 0: it is exact.
func (s *cellsSearcher) probes(q *Query, passing uint32) int {
	if q.Recall > 0 {
		return s.cells.Probes(q.Among(passing), q.Recall)
	}
	return 0
}

// tell tells what a search did.
func (s *cellsSearcher) tell(did *Answer, r *cells.Result) {
	did.Exact, did.Distances, did.Blocks = r.Exact, r.Compared+uint64(s.cells.Cells()), uint64(r.Visited)
	if r.Measured {
		did.Recall = r.Expected.Share
	}
}

// Begin implements Searcher: with a recall it visits as many cells as it takes, without until it is exact.
func (s *cellsSearcher) Begin(q *Query, passing uint32) (Searching, error) {
	var near, a metric.Asker
	if err := s.askers(q, &near, &a); err != nil {
		return nil, err
	}
	own := s.searchers.Get().(*cellsMemory)
	return &cellsSearching{s, own}, own.Begin(near, a, q.Want(), s.probes(q, passing))
}

type cellsSearching struct {
	from *cellsSearcher
	*cellsMemory
}

// End implements Searching.
func (s *cellsSearching) End(did *Answer, hits []metric.Hit) []metric.Hit {
	r := s.Searcher.End()
	s.from.tell(did, &r)
	hits = append(hits, r.Hits...)
	s.from.searchers.Put(s.cellsMemory)
	return hits
}

// Joins implements Together.
func (s *cellsSearcher) Joins(q *Query) bool { return q.K > 0 && q.Recall > 0 }

// SearchAll implements Together.
func (s *cellsSearcher) SearchAll(ctx context.Context, asks []Ask, stop func(ask int) error, done func(ask int)) error {
	m := s.searchers.Get().(*cellsMemory)
	defer func() {
		for len(m.asks) > 0 { // which leaves nothing but memory
			m.leave()
		}
		s.searchers.Put(m)
	}()
	for i := range asks {
		a, own := &asks[i], m.join(i)
		own.Want, own.Probes, own.Pass = a.Query.Want(), s.probes(a.Query, a.Passing), a.Pass
		if a.Err = s.askers(a.Query, &own.Near, &own.Asker); a.Err != nil {
			m.leave()
			done(i)
		}
	}
	if err := m.SearchAll(ctx, m.asks, func(ask int) error { return stop(m.of[ask]) }); err != nil {
		return err
	}
	for i := range m.asks {
		a, r := &asks[m.of[i]], &m.asks[i]
		a.Hits, a.Err, a.Left = r.Result.Hits, r.Err, r.Left
		if a.Err == nil && !a.Left {
			s.tell(a.Did, &r.Result)
		}
		done(m.of[i])
	}
	return nil
}

// Bytes is what it takes in memory.
func (s *cellsSearcher) Bytes() int64 { return s.bytes }
