package wire

import "github.com/geniemq/geniemq/wire/fields"

// The refinements of a query change how its form is answered: which objects may be hits, what counts how much, and in which order.

// Refined says that a query has refinements.
func (q *Query) Refined() bool {
	return q.Filter != nil || q.Exclude != nil || q.Total || q.IDF != Unsaid || q.Weights != nil || q.Rescore != nil || q.Matched || q.Explain
}

// validateRefinements checks what needs no schema.
func (q *Query) validateRefinements(l *Limits) *Error {
	if err := validateFilter(l, "filter", q.Filter); err != nil {
		return err
	}
	if err := validateFilter(l, "exclude", q.Exclude); err != nil {
		return err
	}
	var seen map[string]struct{}
	if len(q.Weights) > 1 {
		seen = make(map[string]struct{}, len(q.Weights))
	}
	for i, w := range q.Weights {
		if err := l.checkString(len(w.Column)); err != nil {
			return err.in("weights[%d]", i)
		}
		if _, twice := seen[w.Column]; twice {
			return badRequest("weights names %q twice", clip(w.Column))
		}
		if seen != nil {
			seen[w.Column] = struct{}{}
		}
		switch {
		case w.Column == "":
			return badRequest("weights[%d] names no column", i)
		case w.Weight < 1 || w.Weight > MaxWeight:
			return badRequest("weights.%s must be between 1 and %d, not %d", clip(w.Column), MaxWeight, w.Weight)
		}
	}
	if r := q.Rescore; r != nil {
		if r.By == "" {
			return badRequest(`rescore.by is missing: name the measure, such as "jaccard"`)
		}
		if err := l.checkString(max(len(r.By), len(r.Column))); err != nil {
			return err.in("rescore")
		}
	}
	return nil
}

// validateFilter checks the conditions of a filter, which may name an attribute again: all of them hold, or none.
func validateFilter(l *Limits, name string, conds []Condition) *Error {
	if conds == nil {
		return nil
	}
	for i := range conds {
		if conds[i].Weight != 0 {
			return badRequest("%s.%s has a weight, but a filter adds nothing to counts: leave it out", name, clip(conds[i].Attr))
		}
	}
	if err := validateConditions(l, name, conds, nil); err != nil {
		return err
	}
	if _, twice := repeatedAttr(conds); twice { // sent as a list, which is a level more
		for i := range conds {
			if other := conds[i].Other; other != nil {
				if err := l.checkDepth(aroundTree + 1 + other.Value.Extent().Depth); err != nil {
					return err.in("%s.%s", name, clip(conds[i].Attr))
				}
			}
		}
	}
	return nil
}

// validateFilterOnly checks a query that has no form.
func (q *Query) validateFilterOnly() *Error {
	refused := ""
	switch {
	case q.MinCount > 0:
		refused = "min_count"
	case q.Certify:
		refused = "certify"
	case q.Rescore != nil:
		refused = "rescore"
	default:
		return nil
	}
	return badRequest("%s needs counts, and a query of a filter alone has none: give a form too, or leave it out", refused)
}

// refinement reads a field of a refinement, of a search by distance, or of the form of hits.
func (d *queryDecoder) refinement(q *Query, f *fields.Field) (err *Error) {
	switch f.Name {
	case "filter":
		q.Filter, err = d.filter(f.Name)
	case "exclude":
		q.Exclude, err = d.filter(f.Name)
	case "total":
		q.Total, err = d.r.boolean()
	case "idf":
		q.IDF, err = d.choice()
	case "weights":
		q.Weights, err = d.weights()
	case "rescore":
		q.Rescore, err = d.rescore()
	case "matched":
		q.Matched, err = d.r.boolean()
	case "explain":
		q.Explain, err = d.r.boolean()
	case "point":
		q.Point, err = d.point()
	case "radius", "fraction", "recall":
		err = d.share(&q.Near, f)
	case "column":
		q.Column, err = d.text("leave it out")
	case "method":
		q.Method, err = d.text("leave it out")
	case "form":
		q.HitsForm, err = d.hitsForm()
	case "keys":
		d.keys, err = d.choice()
	}
	return err
}

func (d *queryDecoder) choice() (Choice, *Error) {
	yes, err := d.r.boolean()
	return ChoiceOf(yes), err
}

// filter decodes an object of conditions by attribute, or a list of such. An object names an attribute once.
func (d *queryDecoder) filter(name string) ([]Condition, *Error) {
	once := func(conds []Condition) *Error {
		if attr, twice := repeatedAttr(conds); twice {
			return badRequest("names %q twice: give a list of objects, one for each condition", clip(attr))
		}
		return nil
	}
	if d.r.peek() == objectKind {
		conds, err := d.row(name)
		if err == nil {
			err = once(conds)
		}
		return conds, err
	}
	if err := open(d.r, arrayKind, "an object of conditions by attribute, or a list of such"); err != nil {
		return nil, err
	}
	conds := d.conds.start()
	for i := 0; d.r.more(); i++ {
		before := len(conds)
		var err *Error
		if conds, err = d.rowMembers(conds, name); err == nil {
			err = once(conds[before:])
		}
		if err != nil {
			return nil, err.in("[%d]", i)
		}
	}
	return d.conds.keep(conds), closed(d.r)
}

// weights decodes the weights of columns.
func (d *queryDecoder) weights() ([]ColumnWeight, *Error) {
	if err := open(d.r, objectKind, "an object of weights by column"); err != nil {
		return nil, err
	}
	weights := []ColumnWeight{}
	for d.r.more() {
		if err := d.addItem(); err != nil {
			return nil, err
		}
		column, err := d.str()
		if err != nil {
			return nil, err.in("the name of a column")
		}
		weight, err := d.weight(d.r)
		if err != nil {
			return nil, err.in(".%s", clip(column))
		}
		weights = append(weights, ColumnWeight{column, weight})
	}
	return weights, closed(d.r)
}

// rescore decodes what hits are ordered by.
func (d *queryDecoder) rescore() (*Rescore, *Error) {
	if err := open(d.r, objectKind, `an object, such as {"by":"jaccard"}`); err != nil {
		return nil, err
	}
	var seen field
	r := new(Rescore)
	for d.r.more() {
		name, err := d.r.str()
		if err != nil {
			return nil, err.in("the name of a field")
		}
		if _, err := once(&seen, &fields.Rescore, name); err != nil {
			return nil, err
		}
		if name == "by" {
			r.By, err = d.str()
		} else {
			r.Column, err = d.str()
		}
		if err != nil {
			return nil, err.in(".%s", name)
		}
	}
	return r, closed(d.r)
}
