package load

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/geniemq/geniemq/index/schema"
)

// What is null within a list is the same in Parquet as in JSON: a vector or a point has it in a place and is at fault, a set has an element less.
func TestNullsInLists(t *testing.T) {
	dir := t.TempDir()
	list := func(of parquet.Type) parquet.Node {
		return parquet.Optional(parquet.List(parquet.Optional(parquet.Leaf(of))))
	}
	s := parquet.NewSchema("a", parquet.Group{"v": list(parquet.FloatType), "w": list(parquet.Int64Type), "p": list(parquet.DoubleType), "s": list(parquet.ByteArrayType)})
	file, err := os.Create(filepath.Join(dir, "a.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w := parquet.NewWriter(file, s)
	// A list of optional elements: 0 is no list, 1 an empty one, 2 a null within, 3 a value.
	field := map[string]int{"p": 0, "s": 1, "v": 2, "w": 3}
	cell := func(name string, values ...any) (row parquet.Row) {
		if len(values) == 0 {
			return parquet.Row{parquet.NullValue().Level(0, 0, field[name])}
		}
		for i, v := range values {
			value, level := parquet.ValueOf(v), 3
			if v == nil {
				level = 2
			}
			row = append(row, value.Level(min(1, i), level, field[name]))
		}
		return row
	}
	for _, row := range []parquet.Row{
		slices.Concat(cell("p", 1.5, 2.5), cell("s", []byte("a"), nil, []byte("b")), cell("v", float32(9), nil, float32(10)), cell("w", int64(1), int64(2), nil)),
		slices.Concat(cell("p", nil, 1.5, 2.5), cell("s", nil), cell("v", nil, float32(9), float32(10)), cell("w", nil)),
		slices.Concat(cell("p"), cell("s"), cell("v"), cell("w")),
		{
			parquet.NullValue().Level(0, 1, 0), parquet.NullValue().Level(0, 1, 1), parquet.NullValue().Level(0, 1, 2), parquet.NullValue().Level(0, 1, 3),
		},
		slices.Concat(cell("p", 1.5, 2.5), cell("s", []byte("a")), cell("v", float32(9), float32(10)), cell("w", int64(1), int64(2))),
	} {
		if _, err := w.WriteRows([]parquet.Row{row}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	text := `{"p":[1.5,2.5],"s":["a",null,"b"],"v":[9,null,10],"w":[1,2,null]}
{"p":[null,1.5,2.5],"s":[null],"v":[null,9,10],"w":[null]}
{"p":null,"s":null,"v":null,"w":null}
{"p":[],"s":[],"v":[],"w":[]}
{"p":[1.5,2.5],"s":["a"],"v":[9,10],"w":[1,2]}
`
	if err := os.WriteFile(filepath.Join(dir, "a.jsonl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	columns := &schema.Schema{Name: "a", Missing: []string{""}, Columns: []schema.Column{
		{Name: "v", Type: schema.VectorColumn}, {Name: "w", Type: schema.VectorColumn}, {Name: "s", Type: schema.SetColumn}, {Name: "p", Type: schema.PointColumn},
	}}
	read := func(name string) []schema.Record {
		r, err := Open(filepath.Join(dir, name), columns, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		records, err := r.All(nil)
		if err != nil || len(records) != 5 {
			t.Fatalf("%s: %d records, %v", name, len(records), err)
		}
		return records
	}
	got, want := read("a.parquet"), read("a.jsonl")
	for i := range want {
		for j := range 3 {
			g, w := &got[i].Cells[j], &want[i].Cells[j]
			if !slices.Equal(g.Vector, w.Vector) || !slices.Equal(g.Values, w.Values) || g.Fault != w.Fault {
				t.Errorf("row %d, column %s: %+v of Parquet, %+v of JSON", i, columns.Columns[j].Name, *g, *w)
			}
		}
	}
	if fault := got[0].Cells[0].Fault; !strings.Contains(fault, "element 1 of the vector is null") {
		t.Errorf("a null in a vector: %q", fault)
	}
	// JSON keeps points as they are, for the column to read.
	if fault := got[1].Cells[3].Fault; !strings.Contains(fault, "a coordinate is null") || got[0].Cells[3].Fault != "" || !got[2].Cells[3].Empty() || !got[3].Cells[3].Empty() {
		t.Errorf("points: %+v", got)
	}
}

// A number that no vector can have makes its cell invalid, as in JSON, and is no fault of its record.
func TestParquetNaN(t *testing.T) {
	path := writeParquet(t, []parquetRow{{ID: "a", X: []float32{1, float32(math.NaN())}, Tags: []string{"x"}}})
	r, err := Open(path, parquetSchema(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var rec schema.Record
	if err := r.Next(&rec); err != nil || !strings.Contains(rec.Cells[0].Fault, "element 1 of the vector is NaN") || rec.Cells[1].Empty() {
		t.Errorf("%+v, %v", rec, err)
	}
}
