package wire

import (
	"math"

	"github.com/geniemq/geniemq/wire/fields"
)

// tableRows is where a decoder makes queries of a table, row by row: conditions are written once, with their attributes, and each query
// has its values put into them.
type tableRows struct {
	of    *table
	lists [conditionLists]rowConditions
	kept  slab[Condition] // of queries that are to be good for longer
}

// rowConditions are conditions of the query at hand: those that all queries have, then those of groups.
type rowConditions struct {
	all    []Condition
	common int
	sparse bool        // some queries have not all of them
	there  []Condition // those that the query has, then
}

// maxRows is for how many conditions memory is kept.
const maxRows = 4096

// again forgets the table and keeps memory for the next one.
func (r *tableRows) again() (next tableRows) {
	r.kept.again()
	next.kept = r.kept
	for l := range r.lists {
		next.lists[l] = rowConditions{all: emptied(r.lists[l].all), there: emptied(r.lists[l].there)}
	}
	return next
}

// emptied is the memory of a list for another one; nil if it is too much to keep.
func emptied(list []Condition) []Condition {
	if cap(list) > maxRows {
		return nil
	}
	clear(list[:cap(list)])
	return list[:0]
}

// begin makes room for the queries of a table.
func (r *tableRows) begin(t *table) {
	if r.of == t {
		return
	}
	r.of = t
	for l := range r.lists {
		list := &r.lists[l]
		common := *t.query.conditions(conditionList(l))
		list.all, list.common, list.sparse = append(list.all[:0], common...), len(common), false
	}
	for i := range t.groups {
		g := &t.groups[i]
		list := &r.lists[g.list]
		list.all = append(list.all, g.conds...)
		list.sparse = list.sparse || g.ends[valueField].sparse || g.ends[minField].sparse || g.ends[maxField].sparse
	}
}

// conditions puts the values of the i-th query into its conditions, which are good until the next query.
func (r *tableRows) conditions(q *Query, i int) {
	var used [conditionLists]int
	for l := range used {
		used[l] = r.lists[l].common
	}
	for at := range r.of.groups {
		g := &r.of.groups[at]
		to := r.lists[g.list].all[used[g.list]:][:len(g.conds)]
		used[g.list] += len(g.conds)
		for end := range g.ends {
			if g.ends[end].given() {
				g.ends[end].put(to, conditionField(end), i*len(to))
			}
		}
	}
	for l := range r.lists {
		list := &r.lists[l]
		to := q.conditions(conditionList(l))
		if len(list.all) == list.common { // no more than all have
			continue
		}
		*to = list.all
		if !list.sparse {
			continue
		}
		list.there = append(list.there[:0], list.all[:list.common]...)
		for c := range list.all[list.common:] {
			if c := &list.all[list.common+c]; c.Value.Kind|c.Min.Kind|c.Max.Kind != NoValue {
				list.there = append(list.there, *c)
			}
		}
		*to = list.there
	}
}

// put sets what conditions have at an end to the elements from the first one on.
func (a *array) put(to []Condition, end conditionField, first int) {
	switch {
	case a.holds == u8 && end == valueField: // signatures consist of these
		for j, v := range []byte(a.packed[first:][:len(to)]) {
			to[j].Value = Value{Kind: NumberValue, Number: float64(v)}
		}
	default:
		for j := range to {
			*to[j].scalar(end) = a.value(first + j)
		}
	}
}

// tableRow makes the i-th query of a table. Its conditions are good until the next one, unless they are kept.
func (d *queryDecoder) tableRow(t *table, i int, keep bool) QueryOrError {
	d.rows.begin(t)
	q := &d.one
	*q = t.query
	err := t.fill(q, i)
	d.rows.conditions(q, i)
	if keep {
		for l := range conditionLists {
			if list := q.conditions(l); len(d.rows.lists[l].all) > d.rows.lists[l].common {
				*list = d.rows.kept.keep(append(d.rows.kept.start(), *list...))
			}
		}
	}
	if err == nil {
		err = q.validate(d.limits, &d.names)
	}
	if err != nil {
		return QueryOrError{Query: Query{ID: q.ID}, Err: err}
	}
	q.EnsureDefaults()
	d.sumK += q.K
	return QueryOrError{Query: *q}
}

// fill sets what the i-th query has beside conditions.
func (t *table) fill(q *Query, i int) (err *Error) {
	if t.id.given() {
		q.ID = t.id.text(i)
	}
	if t.k.given() {
		if v := t.k.number(i); v == v {
			if err = q.wantHits(v, fields.Query.Find("k")); err != nil {
				err = err.in("k")
			}
		}
	}
	if t.radius.given() {
		if v := t.radius.number(i); v == v {
			q.Radius, q.HasRadius = v, true
		}
	}
	if t.text.given() {
		if v := &t.text.list[i]; v.Kind == StringValue && v.String == "" && err == nil {
			err = badRequest("text: is empty: nothing matches it")
		} else {
			q.Text = v.String
		}
	}
	if t.point.given() {
		q.Point = &Point{Lat: t.point.number(2 * i), Lon: t.point.number(2*i + 1)}
	}
	if t.vector.given() {
		q.Vector = make([]float32, t.dimension())
		t.vector.floats(q.Vector, i*len(q.Vector))
	}
	return err
}

// text is the i-th element as an id.
func (a *array) text(i int) string {
	if a.list != nil {
		return a.list[i].String
	}
	return Number(a.number(i)).format()
}

// floats sets float32s to the elements from the first one on.
func (a *array) floats(to []float32, first int) {
	for j := range to {
		if a.holds == f32 {
			to[j] = math.Float32frombits(uint32At(a.packed, first+j))
		} else {
			to[j] = float32(a.number(first + j))
		}
	}
}

// rowsOf makes the queries of a table from first to end, all of which are good until they are given up or forgotten.
func (d *queryDecoder) rowsOf(t *table, first, end int) []QueryOrError {
	for i := first; i < end; i++ {
		d.queries = append(d.queries, d.tableRow(t, i, true))
	}
	return d.queries
}
