package filter_test

import (
	"testing"

	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/internal/testkit/naive"
)

// object is what one object has, by attribute.
type object struct {
	keywords map[uint32][]uint32
	numbers  map[uint32][]float64
}

func (o object) passes(f *filter.Filter) bool {
	return naive.Passes(f, func(a uint32) []uint32 { return o.keywords[a] }, func(a uint32) []float64 { return o.numbers[a] })
}

// TestPasses says by hand what filters mean.
func TestPasses(t *testing.T) {
	o := object{map[uint32][]uint32{0: {3}, 1: {5, 8}}, map[uint32][]float64{0: {31.5}}}
	inSpan := func(f *filter.Filter, attr, lo, hi uint32) {
		f.StartClause(attr)
		f.AddSpan(lo, hi)
	}
	for _, c := range []struct {
		name string
		make func(f *filter.Filter)
		want bool
	}{
		{"nothing", func(*filter.Filter) {}, true},
		{"an empty group", func(f *filter.Filter) { f.StartGroup(false) }, true},
		{"not an empty group", func(f *filter.Filter) { f.StartGroup(true) }, false},
		{"an empty clause", func(f *filter.Filter) { f.StartGroup(false); f.StartClause(0) }, false},
		{"its keyword", func(f *filter.Filter) { f.StartGroup(false); inSpan(f, 0, 3, 4) }, true},
		{"another one", func(f *filter.Filter) { f.StartGroup(false); inSpan(f, 0, 4, 9) }, false},
		{"not its keyword", func(f *filter.Filter) { f.StartGroup(true); inSpan(f, 0, 3, 4) }, false},
		{"one of two", func(f *filter.Filter) { f.StartGroup(false); inSpan(f, 1, 8, 9) }, true},
		{"both", func(f *filter.Filter) { f.StartGroup(false); inSpan(f, 1, 8, 9); inSpan(f, 1, 5, 6) }, true},
		{"one and another", func(f *filter.Filter) { f.StartGroup(false); inSpan(f, 1, 8, 9); inSpan(f, 1, 6, 7) }, false},
		{"not (one and another)", func(f *filter.Filter) { f.StartGroup(true); inSpan(f, 1, 8, 9); inSpan(f, 1, 6, 7) }, true},
		{"not both", func(f *filter.Filter) { f.StartGroup(true); inSpan(f, 1, 8, 9); inSpan(f, 1, 5, 6) }, false},
		{"any of two spans", func(f *filter.Filter) { f.StartGroup(false); inSpan(f, 1, 6, 7); f.AddSpan(8, 9) }, true},
		{"an attribute without keywords", func(f *filter.Filter) { f.StartGroup(false); inSpan(f, 2, 0, 9) }, false},
		{"missing", func(f *filter.Filter) { f.StartGroup(true); inSpan(f, 2, 0, 9) }, true},
		{"two groups", func(f *filter.Filter) {
			f.StartGroup(false)
			inSpan(f, 0, 3, 4)
			f.StartGroup(true)
			inSpan(f, 1, 5, 6)
		}, false},
		{"an edge and its value", func(f *filter.Filter) { f.StartGroup(false); f.StartClause(0); f.AddEdge(3, 4); f.AddRange(31.5, 40) }, true},
		{"an edge and another value", func(f *filter.Filter) { f.StartGroup(false); f.StartClause(0); f.AddEdge(3, 4); f.AddRange(31.6, 40) }, false},
		{"another edge", func(f *filter.Filter) { f.StartGroup(false); f.StartClause(0); f.AddEdge(4, 5); f.AddRange(31.5, 40) }, false},
		{"a span beside an edge", func(f *filter.Filter) { f.StartGroup(false); inSpan(f, 0, 3, 4); f.AddEdge(4, 5); f.AddRange(50, 60) }, true},
	} {
		var f filter.Filter
		c.make(&f)
		if got := o.passes(&f); got != c.want {
			t.Errorf("%s: passes %v", c.name, got)
		}
	}
}
