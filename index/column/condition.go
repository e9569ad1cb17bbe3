package column

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/refusal"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/wire/value"
)

// Refuse returns the error of a query that its author must mend, a *[refusal.Error].
func Refuse(format string, args ...any) error { return refusal.New(format, args...) }

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
	String string // of a number the digits of an integer that Number is only near
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
	// Vector is a value for a VectorEncoder. Prepared is what a BatchEncoder has made of the condition beforehand.
	Vector   []float32
	Prepared []uint32
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
func addItem(dst *Draft, attr int, c *Condition, r ranger) error {
	if err := c.plain(); err != nil {
		return err
	}
	if c.Value != nil && dst.idf != nil {
		lo, hi, err := r.span(c, c.Value, c.Value)
		if err != nil {
			return err
		}
		if hi == lo+1 {
			return dst.Keywords(attr, []uint32{lo})
		}
	}
	dst.StartItem(attr)
	q := dst.Match
	first := len(q.Spans)
	spans, err := addSpans(q.Spans, dst, c, r)
	if err != nil {
		return err
	}
	q.Spans = spans
	q.Items[len(q.Items)-1].Count = uint32(len(spans) - first)
	return nil
}

// plain refuses conditions that are not exactly one of a value, a range and a list of values.
func (c *Condition) plain() error {
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
	return nil
}

// addSpans appends the keywords of a plain condition as disjoint ascending spans, and warns where there are none.
func addSpans(dst []postings.Span, d *Draft, c *Condition, r ranger) ([]postings.Span, error) {
	if c.In != nil {
		return addEach(dst, d, c, c.In, r)
	}
	low, high := c.Min, c.Max
	if c.Value != nil {
		low, high = c.Value, c.Value
	}
	lo, hi, err := r.span(c, low, high)
	switch {
	case err != nil:
		return dst, err
	case lo < hi:
		return append(dst, postings.Span{Lo: lo, Hi: hi}), nil
	case c.Value != nil:
		d.unknown(c.Value)
	default:
		d.Warn(Unmeetable, "")
	}
	return dst, nil
}

// addEach appends the keywords of values as disjoint ascending spans, and warns of those that nothing has.
func addEach(dst []postings.Span, d *Draft, c *Condition, values []Value, r ranger) ([]postings.Span, error) {
	first := len(dst)
	for i := range values {
		v := &values[i]
		lo, hi, err := r.span(c, v, v)
		if err != nil {
			return dst, err
		}
		if lo < hi {
			dst = append(dst, postings.Span{Lo: lo, Hi: hi})
		} else {
			d.unknown(v)
		}
	}
	spans := dst[first:]
	slices.SortFunc(spans, func(a, b postings.Span) int { return cmp.Compare(a.Lo, b.Lo) })
	n := 0 // of those that are joined, which never overtake what is read
	for _, s := range spans {
		if n > 0 && s.Lo <= spans[n-1].Hi {
			spans[n-1].Hi = max(spans[n-1].Hi, s.Hi)
			continue
		}
		spans[n] = s
		n++
	}
	return dst[:first+n], nil
}

// shown is a value for people.
func (v *Value) shown() string {
	if v.Kind == NumberKind {
		return schema.ShownNumber(v.Number)
	}
	return v.text()
}

// text is a value as its author wrote it, nearly.
func (v *Value) text() string {
	switch v.Kind {
	case NumberKind:
		return v.digits()
	case StringKind:
		return v.String
	case BoolKind:
		return strconv.FormatBool(v.Number != 0)
	}
	return "null"
}

// digits is a number as objects have it, whose digits are kept where they are written without a point.
func (v *Value) digits() string {
	if v.String != "" {
		return v.String
	}
	return schema.NumberText(v.Number)
}

// refusal is the error of a condition of another shape where none is taken.
func (c *Condition) refusal() error {
	for _, name := range []string{"all", "any"} {
		if !c.Other.Member(name).IsZero() {
			return Refuse("column %q takes no %s: write {\"in\":[...]} for any of several values", c.Attr, name)
		}
	}
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

// refuseNull is the error of a value that is null.
func refuseNull(attr string) error {
	return Refuse("attribute %q: null is not a value to look for (objects without a value have no keyword): leave the "+
		"condition out", attr)
}
