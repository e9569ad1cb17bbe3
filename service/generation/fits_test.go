package generation

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/jsonlines"
)

// generationOf is a generation of an index of a few records by a schema, not loaded.
func generationOf(t *testing.T, text string) *generation {
	t.Helper()
	lines := strings.Repeat(`{"t":"red shoes","c":"5","n":4,"s":"ab1","e":["x","y"],"v":[1,2,3],"tree":"{a{b}}","d":"2024-05-17","b":true}`+"\n"+`{"v":[3,1,2],"t":"hat"}`+"\n", 40)
	path := filepath.Join(t.TempDir(), "n.gmq")
	if err := os.WriteFile(path, jsonlines.Build(t, "name: n\n"+text, lines), 0o600); err != nil {
		t.Fatal(err)
	}
	g, err := open(path, "", index.Builtin(), 0, store.Effort{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.file.close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// TestFits: a version takes the place of another if whoever asked that one may go on asking: all attributes and columns are there, of the same types, and
// what hits are compared by is kept. More may be there, and what only makes a difference to answers may be another.
func TestFits(t *testing.T) {
	const records = "columns: [{name: t, type: text}, {name: c, type: category}, {name: n, type: number}, {name: s, type: string}, {name: e, type: set}, " +
		"{name: v, type: vector, functions: 8}, {name: tree, type: tree}, {name: d, type: date}, {name: b, type: bool}]"
	without := func(name string) string {
		at := strings.Index(records, "{name: "+name+",")
		end := at + strings.Index(records[at:], "}") + 1
		return strings.Replace(records[:at]+strings.TrimPrefix(records[end:], ", "), ", ]", "]", 1)
	}
	with := func(old, changed string) string {
		if !strings.Contains(records, old) {
			t.Fatalf("%s is not there", old)
		}
		return strings.Replace(records, old, changed, 1)
	}
	const documents = "kind: documents\ncolumns: [{name: t, type: text%s}, {name: c, type: category}]"
	for _, c := range []struct{ served, newer, refused string }{
		{records, records, ""},
		{records, "rescore: {by: dice, column: t}\n" + records, ""},
		{records, with("type: category}", "type: category, fold: true, store: true}"), ""},
		{records, with("type: number}", "type: number, buckets: 7, edges: equi-depth}"), ""},
		{records, with("functions: 8", "functions: 16"), ""},
		{without("c"), records, ""},
		{records, without("t"), "no attribute t,"},
		{records, without("c"), "no attribute c,"},
		{records, without("v"), "no attribute v (0),"},
		{records, without("tree"), "no attribute tree,"},
		{records, with("functions: 8", "functions: 7"), "no attribute v (7),"},
		{records, with("{name: n, type: number}", "{name: n, type: category}"), "attribute n is of another type"},
		{records, with("{name: c, type: category}", "{name: c, type: number}"), "attribute c is of another type"},
		{records, with("{name: d, type: date}", "{name: d, type: category}"), "attribute d is of another type"},
		{records, with("{name: d, type: date}", "{name: d, type: payload}"), "no attribute d,"},
		{records, with("{name: c, type: category}", "{name: c, type: set}"), "column c is of type set, and that of the one that is served of type category"},
		{records, with("{name: e, type: set}", "{name: e, type: category}"), "column e is of type category"},
		{records, with("{name: s, type: string}", "{name: s, type: text}"), "no attribute s (whole),"},
		{records, with("{name: b, type: bool}", "{name: b, type: category}"), "column b is of type category"},
		{records, with("functions: 8", "functions: 8, keep: none"), "it keeps nothing of column v, and the one that is served vectors"},
		{with("functions: 8", "functions: 8, keep: none"), records, ""},
		{records, with("{name: e, type: set}", "{name: e, type: set, minhash: 4}"), "no attribute e,"},
		{records, with("functions: 8", "functions: 8, index: [lsh, scan]"), ""},
		{with("functions: 8", "functions: 8, index: [lsh, scan]"), with("functions: 8", "functions: 8, index: [lsh, tree]"), ""},
		{with("functions: 8", "functions: 8, index: [lsh, scan]"), records, "column v is not searched by distance l2"},
		{with("functions: 8", "functions: 8, metric: l2, index: [lsh]"), with("functions: 8", "functions: 8, metric: l1, index: [lsh]"), "column v is not searched by distance l2"},
		{records, "kind: rows\ncolumns: [{name: c, type: category}]", "it holds rows, and the one that is served records"},
		{strings.Replace(documents, "%s", "", 1), strings.Replace(documents, "%s", ", keep: terms", 1), ""},
		{strings.Replace(documents, "%s", ", keep: terms", 1), strings.Replace(documents, "%s", "", 1), "it keeps nothing of column t, and the one that is served terms"},
		{"kind: documents\nrescore: {by: bm25, column: t}\ncolumns: [{name: t, type: text}]", strings.Replace(documents, "%s", ", keep: terms", 1), ""},
	} {
		err := generationOf(t, c.served).fits(generationOf(t, c.newer))
		if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s\nin the place of\n%s\n%v, want %q", c.newer, c.served, err, c.refused)
		}
	}
}
