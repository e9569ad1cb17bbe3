package index_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/schema"
)

// How many dimensions vectors have, the first one says that the column takes: what is left of a cell at fault says nothing of the others.
func TestDimensionsAreOfASoundVector(t *testing.T) {
	for _, c := range []struct {
		column string
		first  schema.Cell
	}{
		{"", schema.Cell{Vector: []float32{1, 2}, Fault: `element 0 of the vector is "x"`}},
		{"metric: l2", schema.Cell{Vector: []float32{1, 2}, Fault: "element 0 of the vector is null"}},
		{"metric: l2", schema.Cell{Values: []string{"1 NaN"}}},
		{"", schema.Cell{Values: []string{"1 x"}}},
		{"metric: cosine", schema.Cell{Values: []string{"0 0"}}},
		{"metric: l4", schema.Cell{Values: []string{"1 1e38"}}},
		{"storage: u8", schema.Cell{Values: []string{"1 300"}}},
		{"keep: u8", schema.Cell{Values: []string{"1 .5"}}},
		{"storage: f16", schema.Cell{Values: []string{"1 1e5"}}},
	} {
		s := parseSchema(t, "name: a\ncolumns: [{name: v, type: vector, "+c.column+"}]")
		s.Columns[0].Invalid = schema.InvalidMissing
		var records []schema.Record
		for i := range 100 {
			records = append(records, schema.Record{Line: int64(i + 1), Cells: []schema.Cell{{Vector: []float32{1, 2, float32(i)}}}})
		}
		records[0].Cells[0] = c.first
		next, err := index.Builtin().Learn(s, source(records), nil)
		if err != nil {
			t.Errorf("%s, %+v: %v", c.column, c.first, err)
			continue
		}
		b, err := index.NewObjects(s, index.BuilderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.AddAll(t.Context(), index.Source{Next: next}); err != nil {
			t.Fatal(err)
		}
		if f := b.Fillings()[0]; s.Columns[0].Dims != 3 || f.Filled != 99 || f.Invalid != 1 {
			t.Errorf("%s, %+v: %d dimensions, %+v", c.column, c.first, s.Columns[0].Dims, f)
		}
	}
}

// A column may have its first value late, beside one that has them from the first record on: both learn, and no record is lost.
func TestValuesThatComeLate(t *testing.T) {
	s := parseSchema(t, "name: a\ncolumns: [{name: v, type: vector, metric: l2}, {name: w, type: vector, metric: l2}]")
	var records []schema.Record
	for i := range 300 {
		rec := schema.Record{Cells: []schema.Cell{{Values: []string{"1 2"}}, {}}}
		if i > 250 {
			rec.Cells[1].Values = []string{"1 2 3"}
		}
		records = append(records, rec)
	}
	next, err := index.Builtin().Learn(s, source(records), nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.Columns[0].Dims != 2 || s.Columns[1].Dims != 3 {
		t.Errorf("%d and %d dimensions", s.Columns[0].Dims, s.Columns[1].Dims)
	}
	n := 0
	for err == nil {
		if err = next(new(schema.Record)); err == nil {
			n++
		}
	}
	if n != len(records) || !errors.Is(err, io.EOF) {
		t.Errorf("%d records are given again, and %v", n, err)
	}
}

// Where no dimensions can be learned, it is said whether there is no value or none that is sound.
func TestNothingToLearnFrom(t *testing.T) {
	for _, c := range []struct {
		cell    schema.Cell
		noValue bool
		want    string
	}{
		{schema.Cell{}, true, "there is no vector"},
		{schema.Cell{Values: []string{"red"}}, false, `element 0 is "red", which is no number`},
		{schema.Cell{Vector: []float32{1}, Fault: "it is at fault"}, false, "it is at fault"},
	} {
		s := parseSchema(t, "name: a\ncolumns: [{name: v, type: vector, metric: l2}]")
		_, err := index.Builtin().Learn(s, source([]schema.Record{{Cells: []schema.Cell{c.cell}}}), nil)
		if err == nil || errors.As(err, new(*index.NoValueError)) != c.noValue || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "give dims") {
			t.Errorf("%+v: %v", c.cell, err)
		}
	}
}
