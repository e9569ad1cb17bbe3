package wire

import (
	"encoding/binary"
	"iter"
	"math"
	"slices"
)

// AppendTable appends the encoding of a batch message as a table: {"table":{...}}, which older workers refuse. It is false, and appends nothing, where the queries
// have not one shape: the same fields, conditions on the same attributes in the same order, of which some may lack some, and one dimension. What is not the same in all of them, beside what
// conditions compare with, may be their id, k, text, vector, point and radius. It is false too where they are more than a worker takes in one message. The queries
// are not checked: see [Query.Validate].
//
// Send them as a list ([AppendQueries]) where there is none, and where they are few: what is said once is said for each attribute.
func AppendTable(dst []byte, ct ContentType, queries []Query) ([]byte, bool) {
	t := tableWriter{encoder: encoder{dst: dst, msgpack: ct == MessagePack}, queries: queries}
	if len(queries) == 0 || !t.plan() {
		return dst, false
	}
	message := t.object()
	t.name(message, "table")
	at := t.object()
	t.whole(at, "rows", uint64(len(queries)))
	t.name(at, "query")
	t.query(&t.common)
	t.columns(at)
	for l := range conditionLists {
		t.groups(at, l)
	}
	t.end()
	t.end()
	if written := len(t.dst) - len(dst); len(queries)*(written-t.arrays)+t.arrays > defaultBody {
		return dst, false
	}
	return t.dst, true
}

// tableWriter writes a table.
type tableWriter struct {
	encoder
	queries []Query
	common  Query // what all have
	arrays  int   // bytes of arrays
	lists   [conditionLists]places
	// varies says of which fields there is an array.
	id, k, text, vector, point, radius bool
}

// plan finds what all queries have, and whether they have one shape.
func (t *tableWriter) plan() bool {
	t.common = t.queries[0]
	for i := range t.queries[1:] {
		if !t.alike(&t.queries[1+i]) {
			return false
		}
	}
	for l := range conditionLists {
		if !t.place(l) {
			return false
		}
		p := &t.lists[l]
		for p.common < len(p.like) && t.same(l, p.common) {
			p.common++
		}
		for i := range t.queries {
			for at := p.common; at < len(p.like); at++ {
				if c := t.condition(l, i, at); c != nil && !c.packs() {
					return false
				}
			}
		}
		if *t.common.conditions(l) = p.like[:p.common]; p.common == 0 {
			*t.common.conditions(l) = nil
		}
	}
	c := &t.common
	if t.id {
		c.ID = ""
	}
	if t.k {
		c.K, c.CountOnly = 0, false
	}
	if t.text {
		c.Text = ""
	}
	if t.vector {
		c.Vector = nil
	}
	if t.point {
		c.Point = nil
	}
	if t.radius {
		c.Radius, c.HasRadius = 0, false
	}
	return true
}

// places are those of the conditions of a list, of which a query may lack some.
type places struct {
	like   []Condition // one of each place
	common int         // the first so many are the same in all queries
	// of has where each query has which of its conditions, query by query, -1 where it has none; nil where all have one everywhere.
	of []int32
}

// place finds the places of the conditions of a list, such that each query has its own in its order. It is false where there would be many more places than conditions.
func (t *tableWriter) place(l conditionList) bool {
	p := &t.lists[l]
	p.like = *t.queries[0].conditions(l)
	most, even := len(p.like), true
	for i := range t.queries {
		own := *t.queries[i].conditions(l)
		most, even = max(most, len(own)), even && len(own) == len(p.like)
		for at := 0; even && at < len(own); at++ {
			even = sameShape(&own[at], &p.like[at])
		}
	}
	if even {
		return true
	}
	p.like = slices.Clone(p.like)
	for i := range t.queries {
		for range t.walk(l, i) {
		}
		if len(p.like) > 2*most {
			return false
		}
	}
	p.of = slices.Repeat([]int32{-1}, len(t.queries)*len(p.like))
	for i := range t.queries {
		for at, c := range t.walk(l, i) {
			p.of[i*len(p.like)+at] = int32(c)
		}
	}
	return true
}

// walk goes through the conditions of a query and the places that they have, which are made where there are none.
func (t *tableWriter) walk(l conditionList, query int) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		p, next := &t.lists[l], 0
		own := *t.queries[query].conditions(l)
		for i := range own {
			at := next
			for at < len(p.like) && !sameShape(&own[i], &p.like[at]) {
				at++
			}
			if at == len(p.like) {
				p.like = slices.Insert(p.like, next, own[i])
				at = next
			}
			next = at + 1
			if !yield(at, i) {
				return
			}
		}
	}
}

// condition is that of a query at a place, nil if it has none.
func (t *tableWriter) condition(l conditionList, query, at int) *Condition {
	if p := &t.lists[l]; p.of != nil {
		if at = int(p.of[query*len(p.like)+at]); at < 0 {
			return nil
		}
	}
	return &(*t.queries[query].conditions(l))[at]
}

// endOf is what a query has at an end of the condition at a place.
func (t *tableWriter) endOf(l conditionList, query, at int, field conditionField) Value {
	if c := t.condition(l, query, at); c != nil {
		return *c.scalar(field)
	}
	return Value{}
}

// packs says that the values of a condition can be elements of arrays, in which NaN and null say that there is none.
func (c *Condition) packs() bool {
	some := false
	for field := valueField; field <= maxField; field++ {
		v := c.scalar(field)
		if v.Kind > BoolValue || v.Number != v.Number || v.Kind == NumberValue && v.String != "" {
			return false
		}
		some = some || !v.IsZero()
	}
	return some && c.In == nil && c.Other == nil
}

// alike says that a query has the shape of the first, and notes what is another's.
func (t *tableWriter) alike(q *Query) bool {
	first := &t.queries[0]
	same := *q
	same.ID, same.K, same.CountOnly, same.Text, same.Vector, same.Point, same.Radius = first.ID, first.K, first.CountOnly, first.Text, first.Vector, first.Point, first.Radius
	for l := range conditionLists {
		own, other := *q.conditions(l), *first.conditions(l)
		if (own == nil) != (other == nil) || own != nil && len(own) == 0 {
			return false
		}
		*same.conditions(l) = other
	}
	if !sameOptions(&same, first) || (q.Text == "") != (first.Text == "") || len(q.Vector) != len(first.Vector) || (q.Vector == nil) != (first.Vector == nil) ||
		(q.Point == nil) != (first.Point == nil) || q.Vector != nil && len(q.Vector) == 0 || q.Radius != q.Radius {
		return false
	}
	t.id = t.id || q.ID != first.ID
	t.k = t.k || q.K != first.K || q.CountOnly != first.CountOnly
	t.text = t.text || q.Text != first.Text
	t.vector = t.vector || !slices.EqualFunc(q.Vector, first.Vector, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) })
	t.point = t.point || q.Point != nil && *q.Point != *first.Point
	t.radius = t.radius || q.HasRadius && math.Float64bits(q.Radius) != math.Float64bits(first.Radius)
	return true
}

// sameOptions says that queries are the same in what a table says once.
func sameOptions(a, b *Query) bool {
	x, y := *a, *b
	rescored := x.Rescore == y.Rescore || x.Rescore != nil && y.Rescore != nil && *x.Rescore == *y.Rescore
	return rescored && slices.EqualFunc(x.Set, y.Set, sameValue) && (x.Set == nil) == (y.Set == nil) && slices.Equal(x.Weights, y.Weights) && (x.Weights == nil) == (y.Weights == nil) &&
		x.Near == y.Near && x.Total == y.Total && x.IDF == y.IDF && x.Matched == y.Matched && x.Explain == y.Explain &&
		x.Candidates == y.Candidates && x.Certify == y.Certify && x.MinCount == y.MinCount && x.HitsForm == y.HitsForm &&
		x.WithPayload == y.WithPayload && x.TimeoutMS == y.TimeoutMS
}

// sameShape says that conditions differ in their values alone.
func sameShape(a, b *Condition) bool {
	return a.Attr == b.Attr && sameKind(a, b) && (a.In == nil) == (b.In == nil) && a.Other == b.Other
}

// sameKind says that conditions, on whatever attributes, differ in nothing else that a group says of all of its own.
func sameKind(a, b *Condition) bool {
	return a.Bucket == b.Bucket && a.Weight == b.Weight && (a.Value.Kind == NoValue) == (b.Value.Kind == NoValue) &&
		(a.Min.Kind == NoValue) == (b.Min.Kind == NoValue) && (a.Max.Kind == NoValue) == (b.Max.Kind == NoValue)
}

// sameValue says that values are written alike.
func sameValue(a, b Value) bool {
	return a.Kind == b.Kind && a.String == b.String && math.Float64bits(a.Number) == math.Float64bits(b.Number)
}

// same says that all queries have the same condition at a place.
func (t *tableWriter) same(l conditionList, at int) bool {
	first := &t.lists[l].like[at]
	for i := range t.queries {
		c := t.condition(l, i, at)
		if c == nil || !sameValue(c.Value, first.Value) || !sameValue(c.Min, first.Min) || !sameValue(c.Max, first.Max) || !slices.EqualFunc(c.In, first.In, sameValue) {
			return false
		}
	}
	return true
}

// columns writes the arrays beside conditions.
func (t *tableWriter) columns(at int) {
	q := t.queries
	if t.id {
		t.column(at, "id", 1, func(i, _ int) Value { return textOrNone(q[i].ID) })
	}
	if t.k {
		t.column(at, "k", 1, func(i, _ int) Value {
			if q[i].K == 0 && !q[i].CountOnly {
				return Value{}
			}
			return Number(float64(q[i].K))
		})
	}
	if t.text {
		t.column(at, "text", 1, func(i, _ int) Value { return String(q[i].Text) })
	}
	if t.vector {
		t.column(at, "vector", len(q[0].Vector), func(i, j int) Value { return Number(float64(q[i].Vector[j])) })
	}
	if t.point {
		t.column(at, "point", 2, func(i, j int) Value { return Number([...]float64{q[i].Point.Lat, q[i].Point.Lon}[j]) })
	}
	if t.radius {
		t.column(at, "radius", 1, func(i, _ int) Value { return Number(q[i].Radius) })
	}
}

// column writes an array of so many elements for each query.
func (t *tableWriter) column(at int, name string, each int, value func(i, j int) Value) {
	t.name(at, name)
	t.array(elementOf(len(t.queries), each, value), each, value)
}

func textOrNone(s string) Value {
	if s == "" {
		return Value{}
	}
	return String(s)
}

// groups writes the conditions of a list whose values are not the same in all queries. Those whose values are of one type, as packed elements, are a group.
func (t *tableWriter) groups(at int, l conditionList) {
	all, first := t.lists[l].like, t.lists[l].common
	if first == len(all) {
		return
	}
	var ends []int       // of groups
	var types []condType // and what theirs are
	for i := first; i < len(all); i++ {
		holds := t.holds(l, i)
		if i == first || holds != types[len(types)-1] || !sameKind(&all[i], &all[i-1]) {
			ends, types = append(ends, i), append(types, holds)
		}
		ends[len(ends)-1] = i + 1
	}
	t.name(at, conditionListNames[l])
	t.list(len(ends))
	for i, end := range ends {
		t.next(i)
		t.group(l, first, end, types[i])
		first = end
	}
	t.endList()
}

// condType is what values, mins and maxs of a condition are packed as.
type condType [maxField + 1]element

func (t *tableWriter) holds(l conditionList, at int) (holds condType) {
	for field := range holds {
		if !t.lists[l].like[at].scalar(conditionField(field)).IsZero() {
			holds[field] = elementOf(len(t.queries), 1, func(i, _ int) Value { return t.endOf(l, i, at, conditionField(field)) })
		}
	}
	return holds
}

func (t *tableWriter) group(l conditionList, first, end int, holds condType) {
	conds := t.lists[l].like[first:end]
	at := t.object()
	t.name(at, "attrs")
	t.list(len(conds))
	for i := range conds {
		t.next(i)
		t.str(conds[i].Attr)
	}
	t.endList()
	for field := valueField; field <= maxField; field++ {
		if conds[0].scalar(field).IsZero() {
			continue
		}
		t.name(at, conditionNames[field])
		t.array(holds[field], len(conds), func(i, j int) Value { return t.endOf(l, i, first+j, field) })
	}
	if conds[0].Bucket {
		t.name(at, "unit")
		t.str(bucketUnit)
	}
	if conds[0].Weight != 0 {
		t.whole(at, "weight", uint64(conds[0].Weight))
	}
	t.end()
}

// elementOf is the smallest type of packed elements that holds all of those of n queries, none of them changed; listed if none does.
func elementOf(n, each int, value func(i, j int) Value) element {
	low, high, whole, single := 0.0, 0.0, true, true
	for i := range n {
		for j := range each {
			v := value(i, j)
			switch v.Kind {
			case NumberValue:
			case NoValue: // as NaN
				whole = false
				continue
			default:
				return listed
			}
			x := v.Number
			low, high = min(low, x), max(high, x)
			whole = whole && x == math.Trunc(x) && !(x == 0 && math.Signbit(x))
			single = single && (float64(float32(x)) == x || x != x)
		}
	}
	switch {
	case whole && low >= 0 && high < 1<<8:
		return u8
	case whole && low >= 0 && high < 1<<16:
		return u16
	case whole && low >= 0 && high < 1<<32:
		return u32
	case whole && low >= math.MinInt32 && high <= math.MaxInt32:
		return i32
	case single:
		return f32
	}
	return f64
}

// array writes an array of so many elements for each query.
func (t *tableWriter) array(holds element, each int, value func(i, j int) Value) {
	begin := len(t.dst)
	defer func() { t.arrays += len(t.dst) - begin }()
	if holds == listed {
		t.listed(each, value)
		return
	}
	at := t.object()
	start, _ := t.beginPacked(at, elementNames[holds], len(t.queries)*each*elementWidths[holds])
	dst := t.dst
	for i := range t.queries {
		for j := range each {
			v := value(i, j)
			if v.Kind == NoValue {
				v.Number = math.NaN()
			}
			switch x := v.Number; holds {
			case u8:
				dst = append(dst, byte(x))
			case u16:
				dst = binary.LittleEndian.AppendUint16(dst, uint16(x))
			case u32:
				dst = binary.LittleEndian.AppendUint32(dst, uint32(x))
			case i32:
				dst = binary.LittleEndian.AppendUint32(dst, uint32(int32(x)))
			case f32:
				dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(x)))
			default:
				dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(x))
			}
		}
	}
	t.dst = dst
	t.endPacked(start)
	t.end()
}

// listed writes an array as a list.
func (t *tableWriter) listed(each int, value func(i, j int) Value) {
	t.list(len(t.queries) * each)
	for i := range t.queries {
		for j := range each {
			t.next(i + j)
			if v := value(i, j); v.IsZero() {
				t.null()
			} else {
				t.value(v)
			}
		}
	}
	t.endList()
}
