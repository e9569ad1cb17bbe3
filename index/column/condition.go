package column

import (
	"fmt"
	"slices"

	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/wire/value"
)

// QueryError is a fault in a query that its author must mend: a bad_request. Reason says what is wrong and
// what to write instead, in one line.
type QueryError struct {
	Reason string
}

func (e *QueryError) Error() string { return e.Reason }

// Refuse returns a *QueryError.
func Refuse(format string, args ...any) error {
	return &QueryError{Reason: fmt.Sprintf(format, args...)}
}

// ValueKind is the type a value has in the query's JSON or MessagePack.
type ValueKind uint8

const (
	Null       ValueKind = iota // no value; refused wherever one is expected
	NumberKind                  // Value.Number
	StringKind                  // Value.String
	BoolKind                    // Value.Number: 1 true, 0 false
)

// Value is a value in a condition.
type Value struct {
	Kind   ValueKind
	Number float64
	String string
}

// NumberValue returns a number.
func NumberValue(v float64) Value { return Value{Kind: NumberKind, Number: v} }

// StringValue returns a string.
func StringValue(s string) Value { return Value{Kind: StringKind, String: s} }

// BoolValue returns a boolean.
func BoolValue(b bool) Value {
	if b {
		return Value{Kind: BoolKind, Number: 1}
	}
	return Value{Kind: BoolKind}
}

// Condition asks for a value, an inclusive range or a set of values of one column and becomes one query item.
// Exactly one of Value, Min or Max, In, and Other is set.
//
// In a number column a value stands for its bucket, and a range for every bucket that it touches; what lies
// outside all data, below the smallest or above the largest value, matches nothing. With edges: exact there
// are no buckets: a range takes the values within it, and a value that is not in the data matches nothing.
//
// In a category column a number or boolean stands for its canonical decimal text (5 and 5.0 are "5") or for
// true and false, and ranges follow the order of the bytes of UTF-8. So no type of value is a fault there: {"sex":1}
// asks for the category "1", and matches nothing where it is unknown.
type Condition struct {
	Attr  string
	Value *Value
	// Min and Max are the ends of an inclusive range; without one the range is open there.
	Min, Max *Value
	// In is a set: a value counts once however often it is listed, and a bucket however many values fall in it.
	In []Value
	// Other is a value of another shape, for a column whose type knows it. Refusal is what the author of the query is told where the type
	// takes none: why it is none of the shapes above.
	Other   value.Tree
	Refusal error
	// Bucket says that the numbers above are bucket numbers, counted from 0, and not in the column's own unit.
	Bucket bool
	// Weight multiplies what the item counts: 1 to postings.MaxWeight. Default 1.
	Weight uint32
}

// ranger finds the keywords of one condition: those [lo, hi) of an inclusive range, of which a nil end is open. A single value is the
// range from itself to itself. lo >= hi means that nothing matches.
type ranger interface {
	span(c *Condition, low, high *Value) (lo, hi uint32, err error)
}

// addItem adds the item of a condition on an attribute.
func addItem(dst *postings.MatchQuery, attr int, c *Condition, r ranger) error {
	weight := c.Weight
	if weight == 0 {
		weight = 1
	}
	if weight > postings.MaxWeight {
		return Refuse("weight %d of attribute %q is too large: weights are 1 to %d", weight, c.Attr, postings.MaxWeight)
	}
	isRange := c.Min != nil || c.Max != nil
	switch forms := count(c.Value != nil) + count(isRange) + count(c.In != nil); {
	case !c.Other.IsZero():
		return c.refusal()
	case forms == 0, c.In != nil && len(c.In) == 0:
		return Refuse("attribute %q has nothing to match: give a value, min and max (or one of them), or a list in", c.Attr)
	case forms > 1:
		return Refuse("attribute %q mixes a value, a range and a list: give one of them, and further conditions as "+
			"further items", c.Attr)
	}
	dst.StartItem(uint32(attr), weight)
	low, high := c.Min, c.Max
	switch {
	case isRange:
	case c.Value != nil:
		low, high = c.Value, c.Value
	default:
		return addSet(dst, c, r)
	}
	lo, hi, err := r.span(c, low, high)
	if err != nil {
		return err
	}
	dst.AddSpan(lo, hi)
	return nil
}

// refusal is the error of a condition of another shape where none is taken.
func (c *Condition) refusal() error {
	if c.Refusal != nil {
		return c.Refusal
	}
	return Refuse("attribute %q takes a value, a range or a list of values", c.Attr)
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// addSet adds the values of In as disjoint ascending spans.
func addSet(dst *postings.MatchQuery, c *Condition, r ranger) error {
	first := len(dst.Spans)
	for i := range c.In {
		v := &c.In[i]
		lo, hi, err := r.span(c, v, v)
		if err != nil {
			return err
		}
		if lo < hi {
			dst.Spans = append(dst.Spans, postings.Span{Lo: lo, Hi: hi})
		}
	}
	// Sorted in place and added again: what AddSpan writes never overtakes what is read, and because a value is
	// one keyword, spans are equal or disjoint.
	spans := dst.Spans[first:]
	slices.SortFunc(spans, func(a, b postings.Span) int { return int(a.Lo) - int(b.Lo) })
	dst.Spans = dst.Spans[:first]
	end := uint32(0)
	for _, s := range spans {
		if s.Hi > end {
			dst.AddSpan(s.Lo, s.Hi)
			end = s.Hi
		}
	}
	return nil
}

// refuseNull is the error of a value that is null.
func refuseNull(attr string) error {
	return Refuse("attribute %q: null is not a value to look for (objects without a value have no keyword): leave the "+
		"condition out", attr)
}
