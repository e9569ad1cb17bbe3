package index

import (
	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/postings"
)

// Conditions makes dst the query for a list of conditions on columns that are indexed by keywords; see Plan.
func (q *Queries) Conditions(dst *postings.MatchQuery, conditions []column.Condition) error {
	s := q.pool.Get()
	defer q.pool.Put(s)
	s.draft.Reset(dst)
	s.draft.Quiet = true
	err := q.items(s, &Request{Conditions: conditions})
	s.draft = column.Draft{}
	return err
}
