package translate

import (
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/wire"
	"github.com/geniemq/geniemq/wire/value"
)

// points translates for an index of vectors of 3 elements and colours.
func points(t *testing.T) *Translator {
	t.Helper()
	spec, err := index.Builtin().ParseSchema([]byte("name: p\ncolumns:\n- {name: at, type: vector, dims: 3, functions: 8, width: 1, reach: 0}\n- {name: c, type: category}"))
	if err != nil {
		t.Fatal(err)
	}
	left := 70
	next, err := index.Builtin().Learn(spec, func(rec *schema.Record) error {
		if left--; left < 0 {
			return io.EOF
		}
		*rec = schema.Record{Cells: []schema.Cell{{Vector: []float32{float32(left), float32(left % 7), 1}}, {Values: []string{fmt.Sprint(left % 3)}}}}
		return nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	o, err := index.NewObjects(spec, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.AddAll(t.Context(), index.Source{Next: next}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "p.gmq")
	if err := o.WriteFile(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	x, err := index.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	e, err := New("p", x, 0)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestPreparedIsUsed: what is prepared of vectors, as such and in rows, is what plans are made of, and of nothing else is anything prepared.
func TestPreparedIsUsed(t *testing.T) {
	e := points(t)
	tree := func(x ...float64) *wire.Other {
		b := new(value.Builder).Array()
		for _, v := range x {
			b.Float(v)
		}
		tree, err := b.End().Tree()
		if err != nil {
			t.Fatal(err)
		}
		return &wire.Other{Value: tree, Refusal: &wire.Error{}}
	}
	colour := wire.Condition{Attr: "c", Value: wire.String("1")}
	queries := []wire.QueryOrError{
		{Query: wire.Query{K: 1, Vector: []float32{1, 2, 3}}},
		{Query: wire.Query{K: 1, Row: []wire.Condition{colour, {Attr: "at", Other: tree(3, 2, 1)}}}},
		{Query: wire.Query{K: 1, Row: []wire.Condition{colour}}},
		{Query: wire.Query{K: 1, Items: []wire.Condition{{Attr: "at", Other: tree(5, 0, 1)}, colour}}},
		{Query: wire.Query{K: 1, Vector: []float32{1}}},
		{Err: &wire.Error{}},
	}
	prepared := e.Prepare(queries)
	if len(prepared) != len(queries) {
		t.Fatalf("%d of %d queries", len(prepared), len(queries))
	}
	for i := range queries {
		if queries[i].Err != nil {
			continue
		}
		plan := func(p Prepared) *Query {
			to := &Query{Prepared: p}
			e.Plan(to, &queries[i].Query)
			to.Prepared = nil
			return to
		}
		alone := plan(nil)
		if got := plan(prepared[i]); !reflect.DeepEqual(got, alone) {
			t.Errorf("query %d: %+v prepared, %+v alone", i, got, alone)
		}
		poisoned := false
		for _, keywords := range prepared[i] {
			for j := range keywords {
				keywords[j] ^= 1
				poisoned = true
			}
		}
		if poisoned != (i == 0 || i == 1 || i == 3) {
			t.Errorf("query %d: prepared %v", i, poisoned)
		}
		if poisoned && reflect.DeepEqual(plan(prepared[i]), alone) {
			t.Errorf("query %d: what was prepared is not used", i)
		}
	}
	if got := e.Prepare(queries[:1]); got != nil {
		t.Errorf("one query is prepared: %v", got)
	}
	// All together, in any number, they are what they are alone.
	random := seeded.Rand(t)
	many := make([]wire.QueryOrError, 300)
	for i := range many {
		x := []float64{random.NormFloat64() * 50, random.NormFloat64(), 1}
		if many[i].Query.K = 1; random.IntN(2) == 0 {
			many[i].Query.Vector = []float32{float32(x[0]), float32(x[1]), 1}
		} else {
			many[i].Query.Row = []wire.Condition{{Attr: "at", Other: tree(x...)}}
		}
	}
	for i, p := range e.Prepare(many) {
		with, without := &Query{Prepared: p}, &Query{}
		e.Plan(with, &many[i].Query)
		e.Plan(without, &many[i].Query)
		if with.Prepared = nil; without.Err != nil || !reflect.DeepEqual(with, without) {
			t.Fatalf("%+v: %+v prepared, %+v alone", many[i].Query, with, without)
		}
	}
}
