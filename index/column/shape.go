package column

import (
	"math"
	"strconv"
	"strings"

	"github.com/geniemq/geniemq/wire/value"
)

// form is which shape a condition has. What takes no other shape than values, ranges and lists of values reads the fields of Condition; the
// forms below come as Condition.Other, so that wire knows none of them.
type form uint8

const (
	otherForm   form = iota // none of those below
	valueForm               // "x", and so all that is no object: {"value":"x"} is the same
	listForm                // ["x","y"]
	inForm                  // {"in":["x","y"]}
	rangeForm               // {"min":1,"max":2}
	allForm                 // {"all":["x","y"]}; of texts also {"all":"x y"}
	anyForm                 // {"any":["x","y"]}
	isForm                  // {"is":"x"}
	missingForm             // {"missing":true}
)

// shape is a condition in one of the forms.
type shape struct {
	form   form
	values []Value // of value, list, in, all, any and is
}

// read returns the shape of a condition. The error is a *refusal.Error: an element of a list that is neither a string, a number nor a bool.
func (c *Condition) read() (s shape, err error) {
	switch {
	case c.Value != nil:
		return shape{valueForm, []Value{*c.Value}}, nil
	case c.In != nil:
		return shape{inForm, c.In}, nil
	case c.Other.IsZero():
		return shape{form: rangeForm}, nil
	case c.Other.Kind() == value.Array:
		s.form = listForm
		s.values, err = c.scalars(c.Other)
		return s, err
	case c.Other.Kind() != value.Map || c.Other.Len() != 1:
		return s, nil
	}
	for name, v := range c.Other.Members() {
		switch name {
		case "all":
			s.form = allForm
		case "any":
			s.form = anyForm
		case "is":
			s.form = isForm
		case "missing":
			return shape{form: missingForm}, nil
		default:
			return s, nil
		}
		s.values, err = c.scalars(v)
	}
	return s, err
}

// scalars returns the elements of an array, or a scalar as the one value that it is.
func (c *Condition) scalars(t value.Tree) ([]Value, error) {
	if t.Kind() != value.Array {
		v, ok := scalar(t)
		if !ok {
			return nil, Refuse("column %q takes strings, numbers, true and false, and lists of them, not %s", c.Attr, t.Kind())
		}
		return []Value{v}, nil
	}
	values := make([]Value, 0, t.Len())
	for element := range t.Elements() {
		v, ok := scalar(element)
		if !ok {
			return nil, Refuse("column %q: a list is of strings, numbers, true and false, and holds %s", c.Attr, element.Kind())
		}
		values = append(values, v)
	}
	return values, nil
}

// scalar reads a string, a number or a bool. An integer with more digits than a float64 has keeps them, another number becomes the nearest.
func scalar(t value.Tree) (Value, bool) {
	switch t.Kind() {
	case value.String:
		return StringValue(t.Text()), true
	case value.Number:
		f, ok := t.Float()
		v := NumberValue(f)
		if digits := t.Number(); math.Abs(f) >= 1<<53 && !strings.ContainsAny(digits, ".eE") {
			v.String = digits
		}
		return v, ok
	case value.Bool:
		return BoolValue(t.Bool()), true
	}
	return Value{}, false
}

// Missing says whether a condition asks for objects without a value (true) or with one (false); ok is false where it asks for something
// else. The error is a *refusal.Error.
func (c *Condition) Missing() (missing, ok bool, err error) {
	if c.Other.IsZero() || c.Other.Kind() != value.Map || c.Other.Len() != 1 {
		return false, false, nil
	}
	v := c.Other.Member("missing")
	switch {
	case v.IsZero():
		return false, false, nil
	case v.Kind() != value.Bool:
		return false, false, Refuse("column %q: missing is true or false", c.Attr)
	}
	return v.Bool(), true, nil
}

// quoted is a value in a sentence.
func quoted(value string) string { return strconv.Quote(value) }
