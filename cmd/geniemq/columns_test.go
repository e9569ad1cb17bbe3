package main

import (
	"path/filepath"
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
			map[string]string{"1.jsonl": `{"price":{"x":1},"size":1}` + "\n"}, []string{`column "price" had`}},
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
