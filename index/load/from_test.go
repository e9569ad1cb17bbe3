package load

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/geniemq/geniemq/index/schema"
)

// Columns that are made of several of the input's, by names and by patterns, in each format.
func TestFrom(t *testing.T) {
	s := &schema.Schema{Name: "a", Missing: []string{""}, Columns: []schema.Column{
		{Name: "v", Type: schema.VectorColumn, From: schema.Names{"x*"}},
		{Name: "w", Type: schema.VectorColumn, From: schema.Names{"y", "x2"}},
		{Name: "y", Type: schema.NumberColumn},
	}}
	cells := func(rec *schema.Record) (out [][]string) {
		for i := range rec.Cells {
			out = append(out, slices.Clone(rec.Cells[i].Values))
		}
		return out
	}
	want := [][][]string{{{"1", "2", "10"}, {"7", "2"}, {"7"}}, {nil, nil, nil}}
	path := filepath.Join(t.TempDir(), "a.parquet")
	type row struct {
		X10 *float64 `parquet:"x10,optional"`
		X1  *float64 `parquet:"x1,optional"`
		Y   *float64 `parquet:"y,optional"`
		X2  *float64 `parquet:"x2,optional"`
	}
	n := []float64{10, 1, 7, 2}
	if err := parquet.WriteFile(path, []row{{&n[0], &n[1], &n[2], &n[3]}, {}, {nil, &n[1], &n[2], &n[3]}}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"a.csv":     "x10,x1,y,x2\n10,1,7,2\n,,,\n,1,7,2\n",
		"a.jsonl":   "{\"x10\":10,\"x1\":1,\"y\":7,\"z\":[],\"x2\":2}\n{\"x2\":null}\n{\"x1\":1,\"x2\":2,\"x10\":null,\"y\":7}\n",
		"a.parquet": string(data),
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		r, err := Open(path, s, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			var rec schema.Record
			if err := r.Next(&rec); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for j, cell := range cells(&rec) {
				if !slices.Equal(cell, want[i][j]) {
					t.Errorf("%s, record %d: %v, want %v", name, i, cells(&rec), want[i])
				}
			}
		}
		// One value is not there: its cell is at fault, and no other.
		var rec schema.Record
		if err := r.Next(&rec); err != nil || !strings.Contains(rec.Cells[0].Fault, "only 2 of the 3 input columns that it is made of have a value") ||
			rec.Cells[1].Fault != "" || !slices.Equal(rec.Cells[1].Values, []string{"7", "2"}) {
			t.Errorf("%s: %+v, %v", name, rec, err)
		}
		r.Close()
	}
	lost := &schema.Schema{Name: "a", Columns: []schema.Column{{Name: "v", Type: schema.VectorColumn, From: schema.Names{"q*"}}}}
	if _, err := NewReader(strings.NewReader("x10,x1\n"), "a.csv", lost, Options{}); err == nil || !strings.Contains(err.Error(), `no column in the header matches q*, of which column "v" is made: the file has x10, x1`) {
		t.Errorf("nothing matches: %v", err)
	}
	if _, err := Open(path, lost, Options{}); err == nil || !strings.Contains(err.Error(), `no field matches q*, of which column "v" is made; its fields are `) {
		t.Errorf("nothing matches: %v", err)
	}
	header := false
	lost.Header = &header
	if _, err := NewReader(strings.NewReader("1,2\n"), "a.csv", lost, Options{}); err == nil || !strings.Contains(err.Error(), "without a header") {
		t.Errorf("no header: %v", err)
	}

	// Without a header the columns in their places have the names.
	placed := &schema.Schema{Name: "a", Header: &header, Key: "k", Missing: []string{""}, Columns: []schema.Column{
		{Name: "v", Type: schema.VectorColumn, From: schema.Names{"q*"}}, {Name: "q10", Type: schema.SkipColumn}, {Name: "k", Type: schema.SkipColumn},
		{Name: "q9", Type: schema.NumberColumn}, {Name: "w", Type: schema.VectorColumn, From: schema.Names{"q10", "q9"}},
	}}
	r, err := NewReader(strings.NewReader("1,a,2\n3,b,4\n5,c\n"), "a.csv", placed, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{{"a", "2,1", "", "", "2", "1,2"}, {"b", "4,3", "", "", "4", "3,4"}} {
		var rec schema.Record
		if err := r.Next(&rec); err != nil {
			t.Fatal(err)
		}
		got := []string{rec.Key}
		for _, cell := range cells(&rec) {
			got = append(got, strings.Join(cell, ","))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if err := r.Next(new(schema.Record)); !errors.As(err, new(*BadRecord)) {
		t.Errorf("a record of two fields: %v", err)
	}
}

// Patterns and the order of names.
func TestFromNames(t *testing.T) {
	for _, c := range []struct {
		entry, name string
		is          bool
	}{
		{"x*", "x1", true}, {"x*", "x", true}, {"x*", "ax", false}, {"*x", "aax", true}, {"a*b*c", "a1b2c", true}, {"a*b*c", "abc", true},
		{"a*b*c", "acb", false}, {"x", "x1", false}, {"*", "", true}, {"a*a", "a", false}, {"[x]*", "[x]1", true},
	} {
		if matches(c.entry, c.name) != c.is {
			t.Errorf("%q matches %q: %v", c.entry, c.name, !c.is)
		}
	}
	names := []string{"x10", "x2", "x1b", "x01", "x1", "x", "y1"}
	slices.SortFunc(names, naturally)
	if want := []string{"x", "x01", "x1", "x1b", "x2", "x10", "y1"}; !reflect.DeepEqual(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
}
