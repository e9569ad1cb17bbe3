package filter

import (
	"math"
	"slices"
)

// Equal tells whether two filters ask the same in the same order: then they pass the same objects. Filters that pass the same
// objects need not be equal. nil equals nil only.
func (f *Filter) Equal(g *Filter) bool {
	if f == nil || g == nil || f == g {
		return f == g
	}
	return slices.Equal(f.Groups, g.Groups) && slices.Equal(f.Clauses, g.Clauses) &&
		slices.Equal(f.Spans, g.Spans) && slices.Equal(f.Edges, g.Edges) && slices.Equal(f.Ranges, g.Ranges)
}

// Hash is the same for filters that are equal. It is no secret, and nothing but time depends on it.
func (f *Filter) Hash() uint64 {
	h := uint64(len(f.Groups))
	add := func(a, b uint64) {
		h = (h ^ a) * 0x9e3779b97f4a7c15
		h = (h ^ h>>32 ^ b) * 0xff51afd7ed558ccd
	}
	for _, g := range f.Groups {
		negated := uint64(0)
		if g.Negated {
			negated = 1
		}
		add(uint64(g.First)<<32|uint64(g.Count), negated)
	}
	for _, c := range f.Clauses {
		add(uint64(c.Attr)<<32|uint64(c.Spans.Count), uint64(c.Edges.Count)<<32|uint64(c.Ranges.Count))
	}
	for _, spans := range [...][]Span{f.Spans, f.Edges} {
		for _, s := range spans {
			add(uint64(s.Lo), uint64(s.Hi))
		}
	}
	for _, r := range f.Ranges {
		add(math.Float64bits(r.Min+0), math.Float64bits(r.Max+0)) // -0 equals 0
	}
	return h ^ h>>29
}
