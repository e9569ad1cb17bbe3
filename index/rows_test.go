package index_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/objects"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

const tableSchema = `
name: table
kind: rows
columns:
  - {name: age, type: number, buckets: 10}
  - {name: size, type: number, edges: exact}
  - {name: sex, type: category}
  - {name: tags, type: category, split: ","}
  - {name: note, type: payload}
  - {name: junk, type: skip}
  - {name: empty, type: number}
`

// tableIndex has ages 0 to 100 in steps of 10 (buckets of width 10, the last one closed), the same sizes, and two sexes.
func tableIndex(t *testing.T) (*index.Index, *index.Queries) {
	b := newBuilder(t, parseSchema(t, tableSchema))
	for i := range 11 {
		v := strconv.Itoa(10 * i)
		cells := []schema.Cell{
			{Values: []string{v}}, {Values: []string{v}}, {Values: []string{" " + []string{"Female", "Male"}[i%2] + " "}},
			{Values: []string{"all", "5", "true", "t" + v, "all"}}, {Values: []string{"n" + v}}, {}, {},
		}
		b.add(&schema.Record{Line: int64(i + 1), Cells: cells})
	}
	return b.open()
}

func TestConditions(t *testing.T) {
	x, q := tableIndex(t)
	inf := math.Inf(1)
	all := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for _, c := range []struct {
		condition column.Condition
		want      []int // ids that match; repeats count
	}{
		{column.Condition{Attr: "age", Value: number(37)}, []int{3}},
		{column.Condition{Attr: "age", Value: number(40)}, []int{4}}, // an edge belongs to the bucket above
		{column.Condition{Attr: "age", Value: number(100)}, []int{9, 10}},
		{column.Condition{Attr: "age", Value: number(95)}, []int{9, 10}},
		{column.Condition{Attr: "age", Value: number(101)}, nil},
		{column.Condition{Attr: "age", Value: number(-1)}, nil},
		{column.Condition{Attr: "age", Value: number(inf)}, nil},
		{column.Condition{Attr: "age", Min: number(15), Max: number(39.9)}, []int{1, 2, 3}},
		{column.Condition{Attr: "age", Min: number(15), Max: number(40)}, []int{1, 2, 3, 4}},
		{column.Condition{Attr: "age", Min: number(75)}, []int{7, 8, 9, 10}},
		{column.Condition{Attr: "age", Max: number(math.Copysign(0, -1))}, []int{0}},
		{column.Condition{Attr: "age", Min: number(-inf), Max: number(inf)}, all},
		{column.Condition{Attr: "age", Min: number(-9), Max: number(1e300)}, all},
		{column.Condition{Attr: "age", Min: number(100.5)}, nil},
		{column.Condition{Attr: "age", Max: number(-0.5)}, nil},
		{column.Condition{Attr: "age", Min: number(inf)}, nil},
		{column.Condition{Attr: "age", In: []column.Value{*number(51), *number(5), *number(59), *number(7), *number(-1)}}, []int{0, 5}},
		{column.Condition{Attr: "age", In: []column.Value{*number(20), *number(10), *number(0)}}, []int{0, 1, 2}},
		{column.Condition{Attr: "age", Value: number(3), Bucket: true}, []int{3}},
		{column.Condition{Attr: "age", Value: number(9), Bucket: true}, []int{9, 10}},
		{column.Condition{Attr: "age", Value: number(10), Bucket: true}, nil},
		{column.Condition{Attr: "age", Value: number(-1), Bucket: true}, nil},
		{column.Condition{Attr: "age", Min: number(-50), Max: number(2), Bucket: true}, []int{0, 1, 2}},
		{column.Condition{Attr: "age", Min: number(8), Max: number(58), Bucket: true}, []int{8, 9, 10}},
		{column.Condition{Attr: "age", Min: number(8), Bucket: true}, []int{8, 9, 10}},
		{column.Condition{Attr: "age", Max: number(-1), Bucket: true}, nil},
		{column.Condition{Attr: "age", In: []column.Value{*number(1), *number(0), *number(1)}, Bucket: true}, []int{0, 1}},

		{column.Condition{Attr: "size", Value: number(30)}, []int{3}},
		{column.Condition{Attr: "size", Value: number(31)}, nil},
		{column.Condition{Attr: "size", Min: number(31), Max: number(39)}, nil},
		{column.Condition{Attr: "size", Min: number(30), Max: number(59)}, []int{3, 4, 5}},
		{column.Condition{Attr: "size", Min: number(95)}, []int{10}},
		{column.Condition{Attr: "size", Max: number(10)}, []int{0, 1}},
		{column.Condition{Attr: "size", In: []column.Value{*number(35), *number(100), *number(0)}}, []int{0, 10}},
		{column.Condition{Attr: "size", Min: number(2), Max: number(3), Bucket: true}, []int{2, 3}},

		{column.Condition{Attr: "sex", Value: text("Male")}, []int{1, 3, 5, 7, 9}},
		{column.Condition{Attr: "sex", Value: text(" Male ")}, []int{1, 3, 5, 7, 9}},
		{column.Condition{Attr: "sex", Value: text("male")}, nil},
		{column.Condition{Attr: "sex", Value: text("")}, nil},
		{column.Condition{Attr: "sex", Value: number(1)}, nil}, // the unknown category "1", not a fault
		{column.Condition{Attr: "sex", In: []column.Value{*text("Male"), *text("?"), *text("Female"), *text("Male")}}, all},
		{column.Condition{Attr: "sex", Min: text("G")}, []int{1, 3, 5, 7, 9}},
		{column.Condition{Attr: "sex", Max: text("Female")}, []int{0, 2, 4, 6, 8, 10}},
		{column.Condition{Attr: "sex", Min: text("Female"), Max: text("Male")}, all},
		{column.Condition{Attr: "sex", Min: text("N")}, nil},
		{column.Condition{Attr: "tags", Value: text("all")}, append(slices.Clone(all), all...)},
		{column.Condition{Attr: "tags", Value: number(5)}, all},
		{column.Condition{Attr: "tags", Value: number(5.5)}, nil},
		{column.Condition{Attr: "tags", In: []column.Value{column.BoolValue(true), column.BoolValue(false)}}, all},
		{column.Condition{Attr: "tags", Min: text("t10"), Max: text("t2")}, []int{1, 10}}, // and t100

		{column.Condition{Attr: "empty", Value: number(0)}, nil},
		{column.Condition{Attr: "empty", Min: number(0)}, nil},
		{column.Condition{Attr: "empty", Min: number(0), Bucket: true}, nil},
	} {
		for _, weight := range []uint32{0, 1, 3, postings.MaxWeight} {
			c.condition.Weight = weight
			var query postings.MatchQuery
			if err := q.Conditions(&query, []column.Condition{c.condition}); err != nil {
				t.Errorf("%s: %v", describe(c.condition), err)
				break
			}
			checkQuery(t, x, &query)
			want := make([]uint64, x.Objects())
			for _, id := range c.want {
				want[id] += uint64(max(weight, 1))
			}
			if got := matchCounts(x, &query); !slices.Equal(got, want) {
				t.Errorf("%s: counts %v, want %v", describe(c.condition), got, want)
			}
		}
	}
}

func describe(c column.Condition) string {
	s := fmt.Sprintf("%s weight %d bucket %v in %v", c.Attr, c.Weight, c.Bucket, c.In)
	for _, end := range []struct {
		name  string
		value *column.Value
	}{{"value", c.Value}, {"min", c.Min}, {"max", c.Max}} {
		if end.value != nil {
			s += fmt.Sprintf(" %s %v", end.name, *end.value)
		}
	}
	return s
}

func TestConditionErrors(t *testing.T) {
	_, q := tableIndex(t)
	null, yes := column.Value{}, column.BoolValue(true)
	for _, c := range []struct {
		condition column.Condition
		want      string
	}{
		{column.Condition{Attr: "agee", Value: number(1)}, `attribute "agee" is not in index table (did you mean age?)`},
		{column.Condition{Attr: "AGE", Value: number(1)}, `(did you mean age?)`},
		{column.Condition{Attr: "", Value: number(1)}, `attribute "" is not in index table (it has age, size, sex, tags, empty)`},
		{column.Condition{Attr: strings.Repeat("x", 1<<16), Value: number(1)}, `it has age, size`},
		{column.Condition{Attr: "note", Value: text("x")}, `column "note" of index table is stored but not indexed`},
		{column.Condition{Attr: "junk", Value: text("x")}, `column "junk" of index table is not indexed (type skip)`},
		{column.Condition{Attr: "age"}, `attribute "age" has nothing to match: give a value, min and max (or one of them), or a list in`},
		{column.Condition{Attr: "age", In: []column.Value{}}, `nothing to match`},
		{column.Condition{Attr: "age", Value: number(1), Min: number(1)}, `mixes a value, a range and a list`},
		{column.Condition{Attr: "age", Value: number(1), In: []column.Value{*number(1)}}, `mixes`},
		{column.Condition{Attr: "age", Value: number(1), In: []column.Value{}}, ``},
		{column.Condition{Attr: "age", Max: number(1), In: []column.Value{*number(1)}}, `mixes`},
		{column.Condition{Attr: "age", Value: number(1), Weight: postings.MaxWeight + 1}, `weight 65536 of attribute "age" is too large: weights are 1 to 65535`},
		{column.Condition{Attr: "age", Value: text("39")}, `attribute "age" is a number column: write the number 39 without quotes`},
		{column.Condition{Attr: "age", Value: text("3.9e1")}, `write the number 39 without quotes`},
		{column.Condition{Attr: "age", Value: text("old")}, `write a number, such as 0, not the string "old"`},
		{column.Condition{Attr: "age", Value: &yes}, `not true or false`},
		{column.Condition{Attr: "age", Value: &null}, `attribute "age": null is not a value`},
		{column.Condition{Attr: "age", Min: &null}, `null`},
		{column.Condition{Attr: "sex", Value: &null}, `null`},
		{column.Condition{Attr: "sex", In: []column.Value{*text("a"), null}}, `null`},
		{column.Condition{Attr: "sex", Max: &null}, `null`},
		{column.Condition{Attr: "age", Value: number(math.NaN())}, `NaN`},
		{column.Condition{Attr: "sex", Value: number(math.NaN())}, `NaN`},
		{column.Condition{Attr: "age", Max: number(math.NaN())}, `NaN`},
		{column.Condition{Attr: "age", Min: number(2), Max: number(1)}, `attribute "age": min 2 is greater than max 1`},
		{column.Condition{Attr: "empty", Min: number(2), Max: number(1)}, `min 2 is greater`},
		{column.Condition{Attr: "age", Min: number(2), Max: number(1), Bucket: true}, `min 2 is greater`},
		{column.Condition{Attr: "sex", Min: text("b"), Max: text("a")}, `min "b" comes after max "a" in the order of text`},
		{column.Condition{Attr: "sex", Min: number(9), Max: number(10)}, `only number columns compare by size`},
		{column.Condition{Attr: "age", Value: number(2.5), Bucket: true}, `2.5 is not a bucket number: write an integer from 0 to 9`},
		{column.Condition{Attr: "age", Min: number(math.NaN()), Bucket: true}, `NaN`},
		{column.Condition{Attr: "age", Value: text("2"), Bucket: true}, `write the number 2 without quotes`},
		{column.Condition{Attr: "sex", Value: text("2"), Bucket: true}, `"sex" is not a number column and has no buckets`},
	} {
		var query postings.MatchQuery
		good := column.Condition{Attr: "age", Value: number(1)}
		err := q.Conditions(&query, []column.Condition{good, c.condition})
		wantRefusal(t, err, c.want)
		if err != nil && len(err.Error()) > 500 {
			t.Errorf("error of %d bytes", len(err.Error()))
		}
		// A query that failed leaves nothing behind for the next.
		if err := q.Conditions(&query, []column.Condition{good}); err != nil || len(query.Items) != 1 {
			t.Errorf("after an error: %v, %v", query, err)
		}
	}
	var query postings.MatchQuery
	wantRefusal(t, q.Conditions(&query, nil), "no conditions", "age, size, sex, tags, empty")
}

func TestRowRecords(t *testing.T) {
	strict := strings.NewReplacer("kind: rows", "kind: rows\nkey: id", "type: number", "type: number, invalid: error", "type: category", "type: category, invalid: error")
	b := newBuilder(t, parseSchema(t, strict.Replace(tableSchema)))
	cells := func(column int, cell schema.Cell) []schema.Cell {
		all := make([]schema.Cell, 7)
		all[0] = schema.Cell{Values: []string{"1"}}
		all[2] = schema.Cell{Values: []string{"x"}}
		all[column] = cell
		return all
	}
	for i, c := range []struct {
		column int
		value  string
		want   string
	}{
		{0, "old", `line 1: column age: "old" is not a finite decimal number`},
		{0, "NaN", "not a finite"}, {0, "inf", "not a finite"}, {0, "1e999", "not a finite"}, {0, "0x1p4", "not a finite"},
		{0, "", "missing"}, {0, "1,5", "not a finite"}, {1, "$399.00", `column size: "$399.00"`}, {0, "1_000", "not a finite"},
		{2, "M\xfcnchen", "not valid UTF-8"}, {4, "M\xfcnchen", "column note: cannot be stored as JSON"},
	} {
		err := b.objects.Add(&schema.Record{Line: int64(i + 1), Cells: cells(c.column, schema.Cell{Values: []string{c.value}})})
		var bad *index.RecordError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.value, err)
		}
	}
	b.add(&schema.Record{Key: "a", Cells: cells(0, schema.Cell{Values: []string{" +1.5e1 ", "-0", ".5"}})})
	b.add(&schema.Record{Key: "b", Cells: cells(4, schema.Cell{JSON: json.RawMessage("[1, {\"x\": \"<\"} ]")})})
	var duplicate *objects.DuplicateKeyError
	var bad *index.RecordError
	err := b.objects.Add(&schema.Record{Line: 9, Key: "a", Cells: cells(0, schema.Cell{})})
	if !errors.As(err, &bad) || !errors.As(err, &duplicate) || bad.Line != 9 || bad.Column != "id" {
		t.Errorf("a key twice: %v", err)
	}
	if err := b.objects.Add(&schema.Record{Cells: cells(4, schema.Cell{JSON: json.RawMessage("{")})}); !errors.As(err, &bad) {
		t.Errorf("broken JSON: %v", err)
	}
	b.add(&schema.Record{Key: "c", Cells: cells(4, schema.Cell{Values: []string{"say \"<hi>\"\n"}})})
	x, _ := b.open()
	if err := x.Validate(); err != nil {
		t.Error(err)
	}
	// What the bad records added before their fault is gone.
	attrs := x.Attributes()
	if x.Objects() != 3 || attrs[0].Postings != 5 || attrs[1].Postings != 0 || attrs[2].Postings != 3 {
		t.Errorf("%d objects; postings %d, %d, %d", x.Objects(), attrs[0].Postings, attrs[1].Postings, attrs[2].Postings)
	}
	for id, want := range []string{``, `{"note":[1,{"x":"<"}]}`, `{"note":"say \"<hi>\"\n"}`} {
		if got := string(x.Payload(uint32(id))); got != want {
			t.Errorf("payload %d: %s, want %s", id, got, want)
		}
	}
}

// randomTable holds raw values of random columns and matches conditions on them by the definitions of design section 1,
// without any index: buckets are counted edge by edge, ranges and sets compared value by value.
type randomTable struct {
	random  *rand.Rand
	columns []randomColumn
	objects int
}

type randomColumn struct {
	name    string
	number  bool
	numbers [][]float64 // by object
	texts   [][]string
	attr    *postings.Attribute
}

func newRandomTable(random *rand.Rand) (*randomTable, string) {
	r := &randomTable{random: random, objects: 1 + random.IntN(200)}
	from := "name: random\nkind: rows\ncolumns:\n"
	for i := range 1 + random.IntN(6) {
		c := randomColumn{name: fmt.Sprintf("c%d", i), number: random.IntN(3) > 0}
		spread := []float64{3, 50, 1e6}[random.IntN(3)]
		perObject := 1 + random.IntN(3)*random.IntN(2)
		for range r.objects {
			var numbers []float64
			var texts []string
			for range random.IntN(perObject + 1) {
				v := math.Round(random.NormFloat64()*spread) / []float64{1, 1, 8}[random.IntN(3)]
				numbers = append(numbers, v)
				texts = append(texts, r.word())
			}
			c.numbers, c.texts = append(c.numbers, numbers), append(c.texts, texts)
		}
		if c.number {
			edges := []string{"equal-width", "equi-depth", "exact"}[random.IntN(3)]
			from += fmt.Sprintf("  - {name: %s, type: number, edges: %s", c.name, edges)
			if edges != "exact" {
				from += fmt.Sprintf(", buckets: %d", 1+random.IntN(40))
			}
			from += "}\n"
		} else {
			from += fmt.Sprintf("  - {name: %s, type: category}\n", c.name)
		}
		r.columns = append(r.columns, c)
	}
	return r, from
}

func (r *randomTable) word() string {
	return []string{"a", "b", "ab", "ä", "5", "-1", "true", "z"}[r.random.IntN(8)] + strings.Repeat("x", r.random.IntN(2))
}

// near returns a number at, near or far from the values of a column.
func (r *randomTable) near(c *randomColumn) float64 {
	if r.random.IntN(8) == 0 {
		return []float64{math.Inf(1), math.Inf(-1), 1e9, -1e9, 0}[r.random.IntN(5)]
	}
	if len(c.attr.Edges) > 0 && r.random.IntN(3) == 0 {
		return c.attr.Edges[r.random.IntN(len(c.attr.Edges))]
	}
	v := 0.0
	if values := c.numbers[r.random.IntN(r.objects)]; len(values) > 0 {
		v = values[0]
	}
	return v + float64(r.random.IntN(5)-2)*r.random.Float64()
}

func (r *randomTable) condition() (column.Condition, int) {
	at := r.random.IntN(len(r.columns))
	c := &r.columns[at]
	condition := column.Condition{Attr: c.name, Weight: uint32(r.random.IntN(4))}
	value := func() column.Value {
		if !c.number {
			if r.random.IntN(6) == 0 {
				return column.NumberValue(float64(r.random.IntN(7) - 1))
			}
			return column.StringValue(r.word())
		}
		if condition.Bucket {
			return column.NumberValue(float64(r.random.IntN(50) - 5))
		}
		return column.NumberValue(r.near(c))
	}
	condition.Bucket = c.number && r.random.IntN(4) == 0
	switch form := r.random.IntN(3); form {
	case 0:
		v := value()
		condition.Value = &v
	case 1:
		low, high := value(), value()
		if c.number && low.Number > high.Number || !c.number && plain(low) > plain(high) {
			low, high = high, low
		}
		open := r.random.IntN(4)
		if open != 0 {
			condition.Min = &low
		}
		if open != 1 {
			condition.Max = &high
		}
	case 2:
		for range 1 + r.random.IntN(6) {
			condition.In = append(condition.In, value())
		}
	}
	return condition, at
}

// plain is the text that a value stands for in a category column.
func plain(v column.Value) string {
	if v.Kind == column.NumberKind {
		return strconv.FormatFloat(v.Number, 'f', -1, 64)
	}
	return v.String
}

// count is how often the values of an object fulfil a condition.
func (r *randomTable) count(condition *column.Condition, c *randomColumn, object int) (n uint64) {
	type interval struct{ low, high *column.Value }
	var wanted []interval
	switch {
	case condition.Value != nil:
		wanted = []interval{{condition.Value, condition.Value}}
	case condition.In != nil:
		for i := range condition.In {
			wanted = append(wanted, interval{&condition.In[i], &condition.In[i]})
		}
	default:
		wanted = []interval{{condition.Min, condition.Max}}
	}
	if !c.number {
		for _, text := range c.texts[object] {
			for _, w := range wanted {
				if (w.low == nil || text >= plain(*w.low)) && (w.high == nil || text <= plain(*w.high)) {
					n++
					break // a keyword is in the item or not, however many values ask for it
				}
			}
		}
		return n
	}
	for _, v := range c.numbers[object] {
		for _, w := range wanted {
			low, high := math.Inf(-1), math.Inf(1)
			if w.low != nil {
				low = w.low.Number
			}
			if w.high != nil {
				high = w.high.Number
			}
			var in bool
			switch {
			case condition.Bucket:
				b := c.bucket(v)
				in = b >= low && b <= high
			case c.attr.Exact:
				in = v >= low && v <= high
			default:
				in = high >= c.attr.Min && low <= c.attr.Max && c.bucket(v) >= c.bucket(low) && c.bucket(v) <= c.bucket(high)
			}
			if in {
				n++
				break
			}
		}
	}
	return n
}

func (c *randomColumn) bucket(v float64) float64 {
	edges := c.attr.Edges
	if c.attr.Exact {
		edges = c.attr.Values[1:] // the i-th smallest value is bucket i
	}
	n := 0.0
	for _, edge := range edges {
		if edge <= v {
			n++
		}
	}
	return n
}

func TestRandomConditions(t *testing.T) {
	seed := seeded.Seed(t)
	random := rand.New(rand.NewPCG(seed, 1))
	for table := range raced.Of(150, 15) {
		r, schemaText := newRandomTable(random)
		b := newBuilder(t, parseSchema(t, schemaText))
		for object := range r.objects {
			rec := schema.Record{Line: int64(object), Cells: make([]schema.Cell, len(r.columns))}
			for i, c := range r.columns {
				if !c.number {
					rec.Cells[i].Values = c.texts[object]
					continue
				}
				for _, v := range c.numbers[object] {
					rec.Cells[i].Values = append(rec.Cells[i].Values, strconv.FormatFloat(v, 'g', -1, 64))
				}
			}
			b.add(&rec)
		}
		x, q := b.open()
		for i := range r.columns {
			r.columns[i].attr = &x.Attributes()[i]
		}
		var query postings.MatchQuery
		for range 40 {
			conditions := make([]column.Condition, 1+random.IntN(5))
			want := make([]uint64, r.objects)
			for i := range conditions {
				var at int
				conditions[i], at = r.condition()
				for object := range want {
					want[object] += uint64(max(conditions[i].Weight, 1)) * r.count(&conditions[i], &r.columns[at], object)
				}
			}
			if err := q.Conditions(&query, conditions); err != nil {
				t.Fatalf("seed %d, table %d: %v", seed, table, err)
			}
			checkQuery(t, x, &query)
			got := matchCounts(x, &query)
			bound := x.CountBound(&query)
			for object := range want {
				if got[object] != want[object] || want[object] > bound {
					t.Fatalf("seed %d, table %d, object %d: count %d, want %d, bound %d\n%s\n%v",
						seed, table, object, got[object], want[object], bound, schemaText, conditions)
				}
			}
		}
	}
}

// Exact columns of consecutive integers, and those that nearly are, find values and ranges as looking at every value does.
func TestExactNumbers(t *testing.T) {
	random := seeded.Rand(t)
	for name, values := range map[string][]float64{
		"from 0": {0, 1, 2, 3, 4}, "from -2": {-2, -1, 0, 1, 2}, "one": {7}, "gap": {0, 1, 2, 4}, "moved": {0, 1, 1.5, 3},
		"halves": {0.5, 1.5, 2.5}, "large": {1<<53 - 1, 1 << 53}, "too large": {1 << 53, 1<<53 + 2},
	} {
		b := newBuilder(t, parseSchema(t, "{name: t, kind: rows, columns: [{name: n, type: number, edges: exact}]}"))
		for i, v := range values {
			b.add(&schema.Record{Line: int64(i + 1), Cells: []schema.Cell{{Values: []string{strconv.FormatFloat(v, 'f', -1, 64)}}}})
		}
		_, q := b.open()
		ends := []float64{math.Inf(-1), math.Inf(1), math.Copysign(0, -1), math.SmallestNonzeroFloat64, -1e-17}
		for _, v := range values {
			ends = append(ends, v, math.Nextafter(v, -9e99), math.Nextafter(v, 9e99), v-1, v+1, v+0.5)
		}
		for range 2000 {
			low, high := ends[random.IntN(len(ends))], ends[random.IntN(len(ends))]
			c := column.Condition{Attr: "n", Min: number(low), Max: number(high)}
			if low == high {
				c = column.Condition{Attr: "n", Value: number(low)}
			}
			var query postings.MatchQuery
			err := q.Conditions(&query, []column.Condition{c})
			if (err != nil) != (low > high) {
				t.Fatalf("%s: %v to %v: %v", name, low, high, err)
			}
			if err != nil {
				continue
			}
			for keyword, v := range values {
				in := false
				for _, s := range query.Spans {
					in = in || s.Lo <= uint32(keyword) && uint32(keyword) < s.Hi
				}
				if in != (low <= v && v <= high) {
					t.Fatalf("%s: %v to %v is %v", name, low, high, query.Spans)
				}
			}
			for _, s := range query.Spans {
				if s.Hi > uint32(len(values)) {
					t.Fatalf("%s: %v to %v is %v", name, low, high, query.Spans)
				}
			}
		}
	}
}

// Attributes are found whatever the queries before named, in whatever order.
func TestOrderOfConditions(t *testing.T) {
	_, q := tableIndex(t)
	random := seeded.Rand(t)
	names := []string{"age", "size", "sex", "tags"}
	for range 300 {
		var conditions []column.Condition
		var want []uint32
		for range 1 + random.IntN(6) {
			attr := random.IntN(len(names))
			c := column.Condition{Attr: names[attr], Value: number(20)}
			conditions, want = append(conditions, c), append(want, uint32(attr))
		}
		var query postings.MatchQuery
		if random.IntN(5) == 0 {
			conditions[random.IntN(len(conditions))].Attr = "none"
			if err := q.Conditions(&query, conditions); err == nil {
				t.Fatalf("no error for %v", conditions)
			}
			continue
		}
		if err := q.Conditions(&query, conditions); err != nil {
			t.Fatal(err)
		}
		for i, item := range query.Items {
			if item.Attr != want[i] {
				t.Fatalf("item %d has attribute %d, not %d", i, item.Attr, want[i])
			}
		}
	}
}
