package distance

import (
	"context"
	"errors"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/descent"
	"github.com/geniemq/geniemq/index/metric/recall"
	"github.com/geniemq/geniemq/index/metric/tree"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// treePath is the access path of trees: exact, and fast where the intrinsic dimension is low.
func treePath() Path {
	return Path{Name: "tree", Section: SectionTree, Rows: SectionTreeRows, Of: []Values{Vectors, Points, Texts}, Build: buildTree, Open: openTree}
}

func buildTree(ctx context.Context, c *schema.Column, space metric.Space, workers int, _ *metric.Aid) (Built, error) {
	o := tree.Options{Workers: workers}
	if t := c.Tree; t != nil {
		o.Bounds, o.Capacity, o.Leaf, o.Seed = tree.Bounds(t.Bounds), int(t.Capacity), int(t.Leaf), t.Seed
	}
	t, err := tree.Build(ctx, space, o)
	if err != nil {
		return Built{}, err
	}
	return Built{[][]byte{t.Encode()}, t.Order()}, nil
}

func openTree(c *schema.Column, m metric.Metric, kept Kept, objects uint32) (Opened, error) {
	parts := kept.Parts
	if len(parts) != 1 {
		return nil, store.Corrupt("a tree of %d parts", len(parts))
	}
	dims := map[schema.ColumnType]int{schema.VectorColumn: c.Dims, schema.PointColumn: 3}[c.Type]
	t, err := tree.Open(parts[0], m, objects, dims)
	var damaged *tree.Damaged
	if errors.As(err, &damaged) {
		return nil, store.Corrupt("%s", damaged.Reason)
	}
	return openedTree{t, newRows(c, kept.Rows)}, err
}

type openedTree struct {
	*tree.Tree
	rows rows
}

func (t openedTree) Exact() bool    { return true }
func (t openedTree) Counts() bool   { return true }
func (t openedTree) String() string { return t.Shape().String() }

// Price implements Opened, by what was sampled when the tree was built, and what searches take that are tried where they will be made.
func (t openedTree) Price(on On) Price {
	p := tree.PricesOn(on.Device, on.Distance)
	p.Far = on.Far
	ratios := t.ratios(on, p)
	return func(a *Asked) float64 {
		own := p
		own.Distance, own.Far = a.Distance, a.Far
		row := t.Expect(a.Want)
		return ratios.of(row) * t.Cost(own, row)
	}
}

// Recall implements Opened.
func (openedTree) Recall() (*recall.Table, string) { return nil, "" }

// Verify implements Opened.
func (t openedTree) Verify(ctx context.Context, space metric.Space) error {
	if err := t.Tree.Verify(ctx, space); err != nil {
		return err
	}
	return t.rows.verify(space, t.Order())
}

// Bind implements Opened.
func (t openedTree) Bind(space metric.Space) (Searcher, error) {
	if space.Len() != t.Len() {
		return nil, store.Corrupt("the tree is over %d objects, and %d have a value", t.Len(), space.Len())
	}
	ordered, err := t.rows.space(space, t.Order())
	if err != nil {
		return nil, err
	}
	few, err := descent.New(t.Tree, ordered)
	switch {
	case err != nil:
		return nil, store.Corrupt("%v", err)
	case few != nil:
		return fewSearcher{few, space.(metric.Placed)}, nil
	}
	return &treeSearcher{t.Tree, ordered, t.rows.bytes(space)}, nil
}

type treeSearcher struct {
	tree  *tree.Tree
	space metric.Space // in the order of the tree
	bytes int64
}

// Bytes is what it takes in memory.
func (s *treeSearcher) Bytes() int64 { return s.bytes }

// Begin implements Searcher.
func (s *treeSearcher) Begin(q *Query, _ uint32) (Searching, error) {
	asker, err := q.Asker(s.space)
	if err != nil {
		return nil, err
	}
	search, err := s.tree.Begin(tree.Ask{Asker: asker, Want: q.Want(), Total: q.Total})
	return treeSearching{search}, err
}

type treeSearching struct{ *tree.Search }

// Run implements Searching.
func (s treeSearching) Run(pass func(id uint32) bool, meter metric.Meter) (done bool) {
	s.Pass = pass
	return s.Search.Run(meter)
}

// End implements Searching.
func (s treeSearching) End(did *Answer, hits []metric.Hit) []metric.Hit {
	found := s.Search.End()
	ended(&found, did)
	return append(hits, found.Hits...)
}

// ended tells what a search did.
func ended(found *tree.Answer, did *Answer) {
	did.Exact, did.Within = true, found.Within
	did.Distances, did.Blocks = uint64(found.Work.Distances), uint64(found.Work.Blocks)
	if found.Pivots {
		did.Distances += uint64(found.Work.Nodes)
	}
}

// fewSearcher is that of a box tree over few coordinates.
type fewSearcher struct {
	*descent.Tree
	space metric.Placed // by object
}

// Begin implements Searcher.
func (s fewSearcher) Begin(q *Query, _ uint32) (Searching, error) {
	var x [descent.Most]float64
	coordinates := x[:0]
	if q.Column.Of == Points {
		unit, err := metric.Unit(q.Point.Lat, q.Point.Lon)
		if err != nil {
			return nil, err
		}
		coordinates = append(coordinates, unit[:]...)
	}
	for _, e := range q.Vector {
		coordinates = append(coordinates, float64(e))
	}
	search, err := s.Tree.Begin(coordinates, q.Want(), q.Total)
	return fewSearching{search}, err
}

type fewSearching struct{ *descent.Search }

// End implements Searching.
func (s fewSearching) End(did *Answer, hits []metric.Hit) []metric.Hit {
	found := s.Search.End(hits)
	ended(&found, did)
	return found.Hits
}
