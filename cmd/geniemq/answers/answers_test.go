package answers_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/geniemq/geniemq/cmd/geniemq/answers"
	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/wire"
)

func query() *wire.Query {
	q := &wire.Query{K: 3, Row: []wire.Condition{{Attr: "age", Min: wire.Number(30)}, {Attr: "sex", Value: wire.String("Female")}, {Attr: "state", Value: wire.String("WA")}}}
	answers.Want(q)
	return q
}

func result() *wire.Result {
	return &wire.Result{Index: "people", Exact: true, Hits: []wire.Hit{
		{ID: 7, Key: "ann", Count: 3, Detail: &wire.HitDetail{Matched: []string{"age", "sex", "state"}}, Payload: json.RawMessage(`{"city":"東京","age":30,"note":"a\u001b[2Jb"}`)},
		{ID: 9, Key: "bob", Count: 2, Detail: &wire.HitDetail{Matched: []string{"state", "age"}}, Payload: json.RawMessage(`{"city":"Bonn","age":5.5,"note":null,"tags":["x",1]}`)},
	}}
}

// TestTable: a hit shows its key, how many of the conditions it meets and which, and the stored columns that fit, or those that are asked for.
func TestTable(t *testing.T) {
	for _, c := range []struct {
		width   int
		columns []string
		want    string
	}{
		{0, nil, `
people: 2 hits, exact, 0s
  key  met                which       age  city  note    tags
  ann  3 of 3 conditions  all          30  東京  a␛[2Jb
  bob  2 of 3 conditions  age, state  5.5  Bonn          x, 1

`},
		{48, nil, `
people: 2 hits, exact, 0s
  key  met                which       age  city
  ann  3 of 3 conditions  all          30  東京
  bob  2 of 3 conditions  age, state  5.5  Bonn
  not shown for lack of room: note, tags

`},
		{0, []string{"age", "none"}, `
people: 2 hits, exact, 0s
  key  met                which       age  none
  ann  3 of 3 conditions  all          30
  bob  2 of 3 conditions  age, state  5.5

`},
	} {
		var out bytes.Buffer
		answers.Print(&table.Page{Writer: &out, Width: c.width}, query(), result(), c.columns)
		if out.String() != c.want[1:] {
			t.Errorf("%d cells, columns %v:\n%s\nwant:%s", c.width, c.columns, out.String(), c.want)
		}
	}
}

// TestOneCondition: of a single condition, which a text may meet in part, only the count is told; columns of a filter come first.
func TestOneCondition(t *testing.T) {
	q := &wire.Query{Row: []wire.Condition{{Attr: "name", Value: wire.String("Sao Paolo")}}, Filter: []wire.Condition{{Attr: "age", Min: wire.Number(1)}}}
	r := &wire.Result{Index: "people", Hits: []wire.Hit{{Key: "a", Count: 5, Detail: &wire.HitDetail{Matched: []string{}}, Payload: json.RawMessage(`{"x":1,"age":30}`)}}}
	var out bytes.Buffer
	answers.Print(&table.Page{Writer: &out}, q, r, nil)
	if want := "people: 1 hit, 0s\n  key  count  age  x\n  a        5   30  1\n\n"; out.String() != want {
		t.Errorf("%s\nwant %s", out.String(), want)
	}
}

// TestLists: a list is shown as its elements, those that were asked for first, whatever form the query has; in CSV it stays JSON.
func TestLists(t *testing.T) {
	basket := json.RawMessage(`{"set":["36","38","39","48"],"odd":[1,[2]],"none":[]}`)
	for _, query := range []string{
		`{"set":["48",39,"7"]}`, `{"row":{"set":["48",39]}}`, `{"row":{"set":{"any":["48","39"]}}}`, `{"total":true,"filter":{"set":{"all":["39","48"]}}}`,
		`{"items":[{"attr":"set","value":"48"},{"attr":"set","value":"39"}]}`,
	} {
		message, err := wire.DecodeMessage(wire.JSON, []byte(query), wire.Limits{})
		if err != nil || message.Queries[0].Err != nil {
			t.Fatal(query, err, message.Queries[0].Err)
		}
		var out bytes.Buffer
		r := &wire.Result{Index: "x", Hits: []wire.Hit{{Key: "a", Count: 2, Payload: basket}}}
		answers.Print(&table.Page{Writer: &out}, &message.Queries[0].Query, r, []string{"set", "odd", "none"})
		if want := "x: 1 hit, 0s\n  key  count  set             odd      none\n  a        2  39, 48, 36, 38  [1,[2]]\n\n"; out.String() != want {
			t.Errorf("%s:\n%s\nwant\n%s", query, out.String(), want)
		}
		out.Reset()
		if _, err := answers.NewCSV(&table.Page{Writer: &out}, nil).Write(1, &message.Queries[0].Query, r); err != nil || !strings.Contains(out.String(), `"[""36"",""38"",""39"",""48""]"`) {
			t.Errorf("CSV: %v, %s", err, out.String())
		}
	}
}

// TestExplained: what was asked stands beside what objects have of it, and what is long goes on below.
func TestExplained(t *testing.T) {
	query := `{"row":{"title":"red shoess","brand":{"in":["acme","nobody"]},"price":{"min":5,"max":100},"when":{"min":"2024-05"},"year":{"max":1999.5},"tags":["t1","t2"],"open":true,` +
		`"sku":"abcd","look":{"missing":false},"rank":{"min":2,"max":4,"unit":"bucket"}},"filter":{"price":{"min":5.5},"tags":{"all":["t1","t2"]},"note":{"is":"x"}},"exclude":[{"brand":"core","note":{"missing":true}}]}`
	message, err := wire.DecodeMessage(wire.JSON, []byte(query), wire.Limits{})
	if err != nil || message.Queries[0].Err != nil {
		t.Fatal(err, message.Queries[0].Err)
	}
	r := &wire.Result{Index: "shop", Hits: []wire.Hit{{Key: "a-1", Count: 5}}, Explain: json.RawMessage(`{"items":[
		{"first":0,"items":1,"column":"brand","weight":1,"keywords":1,"of":9,"values":["acme"],"objects":7},
		{"first":1,"items":2,"column":"look","weight":1,"keywords":2,"of":64,"objects":9,"by":"hash"},
		{"first":3,"items":1,"column":"price","weight":2,"keywords":3,"of":1024,"values":["3.5 to below 101"],"objects":205,"by":"bucket"},
		{"first":4,"items":1,"column":"sku","weight":1,"keywords":2,"of":300,"values":["abc","bcd"],"objects":2,"by":"piece"},
		{"first":5,"items":1,"column":"tags","weight":1,"keywords":9,"of":300,"values":["t1","t2"],"objects":20,"at_least":true},
		{"first":6,"items":1,"column":"when","weight":1,"keywords":70,"of":100,"values":["2024-05-01 to 2024-09-30"],"objects":20,"by":"value"},
		{"first":7,"items":1,"column":"year","weight":1,"keywords":1,"of":10,"values":["1999"],"objects":20,"by":"value"},
		{"first":8,"items":1,"column":"year","weight":1,"keywords":0,"of":10,"objects":0,"by":"value"}],
		"filter":[{"columns":["price"],"by":"value"},{"columns":["tags","tags"],"by":"keyword"},{"columns":["note"],"by":"keyword"},{"columns":["brand","note"],"by":"keyword","excluded":true}],
		"hits":[{"id":1,"count":5,"items":[{"item":0,"times":1,"count":1},{"item":1,"times":2,"count":2},{"item":2,"times":1,"count":2}]}],"order":"count","engine":"in place"}`)}
	const want = `
shop: 1 hit, 0s
  key  count
  a-1      5
  item  column  weight     objects  asked             matched
  1     brand        1           7  acme, nobody      acme
  2-3   look         1           9  any value         values of 2 hash functions
  4     price        2         205  5 to 100          3.5 to below 101, 3 of
                                                      1024 buckets
  5     sku          1           2  abcd              2 pieces: abc, bcd
  6     tags         1  20 or more  t1, t2            t1, t2 and 7 more
  7     when         1          20  2024-05 or later  2024-05-01 to 2024-09-30,
                                                      70 of 100 values
  8     year         1          20  up to 1999.5      1999
  9     year         1           0
  filter on price: 5.5 or more, decided by value
  filter on tags: all of t1, t2, decided by keyword
  filter on note: x, decided by keyword
  exclude on brand: core, note: missing, decided by keyword
  hit  count  counted
  a-1      5  1 for item 1 (brand) + 2 for items 2-3 (look) + 2 for item 4
              (price)
  in the order of count; 0 postings counted, 0 candidates looked at again; in
    place

`
	var out bytes.Buffer
	answers.Print(&table.Page{Writer: &out, Width: 80}, &message.Queries[0].Query, r, nil)
	if out.String() != want[1:] {
		t.Errorf("%s\nwant%s", out.String(), want)
	}
}

// TestExplainedInPart: what an explanation leaves out is said, of items with what they counted; that of an older worker is told item by item.
func TestExplainedInPart(t *testing.T) {
	q := &wire.Query{Row: []wire.Condition{{Attr: "a", Value: wire.String("x")}, {Attr: "b", Value: wire.String("y")}}}
	for _, c := range []struct{ explain, want string }{
		{`{"items":[{"first":0,"items":1,"column":"a","weight":1,"keywords":1,"of":9,"values":["x"],"objects":7}],"items_more":9,"more_columns":["b","c"],"unknown":[{"column":"b","value":"z"}],"unknown_more":true,` +
			`"filter":[{"columns":["a"],"by":"keyword"}],"filter_more":1,"hits":[{"id":1,"count":5,"items":[{"item":0,"times":1,"count":1}],"more":4},{"id":2,"count":2,"more":2}],"hits_more":3,"order":"count"}`, `
  item  column  weight  objects  asked  matched
  1     a            1        7  x      x
  and 9 items more (b, c)
  no object has "z" in b
  and there may be more values that no object has
  filter on a, decided by keyword
  and 1 part more of filter and exclude
  hit  count  counted
  k        5  1 for item 1 (a) + 4 for the 9 items more (b, c)
  l        2  2 for the 9 items more (b, c)
  and 3 hits more
  in the order of count; 0 postings counted, 0 candidates looked at again

`},
		{`{"items":[{"column":"a","weight":1,"keywords":1,"of":9,"values":["x"],"objects":7},{"column":"b","weight":1,"keywords":1,"of":9,"values":["y"],"objects":8}],` +
			`"hits":[{"id":1,"count":5,"items":[{"item":1,"times":1,"count":1}]}],"order":"count"}`, `
  item  column  weight  objects  asked  matched
  1     a            1        7  x      x
  2     b            1        8  y      y
  hit  count  counted
  k        5  1 for item 2 (b)
  in the order of count; 0 postings counted, 0 candidates looked at again

`},
	} {
		var out bytes.Buffer
		answers.Print(&table.Page{Writer: &out}, q, &wire.Result{Index: "x", Hits: []wire.Hit{{Key: "k", Count: 5}, {Key: "l", Count: 2}}, Explain: json.RawMessage(c.explain)}, nil)
		if want := "x: 2 hits, 0s\n  key  count\n  k        5\n  l        2" + c.want; out.String() != want {
			t.Errorf("%s\nwant %s", out.String(), want)
		}
	}
}

// TestCounts: where the counts of some hits are not the number of conditions that they meet, those of all hits are shown.
func TestCounts(t *testing.T) {
	r := result()
	r.Hits[0].Count = 238
	for i := range r.Hits {
		r.Hits[i].Payload = nil
	}
	var out bytes.Buffer
	answers.Print(&table.Page{Writer: &out}, query(), r, nil)
	const want = `
people: 2 hits, exact, 0s
  key  count  met                which
  ann    238  3 of 3 conditions  all
  bob      2  2 of 3 conditions  age, state

`
	if out.String() != want[1:] {
		t.Errorf("%s\nwant%s", out.String(), want)
	}
}

// TestHostile: ids, keys, warnings, errors and stored values come from others, and command no terminal.
func TestHostile(t *testing.T) {
	const bad = "\x1b]0;title\a\u009b2J\r\u202egpj.exe"
	text, _ := json.Marshal(map[string]string{bad: bad})
	for _, r := range []*wire.Result{
		{ID: bad, Index: "x", Hits: []wire.Hit{{Key: bad, Payload: text, Detail: &wire.HitDetail{Matched: []string{bad}}}}, Warnings: []string{bad}, Explain: json.RawMessage(`{"items":[{"column":` + quoted(bad) + `}],"order":` + quoted(bad) + `}`)},
		{ID: bad, Index: "x", Err: wire.Errorf(wire.BadRequest, "%s", bad)},
	} {
		var out bytes.Buffer
		page := &table.Page{Writer: &out, Width: 80}
		q := &wire.Query{Row: []wire.Condition{{Attr: bad}}}
		answers.Print(page, q, r, nil)
		if _, err := answers.NewCSV(page, nil).Write(1, q, r); err != nil {
			t.Fatal(err)
		}
		for _, c := range out.String() {
			if unicode.IsControl(c) && c != '\n' || unicode.Is(unicode.Bidi_Control, c) {
				t.Errorf("%q commands the terminal in %q", c, out.String())
			}
		}
	}
}

func quoted(text string) string { b, _ := json.Marshal(text); return string(b) }

// TestCSV: whatever stored values hold, a reader of CSV finds them again; what later results have besides is told once.
func TestCSV(t *testing.T) {
	rng := seeded.Rand(t)
	pieces := []string{`"`, ",", "\n", "\r", "a", " ", "é", "\x1b", "=1+1", "東"}
	var out bytes.Buffer
	rows := answers.NewCSV(&table.Page{Writer: &out}, nil)
	var want []string
	for n := 1; n <= 50; n++ {
		var value strings.Builder
		for range rng.IntN(6) {
			value.WriteString(pieces[rng.IntN(len(pieces))])
		}
		fields := map[string]any{"a": value.String(), "b": n}
		if n > 1 {
			fields["late"] = true
		}
		payload, _ := json.Marshal(fields)
		lost, err := rows.Write(n, query(), &wire.Result{Hits: []wire.Hit{{ID: uint32(n), Key: "k", Count: 1, Payload: payload}}})
		if err != nil || (n == 2) != slices.Equal(lost, []string{"late"}) {
			t.Fatalf("row %d: %v, lost %v", n, err, lost)
		}
		want = append(want, strings.ReplaceAll(value.String(), "\r\n", "\n")) // as readers of CSV have it
	}
	read, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(read) != 51 || !slices.Equal(read[0][12:], []string{"a", "b"}) {
		t.Fatalf("%v in %q", err, read)
	}
	for i, row := range read[1:] {
		if row[12] != want[i] || row[13] != fmt.Sprint(i+1) {
			t.Errorf("row %d: %q, want %q", i+1, row[12:], want[i])
		}
	}
}

// FuzzFields: whatever a payload holds, it is shown.
func FuzzFields(f *testing.F) {
	f.Add(`{"a":1,"b":[1,{"c":2}],"a":null}`)
	f.Add(`[1]`)
	f.Add(`{"a":`)
	f.Fuzz(func(t *testing.T, payload string) {
		fields := answers.Fields(json.RawMessage(payload))
		var object map[string]any
		if empty := json.Unmarshal([]byte(payload), &object) == nil && object != nil && len(object) == 0; payload != "" && (len(fields) == 0) != empty {
			t.Errorf("nothing is shown of %q", payload)
		}
	})
}
