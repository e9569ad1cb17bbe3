package wire

import "math"

// Condition is one query item: which keywords of one attribute count, and how much. It holds exactly one of a
// value, an inclusive range (either end may be missing), a set of values, or whatever else the type of its column
// takes. In a query's row the attribute is the key and a condition on a single value may be written as that value alone:
//
//	"row":{"age":{"min":30,"max":40},"sex":"Female","state":{"in":["WA","OR"]}}
//	"items":[{"attr":"age","min":30,"max":39},{"attr":"sex","value":"Male","weight":2}]
type Condition struct {
	Attr     string
	Value    Value
	Min, Max Value
	In       []Value
	Other    *Other
	// Bucket says that numbers are bucket numbers of the index, counted from 0, instead of the user's units
	// ("unit":"bucket"). The ends of a range may lie beyond the first and the last bucket.
	Bucket bool
	// Weight multiplies the count of every match, 1 to 65,535. 0 means 1.
	Weight uint32
}

// plain says that a condition is one that validate has nothing to say about, as nearly all are: it looks at little.
func (c *Condition) plain(l *Limits) bool {
	if c.Attr == "" || len(c.Attr) > l.String || c.Weight > MaxWeight || c.In != nil || c.Other != nil {
		return false
	}
	if c.Min.Kind|c.Max.Kind == NoValue {
		switch c.Value.Kind {
		case NumberValue:
			return !c.Bucket && finite(c.Value.Number) && c.Value.String == ""
		case StringValue:
			return !c.Bucket && len(c.Value.String) <= l.String
		}
		return false
	}
	low, high := c.Min.Number, c.Max.Number // 0 where there is none
	return c.Value.Kind == NoValue && c.Min.Kind <= NumberValue && c.Max.Kind <= NumberValue && finite(low) && finite(high) &&
		(low <= high || c.Min.Kind != c.Max.Kind) && (!c.Bucket || low == math.Trunc(low) && high == math.Trunc(high))
}

// validate checks everything about a condition that needs no schema.
func (c *Condition) validate(l *Limits) *Error {
	if c.Attr == "" {
		return badRequest("attr is missing: name the attribute that the condition is about")
	}
	if err := l.checkString(len(c.Attr)); err != nil {
		return err.in(".attr")
	}
	if c.Weight > MaxWeight {
		return badRequest("weight %d is not between 1 and %d", c.Weight, MaxWeight)
	}
	forms := 0
	for _, given := range [...]bool{!c.Value.IsZero(), !c.Min.IsZero() || !c.Max.IsZero(), c.In != nil} {
		if given {
			forms++
		}
	}
	switch {
	case c.Other != nil && (forms > 0 || c.Bucket):
		return badRequest("a condition of another shape excludes value, min, max, in and unit")
	case c.Other != nil:
		return c.Other.validate(l)
	case forms == 0:
		return badRequest("empty condition: give a value, min and/or max, or in")
	case forms > 1:
		return badRequest("value, min/max and in exclude each other: use one condition for each")
	case !c.Value.IsZero():
		if err := c.Value.validate(l, c.Bucket); err != nil {
			return err.in(".value")
		}
	case c.In != nil:
		if len(c.In) == 0 {
			return badRequest("in is empty: give at least one value")
		}
		for i, v := range c.In {
			if err := v.validate(l, c.Bucket); err != nil {
				return err.in(".in[%d]", i)
			}
		}
	default:
		return c.validateRange(l)
	}
	return nil
}

func (c *Condition) validateRange(l *Limits) *Error {
	for _, end := range []struct {
		name  string
		value Value
	}{{"min", c.Min}, {"max", c.Max}} {
		if end.value.IsZero() {
			continue
		}
		if end.value.Kind == BoolValue {
			return badRequest("%s is a bool: ranges are of numbers or strings", end.name)
		}
		value := end.value
		if v := value.Number; c.Bucket && v == math.Trunc(v) && !math.IsInf(v, 0) {
			value.Number = max(0, min(v, maxBucket)) // a range may reach beyond the buckets, on both sides
		}
		if err := value.validate(l, c.Bucket); err != nil {
			return err.in(".%s", end.name)
		}
	}
	// How strings compare, with each other and with numbers, the type of the column knows: dates have offsets, and a year is all its days.
	if c.Min.Kind == NumberValue && c.Max.Kind == NumberValue && c.Min.Number > c.Max.Number {
		return badRequest("min %s is greater than max %s", c.Min.format(), c.Max.format())
	}
	return nil
}
