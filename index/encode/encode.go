// Package encode turns records and user queries into keywords: rows, documents and sequences, and later vectors
// and sets, all become the same thing, values of attributes, which is all the rest of the system knows.
//
// # One rule, two sides
//
// An object is found only if the query's value takes exactly the way the object's value took. So there is one
// function for each step (words of a text, n-grams of a string, text of a category, number of a cell), and Objects
// and Queries both call it; buckets are computed by index.Attribute.Bucket from the edges in the file, as the
// builder computed them. Queries takes its schema from the index file and never from a schema file, so that it
// cannot drift from what was built.
//
//	kind       column    keywords
//	rows       number    the bucket of the value; with edges: exact the value itself
//	rows       category  the text itself, blanks trimmed; case matters
//	documents  text      the distinct words that are no stop words; see terms
//	sequences  text      the ordered n-grams (gram, occurrence) of the padded string; see index.GramScanner
//
// Number and category columns may stand beside the text columns of documents, with the meaning they have in rows.
// Repeated values of number and category columns count each time (a bag); words are a set on both sides, and
// ordered n-grams are distinct by construction.
//
// # What a query becomes
//
// A condition becomes one item. A text becomes one item for each text column, holding all its words or n-grams as
// spans: since no object has one of these keywords twice, a set of keywords counts as the keywords one by one
// would, and the count bound, which decides the counters' width, stays at the size of the longest object and does
// not multiply by the number of words. Keywords that the index does not know match nothing and leave no trace.
//
// # Cost
//
// Queries is called for every query of every client while a GPU waits, so its path has no maps of its own, no regular
// expressions and no allocation that grows with the number of conditions; scratch memory comes from a pool.
package encode

import (
	"fmt"
	"strings"

	"github.com/geniemq/geniemq/index"
)

// Attributes returns the attributes that Objects fills: the indexed columns of a schema, in schema order.
func Attributes(s *index.Schema) []index.AttributeSpec {
	var specs []index.AttributeSpec
	for i := range s.Columns {
		c := &s.Columns[i]
		spec := index.AttributeSpec{Name: c.Name, Layout: c.Layout}
		switch c.Type {
		case index.NumberColumn:
			spec.Type, spec.Buckets, spec.Edges = index.Number, c.Buckets, c.Edges
		case index.CategoryColumn, index.TextColumn:
			spec.Type = index.Text
		default:
			continue
		}
		specs = append(specs, spec)
	}
	return specs
}

// RecordError says that a record cannot become an object and why. The builder is as it was before the record, so
// that the caller can count it and go on.
type RecordError struct {
	Line   int64  // 1-based line of the source, 0 when unknown
	Column string // empty when the fault is not one column's
	Reason string
	Err    error // the builder's error, such as *index.DuplicateKeyError; else nil
}

func (e *RecordError) Error() string {
	var b strings.Builder
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	if e.Column != "" {
		fmt.Fprintf(&b, "column %s: ", e.Column)
	}
	b.WriteString(e.Reason)
	return b.String()
}

// Unwrap returns the builder's error.
func (e *RecordError) Unwrap() error { return e.Err }

// QueryError is a fault in a query that its author must mend: a bad_request. Reason says what is wrong and
// what to write instead, in one line.
type QueryError struct {
	Reason string
}

func (e *QueryError) Error() string { return e.Reason }

func refuse(format string, args ...any) error {
	return &QueryError{Reason: fmt.Sprintf(format, args...)}
}
