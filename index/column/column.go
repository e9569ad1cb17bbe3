// Package column is the types of columns: how the cells of a column become values, conditions on it spans of keywords, and keywords words
// for people.
//
// # One rule, two sides
//
// An object is found only if the query's value takes exactly the way that the object's value took. So there is one
// function for each step (words of a text, n-grams of a string, text of a category, number of a cell), and the encoders of
// objects and of queries both call it; buckets are computed by postings.Attribute.Bucket from the edges in the file, as the
// builder computed them. Encoders of queries take their schema from the index file and never from a schema file, so that they
// cannot drift from what was built.
//
//	type      kinds            keywords
//	number    rows, documents  the bucket of the value; with edges: exact the value itself
//	category  rows, documents  the text itself, blanks trimmed; case matters
//	text      documents        the distinct words that are no stop words; see terms
//	text      sequences        the ordered n-grams (gram, occurrence) of the padded string; see ngram.Scanner
//	payload   all              none: stored
//	skip      all              none
//
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
// Encoders are called for every query of every client while a GPU waits, so their path has no maps of its own, no regular
// expressions and no allocation that grows with the number of conditions; scratch memory comes from a pool.
package column

import (
	"errors"
	"slices"

	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
)

// Type is a type of column. Types are values that a caller lists (index.Kinds); none registers itself. A new one is a file here, or a
// package anywhere.
type Type interface {
	// Name is what a schema calls the type. Two types may share a name if no kind of index takes both.
	Name() string
	// In says whether an index of a kind may have such columns.
	In(kind schema.Kind) bool
	// Check fills in the defaults of a column and returns every fault. The schema's own defaults are filled in.
	Check(s *schema.Schema, c *schema.Column) []error
	// Attributes are what a column is indexed by, in the family of inverted lists; none: it is stored, or searched by a structure of another
	// family.
	Attributes(c *schema.Column) []schema.AttributeSpec
	// Objects returns the encoder of a column's cells, nil if they have no values.
	Objects(s *schema.Schema, c *schema.Column) (ObjectEncoder, error)
	// Queries returns the encoder of conditions on a column whose first attribute is number first of the index, nil if there can be none.
	Queries(s *schema.Schema, c *schema.Column, first int, v Vocabulary) (QueryEncoder, error)
}

// ObjectEncoder makes values of cells. It is pure, and safe for concurrent use: any number of objects can be encoded at a time, and of one
// that is refused there is nothing to undo.
type ObjectEncoder interface {
	// Encode appends the values of a cell to dst, which keeps them only until the cell changes. The error says what is wrong with the cell, in words that follow the
	// name of the column.
	Encode(dst *schema.Values, cell *schema.Cell) error
}

// Vocabulary finds keywords of attributes of an index. *postings.Lists is one.
type Vocabulary interface {
	Attribute(attr int) *postings.Attribute
	Lookup(attr int, value string) (keyword uint32, ok bool)
	LowerBound(attr int, value string) uint32
}

// QueryEncoder makes query items of conditions on one column. It is safe for concurrent use.
type QueryEncoder interface {
	// Items adds the items of a condition to dst, one as a rule. The error is a *QueryError, and dst is then of no use.
	Items(dst *postings.MatchQuery, c *Condition) error
}

// A TextEncoder is a QueryEncoder of a column that texts are looked for in, whole.
type TextEncoder interface {
	// Text adds the item of a text, which is UTF-8 and not blank.
	Text(dst *postings.MatchQuery, text string) error
}

// A Planner is a QueryEncoder of a column that has no attributes and is searched by a structure of its own. Its Items is not called.
type Planner interface {
	// Query makes a query of a condition, for the structure of a family.
	Query(c *Condition) (family string, query any, err error)
}

// A Namer is a Type whose keywords need explaining to people.
type Namer interface {
	// KeywordName returns a keyword of a column in words.
	KeywordName(s *schema.Schema, c *schema.Column, keyword string) string
}

// Builtin returns the types that an index can have without anybody's adding one.
func Builtin() []Type {
	return []Type{Number{}, Category{}, Words{}, Sequence{}, Payload{}, Skip{}}
}

// foreign reports the fields of a column that are of other types than its own.
func foreign(c *schema.Column, own ...string) []error {
	var faults []error
	for _, field := range []struct {
		name   string
		set    bool
		belong string
	}{
		{"buckets", c.Buckets != 0, "buckets belongs to type number"},
		{"edges", c.Edges != "", "edges belongs to type number"},
		{"split", c.Split != "", "split belongs to types number and category"},
		{"store", c.Store, "store belongs to text columns of documents"},
		{"layout", c.Layout != "", "layout belongs to indexed columns"},
	} {
		if field.set && !slices.Contains(own, field.name) {
			faults = append(faults, errors.New(field.belong))
		}
	}
	return faults
}

// checkLayout checks the layout of a column whose attribute is of a type.
func checkLayout(c *schema.Column, t schema.AttributeType) []error {
	layout, err := schema.ParseLayout(c.Layout)
	if err == nil {
		err = layout.Takes(t)
	}
	if err != nil {
		return []error{err}
	}
	return nil
}
