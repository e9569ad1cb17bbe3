package load

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/schema"
)

func parseSchema(t testing.TB, text string) *schema.Schema {
	t.Helper()
	s, err := index.Builtin().ParseSchema([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// people is a schema that has every kind of column.
const people = `
name: people
kind: rows
missing: ["", "?"]
columns:
  - {name: age, type: number}
  - {name: city, type: category}
  - {name: tags, type: category, split: ";"}
  - {name: note, type: payload}
  - {name: junk, type: skip}
`

// readAll renders the records and bad records of a source, one per line, and the error that ended it.
func readAll(t testing.TB, r *Reader) (lines []string, err error) {
	t.Helper()
	var rec schema.Record
	for {
		err := r.Next(&rec)
		var bad *BadRecord
		switch {
		case err == io.EOF:
			return lines, nil
		case errors.As(err, &bad):
			lines = append(lines, fmt.Sprintf("bad %d: %s", bad.Line, bad.Reason))
		case err != nil:
			return lines, err
		default:
			lines = append(lines, render(&rec))
		}
	}
}

func render(rec *schema.Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d", rec.Line)
	if rec.Key != "" {
		fmt.Fprintf(&b, " key=%s", rec.Key)
	}
	for _, cell := range rec.Cells {
		fmt.Fprintf(&b, " %q", cell.Values)
		if cell.JSON != nil {
			fmt.Fprintf(&b, "=%s", cell.JSON)
		}
		if cell.Fault != "" {
			fmt.Fprintf(&b, "!%.40s", cell.Fault)
		}
	}
	return b.String()
}

type loadCase struct {
	name    string
	schema  string
	options Options
	input   string
	want    []string // rendered records, "bad LINE: ..." by prefix
	fails   string   // part of the error that ends the reader, or of NewReader
}

func (c *loadCase) run(t *testing.T) {
	r, err := NewReader(strings.NewReader(c.input), "input", parseSchema(t, c.schema), c.options)
	var got []string
	if err == nil {
		got, err = readAll(t, r)
		var again schema.Record
		if err2 := r.Next(&again); err != nil && err2 != err || err == nil && err2 != io.EOF {
			t.Errorf("the end is not sticky: %v, then %v", err, err2)
		}
	}
	if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
		t.Errorf("error %v, want %q", err, c.fails)
	}
	if err != nil && !strings.Contains(err.Error(), "input") {
		t.Errorf("error does not name the source: %v", err)
	}
	equal := slices.EqualFunc(got, c.want, func(got, want string) bool {
		return got == want || strings.HasPrefix(want, "bad ") && strings.HasPrefix(got, want)
	})
	if !equal {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
	}
}

func runCases(t *testing.T, cases []loadCase) {
	for _, c := range cases {
		t.Run(c.name, c.run)
	}
}

func TestCSV(t *testing.T) {
	csv := Options{Format: CSV}
	runCases(t, []loadCase{
		{
			name: "columns by name, trimmed, missing and split", schema: people, options: csv,
			input: "junk,city, age ,extra,tags,note\n" +
				"1, Bonn ,39 ,x, a; b;;c ,hello\n" +
				"2,?, ? ,x,?, ?\n",
			want: []string{
				`2 ["39"] ["Bonn"] ["a" "b" "c"] ["hello"] []`,
				`3 [] [] [] [] []`,
			},
		},
		{
			name: "lines after quoted line ends, blank lines and CRLF", schema: people, options: csv,
			input: "age,city,tags,note,junk\r\n" +
				"\r\n" +
				"1,\"a\nb\",,\"x\n\ny\",z\r\n" +
				"\r\n\r\n" +
				"2,c,,,\r\n" +
				"3,d\r\n" +
				"4,\"e\"\"f\", ,,\"\n\"\n" +
				"5,g,,,",
			want: []string{
				`3 ["1"] ["a\nb"] [] ["x\n\ny"] []`,
				`9 ["2"] ["c"] [] [] []`,
				`bad 10: has 2 fields, the header has 5`,
				`11 ["4"] ["e\"f"] [] [] []`,
				`13 ["5"] ["g"] [] [] []`,
			},
		},
		{
			name: "blank before a quote", schema: people, options: csv,
			input: "age,city,tags,note,junk\n1, \"a,b\",,,\n",
			want:  []string{`2 ["1"] ["a,b"] [] [] []`},
		},
		{
			name: "stray quotes end with their line", schema: people, options: csv,
			input: "age,city,tags,note,junk\n1,a\"b,,,\n2,\"a\"b,,,\n3,a,,,\n4,\"a",
			want: []string{
				`bad 2: has a quote inside an unquoted field`,
				`bad 3: has a quoted field that is not closed, or goes on after its closing quote`,
				`4 ["3"] ["a"] [] [] []`,
				`bad 5: has a quoted field that is not closed`,
			},
		},
		{
			name: "a quote that swallows lines is not skippable", schema: people, options: csv,
			input: "age,city,tags,note,junk\n1,a,,,\n2,\"b,,,\n3,c,,,\n4,\"d\",,,\n5,e,,,\n",
			want:  []string{`2 ["1"] ["a"] [] [] []`},
			fails: "line 3: has a quoted field that is not closed",
		},
		{
			name: "a quote never closed", schema: people, options: csv,
			input: "age,city,tags,note,junk\n1,a,,,\n2,\"b,,,\n3,c,,,\n",
			want:  []string{`2 ["1"] ["a"] [] [] []`},
			fails: "line 3: has a quoted field that is not closed",
		},
		{
			name: "semicolons", schema: people, options: Options{Format: CSV, Comma: ';'},
			input: "age;city;tags;note;junk\n1;a,b;\"x;y\";;\n",
			want:  []string{`2 ["1"] ["a,b"] ["x" "y"] [] []`},
		},
		{
			name: "tabs with quotes", schema: people, options: Options{Format: CSV, Comma: '\t'},
			input: "age\tcity\ttags\tnote\tjunk\n1\t\t\"x\ty\"\t\t\n",
			want:  []string{"2 [\"1\"] [] [\"x\\ty\"] [] []"},
		},
		{
			name: "a separator that cannot be", schema: people, options: Options{Format: CSV, Comma: '"'},
			fails: "cannot separate",
		},
		{
			name: "missing column with advice", schema: people, options: csv,
			input: "Age,city,tag,note\n",
			fails: `column "age" is not in the header (did you mean Age?): the file has Age, city, tag, note`,
		},
		{
			name: "every missing column is named", schema: people, options: csv,
			input: "Age,city,tag,note\n",
			fails: `column "tags" is not in the header (did you mean tag?)`,
		},
		{
			name: "another separator", schema: people, options: csv,
			input: "age;city;tags;note\n", fails: `line 1: the header is one field, "age;city;tags;note": is it separated by ";"? then add --separator ';'`,
		},
		{
			name: "tabs where commas are due", schema: people, options: csv,
			input: "age\tcity\ttags\n", fails: `is it separated by tabs? then add --format tsv`,
		},
		{
			name: "another separator without a header", options: csv,
			schema: "{name: n, kind: rows, header: false, columns: [{name: a, type: number}, {name: b, type: number}]}",
			input:  "1|2\n", want: []string{`bad 1: has 1 field, the schema has 2 columns: is it separated by "|"? then add --separator '|'`},
		},
		{
			name: "ambiguous column", schema: people, options: csv,
			input: "age,city,tags,note,city\n", fails: `column "city" is ambiguous: fields 2 and 5`,
		},
		{name: "no header", schema: people, options: csv, input: "", fails: "expects a header line"},
		{
			name: "header with a bad quote", schema: people, options: csv,
			input: "age,\"city\n1,2\n", fails: "line 1: has a quoted field that is not closed",
		},
		{
			name: "header with a stray quote", schema: people, options: csv,
			input: "age,ci\"ty\n1,2\n", fails: "line 1: the header has a quote inside",
		},
		{
			name: "only a header", schema: people, options: csv, input: "age,city,tags,note",
		},
		{
			name: "invalid UTF-8 names the line within quotes", schema: people, options: csv,
			input: "age,city,tags,note,junk\n1,\"a\nb\nM\xfcnchen\",,,\n2,c,,,\n3,d,,,M\xfcnchen\n",
			want: []string{
				`bad 4: field 2 is not valid UTF-8 (byte 0xfc): if the file is Latin-1, add --encoding latin1`,
				`5 ["2"] ["c"] [] [] []`,
				`6 ["3"] ["d"] [] [] []`, // what is skipped may be anything
			},
		},
		{
			name: "a literal replacement character is valid", schema: people, options: csv,
			input: "age,city,tags,note,junk\n1,a\uFFFD,,,\n",
			want:  []string{"2 [\"1\"] [\"a\uFFFD\"] [] [] []"},
		},
		{
			name: "latin1", schema: people, options: Options{Format: CSV, Encoding: "latin1"},
			input: "age,city,tags,note,junk\n1,M\xfcnchen,,,\n",
			want:  []string{`2 ["1"] ["München"] [] [] []`},
		},
		{
			name: "windows-1252", schema: people, options: Options{Format: CSV, Encoding: "Windows-1252"},
			input: "age,city,tags,note,junk\n1,don\x92t,,,\n",
			want:  []string{`2 ["1"] ["don’t"] [] [] []`},
		},
		{
			name: "a record beyond the limit", schema: people, options: Options{Format: CSV, MaxRecord: 64},
			input: "age,city,tags,note,junk\n1,a,,,\n2,\"" + strings.Repeat("x", 100) + "\",,,\n",
			want:  []string{`2 ["1"] ["a"] [] [] []`},
			fails: "line 3: the record that begins here is longer than 64 bytes",
		},
		{
			name: "a quote never closed in a large file", schema: people, options: Options{Format: CSV, MaxRecord: 1 << 20},
			input: "age,city,tags,note,junk\n\"" + strings.Repeat("x\n", 3<<20),
			fails: "line 2: the record that begins here is longer than 1048576 bytes",
		},
	})
}

func TestHeaderless(t *testing.T) {
	const schema = `
name: numbers
kind: rows
header: false
key: id
columns:
  - {name: id, type: skip}
  - {name: a, type: number}
  - {name: b, type: number}
`
	runCases(t, []loadCase{
		{
			name: "by position", schema: schema, options: Options{Format: CSV},
			input: "\ufeffx,1,2\ny,3,4\n",
			want:  []string{`1 key=x [] ["1"] ["2"]`, `2 key=y [] ["3"] ["4"]`},
		},
		{
			name: "width must be the schema's", schema: schema, options: Options{Format: CSV},
			input: "x,1\ny,3,4,\nz,5,6\n",
			want: []string{
				`bad 1: has 2 fields, the schema has 3 columns`,
				`bad 2: has 4 fields, the schema has 3 columns (a field that is not wanted needs a column of type skip;`,
				`3 key=z [] ["5"] ["6"]`,
			},
		},
		{
			name: "every record needs its key", schema: schema, options: Options{Format: TSV},
			input: "x\t1\t2\n \t3\t4\n",
			want:  []string{`1 key=x [] ["1"] ["2"]`, `bad 2: key column id is empty`},
		},
		{
			name: "key among the columns", options: Options{Format: CSV},
			schema: "{name: n, kind: rows, header: false, key: id, columns: [{name: a, type: number}]}",
			fails:  `add {name: id, type: skip} in its place`,
		},
		{name: "empty", schema: schema, options: Options{Format: CSV}},
	})
}

func TestTSV(t *testing.T) {
	tsv := Options{Format: TSV}
	runCases(t, []loadCase{
		{
			name: "quotes are characters", schema: people, options: tsv,
			input: "age\tcity\ttags\tnote\tjunk\r\n1\t\"Bonn\t;\"a\"\tx\"y\t\r\n\n2\t\t\t\t\n",
			want: []string{
				`2 ["1"] ["\"Bonn"] ["\"a\""] ["x\"y"] []`,
				`4 ["2"] [] [] [] []`,
			},
		},
		{
			name: "width", schema: people, options: tsv,
			input: "age\tcity\ttags\tnote\tjunk\n1\t2\n",
			want:  []string{`bad 2: has 2 fields, the header has 5`},
		},
		{
			name: "a line beyond the limit is passed over", schema: people, options: Options{Format: TSV, MaxRecord: 40},
			input: "age\tcity\ttags\tnote\tjunk\n" + strings.Repeat("x", 1<<20) + "\n1\ta\t\t\t\n",
			want:  []string{`bad 2: is longer than 40 bytes`, `3 ["1"] ["a"] [] [] []`},
		},
		{
			name: "key column of the header", options: tsv,
			schema: "{name: n, kind: rows, key: id, columns: [{name: a, type: number}]}",
			input:  "a\tid\n5\tk1\n6\t\n", want: []string{`2 key=k1 ["5"]`, `bad 3: key column id is empty`},
		},
		{
			name: "no key column in the header", options: tsv,
			schema: "{name: n, kind: rows, key: key, columns: [{name: a, type: number}]}",
			input:  "a\tkeys\n", fails: `key column "key" is not in the header (did you mean keys?)`,
		},
	})
}

func TestJSONL(t *testing.T) {
	jsonl := Options{Format: JSONL}
	const keyed = "{name: n, kind: rows, key: id, columns: [{name: a, type: number}]}"
	runCases(t, []loadCase{
		{
			name: "values", schema: people, options: jsonl,
			input: `{"age":39,"city":" Bonn ","tags":["a;b","c"],"note":{"x": [1, null]},"other":{"y":[{}]},"junk":[[1]]}` + "\n" +
				`{"age":3.90e1,"city":true,"tags":"a; b;","note":"hi"}` + "\n\n" +
				`  {"city":null,"tags":[null,"?","a",1.50,false],"note":null}  ` + "\r\n" +
				`{}` + "\n" +
				`{"a\u0067e":1,"note":12345678901234567890123,"city":12345678901234567890123}`,
			want: []string{
				`1 ["39"] [" Bonn "] ["a;b" "c"] []={"x": [1, null]} []`,
				`2 ["3.90e1"] ["true"] ["a" "b"] ["hi"]="hi" []`,
				`4 [] [] ["a" "1.50" "false"] [] []`,
				`5 [] [] [] [] []`,
				`6 ["1"] ["12345678901234567890123"] [] ["12345678901234567890123"]=12345678901234567890123 []`,
			},
		},
		{
			name: "bad lines", schema: people, options: jsonl,
			input: strings.Join([]string{
				`{"age":1}`, `{"age":`, `[{"age":1}]`, `"age"`, `{"age":1} {"age":2}`, `{"age":1,"age":2}`,
				`{"city":{"a":1}}`, `{"city":[["a"]]}`, `{'age':1}`, `{"city":"M` + "\xfc" + `nchen"}`, `{"city":"\ud800"}`,
				`{"other":[1,}`, `{"age":01}`, `{"age":[1}`, `{"age":2}`,
			}, "\n"),
			want: []string{
				`1 ["1"] [] [] [] []`,
				`bad 2: is not valid JSON`,
				`bad 3: is a JSON array, not an object`,
				`bad 4: is not a JSON object`,
				`bad 5: has text after its object`,
				`bad 6: names a field twice`,
				`7 [] []!{"a":1} is an object, but a category col [] [] []`,
				`8 [] []!["a"] is a list within a list, but a cat [] [] []`,
				`bad 9: is not valid JSON`,
				`bad 10: is not valid UTF-8 (byte 0xfc)`,
				`bad 11: is not valid JSON`,
				`bad 12: is not valid JSON`,
				`bad 13: is not valid JSON`,
				`bad 14: is not valid JSON`,
				`15 ["2"] [] [] [] []`,
			},
		},
		{
			name: "paths", schema: "{name: n, kind: rows, key: meta.id, columns: [{name: meta.id, type: category}, {name: a.b, type: category}, {name: 'l[0].x', type: number}, " +
				"{name: l.y, type: category, split: ';'}, {name: a, type: payload}, {name: l.x, type: payload}]}", options: jsonl,
			input: `{"meta":{"id":7},"a":{"b":["x",null,"y"],"c":1},"l":[{"x":1,"y":"p;q"},{"x":2,"y":"r"},3]}` + "\n" +
				`{"a.b":"whole","a":{"b":"part"},"meta":{"id":"k"}}` + "\n" + `{"a":{"b":"part"},"a.b":"whole","meta":{"id":"l"},"l":{"x":1}}` + "\n" +
				`{"a":{"b":{"c":1}},"meta.id":"m","meta":{"id":"n"}}` + "\n" + `{"a":3,"meta":{"id":[1]}}` + "\n" + `{"meta":{}}`,
			want: []string{
				`1 key=7 ["7"] ["x" "y"] ["1"] ["p" "q" "r"] []={"b":["x",null,"y"],"c":1} []=[1,2]`,
				`2 key=k ["k"] ["whole"] [] [] []={"b":"part"} []`,
				`3 key=l ["l"] ["whole"] [] [] []={"b":"part"} ["1"]=1`,
				`4 key=m ["m"] []!{"c":1} is an object, but a category col [] [] []={"b":{"c":1}} []`,
				`bad 5: key field "meta.id" must be a string or a number`,
				`bad 6: key field "meta.id" is missing`,
			},
		},
		{
			name: "an array", schema: people, options: jsonl,
			input: "[\n {\"age\":1,\n  \"city\":\"B]\"},\n 7,\n{\"age\":2}]\n",
			want:  []string{`1 ["1"] ["B]"] [] [] []`, `bad 2: is not a JSON object`, `3 ["2"] [] [] [] []`},
		},
		{
			name: "keys", schema: keyed, options: jsonl,
			input: `{"id":"x","a":1}` + "\n" + `{"id":17}` + "\n" + `{"a":1}` + "\n" + `{"id":null}` + "\n" + `{"id":" "}` + "\n" + `{"id":[1]}`,
			want: []string{
				`1 key=x ["1"]`, `2 key=17 []`,
				`bad 3: key field "id" is missing or empty`, `bad 4: key field "id" is missing or empty`,
				`bad 5: key field "id" is missing or empty`, `bad 6: key field "id" must be a string or a number`,
			},
		},
		{
			name: "key that is a column as well", options: jsonl,
			schema: "{name: n, kind: rows, key: id, columns: [{name: id, type: category}]}",
			input:  `{"id":"x"}`, want: []string{`1 key=x ["x"]`},
		},
		{
			name: "numbers that are categories", options: jsonl,
			schema: "{name: n, missing: ['', '-1.0'], columns: [{name: c, type: category, split: ' '}, {name: s, type: set}, {name: t, type: text}, {name: n, type: number}]}",
			input: `{"c":5.0,"s":[5.0,5,"5.0",1e3,1E-2,0.10,-0.0,-0],"t":5.0,"n":5.0}` + "\n" +
				`{"c":12345678901234567890123,"s":[007.5],"t":1}` + "\n" + `{"c":12345678901234567890123,"s":[1e400,-1.0,0.30000000000000004,3.0e2],"t":-1.0}` + "\n" + `{"c":"5.0 1e3"}`,
			want: []string{
				`1 ["5"] ["5" "5" "5.0" "1000" "0.01" "0.1" "0" "0"] ["5.0"] ["5.0"]`, `bad 2: is not valid JSON`,
				`3 ["12345678901234567890123"] ["1e400" "0.30000000000000004" "300"] [] []`, `4 ["5.0" "1e3"] [] [] []`,
			},
		},
		{
			name: "line beyond the limit", schema: keyed, options: Options{Format: JSONL, MaxRecord: 30},
			input: `{"id":"` + strings.Repeat("x", 30) + `"}` + "\n" + `{"id":"y"}`,
			want:  []string{`bad 1: is longer than 30 bytes`, `2 key=y []`},
		},
		{
			name: "latin1", schema: people, options: Options{Format: JSONL, Encoding: "latin1"},
			input: "{\"city\":\"M\xfcnchen\"}", want: []string{`1 [] ["München"] [] [] []`},
		},
	})
}

func TestText(t *testing.T) {
	text := Options{Format: Text}
	const bag = `{name: n, kind: rows, columns: [{name: word, type: category, split: ","}, {name: p, type: payload}]}`
	runCases(t, []loadCase{
		{
			name: "a blank line is an object", schema: "{name: n, kind: documents}", options: text,
			input: "\ufeffone\r\n\n  two  \n \t\nthree",
			want:  []string{`1 ["one"]`, `2 []`, `3 ["two"]`, `4 []`, `5 ["three"]`},
		},
		{name: "blank line whatever is missing", options: text,
			schema: `{name: n, kind: sequences, missing: ["NULL"]}`,
			input:  "a\n\nNULL\n\n", want: []string{`1 ["a"]`, `2 []`, `3 []`, `4 []`}},
		{name: "rows with one indexed column", schema: bag, options: text,
			input: "1,2,,2\n\n3\n", want: []string{`1 ["1" "2" "2"] []`, `2 [] []`, `3 ["3"] []`}},
		{name: "the text column among others", options: text,
			schema: "{name: n, kind: documents, columns: [{name: year, type: number}, {name: title, type: text}]}",
			input:  "a b\n", want: []string{`1 [] ["a b"]`}},
		{name: "no one column", schema: people, options: text, fails: "the schema indexes 3 columns (age, city, tags)"},
		{name: "no key", options: text, schema: "{name: n, kind: documents, key: id}", fails: `the schema names "id"`},
		{name: "invalid UTF-8", schema: "{name: n, kind: documents}", options: text,
			input: "a\nM\xfcnchen\nb", want: []string{`1 ["a"]`, `bad 2: is not valid UTF-8 (byte 0xfc)`, `3 ["b"]`}},
		{name: "line beyond the limit", schema: "{name: n, kind: documents}", options: Options{Format: Text, MaxRecord: 3},
			input: "abc\nabcd\nabc\r\n" + strings.Repeat("x", 3*sourceBuffer) + "\nabc",
			want:  []string{`1 ["abc"]`, `bad 2: is longer than 3 bytes`, `3 ["abc"]`, `bad 4: is longer`, `5 ["abc"]`}},
		{name: "a long line within the limit", schema: "{name: n, kind: documents}", options: text,
			input: strings.Repeat("x", 3*sourceBuffer) + "\nabc", want: []string{`1 ["` + strings.Repeat("x", 3*sourceBuffer) + `"]`, `2 ["abc"]`}},
		{name: "UTF-16", schema: "{name: n, kind: documents}", options: text, input: "\xff\xfea\x00\n\x00b\x00", want: []string{`1 ["a"]`, `2 ["b"]`}},
		{name: "UTF-16 the other way round", schema: "{name: n, kind: documents}", options: text, input: "\xfe\xff\x00\xe4", want: []string{`1 ["ä"]`}},
		{name: "UTF-16 that nobody named", schema: "{name: n, kind: documents}", options: text, input: "a\x00\nb", want: []string{`bad 1: has a NUL byte`, `2 ["b"]`}},
		{name: "Shift JIS by the schema", schema: "{name: n, kind: documents, input: {encoding: shift_jis}}", options: text, input: "\x93\xfa\x96\x7b", want: []string{`1 ["日本"]`}},
		{name: "lines that are skipped", schema: "{name: n, kind: documents}", options: Options{Format: Text, SkipLines: 2}, input: "a\n" + strings.Repeat("x", 2*sourceBuffer) + "\nb\n", want: []string{`3 ["b"]`}},
		{name: "more lines are skipped than there are", schema: "{name: n, kind: documents}", options: Options{Format: Text, SkipLines: 2}, input: "a\n", fails: "line 2: is the last one"},
		{name: "byte-order mark of UTF-8 in latin1", schema: "{name: n, kind: documents}",
			options: Options{Format: Text, Encoding: "latin1"}, input: "\ufeffa", fails: "leave --encoding out"},
		{name: "empty", schema: "{name: n, kind: documents}", options: text},
	})
}

func TestFormatOf(t *testing.T) {
	for name, want := range map[string]Format{
		"a.csv": CSV, "dir.tsv/A.CSV.GZ": CSV, "a.tsv.gz": TSV, "a.tab": TSV, "a.jsonl": JSONL, "a.csv.zst": CSV, "a.ndjson": JSONL, "a.b.txt": Text,
	} {
		if got, err := FormatOf(name); err != nil || got != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for _, name := range []string{"a", "a.gz", "csv", "a.orc", ""} {
		if _, err := FormatOf(name); err == nil || !strings.Contains(err.Error(), "--format csv|tsv|jsonl|text") {
			t.Errorf("%q: %v", name, err)
		}
	}
	schema := parseSchema(t, people)
	if _, err := NewReader(strings.NewReader(""), "x", schema, Options{Format: "xml"}); err == nil ||
		!strings.Contains(err.Error(), "csv|tsv|jsonl|text") {
		t.Error(err)
	}
	if _, err := NewReader(strings.NewReader(""), "x", schema, Options{Format: JSONL, Encoding: "koi9"}); err == nil ||
		!strings.Contains(err.Error(), "utf-8, latin1") {
		t.Error(err)
	}
}
