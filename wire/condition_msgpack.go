package wire

import (
	"strings"
	"unicode/utf8"

	"github.com/geniemq/geniemq/internal/msgpack"
)

// member reads the next member of a row, a name and its value, into c, which is empty, if the value is a number, a short
// string or a bool and nothing is wrong with either. Otherwise it changes nothing.
func (r *msgpackReader) member(c *Condition, l *Limits) bool {
	if r.fatal != nil {
		return false
	}
	end, ok := c.pair(r.text, r.off, "", l)
	if ok {
		r.off = end
		r.open[len(r.open)-1].left -= 2
	}
	return ok
}

// condition reads the next value into c if it is a condition as nearly all are: few fields, each once, and nothing wrong
// with it. Otherwise it changes nothing, and the general way through the tokens reads it, or says what is wrong. Conditions
// are nearly all of a message of rows, and this takes half of the time. known says that it may have the first so many.
func (r *msgpackReader) condition(c *Condition, l *Limits, known conditionField) bool {
	s, i := r.text, r.off
	if r.fatal != nil || i >= len(s) || s[i]&0xf0 != msgpack.FixMap || len(r.open) >= r.maxDepth {
		return false
	}
	if known > attrField && r.single(c, l) {
		return true
	}
	given := c.Attr
	end, ok := c.read(s, i+1, int(s[i]-msgpack.FixMap), l, known)
	if !ok {
		*c = Condition{Attr: given}
		return false
	}
	r.off = end
	r.count()
	return true
}

// single reads a condition that is {"attr":...,"value":...} in this order, as the next value. A message of signatures consists
// of these: told apart as a whole and not field by field, each takes half of the time.
func (r *msgpackReader) single(c *Condition, l *Limits) bool {
	const begin, middle = "\x82\xa4attr", "\xa5value"
	if !strings.HasPrefix(r.text[r.off:], begin) {
		return false
	}
	end, ok := c.pair(r.text, r.off+len(begin), middle, l)
	if ok {
		r.off = end
		r.count()
	}
	return ok
}

// pair reads the attribute at s[i:], what is in the middle, and the value, and returns where that ends.
func (c *Condition) pair(s string, i int, middle string, l *Limits) (end int, ok bool) {
	name, at, ok := quickString(s, i)
	if !ok || !strings.HasPrefix(s[at:], middle) || len(name) > l.String || !utf8.ValidString(name) {
		return 0, false
	}
	v, end, ok := quickValue(s, at+len(middle))
	if !ok || len(v.String) > l.String {
		return 0, false
	}
	c.Attr, c.Value = name, v
	return end, true
}

// read reads the fields of a condition, the first of which is at s[i:], and returns where they end.
func (c *Condition) read(s string, i, members int, l *Limits, known conditionField) (end int, ok bool) {
	var seen field
	for ; members > 0; members-- {
		name, at, ok := quickString(s, i)
		if !ok {
			return 0, false
		}
		f := conditionFieldOf(name)
		if f >= known || seen&(1<<f) != 0 {
			return 0, false
		}
		seen |= 1 << f
		var v Value
		if v, i, ok = quickValue(s, at); !ok || len(v.String) > l.String {
			return 0, false
		}
		if to := c.scalar(f); to != nil {
			*to = v
		} else if !c.quickField(f, &v) {
			return 0, false
		}
	}
	return i, true
}

// quickField sets a field that holds one value but no scalar of its own.
func (c *Condition) quickField(f conditionField, v *Value) bool {
	switch {
	case f == attrField && v.Kind == StringValue:
		c.Attr = v.String
	case f == weightField && v.Kind == NumberValue && v.Number >= 1 && v.Number <= MaxWeight && v.Number == float64(uint32(v.Number)):
		c.Weight = uint32(v.Number)
	case f == unitField && v.Kind == StringValue && v.String == bucketUnit:
		c.Bucket = true
	default:
		return false
	}
	return true
}

// quickString reads a string of at most 255 bytes at s[i:] and returns where it ends. What it holds is not checked.
func quickString(s string, i int) (text string, end int, ok bool) {
	if i >= len(s) {
		return "", 0, false
	}
	n := 0
	switch c := s[i]; {
	case c&0xe0 == msgpack.FixStr:
		n, i = int(c-msgpack.FixStr), i+1
	case c == msgpack.Str8 && i+1 < len(s):
		n, i = int(s[i+1]), i+2
	default:
		return "", 0, false
	}
	if n > len(s)-i {
		return "", 0, false
	}
	return s[i : i+n], i + n, true
}

// quickValue reads a number, a short string or a bool.
func quickValue(s string, i int) (v Value, end int, ok bool) {
	if i >= len(s) {
		return v, 0, false
	}
	size := 0 // of a number after its first byte
	switch c := s[i]; {
	case c < msgpack.FixMap:
		return Value{Kind: NumberValue, Number: float64(c)}, i + 1, true
	case c >= msgpack.Negative:
	case c == msgpack.False || c == msgpack.True:
		return Bool(c == msgpack.True), i + 1, true
	case c == msgpack.Float32:
		size = 4
	case c == msgpack.Float64:
		size = 8
	case c >= msgpack.Uint8 && c <= msgpack.Uint64:
		size = 1 << (c - msgpack.Uint8)
	case c >= msgpack.Int8 && c <= msgpack.Int64:
		size = 1 << (c - msgpack.Int8)
	default:
		v.Kind = StringValue
		v.String, end, ok = quickString(s, i)
		return v, end, ok && utf8.ValidString(v.String)
	}
	if size >= len(s)-i {
		return v, 0, false
	}
	v = Value{Kind: NumberValue, Number: msgpack.ParseNumber(s[i : i+1+size])}
	return v, i + 1 + size, v.Number < exactBelow && v.Number > -exactBelow // of integers beyond, the digits are kept
}
