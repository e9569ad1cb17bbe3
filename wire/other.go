package wire

import (
	"errors"

	"github.com/geniemq/geniemq/wire/value"
)

// Other is what a condition holds that is neither a value, nor a range, nor a set of values: a list, an object with fields of its
// own, binary, null. What it means is up to the type of the column; this package knows only that it is well-formed and
// within the [Limits]: its elements count as items, its strings are no longer than others, its binary is no longer than that of a vector.
//
//	"row":{"embedding":[0.1,0.2],"place":{"near":[52.5,13.4],"within":20,"weight":3}}
//	"items":[{"attr":"embedding","value":[0.1,0.2]},{"attr":"place","value":{"near":[52.5,13.4],"within":20},"weight":3}]
//
// Both say the same: attr and weight are of the condition whatever its shape, and {"value":x} is x. In JSON a column type that
// takes binary should take base64 as well.
type Other struct {
	Value value.Tree
	// Refusal is why this is none of the shapes that are known here. It is set by decoding, and the answer of an index
	// whose column takes no other.
	Refusal *Error
}

// place is where a condition begins.
type place struct {
	offset, depth, items int
}

// place returns where the next value begins, and forgets what was found of the condition before it.
func (d *queryDecoder) place() place {
	d.unknown = false
	return place{d.r.offset(), d.r.depth(), d.items}
}

// otherShape decodes a condition again, as one of another shape. known are those fields that it might have had, where says which condition it is, and refusal why
// it is none of the known shapes.
func (d *queryDecoder) otherShape(c *Condition, at place, known conditionField, where string, refusal *Error) *Error {
	*c = Condition{Attr: c.Attr, Other: &Other{Refusal: refusal.in("%s", where)}}
	d.items = at.items
	d.build.Reset()
	var err *Error
	if d.r.depth() == at.depth { // no object, of which nothing has been read
		err = d.tree(d.r)
	} else if skipTo(d.r, at.depth); d.r.failed() == nil {
		err = d.otherFields(c, d.r.again(at.offset), known)
	}
	if failed := d.r.failed(); failed != nil {
		return failed
	}
	if err != nil {
		return err
	}
	t, fault := d.build.Tree()
	if repeated := (*value.RepeatedError)(nil); errors.As(fault, &repeated) {
		return fieldTwice(repeated.Name)
	} else if fault != nil {
		return badRequest("%v", fault)
	}
	if inner := t.Member(conditionNames[valueField]); t.Len() == 1 && !inner.IsZero() {
		t = inner
		if wrong := unknownMember(t, known); wrong != nil { // as encoders write {"gte":3}: {"value":{"gte":3}}
			c.Other.Refusal = wrong.in("%s", where)
		}
	} else if t.Kind() == value.Map {
		if err := d.addItem(); err != nil {
			return err
		}
	}
	c.Other.Value = t
	return nil
}

// unknownMember is why an object is no condition, nil if that is not for a name in it.
func unknownMember(t value.Tree, known conditionField) *Error {
	if t.Kind() != value.Map {
		return nil
	}
	for name := range t.Members() {
		if conditionFieldOf(name) >= known {
			return unknownField(conditionNames[:known], name)
		}
	}
	return nil
}

// otherFields reads a condition's own fields into c, and all others into the map that d.build then holds.
func (d *queryDecoder) otherFields(c *Condition, r reader, known conditionField) *Error {
	var seen field
	d.build.Map()
	if err := r.enter(); err != nil {
		return err
	}
	for r.more() {
		name, err := r.str()
		if err != nil {
			return err.in("the name of a field")
		}
		f := conditionFieldOf(name)
		if own := f < known && (f == weightField || f == attrField); !own {
			if err = d.limits.checkString(len(name)); err == nil {
				d.build.Name(name)
				err = d.tree(r)
			}
		} else if seen&(1<<f) != 0 {
			return fieldTwice(name)
		} else if seen |= 1 << f; f == weightField {
			c.Weight, err = d.weight(r)
		} else {
			c.Attr, err = d.bounded(r.str())
		}
		if err != nil {
			return err.in(".%s", clip(name))
		}
	}
	d.build.End()
	return r.failed()
}

// tree adds the next value to d.build. Whatever is added has been counted, and is no longer than it may be.
func (d *queryDecoder) tree(r reader) *Error {
	for base := r.depth(); ; {
		if err := d.addItem(); err != nil {
			return err
		}
		if err := d.node(r); err != nil {
			return err
		}
		for r.depth() > base && !r.more() {
			if failed := r.failed(); failed != nil {
				return failed
			}
			r.leave()
			d.build.End()
		}
		if r.depth() == base {
			return nil
		}
		if r.atName() {
			name, err := d.bounded(r.str())
			if err != nil {
				return err.in("the name of a field")
			}
			d.build.Name(name)
		}
	}
}

// node adds the next scalar, or begins an array or an object.
func (d *queryDecoder) node(r reader) (err *Error) {
	switch k := r.peek(); k {
	case nullKind:
		r.skipScalar()
		d.build.Null()
	case boolKind:
		var v bool
		v, err = r.boolean()
		d.build.Bool(v)
	case numberKind:
		return r.exactly(&d.build)
	case stringKind:
		var s string
		if s, err = d.bounded(r.str()); err == nil {
			d.build.String(s)
		}
	case binaryKind:
		var s string
		if s, err = r.binary(); err == nil {
			err = d.limits.checkBinary(len(s))
		}
		if err == nil {
			d.build.Bytes(s)
		}
	case arrayKind:
		err = r.enter()
		d.build.Array()
	case objectKind:
		err = r.enter()
		d.build.Map()
	case noKind:
		_, err = r.str() // says why
	default:
		return r.extension(&d.build)
	}
	return err
}

// aroundTree is how many levels of a message of many queries a tree is within.
const aroundTree = 5

// validate checks what could not have been sent, or would be refused.
func (o *Other) validate(l *Limits) *Error {
	switch o.Value.Kind() {
	case value.None:
		return badRequest("the condition's other value is missing")
	case value.Bool, value.Number, value.String:
		return badRequest("%s is no value of another shape: give it as value", o.Value.Kind())
	}
	e := o.Value.Extent()
	if err := l.checkItems(e.Nodes); err != nil {
		return err
	}
	if err := l.checkString(e.Text); err != nil {
		return err
	}
	if err := l.checkBinary(e.Binary); err != nil {
		return err
	}
	return l.checkDepth(aroundTree + e.Depth)
}
