package encode

import (
	"math"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/geniemq/geniemq/index"
)

// Queries turns user queries into index queries for one open index. It is safe for concurrent use and must not
// be used after the index is closed.
type Queries struct {
	index  *index.Index
	schema *index.Schema
	attrs  []index.Attribute
	// texts are the attributes of text columns.
	texts []int
	// integers says which attributes are exact and hold all integers of a range, as hash values and years do: these are
	// their own keywords, but for where the range begins.
	integers []bool
	pool     sync.Pool // of *scratch
}

// scratch is the memory of one call.
type scratch struct {
	terms    *terms
	list     []string
	keywords []uint32
	order    []int // the attributes of the last query's conditions
}

// maxOrder is how many attributes are remembered.
const maxOrder = 4096

// NewQueries prepares the encoding of queries for x by the schema stored in it. It fails when the attributes in the
// file are not those that the schema declares, as in a file made by other means.
func NewQueries(x *index.Index) (*Queries, error) {
	q := &Queries{index: x, schema: x.Schema(), attrs: x.Attributes()}
	if err := checkAttributes(q.schema, q.attrs); err != nil {
		return nil, err
	}
	attr := 0
	for i := range q.schema.Columns {
		switch q.schema.Columns[i].Type {
		case index.TextColumn:
			q.texts = append(q.texts, attr)
			attr++
		case index.NumberColumn, index.CategoryColumn:
			attr++
		}
	}
	q.integers = make([]bool, len(q.attrs))
	for i := range q.attrs {
		q.integers[i] = consecutive(&q.attrs[i])
	}
	q.pool.New = func() any { return &scratch{terms: newTerms()} }
	return q, nil
}

// consecutive says that the values of an exact attribute are integers without a gap, small enough for float64.
func consecutive(a *index.Attribute) bool {
	const exact = 1 << 53
	n := len(a.Values)
	if n == 0 || a.Min != math.Trunc(a.Min) || a.Min < -exact || a.Max > exact || a.Max-a.Min != float64(n-1) {
		return false // most others are seen to be so here
	}
	for i, v := range a.Values {
		if v != a.Min+float64(i) {
			return false
		}
	}
	return true
}

// Text makes dst the query for a text: its distinct words in each text column of documents, or the ordered
// n-grams of a sequence, all with weight 1. Words that the index does not have match nothing, so that dst may
// end up without spans. The error is a *QueryError, and dst is then of no use.
func (q *Queries) Text(dst *index.Query, text string) error {
	dst.Reset()
	switch {
	case len(q.texts) == 0:
		return refuse("index %s holds %s and cannot be asked with text: use row or items", q.schema.Name, q.schema.Kind)
	case strings.TrimSpace(text) == "":
		return refuse("text is empty: write what to look for")
	case !utf8.ValidString(text):
		return refuse("text is not valid UTF-8")
	}
	s := q.pool.Get().(*scratch)
	defer q.pool.Put(s)
	s.terms.reset()
	if q.schema.Kind == index.Sequences {
		s.terms.addGrams(text, q.schema.NGram)
	} else {
		s.terms.addWords(text)
	}
	s.list = s.terms.strings(s.list[:0])
	for _, attr := range q.texts {
		s.keywords = s.keywords[:0]
		for _, term := range s.list {
			if keyword, ok := q.index.Lookup(attr, term); ok {
				s.keywords = append(s.keywords, keyword)
			}
		}
		slices.Sort(s.keywords)
		dst.StartItem(uint32(attr), 1)
		for i, keyword := range s.keywords {
			if i == 0 || keyword != s.keywords[i-1] {
				dst.AddSpan(keyword, keyword+1)
			}
		}
	}
	clear(s.list) // not to keep the query's text alive in the pool
	return nil
}
