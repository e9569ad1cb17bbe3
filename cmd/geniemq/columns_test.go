package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A column that never had a value makes an index in which nothing is found by it. build says so, and what may be meant.
func TestBuildWarnsOfEmptyColumns(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		schema string
		inputs map[string]string
		want   []string // one for each warning
	}{
		"nested": {"columns: [{name: dims.w, type: number}, {name: 'a b.c.d', type: number}, {name: sku, type: category}]",
			map[string]string{"1.jsonl": `{"sku":"x","dims":{"h":1}}` + "\n" + `{"sku":"y","dims":{"w":3},"a b":{"c":{"d":1}}}` + "\n"},
			nil},
		"misspelt": {"columns: [{name: colour, type: category}, {name: size, type: number}]",
			map[string]string{"1.jsonl": `{"color":"red","size":1}` + "\n"},
			[]string{`column "colour" had no value in any record, so nothing is found by it (did you mean color?)`}},
		"nothing near": {"columns: [{name: weight, type: number}, {name: size, type: number}]",
			map[string]string{"1.jsonl": `{"kg":4,"size":1,"Ort":"Bonn"}` + "\n"},
			[]string{`column "weight" had no value in any record, so nothing is found by it; the input's fields that no column has: Ort, kg`}},
		"null and missing": {"missing: ['', '?']\ncolumns: [{name: a, type: number}, {name: size, type: number}, {name: p, type: payload}]",
			map[string]string{"1.jsonl": `{"a":null,"size":1,"p":"?"}` + "\n" + `{"a":"?","size":1}` + "\n"},
			[]string{`column "a" had`, `column "p" had`}},
		"csv": {"missing: ['', '?']\ncolumns: [{name: price, type: number}, {name: size, type: number}]",
			map[string]string{"1.csv": "size,price,prices,z\n1,,3,4\n2,?,3,4\n"},
			[]string{`column "price" had no value in any record, so nothing is found by it (did you mean prices?)`}},
		"csv without header": {"header: false\ncolumns: [{name: price, type: number}, {name: size, type: number}]",
			map[string]string{"1.csv": ",1\n,2\n"}, []string{`column "price" had no value in any record`}},
		"several inputs": {"columns: [{name: price, type: number}, {name: size, type: number}]",
			map[string]string{"1.jsonl": `{"size":1}` + "\n", "2.jsonl": `{"price":1}` + "\n"}, nil},
		"all have": {"columns: [{name: price, type: number}, {name: tags, type: category}, {name: p, type: payload}, {name: s, type: skip}]",
			map[string]string{"1.jsonl": `{"price":1,"x":{"y":1}}` + "\n" + `{"tags":["a"],"p":{"q":1}}` + "\n"}, nil},
		"value in the last record": {"columns: [{name: price, type: number}, {name: size, type: number}]",
			map[string]string{"1.csv": "size,price\n" + strings.Repeat("1,\n", 5000) + "1,2\n"}, nil},
		"bad records do not count": {"columns: [{name: price, type: number}, {name: size, type: number}]",
			map[string]string{"1.jsonl": `{"price":1,"size":1,"size":2}` + "\n" + `{"size":1}` + "\n"}, []string{`column "price" had`}},
		"objects are no values": {"columns: [{name: price, type: number}, {name: size, type: number}]",
			map[string]string{"1.jsonl": `{"price":{"x":1},"size":1}` + "\n"}, []string{`column "price": none of its values can be used (invalid: 1), so nothing is found by it; the first one: line 1: {"x":1} is an object`}},
		"one value can be used": {"columns: [{name: price, type: number}]", map[string]string{"1.csv": "price\nx\ny\n1\n"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			args := []string{"build", "--skip-bad", "--schema", write(t, dir, "s.yaml", "name: x\nkind: rows\n"+c.schema+"\n"), "--output", folder + ".gmq"}
			for file, text := range c.inputs {
				args = append(args, "--input", write(t, dir, file, text))
			}
			got := command(t, "", nil, args...)
			if got.code != exitDone {
				t.Fatal(got.err)
			}
			var warnings []string
			for line := range strings.Lines(got.err) {
				if text, ok := strings.CutPrefix(line, "warning: "); ok {
					warnings = append(warnings, text)
				}
			}
			if len(warnings) != len(c.want) {
				t.Fatalf("warned of %q, want %d warnings", warnings, len(c.want))
			}
			for i, want := range c.want {
				if !strings.Contains(warnings[i], want) {
					t.Errorf("warned:\n%swant:\n%s", warnings[i], want)
				}
			}
		})
	}
}

// A column of whose values none can be used makes such an index too. build says so with --quiet, with an example and with what to do.
func TestBuildWarnsOfUnusableColumns(t *testing.T) {
	dir := t.TempDir()
	data := write(t, dir, "a.jsonl", strings.Repeat(`{"v":[1,2,0.3],"n":"x","d":"soon","b":"maybe","ok":1}`+"\n", 70))
	for column, want := range map[string][]string{
		"{name: v, type: vector, dims: 2}":                          {"line 1: has 3 elements, and vectors of the column have 2; correct what the schema says of it (dims"},
		"{name: v, type: vector, metric: l2, dims: 4}":              {"line 1: has 3 elements, and vectors of the column have 4; correct what"},
		"{name: v, type: vector, dims: 3, keep: u8}":                {"line 1: element 2 is 0.3, and elements that are stored as u8 are integers from 0 to 255; correct what"},
		"{name: v, type: vector, dims: 3, storage: u8}":             {"line 1: element 2 is 0.3, and elements"},
		"{name: n, type: number}, {name: d, type: date}":            {`line 1: "x" is not a finite decimal number`, `(parse), or of which type`},
		"{name: b, type: bool}":                                     {`line 1: "maybe" is`},
		"{name: v, type: vector, dims: 3}, {name: b, type: string}": nil,
	} {
		schema := write(t, dir, "s.yaml", "name: x\ncolumns: ["+column+", {name: ok, type: number}]\n")
		quiet := command(t, "", nil, "build", "--quiet", "--schema", schema, "--output", dir+"/x.gmq", data)
		if quiet.code != exitDone || strings.Count(quiet.err, "warning: column ") != len(want) || strings.Count(quiet.err, "\n") != len(want) {
			t.Errorf("%s: %q", column, quiet.err)
			continue
		}
		told := command(t, "", nil, "build", "--quiet=false", "--report", "json", "--schema", schema, "--output", dir+"/x.gmq", data)
		for i, line := range slices.Collect(strings.Lines(quiet.err)) {
			if !strings.Contains(line, "none of its values can be used (invalid: 70), so nothing is found by it") || !strings.Contains(line, want[i]) {
				t.Errorf("%s: %q, want %q", column, line, want[i])
			}
			if !strings.Contains(told.out, "none of its values can be used (invalid: 70)") {
				t.Errorf("%s: the report does not tell: %s", column, told.out)
			}
		}
	}
}

// A column of vectors that is made of what the input lacks says so, and what there is; it is no matter of dims.
func TestBuildSaysWhatFromLacks(t *testing.T) {
	dir := t.TempDir()
	rows := strings.Repeat(`{"x1":1,"x2":2,"n":3}`+"\n", 200)
	for _, c := range []struct {
		column, file, data string
		code               int
		want               string
	}{
		{`from: "zz*"`, "a.jsonl", rows, exitFailed, `geniemq: column "v" had no value in the records that were read: no column of the input matches zz*, of which it is made; there are n, x1, x2`},
		{"from: [y1, y2]", "a.jsonl", rows, exitFailed, "no column of the input matches y1, y2, of which it is made; there are n, x1, x2"},
		{`from: "zz*", dims: 2`, "a.jsonl", rows, exitDone, `warning: column "v" had no value in any record, so nothing is found by it: no column of the input matches zz*, of which it is made; there are n, x1, x2`},
		{`from: "x*", dims: 2`, "a.jsonl", `{"n":1,"x1":null}`, exitDone, "warning: column \"v\" had no value in any record, so nothing is found by it\n"},
		{`from: "x*", dims: 2`, "a.csv", "n,x1,x2\n1,,\n", exitDone, "warning: column \"v\" had no value in any record, so nothing is found by it\n"},
		{`from: "zz*"`, "a.csv", "n,x1,x2\n1,2,3\n", exitFailed, `no column in the header matches zz*, of which column "v" is made: the file has n, x1, x2`},
		{"from: [x1, y]", "a.csv", "n,x1,x2\n1,2,3\n", exitFailed, `column "y", of which column "v" is made, is not in the header: the file has n, x1, x2`},
		{"metric: l2", "a.jsonl", strings.ReplaceAll(rows, "x1", "vv"), exitFailed, `column "v" had no value in the records that were read (did you mean vv?)`},
	} {
		schema := write(t, dir, "s.yaml", "name: x\ncolumns: [{name: v, type: vector, "+c.column+"}, {name: n, type: number}]\n")
		got := command(t, "", nil, "build", "--quiet", "--schema", schema, "--output", dir+"/x.gmq", write(t, dir, c.file, c.data))
		if got.code != c.code || !strings.Contains(got.err, c.want) || strings.Contains(got.err, "give dims") {
			t.Errorf("%s, %s: %d, %s\nwant %s", c.column, c.file, got.code, got.err, c.want)
		}
	}
}

// The report shows numbers in few letters.
func TestBuildShowsLargeNumbers(t *testing.T) {
	dir := t.TempDir()
	schema := write(t, dir, "s.yaml", "name: x\ncolumns: [{name: n, type: number}, {name: m, type: number}]\n")
	got := command(t, "", nil, "build", "--schema", schema, "--output", dir+"/x.gmq", write(t, dir, "a.csv", "n,m\n1e308,1000000\n-1e-300,2.5\n"))
	if got.code != exitDone || !strings.Contains(got.err, "-1e-300 to 1e+308") || !strings.Contains(got.err, "2.5 to 1000000") || strings.Contains(got.err, "00000000") {
		t.Error(got.err)
	}
}
