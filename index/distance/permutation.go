package distance

import (
	"context"
	"fmt"
	"sync"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/cost"
	"github.com/geniemq/geniemq/index/metric/permutation"
	"github.com/geniemq/geniemq/index/metric/recall"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// permutationPath is the access path of rank vectors: approximate, under any metric.
func permutationPath() Path {
	return Path{Name: "permutation", Section: SectionPermutation, Of: []Values{Vectors, Points, Texts}, Build: buildPermutation, Open: openPermutation}
}

// defaultFraction is that of schemas without options.
const defaultFraction = 0.01

func buildPermutation(ctx context.Context, c *schema.Column, space metric.Space, workers int, aid *metric.Aid) (Built, error) {
	var p permutation.Parameters
	if o := c.Permutation; o != nil {
		p.Permutants, p.Similarity, p.Seed = o.Permutants, permutation.Similarity(o.Similarity), o.Seed
	}
	x, err := permutation.Build(ctx, space, p, workers, aid)
	if err != nil {
		return Built{}, err
	}
	s := x.Sections()
	return Built{Parts: [][]byte{s.Head, s.Ranks}}, nil
}

func openPermutation(c *schema.Column, _ metric.Metric, kept Kept, objects uint32) (Opened, error) {
	parts := kept.Parts
	if len(parts) != 2 {
		return nil, store.Corrupt("a permutation index of %d parts", len(parts))
	}
	x, err := permutation.Open(permutation.Sections{Head: parts[0], Ranks: parts[1]}, objects)
	if err != nil {
		return nil, store.Corrupt("%v", err)
	}
	o := openedPermutation{x, defaultFraction}
	if c.Permutation != nil {
		o.fraction = c.Permutation.Fraction
	}
	return o, nil
}

type openedPermutation struct {
	*permutation.Index
	fraction float64 // where a query does not say
}

func (openedPermutation) Exact() bool  { return false }
func (openedPermutation) Counts() bool { return false }
func (x openedPermutation) String() string {
	p := x.Parameters()
	return fmt.Sprintf("%d permutants, %s, fraction %g", p.Permutants, p.Similarity, x.fraction)
}

// Recall implements Opened.
func (x openedPermutation) Recall() (*recall.Table, string) {
	return x.Index.Recall(), "fraction compared"
}

// Price implements Opened: all rank vectors are compared with that of the query, then the candidates.
func (x openedPermutation) Price(on On) Price {
	m := float64(len(x.Permutants()))
	p := x.Parameters()
	searcher := x.Searcher()
	rank := on.Device.Of(cost.Constant{
		Name: fmt.Sprintf("ranks %s/%d", p.Similarity, p.Permutants), Reference: 2 + 0.1*m, Probe: func() int { return searcher.CompareRanks(2048) },
	})
	return func(a *Asked) float64 {
		fraction := x.wanted(a.Query, a.Among(a.Passing))
		steps := min(a.Objects, max(float64(a.K), fraction*a.Objects))
		if steps >= a.Objects {
			return a.Objects * a.Distance.Alone
		}
		return m*(a.Distance.Alone+a.Apart) + a.Objects*rank + steps*(a.Distance.Alone+a.Apart)
	}
}

// Permutation is the column's permutation index; nil where it has none.
func (c *Column) Permutation() *permutation.Index {
	if x, ok := c.Path("permutation").(openedPermutation); ok {
		return x.Index
	}
	return nil
}

// Compares is the fraction of the objects that a query of a column with a permutation index compares by it, which asks for no recall under a filter.
func (c *Column) Compares(q *Query) float64 {
	return c.Path("permutation").(openedPermutation).wanted(q, q.K)
}

// wanted is the fraction of the objects that a query compares, whose hits are among so many neighbours.
func (x openedPermutation) wanted(q *Query, among int) float64 {
	switch {
	case q.Recall > 0:
		return x.Fraction(among, q.Recall)
	case q.Fraction > 0:
		return q.Fraction
	}
	return x.fraction
}

// Verify implements Opened.
func (x openedPermutation) Verify(context.Context, metric.Space) error { return x.Index.Verify() }

// Bind implements Opened.
func (x openedPermutation) Bind(space metric.Space) (Searcher, error) {
	if space.Len() != x.Len() {
		return nil, store.Corrupt("the permutation index is over %d objects, and %d have a value", x.Len(), space.Len())
	}
	s := &permutationSearcher{opened: x, space: space}
	s.searchers.New = func() any { return x.Searcher() }
	return s, nil
}

type permutationSearcher struct {
	opened    openedPermutation
	space     metric.Space
	searchers sync.Pool
}

// Begin implements Searcher.
func (s *permutationSearcher) Begin(q *Query, passing uint32) (Searching, error) {
	a, err := q.Asker(s.space)
	if err != nil {
		return nil, err
	}
	own := s.searchers.Get().(*permutation.Searcher)
	fraction := s.opened.wanted(q, q.Among(passing))
	return &permutationSearching{s, own, fraction}, own.Begin(a, q.Want(), fraction)
}

type permutationSearching struct {
	from *permutationSearcher
	*permutation.Searcher
	fraction float64
}

// End implements Searching.
func (s *permutationSearching) End(did *Answer, hits []metric.Hit) []metric.Hit {
	r := s.Searcher.End()
	did.Exact, did.Distances, did.Blocks, did.Fraction = r.Exact, uint64(r.Compared+len(s.from.opened.Permutants())), 1, s.fraction
	if r.Measured {
		did.Recall = r.Expected.Share
	}
	hits = append(hits, r.Hits...)
	s.from.searchers.Put(s.Searcher)
	return hits
}
