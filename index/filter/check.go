package filter

import (
	"fmt"
	"slices"
)

// Attributes are those that a filter is checked against: the number of keywords of each, and whether they are buckets of values that are
// stored; ok is false where there is no such attribute.
type Attributes = func(attr uint32) (keywords uint32, stored, ok bool)

// Check says whether engines can execute the filter: all that it selects is there, spans are not empty, ascending, disjoint and of
// keywords of their attribute, and edges have stored values to be held against. nil can be executed. The error is the fault of who asked.
func (f *Filter) Check(attributes Attributes) error {
	if f == nil {
		return nil
	}
	for i, g := range f.Groups {
		if uint64(g.First)+uint64(g.Count) > uint64(len(f.Clauses)) {
			return fmt.Errorf("group %d of the filter has clauses that the filter has not", i)
		}
	}
	for i := range f.Clauses {
		if err := f.checkClause(&f.Clauses[i], attributes); err != nil {
			return fmt.Errorf("clause %d of the filter %w", i, err)
		}
	}
	return nil
}

func (f *Filter) checkClause(c *Clause, attributes Attributes) error {
	keywords, stored, ok := attributes(c.Attr)
	beyond := func(p Part, n int) bool { return uint64(p.First)+uint64(p.Count) > uint64(n) }
	switch {
	case !ok:
		return fmt.Errorf("asks for attribute %d, which there is not", c.Attr)
	case beyond(c.Spans, len(f.Spans)) || beyond(c.Edges, len(f.Edges)) || beyond(c.Ranges, len(f.Ranges)):
		return fmt.Errorf("has spans, edges or ranges that the filter has not")
	case c.Edges.Count > 0 && !stored:
		return fmt.Errorf("needs the values of attribute %d, which the index does not store", c.Attr)
	case c.Edges.Count > 0 && c.Ranges.Count == 0:
		return fmt.Errorf("has edges and no range")
	}
	for _, spans := range [...][]Span{f.ClauseSpans(*c), f.ClauseEdges(*c)} {
		end := uint32(0)
		for _, s := range spans {
			if s.Lo < end || s.Lo >= s.Hi || s.Hi > keywords {
				return fmt.Errorf("has a span [%d, %d) that is empty, out of order or beyond the %d keywords of its attribute", s.Lo, s.Hi, keywords)
			}
			end = s.Hi
		}
	}
	ranges := f.ClauseRanges(*c)
	// Written so that NaN fails.
	if slices.ContainsFunc(ranges, func(r Range) bool { return !(r.Min <= r.Max) }) {
		return fmt.Errorf("has a range whose ends are out of order or no numbers")
	}
	for i := 1; i < len(ranges); i++ {
		if !(ranges[i-1].Max < ranges[i].Min) {
			return fmt.Errorf("has ranges that are out of order or overlap")
		}
	}
	return nil
}
