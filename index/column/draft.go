package column

import (
	"slices"
	"unicode/utf8"

	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/postings"
)

// IDF weighs the keywords of an attribute by how few objects have them, 1 to 255, as package similarity defines it.
type IDF interface {
	Weight(attr int, keyword uint32) uint32
}

// Draft is a query on its way: what encoders add items to, and what the author of the query is told besides. It is scratch memory for one
// query at a time; its MatchQuery is the caller's.
//
// # Weights
//
// The weight of an item is that of its condition times that of its column, and, with IDF, times that of the keyword, which is then an item of
// its own. No product is cut to what fits: one beyond postings.MaxWeight is refused, because a query that counts otherwise than it says is
// worse than none.
type Draft struct {
	Match    *postings.MatchQuery
	Filter   *filter.Filter // of FilterEncoders
	Stored   filter.Stored  // the numbers that the index keeps; nil: none
	Warnings []Warning
	Quiet    bool   // nobody reads warnings, and none are made
	Asked    *Asked // what is asked of one column; nil: nobody wants to know

	column string // of the condition at hand
	weight uint64
	idf    IDF // nil: keywords weigh the same
}

// Warning is something about a query that is no fault, and yet explains why it finds less, or something else, than was expected.
type Warning struct {
	Kind   WarningKind
	Column string
	Value  string // as the index would have it, of Unknown
}

// WarningKind says what a Warning is about.
type WarningKind uint8

const (
	// Unknown: no object has the value.
	Unknown WarningKind = iota + 1
	// NothingLeft: a text has no words but stop words, or none at all.
	NothingLeft
	// Empty: a set has no elements.
	Empty
	// Unmeetable: no object can meet the condition.
	Unmeetable
	// Unasked: the query weighs the column, and nothing that counts asks it.
	Unasked
	// More: there would be further warnings.
	More
)

const (
	// maxWarnings bounds the warnings of a query, which may name thousands of values that nothing has.
	maxWarnings = 8
	// maxWarned bounds the bytes of a value in a warning.
	maxWarned = 80
)

// String says it in a sentence.
func (w Warning) String() string {
	switch w.Kind {
	case Unknown:
		value := w.Value
		if len(value) > maxWarned {
			_, last := utf8.DecodeLastRuneInString(value[:maxWarned])
			value = value[:maxWarned-last] + "…"
		}
		return "column " + w.Column + ": no object has " + quoted(value)
	case NothingLeft:
		return "column " + w.Column + ": nothing is left to look for after stop words"
	case Empty:
		return "column " + w.Column + ": nothing is left to look for in an empty set"
	case Unmeetable:
		return "column " + w.Column + ": no object can meet the condition"
	case Unasked:
		return "column " + w.Column + ": its weight has no effect, since nothing that counts asks the column"
	case More:
		return "and more of the kind"
	}
	return ""
}

// Reset begins a query in match, which it empties.
func (d *Draft) Reset(match *postings.MatchQuery) {
	match.Reset()
	*d = Draft{Match: match}
}

// Begin begins a condition of a weight, 0 being 1, on a column of a weight; with idf its keywords weigh each their own. The error is a
// *refusal.Error.
func (d *Draft) Begin(column string, weight, columnWeight uint32, idf IDF) error {
	d.column, d.idf = column, idf
	d.weight = uint64(max(1, weight)) * uint64(max(1, columnWeight))
	switch {
	case d.weight <= postings.MaxWeight:
		d.asked()
		return nil
	case weight > postings.MaxWeight:
		return Refuse("weight %d of attribute %q is too large: weights are 1 to %d", weight, column, postings.MaxWeight)
	case columnWeight > postings.MaxWeight:
		return Refuse("weight %d of column %q is too large: weights are 1 to %d", columnWeight, column, postings.MaxWeight)
	}
	return Refuse("weight %d of column %q times weight %d of its condition is more than %d, the most that an item can weigh",
		columnWeight, column, weight, postings.MaxWeight)
}

// StartItem begins an item of the condition at hand.
func (d *Draft) StartItem(attr int) {
	d.Match.StartItem(uint32(attr), uint32(max(1, d.weight)))
}

// Present adds what counts for having some of the keywords of an attribute, or none of them.
func (d *Draft) Present(attr int, keywords uint32, missing bool) {
	d.Match.Presences = append(d.Match.Presences, filter.Presence{Attr: uint32(attr), Keywords: keywords, Weight: uint32(max(1, d.weight)), Missing: missing})
}

// Keywords adds keywords of an attribute, distinct and ascending: one item with all of them, or with weights of their own one each. Of a text
// or a set, of which no object has one twice, both count the same where weights are. The error is a *refusal.Error.
func (d *Draft) Keywords(attr int, keywords []uint32) error {
	if d.idf == nil || len(keywords) == 0 {
		d.StartItem(attr)
		d.Match.Spans = slices.Grow(d.Match.Spans, len(keywords))
		for _, keyword := range keywords {
			d.Match.AddSpan(keyword, keyword+1)
		}
		return nil
	}
	d.Match.Items, d.Match.Spans = slices.Grow(d.Match.Items, len(keywords)), slices.Grow(d.Match.Spans, len(keywords))
	for _, keyword := range keywords {
		weight := max(1, d.weight) * uint64(d.idf.Weight(attr, keyword))
		if weight > postings.MaxWeight {
			return Refuse("column %q: weight %d times that of a value by how few objects have it, %d, is more than %d, the most that an item "+
				"can weigh: use smaller weights or a smaller idf_scale", d.column, d.weight, d.idf.Weight(attr, keyword), postings.MaxWeight)
		}
		d.Match.StartItem(uint32(attr), uint32(weight))
		d.Match.AddSpan(keyword, keyword+1)
	}
	return nil
}

// Warn adds a warning about the condition at hand.
func (d *Draft) Warn(kind WarningKind, value string) {
	switch n := len(d.Warnings); {
	case d.Quiet || n > maxWarnings:
	case n == maxWarnings:
		d.Warnings = append(d.Warnings, Warning{Kind: More})
	default:
		d.Warnings = append(d.Warnings, Warning{kind, d.column, value})
	}
}

// Unasked warns of a column that is weighed and not asked.
func (d *Draft) Unasked(column string) {
	d.column = column
	d.Warn(Unasked, "")
}

// unknown warns of a value that nothing has.
func (d *Draft) unknown(v *Value) {
	if !d.Quiet && len(d.Warnings) <= maxWarnings { // the text would cost something
		d.Warn(Unknown, v.text())
	}
}
