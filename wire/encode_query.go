package wire

import (
	"github.com/geniemq/geniemq/wire/value"
)

// AppendQuery appends the encoding of one query, as a message of its own. Fields that have their zero value are left
// out. The query is not checked: see [Query.Validate].
func AppendQuery(dst []byte, ct ContentType, q *Query) []byte {
	e := encoder{dst: dst, msgpack: ct == MessagePack}
	e.query(q)
	return e.dst
}

// AppendQueries appends the encoding of a batch message: {"queries":[...]}.
func AppendQueries(dst []byte, ct ContentType, queries []Query) []byte {
	e := encoder{dst: dst, msgpack: ct == MessagePack}
	at := e.object()
	e.name(at, "queries")
	e.list(len(queries))
	for i := range queries {
		e.next(i)
		e.query(&queries[i])
	}
	e.endList()
	e.end()
	return e.dst
}

func (e *encoder) query(q *Query) {
	at := e.object()
	e.text(at, "id", q.ID)
	uints := func(name string, v int) {
		if v != 0 {
			e.whole(at, name, uint64(v))
		}
	}
	uints("k", q.K)
	if q.CountOnly && q.K == 0 {
		e.whole(at, "k", 0)
	}
	if q.Row != nil {
		e.name(at, "row")
		e.row(q.Row)
	}
	e.text(at, "text", q.Text)
	if q.Vector != nil {
		e.name(at, "vector")
		e.vector(q.Vector)
	}
	if q.Set != nil {
		e.name(at, "set")
		e.values(q.Set)
	}
	if q.Items != nil {
		e.name(at, "items")
		e.list(len(q.Items))
		for i := range q.Items {
			e.next(i)
			at := e.object()
			e.name(at, "attr")
			e.str(q.Items[i].Attr)
			e.condition(at, &q.Items[i])
			e.end()
		}
		e.endList()
	}
	e.near(at, q)
	e.refinements(at, q)
	uints("candidates", q.Candidates)
	e.flag(at, "certify", q.Certify)
	uints("min_count", int(q.MinCount))
	e.hitsForm(at, q.HitsForm)
	e.flag(at, "with_payload", q.WithPayload)
	uints("timeout_ms", int(q.TimeoutMS))
	e.end()
}

// row writes conditions by attribute: a bare value where that says everything.
func (e *encoder) row(conds []Condition) {
	e.members(len(conds))
	for i := range conds {
		c := &conds[i]
		e.next(i)
		e.key(c.Attr)
		if !c.Value.IsZero() && !c.Bucket && c.Weight == 0 && c.In == nil && c.Other == nil && c.Min.IsZero() && c.Max.IsZero() {
			e.value(c.Value)
			continue
		}
		if c.Other != nil && c.Weight == 0 && c.Other.Value.Kind() != value.Map {
			e.tree(c.Other.Value)
			continue
		}
		at := e.object()
		e.condition(at, c)
		e.end()
	}
	e.end()
}

// condition writes the members of a condition but for attr.
func (e *encoder) condition(at int, c *Condition) {
	if c.Other != nil {
		e.name(at, conditionNames[valueField])
		e.tree(c.Other.Value)
	}
	for f, name := range conditionNames[:inField] {
		if v := c.scalar(conditionField(f)); !v.IsZero() {
			e.name(at, name)
			e.value(*v)
		}
	}
	if c.In != nil {
		e.name(at, "in")
		e.values(c.In)
	}
	if c.Bucket {
		e.text(at, "unit", bucketUnit)
	}
	if c.Weight != 0 {
		e.whole(at, "weight", uint64(c.Weight))
	}
}

func (e *encoder) tree(t value.Tree) {
	if e.msgpack {
		e.dst = t.AppendMessagePack(e.dst)
	} else {
		e.dst = t.AppendJSON(e.dst)
	}
}

func (e *encoder) values(vs []Value) {
	e.list(len(vs))
	for i, v := range vs {
		e.next(i)
		e.value(v)
	}
	e.endList()
}

func (e *encoder) value(v Value) {
	switch v.Kind {
	case NumberValue:
		if v.String != "" {
			e.digits(v.String)
			break
		}
		e.number(v.Number)
	case StringValue:
		e.str(v.String)
	case BoolValue:
		e.bool(v.Bool())
	default: // refused by the reader, as it should be
		e.null()
	}
}

func (e *encoder) vector(v []float32) {
	if e.msgpack {
		e.dst = appendVector(e.dst, v)
		return
	}
	e.list(len(v))
	for i, x := range v {
		e.next(i)
		e.float32(x)
	}
	e.endList()
}

// refinements writes the fields that validateRefinements is about.
func (e *encoder) refinements(at int, q *Query) {
	filter := func(name string, conds []Condition) {
		if conds == nil {
			return
		}
		e.name(at, name)
		if _, twice := repeatedAttr(conds); !twice {
			e.row(conds)
			return
		}
		e.list(len(conds))
		for i := range conds {
			e.next(i)
			e.row(conds[i : i+1])
		}
		e.endList()
	}
	filter("filter", q.Filter)
	filter("exclude", q.Exclude)
	e.flag(at, "total", q.Total)
	if q.IDF != Unsaid {
		e.name(at, "idf")
		e.bool(q.IDF == Yes)
	}
	if q.Weights != nil {
		e.name(at, "weights")
		e.members(len(q.Weights))
		for i, w := range q.Weights {
			e.next(i)
			e.key(w.Column)
			e.uint(uint64(w.Weight))
		}
		e.end()
	}
	if r := q.Rescore; r != nil {
		e.name(at, "rescore")
		at := e.object()
		e.name(at, "by")
		e.str(r.By)
		e.text(at, "column", r.Column)
		e.end()
	}
	e.flag(at, "matched", q.Matched)
	e.flag(at, "explain", q.Explain)
}
