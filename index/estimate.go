package index

import (
	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/postings/single"
)

// Estimate is what a request asks of a column of vectors, whose counts estimate how similar they are.
type Estimate struct {
	Column string
	// Alone: the column's items are all that the query counts, so that an object's count is that of the column. Otherwise it is looked up.
	Alone bool
	// Items are how many there are.
	Items int

	first   int // item of the query
	weight  uint32
	encoder column.Estimator
}

// estimated takes notice of the items that were added from first on, if they are of a column of vectors.
func (q *Queries) estimated(s *scratch, at, first int) {
	items := s.draft.Match.Items[first:]
	if encoder, ok := q.columns[at].encoder.(column.Estimator); ok && len(items) > 0 {
		s.estimates = append(s.estimates, Estimate{Column: q.columns[at].name, Items: len(items), first: first, weight: items[0].Weight, encoder: encoder})
	}
}

// takeEstimates are those of a query that is made.
func (s *scratch) takeEstimates() []Estimate {
	if len(s.estimates) == 0 {
		return nil
	}
	all := append([]Estimate(nil), s.estimates...)
	s.estimates = s.estimates[:0]
	all[0].Alone = len(all) == 1 && all[0].Items == len(s.draft.Match.Items) && len(s.draft.Match.Presences) == 0
	return all
}

// Estimate returns how similar an object is to what m, the query, asks of a column, and the bound of its error (column.Estimator). count is the object's.
func (q *Queries) Estimate(e *Estimate, m *postings.MatchQuery, id, count uint32) (similarity, bound float64) {
	if !e.Alone {
		own := postings.MatchQuery{Items: m.Items[e.first : e.first+e.Items], Spans: m.Spans}
		counter := single.Counter{Lists: q.lists, Query: &own}
		count = counter.Count(id)
	}
	return e.encoder.Estimate(count/e.weight, q.lists.Objects())
}

// ExpectedRecall returns the share of the k nearest neighbours that are found on average among so many candidates by the counts of a plan, as was
// measured when the index was built; ok is false where nothing was, or where that does not hold: of a query that asks anything else, or filters. by is the
// measure by which candidates are rescored, "" where they are not.
func (q *Queries) ExpectedRecall(p *Plan, by string, k, candidates int) (share float64, ok bool) {
	m, isMatch := p.Query.(*postings.MatchQuery)
	if !isMatch || len(p.Estimates) != 1 || !p.Estimates[0].Alone || m.Filter != nil {
		return 0, false
	}
	return p.Estimates[0].encoder.ExpectedRecall(by, k, candidates, q.lists.Objects())
}
