package wire

import (
	"math"
	"strconv"
	"strings"

	"github.com/geniemq/geniemq/wire/fields"
)

// ValueKind says which of its fields a [Value] uses.
type ValueKind uint8

const (
	NoValue ValueKind = iota // absent: the zero Value
	NumberValue
	StringValue
	BoolValue
)

// Value is a number, a string or a bool, the three things a condition compares with. The zero Value is absent.
// Numbers are float64, as in JSON. Integers beyond 2^53 keep their digits beside it, since they may be codes, which categories and sets compare as texts.
type Value struct {
	Kind   ValueKind
	Number float64 // NumberValue; BoolValue: 0 or 1
	String string  // StringValue; the digits of a NumberValue that Number is only near
}

// exactBelow is where float64s begin to leave integers out, which have exactDigits digits then.
const exactBelow, exactDigits = 1 << 53, 16

// Integer returns a numeric value with all of its digits, of which there may be any number, with a sign before them: of anything else a request with it is refused.
func Integer(digits string) Value {
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		v = math.NaN()
	}
	return integerValue(v, digits)
}

// integerValue has digits only where the number says others, so that equal numbers are equal values.
func integerValue(v float64, digits string) Value {
	if math.Abs(v) < exactBelow || digits == strconv.FormatFloat(v, 'f', -1, 64) {
		digits = ""
	}
	return Value{Kind: NumberValue, Number: v, String: digits}
}

// isInteger says that a text is digits, with or without a sign.
func isInteger(text string) bool {
	text = strings.TrimPrefix(text, "-")
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text != "" && (text[0] != '0' || len(text) == 1)
}

// Number returns a numeric value.
func Number(v float64) Value { return Value{Kind: NumberValue, Number: v} }

// String returns a string value.
func String(v string) Value { return Value{Kind: StringValue, String: v} }

// Bool returns a boolean value.
func Bool(v bool) Value {
	if v {
		return Value{Kind: BoolValue, Number: 1}
	}
	return Value{Kind: BoolValue}
}

// IsZero reports whether the value is absent.
func (v Value) IsZero() bool { return v.Kind == NoValue }

// Bool reports what a BoolValue holds.
func (v Value) Bool() bool { return v.Kind == BoolValue && v.Number != 0 }

// format shows a value in an error message.
func (v Value) format() string {
	switch v.Kind {
	case NumberValue:
		return strconv.FormatFloat(v.Number, 'g', -1, 64)
	case StringValue:
		return strconv.Quote(clip(v.String))
	case BoolValue:
		return strconv.FormatBool(v.Bool())
	}
	return "nothing"
}

// maxBucket is the largest number that a bucket can have.
const maxBucket = fields.MaxBucket

// validate checks a value; bucket says that it must be the number of a bucket.
func (v Value) validate(l *Limits, bucket bool) *Error {
	switch n := v.Number; {
	case v.Kind == NoValue || v.Kind > BoolValue:
		return badRequest("a value is a number, a string or a bool")
	case v.Kind == NumberValue && !finite(n):
		return badRequest("%v is not a number to compare with; leave an end of a range out to keep it open", n)
	case v.Kind == NumberValue && v.String != "" && !isInteger(v.String):
		return badRequest("%q is no integer", clip(v.String))
	case len(v.String) > l.String:
		return l.checkString(len(v.String))
	case bucket && (v.Kind != NumberValue || n != math.Trunc(n) || n < 0 || n > maxBucket):
		return badRequest("%s is not a bucket: buckets are integers from 0", v.format())
	}
	return nil
}

// clip shortens what users sent before it is shown in an error.
func clip(s string) string { return clipTo(s, 60) }

func clipTo(s string, most int) string {
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > most-4 && s[cut]&0xc0 == 0x80 { // not within a code point
		cut--
	}
	return s[:cut] + "..."
}

func finite(v float64) bool { return v-v == 0 }
