package distance

import (
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/metric"
)

// MaxK bounds the hits of a query.
const MaxK = 65_536

// Query asks for the objects nearest to a value of one column. It must not change while a plan has it.
type Query struct {
	Column *Column
	// What hits are near to: by the sort of the column's values one of them.
	Vector []float32
	Point  Point
	Text   string

	K int // hits, 0 to MaxK: with 0 those within are only counted
	// Most is the largest value within the radius (Metric.Within); +Inf: there is no radius.
	Most float64
	// Radius is what Most was made of, if it is Bounded: what users asked for.
	Radius  float64
	Bounded bool
	// Total asks how many objects that pass lie within the radius, though K cut them, and how many pass.
	Total  bool
	Filter *filter.Filter // nil: all pass
	Method string         // Auto, Scan or an access path of the column
	// Explain asks the answer for what was considered, for people.
	Explain bool
	// Fraction of the objects that are compared, or the Recall that is wanted, of access paths that have such; 0: theirs.
	Fraction, Recall float64
}

// Answer is what is answered beside hits: gpuexec.Answer.Value of the family. Scores of hits are values; Metric.Report makes distances of them.
type Answer struct {
	Method string
	// Exact: the hits are certain to be those of a scan. Counted: Within is, too.
	Exact, Counted bool
	// Within is how many objects that pass have a value of Most at most, with Query.Total.
	Within uint64
	// Distances is how many were computed, Blocks how many pieces of the column were looked at.
	Distances, Blocks uint64
	// Predicted is what a core was expected to take. Why the method was chosen, and of what, is for people, with Query.Explain.
	Predicted  time.Duration
	Why        string
	Considered []Considered
	// Fraction of the objects that were compared, and the recall that is expected by it; 0: nothing is known. Of what is exact there is none.
	Fraction, Recall float64
}

// Join adds what another part of the index has answered. A path is over all objects, so of several parts none was searched by one; by n-grams any may be.
func (a *Answer) Join(part *Answer) {
	if part.Method != Scan {
		a.Method, a.Fraction, a.Recall = part.Method, part.Fraction, part.Recall
	}
	a.Exact, a.Counted = a.Exact && part.Exact, a.Counted && part.Counted
	a.Within += part.Within
	a.Distances += part.Distances
	a.Blocks += part.Blocks
	a.Predicted += part.Predicted
	if a.Considered == nil {
		a.Why, a.Considered = part.Why, part.Considered
	}
}

// Check says why a query cannot be executed. The error is the fault of who asked.
func (q *Query) Check() error {
	c := q.Column
	switch {
	case c == nil:
		return fmt.Errorf("distances are asked of a column")
	case q.K < 0 || q.K > MaxK:
		return fmt.Errorf("k is %d, it must be 0 to %d", q.K, MaxK)
	case math.IsNaN(q.Most) || q.K == 0 && math.IsInf(q.Most, 1):
		return fmt.Errorf("without hits a radius is wanted")
	case q.Method == Ngram && c.Grams > 0 && math.IsInf(q.Most, 1):
		return fmt.Errorf("method ngram finds what is within a radius, and there is none")
	case q.Method != Auto && q.Method != Scan && c.Path(q.Method) == nil && (q.Method != Ngram || c.Grams == 0):
		return fmt.Errorf("column %q has no access path %q: it has %v", c.Name, q.Method, c.Methods())
	case q.K == 0 && c.Path(q.Method) != nil && !c.Path(q.Method).Counts():
		return fmt.Errorf("method %s does not count how many are within a radius, with a recall or without: use scan, or ask for hits", q.Method)
	case !(q.Fraction >= 0 && q.Fraction <= 1) || !(q.Recall >= 0 && q.Recall < 1):
		return fmt.Errorf("a fraction is above 0 and at most 1, and a recall above 0 and below 1")
	}
	switch c.Of {
	case Vectors:
		if len(q.Vector) != c.Dims {
			return fmt.Errorf("the vector has %d elements, and vectors of column %q have %d", len(q.Vector), c.Name, c.Dims)
		}
		return c.Metric.Admits(q.Vector)
	case Points:
		return CheckPoint(q.Point)
	}
	if !utf8.ValidString(q.Text) {
		return fmt.Errorf("the text is not valid UTF-8")
	}
	return nil
}

// symbols is how many code points the text has.
func (q *Query) symbols() int { return utf8.RuneCountInString(q.Text) }

// Among says among how many neighbours of all objects the k are that pass the query's filter, where so many objects pass: those that pass are taken for evenly spread. What was measured of
// a recall was measured without filters, so it is looked up for as many.
func (q *Query) Among(passing uint32) int {
	all := q.Column.Objects
	if passing == 0 || passing >= all {
		return q.K
	}
	return int(min(uint64(all), (uint64(q.K)*uint64(all)+uint64(passing)-1)/uint64(passing)))
}

// Want is what the query wants of a search of all objects.
func (q *Query) Want() metric.Want { return metric.Want{K: q.K, Most: q.Most} }
