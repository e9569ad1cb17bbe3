package translate

import (
	"slices"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/nearest"
	"github.com/geniemq/geniemq/index/refusal"
	"github.com/geniemq/geniemq/wire"
)

// converter is memory for the conditions of one query in the index's words, used again for the next: queries may have
// hundreds, with a value or two each, of which only spans remain.
type converter struct {
	made    index.Request
	text    string
	idf     bool
	rescore index.Rescore
	point   nearest.Point
	radius  float64
	conds   []column.Condition // beyond their length they are zero
	values  []column.Value
}

// maxConverted is for how many values memory is kept.
const maxConverted = 4096

// request makes of a query what is asked of the index. It is good until the converter is released.
func (c *converter) request(q *wire.Query) *index.Request {
	c.forget()
	conds, values := 0, len(q.Set)
	for _, list := range [...][]wire.Condition{q.Row, q.Items, q.Filter, q.Exclude} {
		conds += len(list)
		for i := range list {
			values += len(list[i].In) + 3
		}
	}
	// Nothing moves what conditions point to.
	c.conds, c.values = slices.Grow(c.conds, conds), slices.Grow(c.values, values)
	r := &c.made
	r.Total = q.Total
	switch {
	case q.Row != nil, q.Items != nil:
		r.Conditions = c.convert(counting(q))
	case q.Set != nil:
		r.Set = c.list(q.Set)
	case q.Vector != nil:
		r.Vector = q.Vector
	case q.Text != "":
		c.text = q.Text
		r.Text = &c.text
	case q.Point != nil:
		c.point = nearest.Point(*q.Point)
		r.Point = &c.point
	}
	r.Near = nearest.Near{Column: q.Column, K: q.K, CountOnly: q.CountOnly, Method: q.Method, Fraction: q.Fraction, Recall: q.Recall}
	if q.HasRadius {
		c.radius = q.Radius
		r.Near.Radius = &c.radius
	}
	r.Filter, r.Exclude = c.convert(q.Filter), c.convert(q.Exclude)
	for _, w := range q.Weights {
		r.Weights = append(r.Weights, index.ColumnWeight{Column: w.Column, Weight: w.Weight})
	}
	if q.Rescore != nil {
		c.rescore = index.Rescore{By: q.Rescore.By, Column: q.Rescore.Column, K: q.K}
		r.Rescore = &c.rescore
	}
	if q.IDF != wire.Unsaid {
		c.idf = q.IDF == wire.Yes
		r.IDF = &c.idf
	}
	return r
}

// release takes a converter back. The message must not live on in the pool.
func (e *Translator) release(c *converter) {
	if cap(c.values) > maxConverted || cap(c.conds) > maxConverted {
		return
	}
	c.forget()
	e.converters.Put(c)
}

// forget makes all of it zero but for the memory.
func (c *converter) forget() {
	clear(c.conds)
	clear(c.values)
	*c = converter{conds: c.conds[:0], values: c.values[:0]}
}

// convert appends conditions to those that c has, which has room for them, and returns them.
func (c *converter) convert(from []wire.Condition) []column.Condition {
	if from == nil {
		return nil
	}
	first := len(c.conds)
	c.conds = c.conds[:first+len(from)] // they are zero, and most of each stays so
	for i := range from {
		f, to := &from[i], &c.conds[first+i]
		to.Attr, to.Bucket, to.Weight = f.Attr, f.Bucket, f.Weight
		if f.Other != nil {
			to.Other, to.Refusal = f.Other.Value, &refusal.Error{Reason: f.Other.Refusal.Message}
		}
		to.Value, to.Min, to.Max = c.optional(&f.Value), c.optional(&f.Min), c.optional(&f.Max)
		if f.In != nil {
			to.In = c.list(f.In)
		}
	}
	return c.conds[first:len(c.conds):len(c.conds)]
}

// list appends values to those that c has, which has room for them, and returns them.
func (c *converter) list(from []wire.Value) []column.Value {
	first := len(c.values)
	for i := range from {
		c.values = append(c.values, toValue(&from[i]))
	}
	return c.values[first:len(c.values):len(c.values)]
}

func (c *converter) optional(v *wire.Value) *column.Value {
	if v.Kind == wire.NoValue {
		return nil
	}
	c.values = append(c.values, toValue(v))
	return &c.values[len(c.values)-1]
}

func toValue(v *wire.Value) column.Value {
	switch v.Kind {
	case wire.NumberValue:
		return column.Value{Kind: column.NumberKind, Number: v.Number, String: v.String}
	case wire.StringValue:
		return column.StringValue(v.String)
	case wire.BoolValue:
		return column.BoolValue(v.Bool())
	}
	return column.Value{}
}
