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
  bob  2 of 3 conditions  age, state  5.5  Bonn          ["x",1]

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
