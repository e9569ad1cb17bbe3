package schema_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/schema"
)

func TestSchemaDefaults(t *testing.T) {
	header := true
	cases := []struct {
		yaml string
		want schema.Schema
	}{
		{
			"name: adult\nkind: rows\nkey: id\nmissing: ['', '?']\ncolumns:\n" +
				"- {name: age, type: number}\n- {name: gain, type: number, edges: exact}\n" +
				"- {name: fee, type: number, edges: equi-depth, buckets: 7}\n" +
				"- {name: tags, type: category, split: ;, layout: postings}\n- {name: note, type: payload}\n",
			schema.Schema{Name: "adult", Kind: schema.Rows, Key: "id", Header: &header, Missing: []string{"", "?"}, Columns: []schema.Column{
				{Name: "age", Type: schema.NumberColumn, Buckets: 1024, Edges: schema.EqualWidth},
				{Name: "gain", Type: schema.NumberColumn, Edges: schema.Exact},
				{Name: "fee", Type: schema.NumberColumn, Buckets: 7, Edges: schema.EquiDepth},
				{Name: "tags", Type: schema.CategoryColumn, Split: ";", Layout: "postings"},
				{Name: "note", Type: schema.PayloadColumn},
			}},
		},
		{
			"name: shop\ncolumns:\n- {name: title, type: text, ngrams: 2, store: true}\n- {name: brand, type: category, fold: true, idf: true}\n" +
				"- {name: tags, type: set, layout: }\n- {name: code, type: string}\n- {name: sold, type: date, buckets: 12}\n- {name: new, type: bool}\n",
			schema.Schema{Name: "shop", Header: &header, Missing: []string{""}, Words: schema.UAX29Lower, Columns: []schema.Column{
				{Name: "title", Type: schema.TextColumn, NGrams: 2, Store: true, StopWords: schema.EnglishStopWords()},
				{Name: "brand", Type: schema.CategoryColumn, Fold: true, IDF: true},
				{Name: "tags", Type: schema.SetColumn},
				{Name: "code", Type: schema.StringColumn, NGram: 3},
				{Name: "sold", Type: schema.DateColumn, Edges: schema.EqualWidth, Buckets: 12},
				{Name: "new", Type: schema.BoolColumn},
			}},
		},
		{
			"name: baskets\nkind: sets",
			schema.Schema{Name: "baskets", Kind: schema.Sets, Header: &header, Missing: []string{""},
				Columns: []schema.Column{{Name: "set", Type: schema.SetColumn, Split: " "}}},
		},
		{
			"name: points\nkind: vectors",
			schema.Schema{Name: "points", Kind: schema.Vectors, Header: &header, Missing: []string{""},
				Columns: []schema.Column{{Name: "vector", Type: schema.VectorColumn, Similarity: "l2", Functions: 237, Keep: "f32"}}},
		},
		{
			"name: points\ncolumns: [{name: at, type: vector, similarity: l1, recall: 0.9, reach: 0, from: x*, seed: 7, keep: none, learned: \"\"}]",
			schema.Schema{Name: "points", Header: &header, Missing: []string{""}, Columns: []schema.Column{{
				Name: "at", Type: schema.VectorColumn, Similarity: "l1", Recall: .9, Reach: new(int), From: schema.Names{"x*"}, Seed: 7, Keep: "none"}}},
		},
		{
			"name: titles\nkind: sequences",
			schema.Schema{Name: "titles", Kind: schema.Sequences, Header: &header, Missing: []string{""}, NGram: 3,
				Columns: []schema.Column{{Name: "text", Type: schema.TextColumn}}},
		},
		{
			"name: docs\nkind: documents\nstop_words: none\nmissing: []\nheader: false\n" +
				"columns: [{name: body, type: text, store: true}]",
			schema.Schema{Name: "docs", Kind: schema.Documents, Header: new(bool), Missing: []string{}, Words: schema.UAX29Lower,
				StopWords: schema.StopWords{}, Columns: []schema.Column{{Name: "body", Type: schema.TextColumn, Store: true}}},
		},
		{
			"name: docs\nkind: documents\nstop_words: [le, la]",
			schema.Schema{Name: "docs", Kind: schema.Documents, Header: &header, Missing: []string{""}, Words: schema.UAX29Lower,
				StopWords: schema.StopWords{"le", "la"}, Columns: []schema.Column{{Name: "text", Type: schema.TextColumn}}},
		},
		{
			"name: docs\nkind: documents",
			schema.Schema{Name: "docs", Kind: schema.Documents, Header: &header, Missing: []string{""}, Words: schema.UAX29Lower,
				StopWords: schema.EnglishStopWords(), Columns: []schema.Column{{Name: "text", Type: schema.TextColumn}}},
		},
	}
	for _, c := range cases {
		s, err := index.Builtin().ParseSchema([]byte(c.yaml))
		if err != nil {
			t.Errorf("%s\n%v", c.yaml, err)
			continue
		}
		if !reflect.DeepEqual(*s, c.want) {
			t.Errorf("%s\n got %+v\nwant %+v", c.yaml, *s, c.want)
		}
		// What the file stores means the same, whatever the defaults will be.
		stored, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := index.Builtin().ParseSchema(stored)
		if err != nil {
			t.Fatalf("%s\n%v", stored, err)
		}
		if !reflect.DeepEqual(again, s) {
			t.Errorf("stored as\n%s\n got %+v\nwant %+v", stored, again, s)
		}
	}
	if len(schema.EnglishStopWords()) != 33 {
		t.Errorf("%d English stop words, want 33", len(schema.EnglishStopWords()))
	}
}

// TestSchemaFaults checks that all faults of a schema are reported together, in words a user understands.
func TestSchemaFaults(t *testing.T) {
	cases := []struct {
		yaml string
		want []string
	}{
		{"", []string{"the schema is empty"}},
		{"name: [", []string{"not valid YAML"}},
		{"name: a\nkind: rows\ncolumns: [{name: a, type: number}]\n---\nname: b", []string{"one YAML document"}},
		{"name: a b\nkind: table\n", []string{`name "a b": an index name is`, `kind "table" is unknown`}},
		{"kind: rows\nngram: 3\nwords: x\nstop_words: english\n", []string{
			`name ""`, "ngram belongs to", "words belongs to", "stop_words belongs to", "at least one column of type number",
		}},
		{"name: a\nkind: vectors\ncolumns: [{name: x, type: category}]", []string{"vectors need at least one column of type vector"}},
		{`
name: a
columns:
- {name: u, type: vector, similarity: l3, dims: 65537, functions: -1, buckets: 1, width: .nan, reach: 65, recall: 1, keep: f64, from: [], layout: rare}
- {name: v, type: vector, similarity: cosine, reach: 1, width: 2, split: ","}
- {name: w, type: vector, learned: AAAA}
- {name: x, type: vector, learned: "?"}
- {name: n, type: number, dims: 2, similarity: l2, functions: 3, width: 1, reach: 0, seed: 1, recall: 0.5, keep: f32, from: "*", learned: AAAA}
`, []string{
			`line 7: not base64`,
			`"u": similarity "l3" is unknown`, `"u": dims 65537`, `"u": functions -1`, `"u": buckets 1`, `"u": width NaN`, `"u": reach: must be 0 to 64`,
			`"u": recall 1: must be above 0`, `"u": keep "f64" is unknown`, `"u": from names no input column`, `"u": layout rare is for`,
			`"v": split belongs to`, `"v": reach belongs to similarity l2 and l1`, `"v": width and buckets belong to the other similarities`,
			`"w": learned: reading parameters of hash functions`,
			`"n": dims belongs to type vector`, `"n": similarity belongs`, `"n": functions belongs`, `"n": width belongs`, `"n": reach belongs`,
			`"n": seed belongs`, `"n": recall belongs`, `"n": keep belongs`, `"n": from belongs`, `"n": learned belongs`,
		}},
		{"name: a\nkind: sets\ncolumns: [{name: x, type: category}]", []string{"sets need at least one column of type set"}},
		{"name: a\ncolumns: [{name: x, type: payload}]\nngram: 2\nstop_words: none\nwords: uax29-lower", []string{
			"records need at least one column", "ngram belongs to kind sequences", "stop_words belongs to kind documents", "words belongs to",
		}},
		{`
name: a
columns:
- {name: n, type: number, fold: true, ngram: 2, idf: true, stop_words: none}
- {name: c, type: category, ngrams: 2, idf_scale: 65, buckets: 3}
- {name: t, type: text, ngrams: 5, ngram: 3, fold: true, stop_words: klingon}
- {name: s, type: string, ngram: 9, split: ",", idf: true}
- {name: e, type: set, edges: exact, layout: sliced, idf_scale: -1}
- {name: b, type: bool, fold: true, buckets: 2}
- {name: d, type: date, edges: log, ngram: 1, layout: rare}
- {name: v, type: matrix}
`, []string{
			`line 6: stop_words "klingon" is unknown`,
			`column "n": fold belongs to types category and set`, `column "n": stop_words belongs to texts of records`,
			`column "n": ngram belongs to type string`, `column "n": idf belongs to types text, category and set`,
			`column "c": buckets belongs to type number`, `column "c": ngrams belongs to texts`, `column "c": idf_scale 65: must be 1 to 64`,
			`column "t": fold belongs`, `column "t": ngram belongs to type string`, `column "t": ngrams 5: must be 1 to 4`,
			`column "s": split belongs`, `column "s": idf belongs`, `column "s": ngram 9: must be 1 to 8`,
			`column "e": edges belongs`, `column "e": idf_scale -1`,
			`column "b": fold belongs`, `column "b": buckets belongs`,
			`column "d": edges "log" is unknown`, `column "d": ngram belongs`, `column "d": layout rare is for`,
			`column "v": type "matrix" is unknown`,
		}},
		{`
name: a
input: {skip_lines: 0}
rescore: {by: l2, column: v, candidates: 0}
columns:
- {name: n, type: number, buckets: 0}
- {name: e, type: number, edges: exact, buckets: 0}
- {name: v, type: vector, buckets: 0, functions: 0, dims: 0, width: 0, recall: 0.0, seed: 0, reach: 0}
- {name: w, type: vector, metric: l2, index: [permutation], permutation: {permutants: 0, fraction: .0, seed: 0}}
- {name: s, type: set, minhash: 0, idf_scale: 0}
- {name: c, type: string, ngram: 0}
- {name: t, type: text, ngrams: 0, idf_scale: }
`, []string{
			"line 4: rescore.candidates is 0, and must be more: leave it out for the default",
			`line 6: column "n": buckets is 0`, `line 7: column "e": buckets is 0`,
			`line 8: column "v": buckets is 0`, `line 8: column "v": functions is 0`, `line 8: column "v": dims is 0`, `line 8: column "v": width is 0`, `line 8: column "v": recall is 0`,
			`line 9: column "w": permutation.permutants is 0`, `line 9: column "w": permutation.fraction is 0`,
			`line 10: column "s": minhash is 0`, `line 10: column "s": idf_scale is 0`, `line 11: column "c": ngram is 0`, `line 12: column "t": ngrams is 0`,
		}},
		{"name: a\nkind: sequences\nngram: 0", []string{"line 3: ngram is 0"}},
		{"name: a\nkind: sequences\nngram: 9\ncolumns: [{name: x, type: text}, {name: y, type: text}, {name: z, type: number}]", []string{
			"ngram 9: must be 1 to 8", "exactly one column of type text, not 2", `column "z": type number: sequences`,
		}},
		{"name: a\nkind: documents\nstop_words: klingon\ncolumns: [{name: x, type: number}]", []string{
			`line 3: stop_words "klingon" is unknown`, "at least one column of type text",
		}},
		{`
name: a
kind: rows
colour: red
columns:
- {name: x, type: number, buckets: -1, bukkets: 4}
- {name: x, type: category, buckets: 5, edges: exact}
- {type: numeric}
- {name: t, type: text}
- {name: e, type: number, edges: exact, buckets: 5}
- {name: f, type: number, edges: log, layout: striped}
- {name: p, type: payload, split: ",", layout: postings, store: true}
- {name: q}
- {name: r, type: number, layout: rare}
`, []string{
			`line 4: unknown field "colour": the schema has name, kind`,
			`line 6: unknown field "bukkets": a column has name, type`,
			`column "x": buckets -1: must be 1 to 1048576`,
			`column "x" is listed twice`,
			`column "x": buckets belongs to type number`,
			`column "x": edges belongs to type number`,
			"column 3: name is missing",
			`column 3: type "numeric" is unknown`,
			`column "t": type text: rows have`,
			`column "e": buckets: edges exact`,
			`column "f": edges "log" is unknown`,
			`column "f": layout "striped" is unknown`,
			`column "p": split belongs to`,
			`column "p": store belongs to`,
			`column "p": layout belongs to`,
			`column "q": type is missing`,
			`column "r": layout rare is for categories and texts; use auto, postings or sliced`,
		}},
	}
	for _, c := range cases {
		_, err := index.Builtin().ParseSchema([]byte(c.yaml))
		if err == nil {
			t.Errorf("%s\nis accepted", c.yaml)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s\n%v\ndoes not tell %q", c.yaml, err, want)
			}
		}
		if lines := strings.Count(err.Error(), "\n") + 1; lines != len(c.want) {
			t.Errorf("%s\n%v\nis %d faults, want %d", c.yaml, err, lines, len(c.want))
		}
	}
}

// TestSchemaPage holds docs/schema.md to the schema: every field has its line, and the examples are schemas.
func TestSchemaPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "schema.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	_, tables, _ := strings.Cut(text, "## The index")
	whole, tables, _ := strings.Cut(tables, "## A column")
	column, types, _ := strings.Cut(tables, "## Types")
	for _, kind := range index.Builtin().Columns {
		if !strings.Contains(types, "\n| `"+kind.Name()+"` |") {
			t.Errorf("type %s is not explained", kind.Name())
		}
	}
	for in, fields := range map[string]reflect.Type{whole: reflect.TypeFor[schema.Schema](), column: reflect.TypeFor[schema.Column]()} {
		lines := 0
		for i := range fields.NumField() {
			name, _, _ := strings.Cut(fields.Field(i).Tag.Get("yaml"), ",")
			if lines += strings.Count(in, "\n| `"+name+"` |"); !strings.Contains(in, "\n| `"+name+"` |") {
				t.Errorf("field %q of a %v is not explained", name, fields.Name())
			}
		}
		if all := strings.Count(in, "\n| `"); all != lines {
			t.Errorf("%d fields of a %v are explained, there are %d", all, fields.Name(), lines)
		}
	}
	var example strings.Builder
	examples := 0
	for line := range strings.Lines(text + "\n") {
		if code, ok := strings.CutPrefix(line, "    "); ok {
			example.WriteString(code)
		} else if example.Len() > 0 {
			if _, err := index.Builtin().ParseSchema([]byte(example.String())); err != nil {
				t.Errorf("%s\n%v", example.String(), err)
			}
			example.Reset()
			examples++
		}
	}
	if examples != 8 {
		t.Errorf("%d examples", examples)
	}
}

func TestLoadSchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.yaml")
	if _, err := index.Builtin().LoadSchema(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent schema: %v", err)
	}
	if err := os.WriteFile(path, []byte("name: a\nkind: sequences\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if s, err := index.Builtin().LoadSchema(path); err != nil || s.NGram != 3 {
		t.Errorf("%+v, %v", s, err)
	}
	if err := os.WriteFile(path, []byte("name: a\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := index.Builtin().LoadSchema(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error without the path: %v", err)
	}
}

func FuzzParseSchema(f *testing.F) {
	f.Add([]byte("name: adult\nkind: rows\ncolumns:\n- {name: age, type: number, buckets: 3}\n"))
	f.Add([]byte("name: d\nkind: documents\nstop_words: [a, b]\nmissing: []\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := index.Builtin().ParseSchema(data)
		if err != nil {
			return
		}
		stored, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := index.Builtin().ParseSchema(stored)
		if err != nil {
			t.Fatalf("stored as\n%s\n%v", stored, err)
		}
		if !reflect.DeepEqual(again, s) {
			t.Fatalf("stored as\n%s\n got %+v\nwant %+v", stored, again, s)
		}
	})
}
