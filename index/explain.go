package index

import (
	"slices"
	"unicode/utf8"

	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/postings/single"
	"github.com/geniemq/geniemq/index/schema"
)

// Matcher says which columns' conditions of a query objects meet. What presences look at is found once for all of them. One goroutine at a time uses it.
type Matcher struct {
	queries *Queries
	counter single.Counter
}

// Matcher makes one of a query, which must not change.
func (q *Queries) Matcher(m *postings.MatchQuery) *Matcher {
	return &Matcher{queries: q, counter: single.Counter{Lists: q.lists, Query: m}}
}

// Append appends the columns of whose items an object has a keyword, in the order of the items, then those of which it is asked whether
// a value is there or missing. Strings and what else is asked
// by many attributes or by grams alone are left out: nearly every object shares something with them. It looks at each span at most once, and at none of
// a column that is found already.
func (x *Matcher) Append(dst []string, id uint32) []string {
	m, first := x.counter.Query, len(dst)
	for _, item := range m.Items {
		name := x.queries.matching[item.Attr]
		if name == "" || slices.Contains(dst[first:], name) || !x.counter.Has(item, id) {
			continue
		}
		dst = append(dst, name)
	}
	for _, p := range m.Presences {
		if name := x.queries.attributes[p.Attr]; !slices.Contains(dst[first:], name) && x.counter.Holds(p, id) {
			dst = append(dst, name)
		}
	}
	return dst
}

// ColumnOf is the name of the column that an attribute is of.
func (q *Queries) ColumnOf(attr int) string { return q.attributes[attr] }

// attribute takes notice of the attributes first to end-1 of a column.
func (q *Queries) attribute(name string, first, end int, told bool) {
	matching := ""
	if told {
		matching = name
	}
	for range end - first {
		q.attributes, q.matching = append(q.attributes, name), append(q.matching, matching)
	}
}

// nearestOf is how many keywords Nearest looks at. Where it is more, fewer letters at the beginning have to be right. Each takes some 60 ns, for up to 8 values of
// an explained query, of which a message may have many.
const nearestOf = 1024

// Nearest returns the keyword of a column that is written most like a value which no object has, "" where none is near. Of large vocabularies
// it looks at those that begin alike.
func (q *Queries) Nearest(name, value string) string {
	at, ok := q.byName[name]
	if !ok || q.columns[at].last < 0 {
		return ""
	}
	attr := q.columns[at].last
	a := q.lists.Attribute(attr)
	if a.Type != schema.Text {
		return ""
	}
	lo, hi := uint32(0), a.Keywords
	for n := 0; hi-lo > nearestOf && n < len(value); {
		_, width := utf8.DecodeRuneInString(value[n:])
		n += width
		lo, hi = q.lists.LowerBound(attr, value[:n]), q.lists.LowerBound(attr, value[:n]+string(utf8.MaxRune))
	}
	hi = min(hi, lo+nearestOf)
	names := make([]string, 0, hi-lo)
	for keyword := lo; keyword < hi; keyword++ {
		names = append(names, q.index.KeywordName(attr, keyword))
	}
	return schema.Nearest(value, names)
}
