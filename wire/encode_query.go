package wire

import (
	"github.com/geniemq/geniemq/internal/msgpack"
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
	if q.ID != "" {
		e.name(at, "id")
		e.str(q.ID)
	}
	uints := func(name string, v int) {
		if v != 0 {
			e.name(at, name)
			e.uint(uint64(v))
		}
	}
	uints("k", q.K)
	if q.Row != nil {
		e.name(at, "row")
		e.row(q.Row)
	}
	if q.Text != "" {
		e.name(at, "text")
		e.str(q.Text)
	}
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
	uints("candidates", q.Candidates)
	if q.Certify {
		e.name(at, "certify")
		e.bool(true)
	}
	uints("min_count", int(q.MinCount))
	if q.WithPayload {
		e.name(at, "with_payload")
		e.bool(true)
	}
	uints("timeout_ms", int(q.TimeoutMS))
	e.end()
}

// row writes conditions by attribute: a bare value where that says everything.
func (e *encoder) row(conds []Condition) {
	if e.msgpack {
		e.dst = msgpack.AppendMapHead(e.dst, len(conds))
	} else {
		e.dst = append(e.dst, '{')
	}
	for i := range conds {
		c := &conds[i]
		e.next(i)
		e.str(c.Attr)
		if !e.msgpack {
			e.dst = append(e.dst, ':')
		}
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
	for f, name := range conditionNames[:attrField] {
		switch f := conditionField(f); conditionHolds[f] {
		case aScalar:
			if v := c.scalar(f); !v.IsZero() {
				e.name(at, name)
				e.value(*v)
			}
		case someScalars:
			if c.In != nil {
				e.name(at, name)
				e.values(c.In)
			}
		case aUnit:
			if c.Bucket {
				e.name(at, name)
				e.str(bucketUnit)
			}
		case aWeight:
			if c.Weight != 0 {
				e.name(at, name)
				e.uint(uint64(c.Weight))
			}
		}
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
		e.number(v.Number)
	case StringValue:
		e.str(v.String)
	case BoolValue:
		e.bool(v.Bool())
	default: // refused by the reader, as it should be
		if e.msgpack {
			e.dst = append(e.dst, msgpack.Nil)
		} else {
			e.dst = append(e.dst, "null"...)
		}
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
