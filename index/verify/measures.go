package verify

import (
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/geniemq/geniemq/index/forward"
	"github.com/geniemq/geniemq/index/schema"
)

// Asked is what a query asks of one column, for a measure.
type Asked struct {
	// Column is what the index keeps of it.
	Column *forward.Column
	// K is the number of hits.
	K int
	// Matching counts objects that were no candidates. It must not be nil where the answer may need a scan (Plan.Certify).
	Matching Matching
	// Unit is the weight of the column where each distinct term of the query is one item, of Unit times the term's own weight (of strings, trees
	// and graphs Unit, there). 0: it is not so, and counts prove nothing.
	Unit uint32

	// Of columns with terms: the known ones, ascending, how many others there are, and whether they weigh by how rare they are.
	Terms   []uint32
	Unknown int
	IDF     bool
	// Of vectors: as many finite elements as the column has dimensions.
	Vector []float32
	// Of texts: the query's, and the length of grams.
	Text  string
	NGram int
	// Of trees and graphs: the encoding of the query's.
	Stored []byte
}

// UnsupportedError says why an index cannot be asked for a measure. It is nobody's mistake but that of who chose the measure.
type UnsupportedError struct{ Reason string }

func (e *UnsupportedError) Error() string { return e.Reason }

func unsupported(format string, args ...any) error {
	return &UnsupportedError{fmt.Sprintf(format, args...)}
}

// Measure is a way to score objects by what they hold in a column.
type Measure struct {
	Name string
	// Form is what must be kept of the column.
	Form schema.KeptForm
	// Similarity: more is better, and the score is no distance.
	Similarity bool
	// Overlap: it is of what query and object have in common, and objects that have nothing are no hits: Plan.MinCount must be at least 1.
	Overlap bool
	// ready makes the query's side.
	ready func(m *Measure, a *Asked) (measure, error)
}

// measures are all of them.
func measures() [12]Measure {
	return [...]Measure{
		{"jaccard", schema.KeptTerms, true, true, newSets},
		{"dice", schema.KeptTerms, true, true, newSets},
		{"cosine", schema.KeptTerms, true, true, newSets},
		{"containment", schema.KeptTerms, true, true, newSets},
		{"bm25", schema.KeptTerms, true, true, newBM25},
		{"edit", schema.KeptTexts, false, false, newEdit},
		{"l2", schema.KeptVectors, false, false, newVectors},
		{"l1", schema.KeptVectors, false, false, newVectors},
		{"ip", schema.KeptVectors, true, false, newVectors},
		{"angular", schema.KeptVectors, false, false, newVectors},
		{"tree", schema.KeptTrees, false, false, newTrees},
		{"graph", schema.KeptGraphs, false, false, newGraphs},
	}
}

// Measures returns all measures. The value is the caller's.
func Measures() []Measure {
	all := measures()
	return all[:]
}

// FindMeasure returns a measure by its name; nil where there is none.
func FindMeasure(name string) *Measure {
	all := measures()
	for i := range all {
		if all[i].Name == name {
			found := all[i] // and not all of them
			return &found
		}
	}
	return nil
}

// New makes what a plan carries, of what a query asks. The error is an *UnsupportedError where the index does not keep what the measure
// needs, or the fault of who asked.
func (m *Measure) New(a *Asked) (*Scores, error) {
	switch {
	case a.Column == nil:
		return nil, unsupported("%s needs %v that the index keeps of the column, and it keeps nothing: build it again with a schema that says so", m.Name, m.Form)
	case a.Column.Form != m.Form:
		return nil, unsupported("%s compares %v, and of column %q the index keeps %v", m.Name, m.Form, a.Column.Name, a.Column.Form)
	case a.K < 1:
		return nil, fmt.Errorf("k is %d, it must be at least 1", a.K)
	}
	ready, err := m.ready(m, a)
	if err != nil {
		return nil, err
	}
	s := &Scores{measure: ready, matching: a.Matching, k: a.K}
	if s.matching == nil {
		s.matching = noMatching{}
	}
	return s, nil
}

// noMatching is where no scan can be.
type noMatching struct{}

func (noMatching) Count(uint32) uint32 { return 0 }

// queryTerms is the query's side of the measures of terms: weights by the column, and what they all weigh with unknown ones.
type queryTerms struct {
	column  *forward.Column
	unit    uint32
	terms   []uint32
	weights []uint32 // nil: 1 each
	total   uint64
	lookup  lookup // of weights, or of places in terms
}

// newQueryTerms gives the terms their weights; the measure makes its lookup.
func newQueryTerms(a *Asked) (queryTerms, error) {
	q := queryTerms{column: a.Column, unit: a.Unit, terms: slices.Clone(a.Terms), total: uint64(len(a.Terms)) + uint64(max(0, a.Unknown))}
	if n := len(q.terms); n > 0 && q.terms[n-1] >= a.Column.Keywords {
		return q, fmt.Errorf("term %d of %d in column %q", q.terms[n-1], a.Column.Keywords, a.Column.Name)
	}
	if !a.IDF {
		return q, nil
	}
	q.weights = make([]uint32, len(q.terms))
	q.total = uint64(max(0, a.Unknown)) * uint64(a.Column.Unknown())
	for i, term := range q.terms {
		q.weights[i] = a.Column.Weight(term)
		q.total += uint64(q.weights[i])
	}
	return q, nil
}

func (q *queryTerms) bytes() int64 { return int64(4 * (cap(q.terms) + cap(q.weights))) }

// cost grows with the terms of an average object.
func (q *queryTerms) cost() int64 {
	return 40 + 3*q.column.Average() + int64(len(q.terms))
}

func (q *queryTerms) empty() bool { return q.unit > 0 }

// nowhere is the key of what has nothing to compare.
var nowhere = math.Inf(1)

func validText(a *Asked) error {
	if !utf8.ValidString(a.Text) {
		return fmt.Errorf("the text for column %q is not UTF-8", a.Column.Name)
	}
	return nil
}
