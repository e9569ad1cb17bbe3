package naive

import (
	"slices"

	"github.com/geniemq/geniemq/index/filter"
)

// Passes is what a filter means for one object: keywords and numbers are what it has in an attribute, in any order. It is the
// definition that engines are tested against.
func Passes(f *filter.Filter, keywords func(attr uint32) []uint32, numbers func(attr uint32) []float64) bool {
	has := func(attr uint32, spans []filter.Span) bool {
		return slices.ContainsFunc(keywords(attr), func(kw uint32) bool {
			return slices.ContainsFunc(spans, func(s filter.Span) bool { return s.Lo <= kw && kw < s.Hi })
		})
	}
	met := func(c filter.Clause) bool {
		ranges := f.ClauseRanges(c)
		return has(c.Attr, f.ClauseSpans(c)) || has(c.Attr, f.ClauseEdges(c)) &&
			slices.ContainsFunc(numbers(c.Attr), func(v float64) bool { return filter.In(ranges, v) })
	}
	for _, g := range f.Groups {
		all := !slices.ContainsFunc(f.GroupClauses(g), func(c filter.Clause) bool { return !met(c) })
		if all == g.Negated {
			return false
		}
	}
	return true
}
