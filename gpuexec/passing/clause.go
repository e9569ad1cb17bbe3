package passing

import (
	"math/bits"

	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// What evaluating costs, in postings that are counted (0.4 to 0.5 ns): measured by BenchmarkEvaluate.
const (
	bitCost   = 2 // a posting whose bit is set
	valueCost = 8 // a posting whose object's stored value is looked at
	fewSpans  = 16
)

// planesCost is the cost of a span of codes on planes in a tile.
func planesCost(depth int) int { return (5 + 2*depth) * TileWords }

// meet sets dst to the objects of a tile that meet a clause. What is not within another set, nil: all, may be in it or not.
func (e *Evaluator) meet(dst, within *Words, r *Resolved, number int, c filter.Clause, tile int) {
	clear(dst[:])
	if !e.work(TileWords / 2) {
		return
	}
	attr, f := int(c.Attr), r.filter
	rare, rareEdges := r.rare(number, tile)
	setBits(dst, rare)
	e.work(bitCost * len(rare))
	e.add(dst, attr, tile, f.ClauseSpans(c))
	if c.Edges.Count > 0 {
		numbers, _ := e.index.Stored.StoredNumbers(e.index.Lists.Attribute(attr).Name)
		v := values{ranges: f.ClauseRanges(c), within: within}
		v.starts, v.values = numbers.NumbersTile(tile)
		v.add(dst, rareEdges)
		e.work(valueCost * len(rareEdges))
		e.addEdges(dst, &v, attr, tile, f.ClauseEdges(c))
	}
}

func setBits(dst *Words, ids []uint16) {
	for len(ids) >= 4 {
		s := (*[4]uint16)(ids)
		dst[s[0]/64] |= 1 << (s[0] % 64)
		dst[s[1]/64] |= 1 << (s[1] % 64)
		dst[s[2]/64] |= 1 << (s[2] % 64)
		dst[s[3]/64] |= 1 << (s[3] % 64)
		ids = ids[4:]
	}
	for _, id := range ids {
		dst[id/64] |= 1 << (id % 64)
	}
}

// A source is where the objects of spans of an attribute are found in a tile: the lists of all keywords, or the planes.
type source struct {
	lists postings.Postings
	kept  Runs // of codes, for spans that they have

	codes  postings.Codes
	planes []uint64 // nil: all is in lists
	depth  int
	rare   postings.Rare
	isRare bool
}

// source is where so many spans are looked for.
func (e *Evaluator) source(attr, tile, spans int) (s source) {
	x := e.index.Lists
	switch x.Attribute(attr).Layout {
	case schema.LayoutSliced:
		s.codes = x.Codes(attr)
		if e.index.Runs == nil && spans > fewSpans { // lists cost less than so many comparisons
			s.lists = e.decoder.Postings(x, tile, attr)
			e.work(4 * store.TileObjects)
			return s
		}
		planes := x.Planes(tile, attr)
		s.planes, s.depth, s.kept = store.View[uint64](store.Raw(planes.Words())), planes.Planes(), e.index.Runs
		return s
	case schema.LayoutRare:
		s.rare, s.isRare = x.Rare(attr), true
	}
	s.lists = x.Postings(tile, attr)
	return s
}

// run is the objects with a keyword of a span, without the rare ones; false where planes are to be looked at, whose codes are [lo, hi).
func (s *source) run(attr, tile int, span filter.Span, idCost int) (ids []uint16, lo, hi uint32, isList bool) {
	switch {
	case s.isRare:
		return s.lists.Run(s.rare.Frequent(span.Lo), s.rare.Frequent(span.Hi)), 0, 0, true
	case s.planes == nil && s.kept == nil:
		return s.lists.Run(span.Lo, span.Hi), 0, 0, true
	}
	if lo, hi = s.codes.Of(span.Lo), s.codes.Of(span.Hi); lo >= hi || s.planes == nil {
		return nil, lo, hi, true // nobody here has one
	}
	if s.kept != nil {
		if ids, kept := s.kept.Run(tile, attr, lo, hi); kept && idCost*len(ids) <= planesCost(s.depth) {
			return ids, lo, hi, true
		}
	}
	return nil, lo, hi, false
}

// add adds the objects of a tile with a keyword in spans, but for rare ones.
func (e *Evaluator) add(dst *Words, attr, tile int, spans []filter.Span) {
	if len(spans) == 0 {
		return
	}
	s := e.source(attr, tile, len(spans))
	for _, span := range spans {
		ids, lo, hi, isList := s.run(attr, tile, span, bitCost)
		if isList {
			setBits(dst, ids)
		} else {
			addPlanes(dst[:TileWords], s.planes, s.depth, lo, hi-1)
			e.work(planesCost(s.depth))
		}
		if !e.work(1 + bitCost*len(ids)) {
			return
		}
	}
}

// addEdges adds those of the objects with a keyword in spans whose values are asked for, but for rare keywords.
func (e *Evaluator) addEdges(dst *Words, v *values, attr, tile int, spans []filter.Span) {
	s := e.source(attr, tile, len(spans))
	onPlanes := false
	for _, span := range spans {
		ids, lo, hi, isList := s.run(attr, tile, span, bitCost)
		if !isList {
			if !onPlanes {
				onPlanes = true
				clear(e.edges[:])
			}
			addPlanes(e.edges[:TileWords], s.planes, s.depth, lo, hi-1)
			e.work(planesCost(s.depth))
			continue
		}
		v.add(dst, ids)
		if !e.work(1 + valueCost*len(ids)) {
			return
		}
	}
	if !onPlanes {
		return
	}
	for w, edge := range e.edges[:TileWords] {
		if edge &^= dst[w]; v.within != nil {
			edge &= v.within[w]
		}
		looked := bits.OnesCount64(edge)
		for left := edge; left != 0; left &= left - 1 {
			if bit := left & -left; !v.in(w*64 + bits.TrailingZeros64(left)) {
				edge &^= bit
			}
		}
		if dst[w] |= edge; !e.work(valueCost * looked) {
			return
		}
	}
}

// values are those of a tile's objects, and the ranges that are asked for.
type values struct {
	starts []uint32 // nil: one each
	values []float64
	ranges []filter.Range
	within *Words // nobody asks for others; nil: all
}

// add adds those of some objects that have a value in a range. Nearly always objects have a value each and one range is asked for: then
// there is no branch that would be guessed wrong for every other object while values are awaited.
func (v *values) add(dst *Words, ids []uint16) {
	if v.starts == nil && len(v.ranges) == 1 && v.within == nil {
		values, low, high := v.values, v.ranges[0].Min, v.ranges[0].Max
		for _, id := range ids {
			value, bit := values[id], uint64(0)
			if value >= low {
				bit = 1
			}
			if !(value <= high) {
				bit = 0
			}
			dst[id/64] |= bit << (id % 64)
		}
		return
	}
	for _, id := range ids {
		if (v.within == nil || v.within.has(id)) && v.in(int(id)) {
			dst[id/64] |= 1 << (id % 64)
		}
	}
}

// in tells whether an object has a value in a range.
func (v *values) in(object int) bool {
	if v.starts == nil {
		return v.has(v.values[object])
	}
	for _, value := range v.values[v.starts[object]:v.starts[object+1]] {
		if v.has(value) {
			return true
		}
	}
	return false
}

func (v *values) has(value float64) bool {
	if len(v.ranges) == 1 { // NaN is in none
		return v.ranges[0].Min <= value && value <= v.ranges[0].Max
	}
	return filter.In(v.ranges, value)
}
