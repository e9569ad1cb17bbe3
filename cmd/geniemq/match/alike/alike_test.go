package alike

import (
	"math"
	"reflect"
	"strconv"
	"testing"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

func cell(texts []string) *schema.Cell { return &schema.Cell{Values: texts} }

func TestKnown(t *testing.T) {
	text, set := Column{Type: schema.TextColumn}, Column{Type: schema.SetColumn}
	str, number, year := Column{Type: schema.StringColumn}, Column{Type: schema.NumberColumn}, Column{Type: schema.NumberColumn, Exact: true}
	date, category := Column{Type: schema.DateColumn}, Column{Type: schema.CategoryColumn}
	for _, c := range []struct {
		column *Column
		a, b   []string
		want   float64
	}{
		{&text, []string{"Red  Shoes, size 7"}, []string{"shoes: RED"}, 2. * 2 / (4 + 2)},
		{&text, []string{"Émile"}, []string{"emile"}, 1},
		{&text, []string{"!"}, []string{"?"}, 1},
		{&set, []string{"a", "b c"}, []string{"b"}, 2. / 4},
		{&str, []string{"kitten"}, []string{"sitting"}, 1 - 3./7},
		{&number, []string{"80"}, []string{"100"}, .8},
		{&number, []string{"-80"}, []string{"100"}, 0},
		{&number, []string{"0"}, []string{"0.0"}, 1},
		{&year, []string{"1999"}, []string{"2000"}, 0},
		{&year, []string{"1999"}, []string{"1999.0"}, 1},
		{&date, []string{"2024-01-01"}, []string{"2024-03-14"}, .8},
		{&date, []string{"2024"}, []string{"1024"}, 0},
		{&category, []string{"a", "B"}, []string{"b"}, 1},
		{&category, []string{"a"}, []string{"b"}, 0},
	} {
		if got := c.column.Alike(c.column.Value(cell(c.a)), c.column.Value(cell(c.b))); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v and %v of a %s column: %v, not %v", c.a, c.b, c.column.Type, got, c.want)
		}
	}
}

// TestBounds: whatever values are, they are alike from 0 to 1, the same the other way round, and all alike to themselves.
func TestBounds(t *testing.T) {
	r := seeded.Rand(t)
	draw := func() (values []string) {
		for range 1 + r.IntN(3) {
			text := ""
			for range r.IntN(6) {
				text += []string{"a", "B", "é", " ", "-", "7", "2024", ".", "日", "\x00"}[r.IntN(10)]
			}
			if r.IntN(2) == 0 {
				text = strconv.FormatFloat(r.NormFloat64(), 'g', -1, 64)
			}
			values = append(values, text)
		}
		return values
	}
	for range 2000 {
		a, b := draw(), draw()
		for _, kind := range []schema.ColumnType{
			schema.NumberColumn, schema.DateColumn, schema.TextColumn, schema.SetColumn, schema.StringColumn, schema.CategoryColumn, schema.BoolColumn,
		} {
			c := Column{Type: kind, Exact: r.IntN(2) == 0}
			x, y := c.Alike(c.Value(cell(a)), c.Value(cell(b))), c.Alike(c.Value(cell(b)), c.Value(cell(a)))
			if !Compares(kind) || x != y || !(x >= 0 && x <= 1) {
				t.Fatalf("%q and %q of a %s column: %v and %v", a, b, kind, x, y)
			}
			if own := c.Alike(c.Value(cell(a)), c.Value(cell(a))); own != 1 {
				t.Fatalf("%q of a %s column with itself: %v", a, kind, own)
			}
		}
	}
	if Compares(schema.TreeColumn) {
		t.Error("trees are compared")
	}
}

func TestScore(t *testing.T) {
	var s Score
	if s.Value() != 0 {
		t.Error("nothing is alike")
	}
	s.Add(1, 3)
	s.Add(.5, 1)
	if s.Value() != 3.5/4 {
		t.Error(s.Value())
	}
	s.Add(7, 4)
	if s.Value() != 7.5/8 {
		t.Error(s.Value())
	}
}

func TestStored(t *testing.T) {
	got, err := Stored([]byte(`{"a":"x","b":[1,"y",null,[2],{"z":1}],"c":null,"d":{"e":1},"f":1.50,"g":true,"h":" "}`))
	want := map[string][]string{"a": {"x"}, "b": {"1", "y"}, "c": nil, "d": nil, "f": {"1.50"}, "g": {"true"}, "h": nil}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v %v", got, err)
	}
	if got, err := Stored(nil); got != nil || err != nil {
		t.Error(got, err)
	}
	if _, err := Stored([]byte("[")); err == nil {
		t.Error("no object is taken")
	}
}

func FuzzStored(f *testing.F) {
	f.Add([]byte(`{"a":["x",1,true,null]}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		stored, err := Stored(payload)
		for name, values := range stored {
			for _, v := range values {
				if err != nil || v == "" {
					t.Errorf("%q has %q, %v", name, v, err)
				}
			}
		}
	})
}
