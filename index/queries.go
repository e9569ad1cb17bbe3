package index

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
)

// Queries turns user queries into queries of the structures of one open index. It is safe for concurrent use and must not
// be used after the index is closed.
type Queries struct {
	schema   *schema.Schema
	columns  []queryColumn
	byName   map[string]int // position in columns
	texts    []column.TextEncoder
	planners bool      // some column is searched by a structure of its own
	pool     sync.Pool // of *order
}

// queryColumn is a column that can be asked for.
type queryColumn struct {
	name    string
	encoder column.QueryEncoder
	planner column.Planner // nil: what is asked for are keywords
}

// order is the columns of the conditions of a query before, by which those of the next are found.
type order []int

// maxOrder is how many columns are remembered.
const maxOrder = 4096

// NewQueries prepares the encoding of queries for x by the schema stored in it. It fails when the attributes in the
// file are not those that the schema declares, as in a file made by other means.
func NewQueries(x *Index) (*Queries, error) {
	q := &Queries{schema: x.schema, byName: make(map[string]int)}
	if err := checkAttributes(x); err != nil {
		return nil, err
	}
	first := 0
	for i := range q.schema.Columns {
		c := &q.schema.Columns[i]
		t := x.kinds.Column(q.schema.Kind, c.Type)
		encoder, err := t.Queries(q.schema, c, first, x.Lists)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", c.Name, err)
		}
		first += len(t.Attributes(c))
		if encoder == nil {
			continue
		}
		if text, ok := encoder.(column.TextEncoder); ok {
			q.texts = append(q.texts, text)
		}
		planner, _ := encoder.(column.Planner)
		q.planners = q.planners || planner != nil
		q.byName[c.Name] = len(q.columns)
		q.columns = append(q.columns, queryColumn{c.Name, encoder, planner})
	}
	q.pool.New = func() any { return new(order) }
	return q, nil
}

// checkAttributes checks that an index has the attributes its schema declares, in order.
func checkAttributes(x *Index) error {
	specs, attrs := x.kinds.Attributes(x.schema), x.Attributes()
	if !slices.EqualFunc(specs, attrs, func(s schema.AttributeSpec, a postings.Attribute) bool {
		return s.Name == a.Name && s.Type == a.Type
	}) {
		return fmt.Errorf("the attributes of index %s are not the columns of its schema: build it again", x.schema.Name)
	}
	return nil
}

// Text makes dst the query for a text: its distinct words in each text column of documents, or the ordered
// n-grams of a sequence, all with weight 1. Words that the index does not have match nothing, so that dst may
// end up without spans. The error is a *column.QueryError, and dst is then of no use.
func (q *Queries) Text(dst *postings.MatchQuery, text string) error {
	dst.Reset()
	switch {
	case len(q.texts) == 0:
		return column.Refuse("index %s holds %s and cannot be asked with text: use row or items", q.schema.Name, q.schema.Kind)
	case strings.TrimSpace(text) == "":
		return column.Refuse("text is empty: write what to look for")
	case !utf8.ValidString(text):
		return column.Refuse("text is not valid UTF-8")
	}
	for _, encoder := range q.texts {
		if err := encoder.Text(dst, text); err != nil {
			return err
		}
	}
	return nil
}

// Conditions makes dst the query for a list of conditions, one item each and in their order. The error is a
// *column.QueryError, or the Refusal of a condition, and dst is then of no use.
func (q *Queries) Conditions(dst *postings.MatchQuery, conditions []column.Condition) error {
	dst.Reset()
	if len(conditions) == 0 {
		return column.Refuse("the query has no conditions: name at least one attribute of index %s (%s)",
			q.schema.Name, q.names())
	}
	s := q.pool.Get().(*order)
	defer q.pool.Put(s)
	for i := range conditions {
		c := &conditions[i]
		at, ok := s.find(q, i, c.Attr)
		if !ok {
			return q.unknown(c.Attr)
		}
		if q.columns[at].planner != nil {
			return q.alone(c.Attr)
		}
		if err := q.columns[at].encoder.Items(dst, c); err != nil {
			return err
		}
	}
	return nil
}

// Query makes the query of a list of conditions, and says of which family's structure: as a rule it is dst, of the lists, as Conditions makes it.
// A condition on a column that is searched by a structure of its own stands alone and becomes a query of that. The error is as of Conditions.
func (q *Queries) Query(dst *postings.MatchQuery, conditions []column.Condition) (family string, query any, err error) {
	if q.planners && len(conditions) == 1 {
		c := &conditions[0]
		if at, ok := q.byName[c.Attr]; ok && q.columns[at].planner != nil {
			return q.columns[at].planner.Query(c)
		}
	}
	return postings.FamilyName, dst, q.Conditions(dst, conditions)
}

// alone refuses a condition that cannot be among others.
func (q *Queries) alone(name string) error {
	return column.Refuse("column %q is searched by itself: a condition on it must be the only one of its query", name)
}

// find finds the column of a query's i-th condition. Those who ask often name the same columns in the same
// order each time, so that one comparison is nearly always enough.
func (s *order) find(q *Queries, i int, name string) (at int, ok bool) {
	if i < len(*s) {
		if at = (*s)[i]; q.columns[at].name == name {
			return at, true
		}
	}
	if at, ok = q.byName[name]; !ok {
		return 0, false
	}
	if i < len(*s) {
		(*s)[i] = at
	} else if i == len(*s) && i < maxOrder {
		*s = append(*s, at)
	}
	return at, true
}
