package encode

import (
	"math"
	"slices"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/wire/value"
)

// ValueKind is the type a value has in the query's JSON or MessagePack.
type ValueKind uint8

const (
	Null   ValueKind = iota // no value; refused wherever one is expected
	Number                  // Value.Number
	String                  // Value.String
	Bool                    // Value.Number: 1 true, 0 false
)

// Value is a value in a condition.
type Value struct {
	Kind   ValueKind
	Number float64
	String string
}

// NumberValue returns a number.
func NumberValue(v float64) Value { return Value{Kind: Number, Number: v} }

// StringValue returns a string.
func StringValue(s string) Value { return Value{Kind: String, String: s} }

// BoolValue returns a boolean.
func BoolValue(b bool) Value {
	if b {
		return Value{Kind: Bool, Number: 1}
	}
	return Value{Kind: Bool}
}

// Condition asks for a value, an inclusive range or a set of values of one attribute and becomes one query item.
// Exactly one of Value, Min or Max, and In is set.
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
	// Other is a condition of any other shape, which is up to the type of the column. Refusal is what a column answers that takes
	// none, as no type of today does.
	Other   value.Tree
	Refusal string
	// Bucket says that the numbers above are bucket numbers, counted from 0, and not in the column's own unit.
	Bucket bool
	// Weight multiplies what the item counts: 1 to index.MaxWeight. Default 1.
	Weight uint32
}

// Conditions makes dst the query for a list of conditions, one item each and in their order. The error is a
// *QueryError, and dst is then of no use.
func (q *Queries) Conditions(dst *index.Query, conditions []Condition) error {
	dst.Reset()
	if len(conditions) == 0 {
		return refuse("the query has no conditions: name at least one attribute of index %s (%s)",
			q.schema.Name, q.attributeNames())
	}
	s := q.pool.Get().(*scratch)
	defer q.pool.Put(s)
	for i := range conditions {
		c := &conditions[i]
		attr, ok := s.attribute(q, i, c.Attr)
		if !ok {
			return q.unknownAttribute(c.Attr)
		}
		if err := q.condition(dst, attr, c); err != nil {
			return err
		}
	}
	return nil
}

// attribute finds the attribute of a query's i-th condition. Those who ask often name the same attributes in the same
// order each time, so that one comparison is nearly always enough.
func (s *scratch) attribute(q *Queries, i int, name string) (attr int, ok bool) {
	if i < len(s.order) {
		if attr = s.order[i]; q.attrs[attr].Name == name {
			return attr, true
		}
	}
	if attr, ok = q.index.AttributeByName(name); !ok {
		return 0, false
	}
	if i < len(s.order) {
		s.order[i] = attr
	} else if i == len(s.order) && i < maxOrder {
		s.order = append(s.order, attr)
	}
	return attr, true
}

func (q *Queries) condition(dst *index.Query, attr int, c *Condition) error {
	weight := c.Weight
	if weight == 0 {
		weight = 1
	}
	if weight > index.MaxWeight {
		return refuse("weight %d of attribute %q is too large: weights are 1 to %d", weight, c.Attr, index.MaxWeight)
	}
	if !c.Other.IsZero() {
		return refuse("%s", c.Refusal)
	}
	isRange := c.Min != nil || c.Max != nil
	switch forms := count(c.Value != nil) + count(isRange) + count(c.In != nil); {
	case forms == 0, c.In != nil && len(c.In) == 0:
		return refuse("attribute %q has nothing to match: give a value, min and max (or one of them), or a list in", c.Attr)
	case forms > 1:
		return refuse("attribute %q mixes a value, a range and a list: give one of them, and further conditions as "+
			"further items", c.Attr)
	}
	m := matcher{queries: q, condition: c, attr: &q.attrs[attr], position: attr}
	dst.StartItem(uint32(attr), weight)
	switch {
	case isRange:
		lo, hi, err := m.span(c.Min, c.Max)
		if err != nil {
			return err
		}
		dst.AddSpan(lo, hi)
	case c.Value != nil:
		lo, hi, err := m.span(c.Value, c.Value)
		if err != nil {
			return err
		}
		dst.AddSpan(lo, hi)
	default:
		return m.addSet(dst)
	}
	return nil
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// matcher finds the keywords of one condition.
type matcher struct {
	queries   *Queries
	condition *Condition
	attr      *index.Attribute
	position  int
}

// addSet adds the values of In as disjoint ascending spans.
func (m *matcher) addSet(dst *index.Query) error {
	first := len(dst.Spans)
	for i := range m.condition.In {
		v := &m.condition.In[i]
		lo, hi, err := m.span(v, v)
		if err != nil {
			return err
		}
		if lo < hi {
			dst.Spans = append(dst.Spans, index.Span{Lo: lo, Hi: hi})
		}
	}
	// Sorted in place and added again: what AddSpan writes never overtakes what is read, and because a value is
	// one keyword, spans are equal or disjoint.
	spans := dst.Spans[first:]
	slices.SortFunc(spans, func(a, b index.Span) int { return int(a.Lo) - int(b.Lo) })
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

// span returns the keywords [lo, hi) of an inclusive range; a nil end is open. A single value is the range from
// itself to itself. lo >= hi means that nothing matches.
func (m *matcher) span(low, high *Value) (lo, hi uint32, err error) {
	switch {
	case m.attr.Type == index.Ordinal || m.attr.Type == index.Number && m.condition.Bucket:
		return m.ordinals(low, high)
	case m.condition.Bucket:
		return 0, 0, refuse("attribute %q is not a number column and has no buckets: leave \"unit\":\"bucket\" out",
			m.attr.Name)
	case m.attr.Type == index.Number:
		return m.numbers(low, high)
	default:
		return m.texts(low, high)
	}
}

// bounds reads both ends of a range of numbers.
func (m *matcher) bounds(low, high *Value) (min, max float64, err error) {
	if low == high {
		min, err = m.number(low)
		return min, min, err
	}
	min, max = math.Inf(-1), math.Inf(1)
	if low != nil {
		if min, err = m.number(low); err != nil {
			return 0, 0, err
		}
	}
	if high != nil {
		if max, err = m.number(high); err != nil {
			return 0, 0, err
		}
	}
	if min > max {
		return 0, 0, refuse("attribute %q: min %v is greater than max %v", m.attr.Name, min, max)
	}
	return min, max, nil
}

// number reads a value of a number column.
func (m *matcher) number(v *Value) (float64, error) {
	switch v.Kind {
	case Number:
		if math.IsNaN(v.Number) {
			return 0, refuse("attribute %q: NaN is not a number to look for", m.attr.Name)
		}
		return v.Number, nil
	case String:
		if n, ok := parseNumber(v.String); ok {
			return 0, refuse("attribute %q is a number column: write the number %s without quotes", m.attr.Name, numberText(n))
		}
		return 0, refuse("attribute %q is a number column: write a number, such as %s, not the string %.80q",
			m.attr.Name, m.example(), v.String)
	case Bool:
		return 0, refuse("attribute %q is a number column: write a number, such as %s, not true or false",
			m.attr.Name, m.example())
	}
	return 0, m.null()
}

// example is a number that makes sense for the attribute, for error texts.
func (m *matcher) example() string {
	if m.attr.Type == index.Number && m.attr.Keywords > 0 && !m.condition.Bucket {
		return numberText(m.attr.Min)
	}
	return "0"
}

func (m *matcher) null() error {
	return refuse("attribute %q: null is not a value to look for (objects without a value have no keyword): leave the "+
		"condition out", m.attr.Name)
}

func (m *matcher) numbers(low, high *Value) (lo, hi uint32, err error) {
	min, max, err := m.bounds(low, high)
	if err != nil {
		return 0, 0, err
	}
	a := m.attr
	if a.Keywords == 0 || max < a.Min || min > a.Max {
		return 0, 0, nil
	}
	if a.Exact && m.queries.integers[m.position] {
		first, last := a.Min, a.Max
		if min > first {
			first = math.Ceil(min)
		}
		if max < last {
			last = math.Floor(max)
		}
		return uint32(first - a.Min), uint32(last-a.Min) + 1, nil
	}
	if a.Exact {
		first := lowerBound(a.Values, min)
		last := first
		if max != min {
			last = lowerBound(a.Values, max)
		}
		if last < len(a.Values) && a.Values[last] == max {
			last++
		}
		return uint32(first), uint32(last), nil
	}
	lo, _ = a.Bucket(min)
	hi = lo
	if max != min {
		hi, _ = a.Bucket(max)
	}
	return lo, hi + 1, nil
}

// lowerBound returns the position of the first of ascending values that is >= v. slices.BinarySearch, which cares for NaN, takes
// twice as long.
func lowerBound(values []float64, v float64) int {
	first, n := 0, len(values)
	for n > 0 {
		half := n / 2
		if values[first+half] < v {
			first += half + 1
			n -= half + 1
		} else {
			n = half
		}
	}
	return first
}

// ordinals takes the numbers as keyword numbers: the unit is the bucket, or the attribute's values are ordinals.
func (m *matcher) ordinals(low, high *Value) (lo, hi uint32, err error) {
	min, max, err := m.bounds(low, high)
	if err != nil {
		return 0, 0, err
	}
	for _, end := range [...]struct {
		value  *Value
		number float64
	}{{low, min}, {high, max}} {
		if end.value != nil && end.number != math.Trunc(end.number) {
			return 0, 0, refuse("attribute %q: %v is not a bucket number: write an integer from 0 to %d, or leave "+
				"\"unit\":\"bucket\" out", m.attr.Name, end.number, int64(m.attr.Keywords)-1)
		}
	}
	if last := float64(m.attr.Keywords) - 1; max >= 0 && min <= last {
		return uint32(math.Max(min, 0)), uint32(math.Min(max, last)) + 1, nil
	}
	return 0, 0, nil
}

// texts finds categories and words, which sort by the bytes of UTF-8.
func (m *matcher) texts(low, high *Value) (lo, hi uint32, err error) {
	x := m.queries.index
	if low == high {
		text, err := m.text(low)
		if err != nil {
			return 0, 0, err
		}
		keyword, ok := x.Lookup(m.position, text)
		return keyword, keyword + uint32(count(ok)), nil
	}
	var min, max string
	lo, hi = 0, m.attr.Keywords
	if low != nil {
		if min, err = m.text(low); err != nil {
			return 0, 0, err
		}
		lo = x.LowerBound(m.position, min)
	}
	if high != nil {
		if max, err = m.text(high); err != nil {
			return 0, 0, err
		}
		hi = x.LowerBound(m.position, max)
		if _, ok := x.Lookup(m.position, max); ok {
			hi++
		}
	}
	if low != nil && high != nil && min > max {
		return 0, 0, refuse("attribute %q: min %.80q comes after max %.80q in the order of text; only number columns "+
			"compare by size", m.attr.Name, min, max)
	}
	return lo, hi, nil
}

// text returns the keyword that a value stands for in a category or text column.
func (m *matcher) text(v *Value) (string, error) {
	var text string
	switch v.Kind {
	case Number:
		if math.IsNaN(v.Number) {
			return "", refuse("attribute %q: NaN is not a value to look for", m.attr.Name)
		}
		text = numberText(v.Number)
	case String:
		text = category(v.String)
	case Bool:
		text = "false"
		if v.Number != 0 {
			text = "true"
		}
	default:
		return "", m.null()
	}
	if !slices.Contains(m.queries.texts, m.position) {
		return text, nil
	}
	return m.word(text)
}

// word returns the one word that text is in a text column.
func (m *matcher) word(text string) (string, error) {
	q := m.queries
	if q.schema.Kind == index.Sequences {
		return "", refuse("attribute %q holds sequences, which are asked for as a whole: use text", m.attr.Name)
	}
	s := q.pool.Get().(*scratch)
	defer q.pool.Put(s)
	s.terms.reset()
	s.terms.addWords(text)
	switch n := len(s.terms.ends); n {
	case 1:
		return string(s.terms.text), nil
	case 0:
		return "", refuse("attribute %q: %.80q has no word to look for", m.attr.Name, text)
	default:
		return "", refuse("attribute %q: %.80q is %d words: write an item for each, or use text", m.attr.Name, text, n)
	}
}
