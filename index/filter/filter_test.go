package filter

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestIn compares with the definition of a range.
func TestIn(t *testing.T) {
	ranges := []Range{{math.Inf(-1), -5}, {-1, -1}, {0, 2}, {2.5, math.Inf(1)}}
	for _, v := range []float64{math.Inf(-1), -6, -5, -4.9, -1, -0.5, math.Copysign(0, -1), 0, 1, 2, 2.2, 2.5, 7, math.Inf(1), math.NaN()} {
		want := slices.ContainsFunc(ranges, func(r Range) bool { return r.Min <= v && v <= r.Max })
		if In(ranges, v) != want {
			t.Errorf("%v in the ranges: %v", v, !want)
		}
	}
	if In(nil, 1) || In(nil, math.NaN()) {
		t.Error("something lies in no range")
	}
}

// random is a filter of attributes with ten keywords each.
func random(rng *rand.Rand) *Filter {
	f := &Filter{}
	for range rng.IntN(4) {
		f.StartGroup(rng.IntN(2) == 0)
		for range rng.IntN(3) {
			f.StartClause(rng.Uint32N(3))
			for lo := rng.Uint32N(4); lo < 9; lo += 2 + rng.Uint32N(4) {
				if f.AddSpan(lo, lo+1); rng.IntN(3) == 0 {
					f.AddEdge(lo, lo+2)
				}
			}
			f.AddRange(float64(rng.IntN(2)), 2)
		}
	}
	return f
}

// TestEqual: what is asked again is equal and hashes alike, and whatever is changed makes it another filter.
func TestEqual(t *testing.T) {
	rng := seeded.Rand(t)
	for range 2000 {
		f := random(rng)
		g := &Filter{slices.Clone(f.Groups), slices.Clone(f.Clauses), slices.Clone(f.Spans), slices.Clone(f.Edges), slices.Clone(f.Ranges)}
		if !f.Equal(g) || f.Hash() != g.Hash() {
			t.Fatalf("%+v is not equal to itself", f)
		}
		changed := true
		switch pick := rng.IntN(5); {
		case pick == 0 && len(g.Groups) > 0:
			g.Groups[0].Negated = !g.Groups[0].Negated
		case pick == 1 && len(g.Clauses) > 0:
			g.Clauses[rng.IntN(len(g.Clauses))].Attr++
		case pick == 2 && len(g.Spans) > 0:
			g.Spans[rng.IntN(len(g.Spans))].Hi++
		case pick == 3 && len(g.Edges) > 0:
			g.Edges[rng.IntN(len(g.Edges))].Lo++
		case pick == 4 && len(g.Ranges) > 0:
			g.Ranges[rng.IntN(len(g.Ranges))].Max++
		default:
			changed = false
		}
		if f.Equal(g) == changed || changed && f.Hash() == g.Hash() {
			t.Fatalf("changed %v: %+v and %+v", changed, f, g)
		}
	}
	var none *Filter
	if none.Equal(&Filter{}) || (&Filter{}).Equal(none) || !none.Equal(none) {
		t.Error("no filter is a filter")
	}
	zero, minus := &Filter{Ranges: []Range{{0, 0}}}, &Filter{Ranges: []Range{{math.Copysign(0, -1), 0}}}
	if !zero.Equal(minus) || zero.Hash() != minus.Hash() {
		t.Error("-0 is not 0")
	}
}

// attributes have so many keywords each; the first one's values are stored.
type attributes []uint32

func (a attributes) attribute(attr uint32) (keywords uint32, stored, ok bool) {
	if int64(attr) >= int64(len(a)) {
		return 0, false, false
	}
	return a[attr], attr == 0, true
}

func TestCheck(t *testing.T) {
	index := attributes{10, 4}
	good := func() *Filter {
		f := &Filter{}
		f.StartGroup(false)
		f.StartClause(0)
		f.AddSpan(1, 3)
		f.AddSpan(4, 10)
		f.AddEdge(0, 1)
		f.AddRange(math.Inf(-1), 5)
		f.AddRange(6, 6)
		f.StartGroup(true)
		f.StartClause(1)
		f.AddSpan(0, 4)
		return f
	}
	if err := good().Check(index.attribute); err != nil {
		t.Fatalf("a good filter: %v", err)
	}
	if err := (&Filter{}).Check(index.attribute); err != nil {
		t.Fatalf("the zero filter: %v", err)
	}
	for want, change := range map[string]func(f *Filter){
		"group 1 of the filter has clauses":   func(f *Filter) { f.Groups[1].Count = 2 },
		"group 0 of the filter has clauses":   func(f *Filter) { f.Groups[0].First = math.MaxUint32 },
		"asks for attribute 2":                func(f *Filter) { f.Clauses[1].Attr = 2 },
		"asks for attribute 4294967295":       func(f *Filter) { f.Clauses[1].Attr = math.MaxUint32 },
		"has spans, edges or ranges":          func(f *Filter) { f.Clauses[0].Spans.First = math.MaxUint32 },
		"spans, edges or ranges that":         func(f *Filter) { f.Clauses[0].Edges.Count = 2 },
		"edges or ranges that the filter has": func(f *Filter) { f.Clauses[0].Ranges.Count = 3 },
		"does not store":                      func(f *Filter) { f.Clauses[1].Edges, f.Clauses[1].Ranges = Part{0, 1}, Part{0, 1} },
		"no range":                            func(f *Filter) { f.Clauses[0].Ranges.Count = 0 },
		"a span [3, 3)":                       func(f *Filter) { f.Spans[0].Lo = 3 },
		"a span [2, 10)":                      func(f *Filter) { f.Spans[1].Lo = 2 },
		"a span [4, 11)":                      func(f *Filter) { f.Spans[1].Hi = 11 },
		"a span [0, 5)":                       func(f *Filter) { f.Spans[2].Hi = 5 },
		"a span [1, 1)":                       func(f *Filter) { f.Edges[0].Lo = 1 },
		"out of order or no numbers":          func(f *Filter) { f.Ranges[1].Max = 5.5 },
		"or no numbers":                       func(f *Filter) { f.Ranges[0].Max = math.NaN() },
		"overlap":                             func(f *Filter) { f.Ranges[1].Min = 5 },
	} {
		f := good()
		change(f)
		if err := f.Check(index.attribute); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestSet(t *testing.T) {
	var all Set
	s := make(Set, Words(130))
	s[2] = 2
	if !all.Has(7) || s.Has(128) || !s.Has(129) || s.Len() != 1 || len(s) != 3 || Words(128) != 2 {
		t.Error("sets")
	}
}
