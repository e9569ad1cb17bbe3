package wire

import "fmt"

// row decodes {"attr": value or condition, ...}, which is in the field of a name.
func (d *queryDecoder) row(form string) ([]Condition, *Error) {
	conds, err := d.rowMembers(d.conds.start(), form)
	if err != nil {
		return nil, err
	}
	return d.conds.keep(conds), nil
}

// rowMembers adds the conditions of an object by attribute.
func (d *queryDecoder) rowMembers(conds []Condition, form string) ([]Condition, *Error) {
	if err := open(d.r, objectKind, "an object of conditions by attribute"); err != nil {
		return nil, err
	}
	for d.r.more() {
		if err := d.addItem(); err != nil {
			return nil, err
		}
		conds = append(conds, Condition{})
		c := &conds[len(conds)-1]
		if d.quick != nil && d.quick.member(c, d.limits) {
			continue
		}
		attr, err := d.str()
		if err != nil {
			return nil, err.in("the name of an attribute")
		}
		c.Attr = attr
		if d.quick != nil && d.quick.condition(c, d.limits, attrField) {
			continue
		}
		at := d.place()
		switch k := d.r.peek(); k {
		case objectKind:
			err = d.condition(c, attrField)
		case arrayKind:
			d.unknown = true
			err = badRequest(`must be a value or a condition, not an array: write {"in":[...]} for any of several values`)
		default:
			c.Value, err = d.value()
		}
		if err != nil && d.unknown {
			err = d.otherShape(c, at, attrField, form+"."+clip(attr), err)
		}
		if err != nil {
			return nil, err.in(".%s", clip(attr))
		}
	}
	return conds, closed(d.r)
}

func (d *queryDecoder) itemList() ([]Condition, *Error) {
	if err := open(d.r, arrayKind, "an array of conditions"); err != nil {
		return nil, err
	}
	conds := d.conds.start()
	for d.r.more() {
		if err := d.addItem(); err != nil {
			return nil, err
		}
		i := len(conds)
		conds = append(conds, Condition{})
		c := &conds[i]
		if d.quick != nil && d.quick.condition(c, d.limits, conditionFields) {
			continue
		}
		if k := d.r.peek(); k != objectKind {
			return nil, expected("a condition, an object", k).in("[%d]", i)
		}
		at := d.place()
		err := d.condition(c, conditionFields)
		if err != nil && d.unknown {
			err = d.otherShape(c, at, conditionFields, fmt.Sprintf("items[%d]", i), err)
		}
		if err != nil {
			return nil, err.in("[%d]", i)
		}
	}
	return d.conds.keep(conds), closed(d.r)
}

// condition decodes a condition with the first so many fields. Where it says what is wrong and sets d.unknown, it is a condition of
// another shape, of which nothing is wrong yet.
func (d *queryDecoder) condition(c *Condition, known conditionField) *Error {
	if err := d.r.enter(); err != nil {
		return err
	}
	var seen field
	for d.r.more() {
		name, err := d.r.str()
		if err != nil {
			return err.in("the name of a field")
		}
		f := conditionFieldOf(name)
		if f >= known {
			d.unknown = true
			return unknownField(conditionNames[:known], name)
		}
		if seen&(1<<f) != 0 {
			return fieldTwice(name)
		}
		seen |= 1 << f
		switch f {
		case valueField, minField, maxField:
			*c.scalar(f), err = d.value()
		case inField:
			c.In, err = d.values()
		case unitField:
			c.Bucket, err = true, d.unit()
		case weightField:
			c.Weight, err = d.weight(d.r)
		case attrField:
			c.Attr, err = d.str()
		}
		if err != nil {
			return err.in(".%s", name)
		}
	}
	return closed(d.r)
}
