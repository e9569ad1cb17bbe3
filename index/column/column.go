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
//	type      kinds                     keywords
//	number    rows, documents, records  the bucket of the value; with edges: exact the value itself
//	date      records                   as of numbers: microseconds since 1970
//	category  rows, documents, records  the text itself, blanks trimmed; case matters, unless it is folded
//	bool      records                   true, false
//	text      documents, records        the distinct words that are no stop words, and words in a row; see terms
//	text      sequences                 the ordered n-grams (gram, occurrence) of the padded string; see ngram.Scanner
//	string    records                   the same; and, as an attribute of its own, the whole
//	set       records                   the distinct elements
//	tree      records                   (binary branch, occurrence); see package tree
//	graph     records                   (star, occurrence); see package graph
//	vector    records                   hashes; or none: searched by distance
//	point     records                   none: searched by distance
//	payload   all                       none: stored
//	skip      all                       none
//
// Records are indexes of mixed columns (schema.Kind.Mixed).
//
// Repeated values of number, date, category and bool columns count each time (a bag); words and elements are sets on both sides, and
// ordered n-grams, branches and stars are distinct by construction.
//
// # What a query becomes
//
// A condition becomes one item, and in a filter one clause or several. A text becomes one item for each text column, holding all its words or n-grams as
// spans, unless they weigh each their own (IDF): since no object has one of these keywords twice, a set of keywords counts as the keywords one by one
// would, and the count bound, which decides the counters' width, stays at the size of the longest object and does
// not multiply by the number of words. Keywords that the index does not know match nothing and leave no trace.
//
// # Cost
//
// Encoders are called for every query of every client while a GPU waits, so their path has no maps of its own, no regular
// expressions and no allocation that grows with the number of conditions; scratch memory comes from a pool.
package column

import (
	"fmt"
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

// A BlockEncoder is an ObjectEncoder that has less work with many objects at a time.
type BlockEncoder interface {
	ObjectEncoder
	// EncodeAll ends the encoding of objects, of which each was encoded into values of its own. It is safe for concurrent use. An error is that of
	// the whole index: what concerns one object is Encode's.
	EncodeAll(values []*schema.Values) error
}

// Vocabulary finds keywords of attributes of an index. *postings.Lists is one.
type Vocabulary interface {
	Attribute(attr int) *postings.Attribute
	Lookup(attr int, value string) (keyword uint32, ok bool)
	// LookupAll appends the keyword of each value, or postings.NoKeyword.
	LookupAll(dst []uint32, attr int, values []string) []uint32
	LowerBound(attr int, value string) uint32
}

// QueryEncoder makes query items of conditions on one column. It is safe for concurrent use.
type QueryEncoder interface {
	// Items adds the items of a condition to dst, which it has begun; one as a rule. The error is a *refusal.Error, and dst is then of no use.
	Items(dst *Draft, c *Condition) error
}

// A BatchEncoder is a QueryEncoder that has less work with many conditions at a time.
type BatchEncoder interface {
	// Prepare sets Condition.Prepared of those that are sound, which is for Items. Workers is the number of goroutines that it may use.
	Prepare(conditions []*Condition, workers int)
}

// An Estimator is a QueryEncoder of a column whose counts estimate how similar values are.
type Estimator interface {
	// Estimate says how similar an object is by its count of the column, weights apart, and by how much that is wrong at most, for all of so many
	// objects together.
	Estimate(count, objects uint32) (similarity, bound float64)
	// ExpectedRecall is the share of the k nearest by the column's similarity that are among so many candidates of an index of so many objects; by is
	// the measure that orders these, "" for counts. ok is false where it was not measured.
	ExpectedRecall(by string, k, candidates int, objects uint32) (share float64, ok bool)
}

// A VectorEncoder is an Estimator of a column that vectors are looked for in. It takes Condition.Vector.
type VectorEncoder interface {
	Estimator
	Dims() int // which other Estimators do not have: by it the type is told from theirs
}

// A TextEncoder is a QueryEncoder of a column that texts are looked for in, whole.
type TextEncoder interface {
	// Text adds the items of a text, which is UTF-8 and not blank; one as a rule.
	Text(dst *Draft, text string) error
}

// A SetEncoder is a QueryEncoder of a column that sets are looked for in, whole.
type SetEncoder interface {
	// Set adds the items of a set.
	Set(dst *Draft, elements []Value) error
}

// A GramEncoder is a TextEncoder whose grams only choose candidates: hits are in the order of their edit distances to the text.
type GramEncoder interface {
	TextEncoder
	// NGram is the length of the grams.
	NGram() int
}

// A Planner is a QueryEncoder of a column that has no attributes and is searched by a structure of its own. Its Items is not called.
type Planner interface {
	// Query makes a query of a condition, for the structure of a family.
	Query(c *Condition) (family string, query any, err error)
}

// A Weigher is a Type whose keywords can weigh the more the fewer objects have them.
type Weigher interface {
	Weighs() bool
}

// A Namer is a Type whose keywords need explaining to people.
type Namer interface {
	// KeywordName returns a keyword of a column in words.
	KeywordName(s *schema.Schema, c *schema.Column, keyword string) string
}

// A Keeper is a Type of whose columns something is kept by object, beside keywords: what its ObjectEncoder leaves in Values.
type Keeper interface {
	// Keeps says what is kept of a column; the zero value: nothing.
	Keeps(s *schema.Schema, c *schema.Column) schema.KeptSpec
}

// A Learner is a Type of whose columns something is learned from the data before objects can be added.
type Learner interface {
	// Sample is how many objects with values it learns from, at most; 0: there is nothing to learn, or it is known.
	Sample(c *schema.Column) int
	// Learn fills in what a column leaves open, from the cells of a sample, which are not empty, and the whole data or not. The same cells teach the same. Workers is the
	// number of goroutines that it may use.
	Learn(c *schema.Column, sample []schema.Cell, whole bool, workers int) error
}

// A Measurer is a Type of whose columns something is measured while objects are added, and stands in the schema that the index keeps.
type Measurer interface {
	// Measure begins; nil where there is nothing to measure. Workers is the number of goroutines that it may use.
	Measure(c *schema.Column, workers int) (Measurement, error)
}

// Measurement is that of one column.
type Measurement interface {
	// Add takes notice of the next object's values, which stay the caller's.
	Add(v *schema.Values)
	// Finish writes what was found into the column. More objects may follow, and Finish again.
	Finish(c *schema.Column) error
}

// A NumberShower is a Type whose numbers, where they are kept and returned with hits, mean something that is not written as a number.
type NumberShower interface {
	// AppendJSON appends a number as JSON.
	AppendJSON(dst []byte, v float64) []byte
}

// Builtin returns the types that are in this package.
func Builtin() []Type {
	tables := []schema.Kind{schema.Rows, schema.Documents, schema.Records, schema.Sets, schema.Vectors, schema.Points}
	documents, sequences := []schema.Kind{schema.Documents}, []schema.Kind{schema.Sequences}
	records := []schema.Kind{schema.Records, schema.Sets, schema.Vectors, schema.Points}
	return []Type{
		number{traits{schema.NumberColumn, tables, schema.Number, []string{"parse", "buckets", "edges", "split", "layout", "store"}}},
		category{traits{schema.CategoryColumn, tables, schema.Text, []string{"split", "layout", "store", "fold", "idf", "idf_scale"}}},
		words{traits{schema.TextColumn, documents, schema.Text, []string{"store", "layout", "idf", "idf_scale", "keep"}}},
		sequence{traits{schema.TextColumn, sequences, schema.Text, []string{"layout", "metric", "index", "tree", "permutation", "auto_for"}}},
		text{traits{schema.TextColumn, records, schema.Text, []string{"store", "layout", "split", "stop_words", "ngrams", "idf", "idf_scale"}}},
		str{traits{schema.StringColumn, records, schema.Text, []string{"store", "layout", "ngram", "metric", "index", "tree", "permutation", "auto_for"}}},
		set{traits{schema.SetColumn, records, schema.Text, []string{"split", "layout", "store", "fold", "idf", "idf_scale"}}},
		boolean{traits{schema.BoolColumn, records, schema.Text, []string{"split", "layout", "store"}}},
		date{number{traits{schema.DateColumn, records, schema.Number, []string{"parse", "buckets", "edges", "split", "layout", "store"}}}},
		unsearched{traits{name: schema.PayloadColumn}}, // stored and returned with hits
		unsearched{traits{name: schema.SkipColumn}},    // present in the input and otherwise ignored
	}
}

// traits are what most types are beside their encoders: columns with one attribute. Types embed them.
type traits struct {
	name  schema.ColumnType
	kinds []schema.Kind // of index that have such columns; nil: all
	of    schema.AttributeType
	own   []string // the fields of a column that are for the type
}

// Traits are those of a type elsewhere.
type Traits = traits

// Plain returns the traits of a type whose columns have one attribute: its name, the kinds of index that have such columns, the type of the attribute,
// and the fields of a column that are for the type.
func Plain(name schema.ColumnType, kinds []schema.Kind, of schema.AttributeType, own ...string) Traits {
	return traits{name, kinds, of, own}
}

// Name implements Type.
func (t traits) Name() string { return string(t.name) }

// In implements Type.
func (t traits) In(kind schema.Kind) bool { return t.kinds == nil || slices.Contains(t.kinds, kind) }

// Check implements Type: it has no defaults to fill in but the scale of weights.
func (t traits) Check(_ *schema.Schema, c *schema.Column) []error {
	faults := Foreign(c, t.own...)
	if _, err := schema.ParseLayout(c.Layout, t.of); err != nil {
		faults = append(faults, err)
	}
	if slices.Contains(t.own, "idf_scale") && (c.IDFScale < 0 || c.IDFScale > schema.MaxIDFScale) {
		faults = append(faults, fmt.Errorf("idf_scale %d: must be 1 to %d", c.IDFScale, schema.MaxIDFScale))
	}
	return faults
}

// Attributes implements Type.
func (t traits) Attributes(c *schema.Column) []schema.AttributeSpec {
	distinct := !slices.Contains([]schema.ColumnType{schema.NumberColumn, schema.DateColumn, schema.CategoryColumn, schema.BoolColumn}, t.name)
	return []schema.AttributeSpec{{Name: c.Name, Type: t.of, Layout: c.Layout, Buckets: c.Buckets, Edges: c.Edges, Distinct: distinct}}
}

// Weighs implements Weigher.
func (t traits) Weighs() bool { return slices.Contains(t.own, "idf") }

// distances are the types of columns that can be searched by distance.
const distances = "types vector, string and point, and to the texts of sequences"

// Foreign reports the fields of a column that are of other types than its own.
func Foreign(c *schema.Column, own ...string) []error {
	var faults []error
	for _, field := range []struct {
		name   string
		set    bool
		belong string
	}{
		{"parse", c.Parse != "", "type number, and type date"},
		{"buckets", c.Buckets != 0, "type number, type date and type vector"},
		{"edges", c.Edges != "", "type number, and type date"},
		{"split", c.Split != "", "types number, date, category, bool and set, and to texts of records"},
		{"store", c.Store, "columns that are indexed; payloads are always stored, and so are the texts of sequences"},
		{"fold", c.Fold, "types category and set"},
		{"stop_words", c.StopWords != nil, "texts of records; for those of documents it stands beside kind"},
		{"ngrams", c.NGrams != 0, "texts of records; the n of character n-grams is ngram, of type string"},
		{"ngram", c.NGram != 0, "type string; for sequences it stands beside kind, and words in a row are ngrams, of texts"},
		{"idf", c.IDF, "types text, category and set"},
		{"idf_scale", c.IDFScale != 0, "types text, category and set"},
		{"layout", c.Layout != "", "indexed columns"},
		{"similarity", c.Similarity != "", "type vector"}, {"dims", c.Dims != 0, "type vector"},
		{"functions", c.Functions != 0, "type vector"}, {"width", c.Width != 0, "type vector"},
		{"reach", c.Reach != nil, "type vector"}, {"seed", c.Seed != 0, "type vector"},
		{"recall", c.Recall != 0, "type vector"}, {"keep", c.Keep != "", "type vector, and to texts of documents"},
		{"from", c.From != nil, "types vector and point"}, {"learned", c.Learned != nil, "type vector"},
		{"minhash", c.MinHash != 0, "type set"},
		{"metric", c.Metric != "", distances}, {"storage", c.Storage != "", "type vector"}, {"index", c.Index != nil, distances},
		{"tree", c.Tree != nil, distances}, {"permutation", c.Permutation != nil, distances}, {"cells", c.Cells != nil, "type vector"},
		{"auto_for", c.AutoFor != "", distances},
	} {
		if field.set && !slices.Contains(own, field.name) {
			faults = append(faults, fmt.Errorf("%s belongs to %s", field.name, field.belong))
		}
	}
	return faults
}
