package column

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/geniemq/geniemq/index/notation"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
)

// number is the type of columns of numbers: indexed by buckets of their values, so that ranges can be asked for.
type number struct{ traits }

// Check fills in edges and buckets.
func (n number) Check(s *schema.Schema, c *schema.Column) []error {
	c.Edges = cmp.Or(c.Edges, schema.EqualWidth)
	if c.Buckets == 0 && c.Edges != schema.Exact {
		c.Buckets = schema.DefaultBuckets
	}
	var faults []error
	switch c.Edges {
	case schema.EqualWidth, schema.EquiDepth:
		if c.Buckets < 1 || c.Buckets > schema.MaxBuckets {
			faults = append(faults, fmt.Errorf("buckets %d: must be 1 to %d", c.Buckets, schema.MaxBuckets))
		}
	case schema.Exact:
		if c.Buckets != 0 {
			faults = append(faults, errors.New("buckets: edges exact makes one bucket per distinct value; leave buckets out"))
		}
	default:
		faults = append(faults, fmt.Errorf("edges %q is unknown: use equal-width, equi-depth or exact", c.Edges))
	}
	if c.Parse != "" {
		read := notation.Number
		if c.Type == schema.DateColumn {
			read = notation.Date
		}
		if _, err := read(c.Parse); err != nil {
			faults = append(faults, err)
		}
	}
	return append(faults, n.traits.Check(s, c)...)
}

// Objects implements Type.
func (number) Objects(*schema.Schema, *schema.Column) (ObjectEncoder, error) {
	return numberObjects{}, nil
}

type numberObjects struct{}

// Encode appends the numbers of a cell.
func (numberObjects) Encode(dst *schema.Values, cell *schema.Cell) error {
	for _, value := range cell.Values {
		v, ok := parseNumber(value)
		if !ok {
			return fmt.Errorf("%.80q is not a finite decimal number; if it means "+
				"that there is no value, list it under missing in the schema", value)
		}
		dst.Numbers = append(dst.Numbers, v)
	}
	return nil
}

// Keeps implements Keeper: in records the numbers that buckets stand for, which filters are exact by.
func (number) Keeps(s *schema.Schema, c *schema.Column) (keeps schema.KeptSpec) {
	if keeps.Returned = c.Store; c.Store || s.Kind.Mixed() && c.Edges != schema.Exact {
		keeps.Form = schema.KeptNumbers
	}
	return keeps
}

// Queries implements Type.
func (number) Queries(_ *schema.Schema, _ *schema.Column, first int, v Vocabulary) (QueryEncoder, error) {
	a := v.Attribute(first)
	return &numberQueries{position: first, attr: a, integers: consecutive(a), read: (*numberQueries).number}, nil
}

type numberQueries struct {
	position int
	attr     *postings.Attribute
	// read returns the numbers that a value stands for, from the least to the greatest: of a number itself, of a date the times of its day.
	read func(e *numberQueries, c *Condition, v *Value) (low, high float64, err error)
	// integers says that the attribute is exact and holds all integers of a range, as hash values and years do: these are
	// their own keywords, but for where the range begins.
	integers bool
}

// consecutive says that the values of an exact attribute are integers without a gap, small enough for float64.
func consecutive(a *postings.Attribute) bool {
	const exact = 1 << 53
	n := len(a.Values)
	if n == 0 || a.Min != math.Trunc(a.Min) || a.Min < -exact || a.Max > exact || a.Max-a.Min != float64(n-1) {
		return false // most others are seen to be so here
	}
	for i, v := range a.Values {
		if v != a.Min+float64(i) {
			return false
		}
	}
	return true
}

// Items adds the item of a condition.
func (e *numberQueries) Items(dst *Draft, c *Condition) error {
	return addItem(dst, e.position, c, e)
}

func (e *numberQueries) span(c *Condition, low, high *Value) (lo, hi uint32, err error) {
	if c.Bucket {
		return e.ordinals(c, low, high)
	}
	return e.numbers(c, low, high)
}

// bounds reads both ends of a range of numbers.
func (e *numberQueries) bounds(c *Condition, low, high *Value) (min, max float64, err error) {
	read := e.read
	if c.Bucket {
		read = (*numberQueries).number
	}
	if low == high {
		return read(e, c, low)
	}
	min, max = math.Inf(-1), math.Inf(1)
	if low != nil {
		if min, _, err = read(e, c, low); err != nil {
			return 0, 0, err
		}
	}
	if high != nil {
		if _, max, err = read(e, c, high); err != nil {
			return 0, 0, err
		}
	}
	if min > max {
		return 0, 0, Refuse("attribute %q: min %s is greater than max %s", e.attr.Name, low.shown(), high.shown())
	}
	return min, max, nil
}

// number reads a value of a number column.
func (e *numberQueries) number(c *Condition, v *Value) (low, high float64, err error) {
	switch v.Kind {
	case NumberKind:
		if math.IsNaN(v.Number) {
			return 0, 0, Refuse("attribute %q: NaN is not a number to look for", e.attr.Name)
		}
		return v.Number, v.Number, nil
	case StringKind:
		if n, ok := parseNumber(v.String); ok {
			return 0, 0, Refuse("attribute %q is a number column: write the number %s without quotes", e.attr.Name, schema.ShownNumber(n))
		}
		return 0, 0, Refuse("attribute %q is a number column: write a number, such as %s, not the string %.80q",
			e.attr.Name, e.example(c), v.String)
	case BoolKind:
		return 0, 0, Refuse("attribute %q is a number column: write a number, such as %s, not true or false",
			e.attr.Name, e.example(c))
	}
	return 0, 0, refuseNull(e.attr.Name)
}

// example is a number that makes sense for the attribute, for error texts.
func (e *numberQueries) example(c *Condition) string {
	if e.attr.Keywords > 0 && !c.Bucket {
		return schema.ShownNumber(e.attr.Min)
	}
	return "0"
}

func (e *numberQueries) numbers(c *Condition, low, high *Value) (lo, hi uint32, err error) {
	min, max, err := e.bounds(c, low, high)
	if err != nil {
		return 0, 0, err
	}
	a := e.attr
	if a.Keywords == 0 || max < a.Min || min > a.Max {
		return 0, 0, nil
	}
	if a.Exact && e.integers {
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
func (e *numberQueries) ordinals(c *Condition, low, high *Value) (lo, hi uint32, err error) {
	min, max, err := e.bounds(c, low, high)
	if err != nil {
		return 0, 0, err
	}
	for _, end := range [...]struct {
		value  *Value
		number float64
	}{{low, min}, {high, max}} {
		if end.value != nil && end.number != math.Trunc(end.number) {
			return 0, 0, Refuse("attribute %q: %v is not a bucket number: write an integer from 0 to %d, or leave "+
				"\"unit\":\"bucket\" out", e.attr.Name, end.number, int64(e.attr.Keywords)-1)
		}
	}
	if last := float64(e.attr.Keywords) - 1; max >= 0 && min <= last {
		return uint32(math.Max(min, 0)), uint32(math.Min(max, last)) + 1, nil
	}
	return 0, 0, nil
}
