package translate

import (
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/nearest"
	"github.com/geniemq/geniemq/wire"
)

// Prepared is what Translator.Prepare has made of a query: by condition that counts, or, of one that asks a vector, of that alone. nil: nothing.
type Prepared [][]uint32

// into gives it to the request of the query.
func (p Prepared) into(r *index.Request) {
	switch {
	case p == nil:
	case r.Vector != nil:
		r.Prepared = p[0]
	default:
		for i := range r.Conditions {
			r.Conditions[i].Prepared = p[i]
		}
	}
}

// Prepares says whether Prepare has anything to do with queries of the index.
func (e *Translator) Prepares() bool { return e.prepares }

// Prepare does what takes less time for many queries together than for each: it hashes the vectors that they ask, as such and in rows. The result is
// by query, for Query.Prepared; nil: there is nothing. It takes as much memory as the keywords of the vectors.
func (e *Translator) Prepare(queries []wire.QueryOrError) []Prepared {
	if !e.prepares {
		return nil
	}
	type place struct{ query, condition int }
	var forms, at []place // of the requests, and of the conditions of the first one
	rows := &index.Request{}
	requests := []*index.Request{rows}
	for i := range queries {
		q := &queries[i].Query
		if queries[i].Err != nil || q.WantsDistance() {
			continue
		}
		if q.Vector != nil {
			requests, forms = append(requests, &index.Request{Vector: q.Vector, Near: nearest.Near{Column: q.Column, Method: q.Method}}), append(forms, place{query: i})
			continue
		}
		for j, c := range counting(q) {
			if c.Other != nil && e.queries.Prepares(c.Attr) {
				rows.Conditions = append(rows.Conditions, column.Condition{Attr: c.Attr, Other: c.Other.Value})
				at = append(at, place{i, j})
			}
		}
	}
	if len(forms)+len(at) < 2 {
		return nil
	}
	e.queries.Prepare(requests, 1)
	prepared := make([]Prepared, len(queries))
	for i, p := range forms {
		prepared[p.query] = Prepared{requests[1+i].Prepared}
	}
	for i, p := range at {
		if prepared[p.query] == nil {
			prepared[p.query] = make(Prepared, len(counting(&queries[p.query].Query)))
		}
		prepared[p.query][p.condition] = rows.Conditions[i].Prepared
	}
	return prepared
}

// counting are the conditions of a query that count.
func counting(q *wire.Query) []wire.Condition {
	if q.Row != nil {
		return q.Row
	}
	return q.Items
}
