package wire

import (
	"math"
	"testing"

	"github.com/geniemq/geniemq/wire/fields"
)

// What needs no closer look has nothing wrong with it, and what is usual needs none.
func TestPlainConditions(t *testing.T) {
	limits := Limits{String: 3}
	limits.EnsureDefaults()
	values := []Value{{}, Number(1), Number(2.5), Number(-3), Number(1e300), Number(math.NaN()), Number(math.Inf(1)), Number(math.Inf(-1)),
		String("abc"), String("abcd"), Bool(true), {Kind: 9}}
	plain := 0
	for _, attr := range []string{"", "a", "long"} {
		for _, value := range values {
			for _, low := range values {
				for _, high := range values {
					for _, in := range [][]Value{nil, {}, {Number(1)}} {
						for _, bucket := range []bool{false, true} {
							for _, weight := range []uint32{0, MaxWeight, MaxWeight + 1} {
								c := Condition{Attr: attr, Value: value, Min: low, Max: high, In: in, Bucket: bucket, Weight: weight}
								if !c.plain(&limits) {
									continue
								}
								plain++
								if err := c.validate(&limits); err != nil {
									t.Fatalf("%+v is plain, but %v", c, err)
								}
							}
						}
					}
				}
			}
		}
	}
	if plain == 0 {
		t.Error("nothing is plain")
	}
	for _, c := range []Condition{{Value: Number(1)}, {Value: String("b")}, {Min: Number(1)}, {Min: Number(1), Max: Number(2), Bucket: true}} {
		if c.Attr = "a"; !c.plain(&limits) {
			t.Errorf("%+v is not plain", c)
		}
	}
}

// A field is found by the name that it is written with, and each holds what it is read as.
func TestConditionFields(t *testing.T) {
	for f, name := range conditionNames {
		f := conditionField(f)
		if got := conditionFieldOf(name); got != f {
			t.Errorf("field %d is %q, which is field %d", f, name, got)
		}
		if scalar := new(Condition).scalar(f) != nil; scalar != (fields.Condition.Fields[f].Holds == fields.Scalar) {
			t.Errorf("%s: %v", name, scalar)
		}
	}
	if conditionFieldOf("Value") != conditionFields || attrField != conditionFields-1 {
		t.Error("a name that is none is found, or attr is not the last")
	}
}
