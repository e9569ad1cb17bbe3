package wire

import (
	"math"

	"github.com/geniemq/geniemq/internal/msgpack"
	"github.com/geniemq/geniemq/wire/fields"
	"github.com/geniemq/geniemq/wire/value"
)

// weights is what a column's weight is, and so a condition's.
var weights = fields.Query.Find("weights")

func (d *queryDecoder) weight(r reader) (uint32, *Error) { return integer[uint32](r, weights) }

// unit reads the unit of a condition, of which there is one today.
func (d *queryDecoder) unit() *Error {
	if k := d.r.peek(); k != stringKind {
		d.unknown = k != noKind
		return expected("a string", k)
	}
	unit, err := d.str()
	if err == nil && unit != bucketUnit {
		d.unknown = true
		err = badRequest(`must be "bucket"; leave it out for the attribute's own unit`)
	}
	return err
}

func (d *queryDecoder) values() ([]Value, *Error) {
	if k := d.r.peek(); k != arrayKind {
		d.unknown = k != noKind
		return nil, expected("an array of values", k)
	}
	if err := d.r.enter(); err != nil {
		return nil, err
	}
	values := d.vals.start()
	for d.r.more() {
		if err := d.addItem(); err != nil {
			return nil, err
		}
		v, err := d.value()
		if err != nil {
			return nil, err.in("[%d]", len(values))
		}
		values = append(values, v)
	}
	return d.vals.keep(values), closed(d.r)
}

func (d *queryDecoder) value() (v Value, err *Error) {
	switch k := d.r.peek(); k {
	case numberKind:
		v.Kind = NumberValue
		if v.Number, err = d.r.number(); err == nil && (v.Number >= exactBelow || v.Number <= -exactBelow) {
			v = integerValue(v.Number, d.r.digits())
			err = d.limits.checkString(len(v.String))
		}
	case stringKind:
		v.Kind = StringValue
		v.String, err = d.str()
	case boolKind:
		var b bool
		b, err = d.r.boolean()
		v = Bool(b)
	case msgpack.Extension: // an integer of more than 64 bits
		var b value.Builder
		if err = d.r.extension(&b); err == nil {
			t, _ := b.Tree()
			v = Integer(t.Number())
			err = d.limits.checkString(len(v.String))
		}
	default:
		d.unknown = k != noKind
		err = expected("a number, a string or a bool", k)
	}
	return v, err
}

func (d *queryDecoder) str() (string, *Error) { return d.bounded(d.r.str()) }

// bounded refuses a string that was read and is too long.
func (d *queryDecoder) bounded(s string, err *Error) (string, *Error) {
	if err == nil {
		err = d.limits.checkString(len(s))
	}
	return s, err
}

// text reads a string that must not be empty, since an empty one is what instead says.
func (d *queryDecoder) text(instead string) (string, *Error) {
	text, err := d.str()
	if err == nil && text == "" {
		err = badRequest("is empty: %s", instead)
	}
	return text, err
}

// id reads an id: a string, or an integer, which stands for its decimal digits, since ids are integers in many a database.
func (d *queryDecoder) id() (string, *Error) {
	switch k := d.r.peek(); k {
	case stringKind, noKind: // of which it says why
		return d.str()
	case numberKind:
		return d.bounded(d.r.integer())
	default:
		return "", expected("a string or an integer", k)
	}
}

// addItem counts an element of the query before it is read.
func (d *queryDecoder) addItem() *Error {
	d.items++
	return d.limits.checkItems(d.items)
}

// integer reads a number that must be whole and within the bounds of its field; 10, 10.0 and 1e1 are the same.
func integer[T int | uint32 | uint64](r reader, f *fields.Field) (T, *Error) {
	v, err := r.number()
	if err != nil {
		return 0, err
	}
	return integerOf[T](v, f)
}

func integerOf[T int | uint32 | uint64](v float64, f *fields.Field) (T, *Error) {
	if v != math.Trunc(v) || v < f.Least || v > f.Most {
		return 0, badRequest("must be an integer between %.0f and %.0f, not %s", f.Least, f.Most, Number(v).format())
	}
	return T(v), nil
}

// once finds the field of a name, which must be there, and marks it as seen.
func once(seen *field, o *fields.Object, name string) (*fields.Field, *Error) {
	for i := range o.Fields {
		f := &o.Fields[i]
		if f.Name != name {
			continue
		}
		if *seen&(1<<i) != 0 {
			return nil, fieldTwice(name)
		}
		*seen |= 1 << i
		return f, nil
	}
	return nil, unknownField(o.Names(), name)
}

func fieldTwice(name string) *Error { return badRequest("field %q is there twice", clip(name)) }

func unknownField(known []string, name string) *Error {
	return badRequest("unknown field %q%s", clip(name), suggestion(known, name))
}
