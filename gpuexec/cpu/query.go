package cpu

import (
	"slices"

	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// A step is a span of a query item in the terms of its attribute's layout.
type step struct {
	attr   uint32
	weight uint32
	lo, hi uint32 // keywords; in LayoutRare numbers of frequent ones, in LayoutSliced codes. lo < hi
	kind   stepKind
}

// stepKind is what of a span a step is.
type stepKind uint8

const (
	stepWhole  stepKind = iota // all of it
	stepUnits                  // all of it, which is in the index but need not be counted: parts follow
	stepPart                   // what may pass the query's filter
	stepPasses                 // what passes it
)

// resolved is a query in the terms of the index: done once for a range of tiles, so that a tile has only to be looked
// into where it can have postings. Rare keywords are not looked for tile by tile at all: their postings in the range
// are dealt out to its tiles here, in linear time, however many lists a span has.
type resolved struct {
	steps []step
	// The rare postings of tile t of the range are rare[ends[t-1]:ends[t]], with ends[-1] = 0; both are empty without any.
	// One is the object's place in the tile << 16 | the weight of its item.
	rare []uint32
	ends []uint32
}

// keptRare is how much memory for rare postings is worth keeping for the next query.
const keptRare = 1 << 16

// rareBytes is the memory of one rare posting while its query runs.
const rareBytes = 4

// release gives up memory that is not worth keeping.
func (r *resolved) release() {
	if cap(r.rare) > keptRare {
		r.rare = nil
	}
}

// countRare is the number of rare postings of a query, also of one that no engine would execute.
func countRare(x *postings.Lists, q *postings.MatchQuery) int64 {
	n := int64(0)
	for _, item := range q.Items {
		if uint64(item.Attr) >= uint64(len(x.Attributes())) || uint64(item.First)+uint64(item.Count) > uint64(len(q.Spans)) {
			continue
		}
		a := &x.Attributes()[item.Attr]
		if a.Layout != schema.LayoutRare {
			continue
		}
		lists := x.Rare(int(item.Attr))
		for _, span := range q.ItemSpans(item) {
			if span.Lo < span.Hi && span.Hi <= a.Keywords {
				n += int64(len(lists.Run(span.Lo, span.Hi)))
			}
		}
	}
	return n
}

// resolve translates q for a range of tiles.
func (r *resolved) resolve(x *postings.Lists, q *postings.MatchQuery, tiles run.Tiles) {
	r.steps, r.ends = r.steps[:0], r.ends[:0]
	r.rare = r.rare[:0]
	rare := false
	for _, item := range q.Items {
		spans := q.ItemSpans(item)
		switch x.Attributes()[item.Attr].Layout {
		case schema.LayoutSliced:
			codes := x.Codes(int(item.Attr))
			c := clipOf(q.Filter, item.Attr)
			for _, span := range spans {
				r.clipped(item, q.Filter, c, codes, span)
			}
		case schema.LayoutRare:
			lists := x.Rare(int(item.Attr))
			for _, span := range spans {
				r.step(item, lists.Frequent(span.Lo), lists.Frequent(span.Hi), stepWhole)
				rare = rare || len(lists.Run(span.Lo, span.Hi)) > 0
			}
		default:
			for _, span := range spans {
				r.step(item, span.Lo, span.Hi, stepWhole)
			}
		}
	}
	if rare {
		r.deal(x, q, tiles)
	}
}

func (r *resolved) step(item postings.Item, lo, hi uint32, kind stepKind) {
	if lo < hi {
		r.steps = append(r.steps, step{item.Attr, item.Weight, lo, hi, kind})
	}
}

// # A filter and an item on one attribute
//
// In LayoutSliced an object has one keyword at most. So where a query counts a range of an attribute and its filter asks for another one, as
// those do that want a price and will not have any, what is in the one and not in the other need not be counted. Where the filter asks for
// nothing else, what is in both passes.

// clip is a clause on an attribute that a query counts in; sole: its filter is nothing else.
type clip struct {
	clause filter.Clause
	sole   bool
	found  bool
}

// clipParts is how many spans and edges a clause has at most that items are clipped to: each may make a step of a span.
const clipParts = 8

func clipOf(f *filter.Filter, attr uint32) (c clip) {
	if f == nil {
		return c
	}
	for _, g := range f.Groups {
		if g.Negated {
			continue
		}
		for _, clause := range f.GroupClauses(g) {
			if clause.Attr == attr && clause.Spans.Count+clause.Edges.Count <= clipParts && !overlap(f.ClauseSpans(clause), f.ClauseEdges(clause)) {
				return clip{clause, len(f.Groups) == 1 && g.Count == 1, true}
			}
		}
	}
	return c
}

// overlap tells whether some keyword is in both: then it would be counted twice.
func overlap(spans, edges []filter.Span) bool {
	return slices.ContainsFunc(spans, func(s filter.Span) bool {
		return slices.ContainsFunc(edges, func(e filter.Span) bool { return s.Lo < e.Hi && e.Lo < s.Hi })
	})
}

// clipped adds what of a span the clause leaves.
func (r *resolved) clipped(item postings.Item, f *filter.Filter, c clip, codes postings.Codes, span filter.Span) {
	add := func(s filter.Span, kind stepKind) { r.step(item, codes.Of(s.Lo), codes.Of(max(s.Lo, s.Hi)), kind) }
	if !c.found {
		add(span, stepWhole)
		return
	}
	add(span, stepUnits)
	spans := stepPart
	if c.sole {
		spans = stepPasses
	}
	for _, s := range f.ClauseSpans(c.clause) {
		add(filter.Span{Lo: max(s.Lo, span.Lo), Hi: min(s.Hi, span.Hi)}, spans)
	}
	for _, s := range f.ClauseEdges(c.clause) {
		add(filter.Span{Lo: max(s.Lo, span.Lo), Hi: min(s.Hi, span.Hi)}, stepPart)
	}
}

// deal sorts the rare postings by tile: a counting sort.
func (r *resolved) deal(x *postings.Lists, q *postings.MatchQuery, tiles run.Tiles) {
	ends := r.ends
	for range tiles.Len() {
		ends = append(ends, 0)
	}
	eachRare(x, q, func(ids []uint32, _ uint32) {
		for _, id := range ids {
			if tile := int(id/store.TileObjects) - tiles.First; uint(tile) < uint(len(ends)) {
				ends[tile]++
			}
		}
	})
	total := uint32(0)
	for t, n := range ends {
		ends[t] = total
		total += n
	}
	if cap(r.rare) < int(total) {
		r.rare = make([]uint32, total, max(int(total), 256)) // so that small ones are kept and reused
	}
	rare := r.rare[:total]
	eachRare(x, q, func(ids []uint32, weight uint32) {
		for _, id := range ids {
			if tile := int(id/store.TileObjects) - tiles.First; uint(tile) < uint(len(ends)) {
				rare[ends[tile]] = id%store.TileObjects<<16 | weight
				ends[tile]++
			}
		}
	})
	r.rare, r.ends = rare, ends
}

// eachRare visits the rare postings of a query, all those of a span at once.
func eachRare(x *postings.Lists, q *postings.MatchQuery, visit func(ids []uint32, weight uint32)) {
	for _, item := range q.Items {
		if x.Attributes()[item.Attr].Layout != schema.LayoutRare {
			continue
		}
		lists := x.Rare(int(item.Attr))
		for _, span := range q.ItemSpans(item) {
			if ids := lists.Run(span.Lo, span.Hi); len(ids) > 0 {
				visit(ids, item.Weight)
			}
		}
	}
}

// rareIn returns the rare postings of tile t of the range.
func (r *resolved) rareIn(t int) []uint32 {
	switch {
	case len(r.ends) == 0:
		return nil
	case t == 0:
		return r.rare[:r.ends[0]]
	}
	return r.rare[r.ends[t-1]:r.ends[t]]
}
