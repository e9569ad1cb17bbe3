package wire

import (
	"math"
	"slices"

	"github.com/geniemq/geniemq/wire/fields"
)

// table is a message of many queries of one shape, {"table":{...}}: what all of them have is written once, and of everything else there is an
// array with an element, or a few, for each query:
//
//	{"table":{"rows":2,"query":{"k":5},"id":["a","b"],"row":[{"attrs":["age","size"],"value":{"u8":"HiAjJQ=="}}]}}
//	{"queries":[{"id":"a","k":5,"row":{"age":30,"size":32}},{"id":"b","k":5,"row":{"age":35,"size":37}}]}
//
// Both are the same message, to the byte of the answers.
//
// # What is promised
//
//   - A table is read once, by one decoder, and is not changed afterwards: any number of decoders make queries of its rows, in any order, each in
//     memory of its own (see [tableRows]). Its arrays are parts of the body; only lists are kept as values.
//   - What is wrong with a table (a field that is not known, an array of another length) is wrong with the message. What is wrong with a value is
//     wrong with its query alone. A query is looked at by the same [Query.Validate], whatever form it came in.
//   - A table is bounded as a list of its queries would be: its size, which is that of everything but its arrays for each query and of the arrays once, is at
//     most [Limits.Body]. So all that is said of the memory of messages holds for tables, with their size in place of the body's. What is written
//     once cannot become more than a body of the largest size could say one by one, and nothing is made of a table before that is known.
type table struct {
	rows   int
	query  Query // what all have
	groups []group

	id, k, text, vector, point, radius array

	items  int // of a query, and the elements of lists
	arrays int // bytes of arrays
	size   int // as a list, about
	counts int // conditions of a query that count: of its row and items, and the words of its text
}

// group is conditions that each query has with values of its own.
type group struct {
	list  conditionList
	conds []Condition // without values
	ends  [maxField + 1]array
}

// conditionList is one of the lists of conditions of a query.
type conditionList uint8

const (
	rowList conditionList = iota
	itemsList
	filterList
	excludeList
	conditionLists
)

var conditionListNames = [...]string{rowList: "row", itemsList: "items", filterList: "filter", excludeList: "exclude"}

// conditions are those of a list.
func (q *Query) conditions(l conditionList) *[]Condition {
	return [...]*[]Condition{rowList: &q.Row, itemsList: &q.Items, filterList: &q.Filter, excludeList: &q.Exclude}[l]
}

// array has as many elements for each query as belong together. The zero value is none.
type array struct {
	holds  element
	packed string
	list   []Value // of listed elements
	sparse bool    // some queries have no such element
}

// element is what an array holds: those of [fields.Elements] have constants here, in its order.
type element uint8

const (
	u8 element = iota
	u16
	u32
	i32
	f32
	f64
	listed
)

var elementNames = fields.Elements.Names()

var elementWidths = [...]int{u8: 1, u16: 2, u32: 4, i32: 4, f32: 4, f64: 8}

func (a *array) given() bool { return a.packed != "" || a.list != nil }

func (a *array) len() int {
	if a.list != nil {
		return len(a.list)
	}
	return len(a.packed) / elementWidths[a.holds]
}

// number is the i-th element, NaN if there is none.
func (a *array) number(i int) float64 {
	switch s := a.packed; a.holds {
	case u8:
		return float64(s[i])
	case u16:
		return float64(uint16(s[2*i]) | uint16(s[2*i+1])<<8)
	case u32:
		return float64(uint32At(s, i))
	case i32:
		return float64(int32(uint32At(s, i)))
	case f32:
		return float64(math.Float32frombits(uint32At(s, i)))
	case f64:
		return math.Float64frombits(uint64(uint32At(s, 2*i)) | uint64(uint32At(s, 2*i+1))<<32)
	}
	if v := &a.list[i]; v.Kind == NumberValue {
		return v.Number
	}
	return math.NaN()
}

func uint32At(s string, i int) uint32 {
	b := s[4*i : 4*i+4]
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

// value is the i-th element, zero if there is none.
func (a *array) value(i int) Value {
	if a.list != nil {
		return a.list[i]
	}
	v := a.number(i)
	if v != v {
		return Value{}
	}
	return Number(v)
}

// readTable decodes the value of "table".
func (d *queryDecoder) readTable() (*table, *Error) {
	if err := open(d.r, objectKind, "an object, a table of queries"); err != nil {
		return nil, err
	}
	t := new(table)
	var seen field
	for d.r.more() {
		name, err := d.r.str()
		if err != nil {
			return nil, err.in("the name of a field")
		}
		f, err := once(&seen, &fields.Table, name)
		if err != nil {
			return nil, err
		}
		if err := d.tableField(t, f); err != nil {
			return nil, err.in(".%s", name)
		}
	}
	return t, closed(d.r)
}

func (d *queryDecoder) tableField(t *table, f *fields.Field) (err *Error) {
	switch f.Holds {
	case fields.Integer:
		if t.rows, err = integer[int](d.r, f); err == nil {
			err = d.limits.checkQueries(t.rows)
		}
	case fields.Common:
		if err = open(d.r, objectKind, "an object, what all queries have"); err == nil {
			err = d.query(&t.query, nil)
			t.items += d.items
		}
	case fields.Groups:
		err = d.groups(t, conditionList(slices.Index(conditionListNames[:], f.Name)))
	case fields.Array:
		to, read := t.array(f.Name), d.numberElement
		switch f.Name {
		case "id":
			read = d.idElement
		case "text":
			read = d.textElement
		}
		err = d.array(t, to, read)
		if err == nil && f.Name == "text" && to.list == nil {
			err = badRequest("must be a list of strings")
		}
		if err == nil && f.Name == "id" && to.list == nil && to.holds > i32 {
			err = badRequest("must be integers or a list, not floats")
		}
	}
	return err
}

// array is where the array of a field goes.
func (t *table) array(name string) *array {
	switch name {
	case "id":
		return &t.id
	case "k":
		return &t.k
	case "text":
		return &t.text
	case "vector":
		return &t.vector
	case "point":
		return &t.point
	}
	return &t.radius
}

// addItem counts an element that is kept as a value, before it is read.
func (t *table) addItem(l *Limits) *Error {
	t.items++
	return l.checkItems(t.items)
}

// groups decodes a list of groups of conditions.
func (d *queryDecoder) groups(t *table, list conditionList) *Error {
	if err := open(d.r, arrayKind, "a list of groups of conditions"); err != nil {
		return err
	}
	for i := 0; d.r.more(); i++ {
		if err := open(d.r, objectKind, "an object, conditions on some attributes"); err != nil {
			return err.in("[%d]", i)
		}
		g := group{list: list}
		if err := d.group(t, &g); err != nil {
			return err.in("[%d]", i)
		}
		t.groups = append(t.groups, g)
		if list == rowList || list == itemsList {
			t.counts += len(g.conds)
		}
	}
	return closed(d.r)
}

func (d *queryDecoder) group(t *table, g *group) *Error {
	var seen field
	var like Condition
	for d.r.more() {
		name, err := d.r.str()
		if err != nil {
			return err.in("the name of a field")
		}
		f, err := once(&seen, &fields.Group, name)
		if err != nil {
			return err
		}
		switch f.Holds {
		case fields.Texts:
			err = d.attrs(t, g)
		case fields.Unit:
			like.Bucket, err = true, d.unit()
		case fields.Integer:
			like.Weight, err = d.weight(d.r)
		case fields.Array:
			err = d.array(t, &g.ends[conditionFieldOf(name)], d.value)
		}
		if err != nil {
			return err.in(".%s", name)
		}
	}
	for i := range g.conds {
		g.conds[i].Bucket, g.conds[i].Weight = like.Bucket, like.Weight
	}
	if len(g.conds) == 0 {
		return badRequest(".attrs: is missing or empty: name the attributes that the conditions are about")
	}
	return closed(d.r)
}

// attrs decodes the attributes of a group.
func (d *queryDecoder) attrs(t *table, g *group) *Error {
	if err := open(d.r, arrayKind, "a list of attributes"); err != nil {
		return err
	}
	conds := d.conds.start()
	for d.r.more() {
		if err := t.addItem(d.limits); err != nil {
			return err
		}
		attr, err := d.str()
		if err != nil {
			return err.in("[%d]", len(conds))
		}
		conds = append(conds, Condition{Attr: attr})
	}
	g.conds = d.conds.keep(conds)
	return closed(d.r)
}

// array decodes a list of elements, each of which is read by read and may be null, or an object of packed ones.
func (d *queryDecoder) array(t *table, to *array, read func() (Value, *Error)) *Error {
	begin := d.r.offset()
	defer func() { t.arrays += d.r.offset() - begin }()
	if d.r.peek() == objectKind {
		return d.packedArray(to)
	}
	if err := open(d.r, arrayKind, "a list, or an object of packed elements"); err != nil {
		return err
	}
	*to = array{holds: listed}
	list := d.vals.start()
	for d.r.more() {
		if err := t.addItem(d.limits); err != nil {
			return err
		}
		var v Value
		if d.r.peek() == nullKind {
			d.r.skipScalar()
			to.sparse = true
		} else {
			var err *Error
			if v, err = read(); err != nil {
				return err.in("[%d]", len(list))
			}
		}
		list = append(list, v)
	}
	if to.list = d.vals.keep(list); to.list == nil {
		to.list = []Value{}
	}
	return closed(d.r)
}

func (d *queryDecoder) packedArray(to *array) *Error {
	if err := d.r.enter(); err != nil {
		return err
	}
	if !d.r.more() {
		return badRequest("is empty: name what its elements are, such as u8")
	}
	name, err := d.r.str()
	if err != nil {
		return err.in("the name of a field")
	}
	var seen field
	if _, err := once(&seen, &fields.Elements, name); err != nil {
		return err
	}
	to.holds = element(slices.Index(elementNames, name))
	if to.packed, err = d.r.packed(); err != nil {
		return err.in(".%s", name)
	}
	if width := elementWidths[to.holds]; to.packed == "" || len(to.packed)%width != 0 {
		return badRequest(".%s: has %d bytes: its elements have %d each", name, len(to.packed), width)
	}
	if to.holds >= f32 {
		for i := range to.len() {
			if v := to.number(i); v != v {
				to.sparse = true
				break
			}
		}
	}
	if d.r.more() {
		return badRequest("has a second field: an array holds elements of one type")
	}
	return closed(d.r)
}

func (d *queryDecoder) numberElement() (Value, *Error) {
	v, err := d.r.number()
	return Number(v), err
}

func (d *queryDecoder) textElement() (Value, *Error) {
	text, err := d.str()
	return String(text), err
}

func (d *queryDecoder) idElement() (Value, *Error) {
	id, err := d.id()
	return String(id), err
}

// fit checks that the parts of a table fit each other and the limits. body is how many bytes its message has.
func (t *table) fit(l *Limits, body int) *Error {
	if t.rows == 0 {
		return badRequest("table.rows is missing: say how many queries there are")
	}
	for _, of := range [...]struct {
		name  string
		array *array
		each  int
		twice bool
	}{{"id", &t.id, 1, t.query.ID != ""}, {"k", &t.k, 1, t.query.K != 0 || t.query.CountOnly}, {"text", &t.text, 1, t.query.Text != ""},
		{"vector", &t.vector, t.dimension(), t.query.Vector != nil}, {"point", &t.point, 2, t.query.Point != nil}, {"radius", &t.radius, 1, t.query.HasRadius}} {
		if !of.array.given() {
			continue
		}
		if err := t.fits(of.array, of.each); err != nil {
			return err.in("table.%s", of.name)
		}
		if of.twice {
			return badRequest("table.%s: all queries have one by table.query: leave one of both out", of.name)
		}
	}
	for i := range t.groups {
		g := &t.groups[i]
		if !g.ends[valueField].given() && !g.ends[minField].given() && !g.ends[maxField].given() {
			return badRequest("table.%s: the conditions on %q have no value, min or max", conditionListNames[g.list], clip(g.conds[0].Attr))
		}
		for end := range g.ends {
			if a := &g.ends[end]; a.given() {
				if err := t.fits(a, len(g.conds)); err != nil {
					return err.in("table.%s: the conditions on %q, %s", conditionListNames[g.list], clip(g.conds[0].Attr), conditionNames[end])
				}
			}
		}
	}
	for l, name := range conditionListNames {
		if list := *t.query.conditions(conditionList(l)); list != nil && len(list) == 0 {
			return badRequest("table.query.%s is empty: leave it out", name)
		}
	}
	t.counts += len(t.query.Row) + len(t.query.Items) + t.words()
	if err := l.checkItems(max(t.items, t.dimension())); err != nil {
		return err
	}
	if t.size = t.rows*(body-t.arrays) + t.arrays; t.size > l.Body {
		return Errorf(TooLarge, "the table has %d queries and, but for its arrays, %d bytes that each of them would have to say: that is %d bytes together, the limit is %d: send fewer queries per message",
			t.rows, body-t.arrays, t.size, l.Body)
	}
	return nil
}

// words is about how many words the text of a query has.
func (t *table) words() int {
	bytes := len(t.query.Text) * t.rows
	for i := range t.text.list {
		bytes += len(t.text.list[i].String)
	}
	return (bytes/t.rows + wordBytes - 1) / wordBytes
}

// wordBytes is about how many bytes a word has, with what follows it.
const wordBytes = 5

// dimension is that of the vectors.
func (t *table) dimension() int {
	if !t.vector.given() {
		return 0
	}
	return max(1, t.vector.len()/t.rows)
}

// fits checks that an array has so many elements for each query.
func (t *table) fits(a *array, each int) *Error {
	if n := a.len(); n != t.rows*each {
		return badRequest("%d elements for %d queries: each has %d", n, t.rows, each)
	}
	return nil
}
