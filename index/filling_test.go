package index_test

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/filling"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestFillings: cells that a column cannot take are missing and counted, with any number of workers as one by one, and what is built is what is built of
// empty cells.
func TestFillings(t *testing.T) {
	rng := seeded.Rand(t)
	const text = "name: x\nkey: id\ncolumns:\n- {name: n, type: number, store: true}\n- {name: d, type: date}\n- {name: b, type: bool, invalid: error}\n- {name: p, type: point}\n- {name: o, type: payload}\n- {name: s, type: skip}\n"
	cell := func(values ...string) schema.Cell { return schema.Cell{Values: values} }
	var records, cleaned []schema.Record
	want := map[string]*filling.Column{}
	for _, name := range []string{"n", "d", "b", "p", "o"} {
		want[name] = &filling.Column{Name: name}
	}
	refused := 0
	for i := range 5000 {
		good := [][]string{{"1.5", "2024-05-17", "yes", "1,2", "x", "x"}, {"-3", "2024", "f", "0,0", "y", "y"}}
		rec := schema.Record{Line: int64(i + 2), Key: fmt.Sprint(rng.IntN(4900)), Cells: make([]schema.Cell, 6)}
		clean := schema.Record{Line: rec.Line, Key: rec.Key, Cells: make([]schema.Cell, 6)}
		bad := false
		for c := range rec.Cells {
			switch rng.IntN(4) {
			case 0: // no value
			case 1:
				if c < 4 && (c != 2 || rng.IntN(100) == 0) {
					rec.Cells[c], bad = cell("call"), bad || c == 2
				}
			default:
				rec.Cells[c] = cell(good[rng.IntN(2)][c])
				clean.Cells[c] = rec.Cells[c]
			}
		}
		records = append(records, rec)
		if bad {
			refused++
			continue
		}
		cleaned = append(cleaned, clean)
	}
	build := func(records []schema.Record, one bool) ([]byte, filling.Columns, int) {
		s, err := index.Builtin().ParseSchema([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		o, err := onebyone.NewObjects(s, index.BuilderOptions{Workers: 1 + rng.IntN(4)})
		if err != nil {
			t.Fatal(err)
		}
		bad, next := 0, 0
		add := func(rec *schema.Record) error { // the builder may empty cells
			if next == len(records) {
				return io.EOF
			}
			*rec = records[next]
			rec.Cells = append([]schema.Cell(nil), rec.Cells...)
			next++
			return nil
		}
		if one {
			for range records {
				var rec schema.Record
				if err := add(&rec); err != nil {
					t.Fatal(err)
				}
				if o.Add(&rec) != nil {
					bad++
				}
			}
		} else if err := o.AddAll(context.Background(), index.Source{Next: add, Bad: func(error) error { bad++; return nil }}); err != nil {
			t.Fatal(err)
		}
		data, err := o.Bytes(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return data, o.Fillings(), bad
	}
	data, fillings, bad := build(records, false)
	single, singly, alone := build(records, true)
	if string(data) != string(single) || !reflect.DeepEqual(fillings, singly) || bad != alone {
		t.Errorf("one by one: %d and %d bad, %+v, together %+v", alone, bad, singly, fillings)
	}
	plain, filled, _ := build(cleaned, false)
	if string(plain) != string(data) {
		t.Error("what is built is not what is built of empty cells")
	}
	seen := map[string]bool{}
	for _, rec := range records {
		if seen[rec.Key] || len(rec.Cells[2].Values) > 0 && rec.Cells[2].Values[0] == "call" {
			continue
		}
		seen[rec.Key] = true
		for c, name := range []string{"n", "d", "b", "p", "o"} {
			f := want[name]
			switch values := rec.Cells[c].Values; {
			case len(values) == 0:
				f.Missing++
			case values[0] == "call":
				f.Missing++
				f.Invalid++
			default:
				f.Filled++
			}
		}
	}
	if len(fillings) != len(want)+1 || bad != len(records)-len(seen) || refused == 0 {
		t.Fatalf("%d columns, %d bad records of %d", len(fillings), bad, len(records)-len(seen))
	}
	for i, f := range fillings {
		w := want[f.Name]
		if w == nil {
			continue // it is skipped
		}
		if f.Filled != w.Filled || f.Missing != w.Missing || f.Invalid != w.Invalid || filled[i].Filled != w.Filled || filled[i].Invalid != 0 {
			t.Errorf("column %s: %+v, want %+v", f.Name, f, w)
		}
		if few := min(int(w.Invalid), 3); len(f.Examples) != few || few > 0 && (f.Examples[0].Reason == "" || f.Examples[0].Line < 2) {
			t.Errorf("column %s: examples %v", f.Name, f.Examples)
		}
	}
}

// What a storage cannot keep, what has no angle, and what is no place on earth are invalid cells: their objects stay, without a value.
func TestFillingsByDistance(t *testing.T) {
	for column, bad := range map[string]string{
		"type: vector, metric: cosine": "0 0", "type: vector, metric: angular": "0 0", "type: vector, metric: l4": "1e35 1", "type: point": "91,2",
		"type: vector, storage: u8": "0.5 1", "type: vector, storage: f16": "1e5 1", "type: vector, storage: u8, index: [lsh]": "300 1",
	} {
		for _, invalid := range []string{"", ", invalid: error"} {
			s, err := index.Builtin().ParseSchema([]byte("name: x\ncolumns: [{name: v, " + column + invalid + "}]"))
			if err != nil {
				t.Fatal(err)
			}
			var records []schema.Record
			for _, text := range []string{"1,2", bad, "3,4"} {
				records = append(records, schema.Record{Line: int64(len(records) + 1), Cells: []schema.Cell{{Values: []string{text}}}})
			}
			next, err := index.Builtin().Learn(s, source(records), nil)
			if err != nil {
				t.Fatal(err)
			}
			o, err := index.NewObjects(s, index.BuilderOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var refused []error
			if err := o.AddAll(t.Context(), index.Source{Next: next, Bad: func(err error) error {
				refused = append(refused, err)
				return nil
			}}); err != nil {
				t.Fatal(err)
			}
			f := o.Fillings()[0]
			if invalid == "" && (o.Objects() != 3 || f.Filled != 2 || f.Invalid != 1 || refused != nil) || invalid != "" && (o.Objects() != 2 || len(refused) != 1) {
				t.Errorf("%s%s: %d objects, %+v, refused %v", column, invalid, o.Objects(), f, refused)
			}
		}
	}
}
