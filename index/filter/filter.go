// Package filter says which objects may be hits of a query: what is asked, in the terms of an index, and what it means for one object.
package filter

import (
	"math/bits"
	"slices"
)

// Span is a half-open range [Lo, Hi) of local keyword ids of one attribute. Because the keywords of an
// attribute sort by value and a tile stores their postings in that order, a span is one contiguous run of
// postings in every tile (bank-striped and bit-sliced layouts keep the order of keywords too).
type Span struct {
	Lo, Hi uint32
}

// Filter says which objects may be hits. An object passes when all groups hold for it; without groups every object does.
//
// # Shape
//
// A group is a conjunction of clauses, which may be negated as a whole. That is what filter and exclude need, and no more:
//
//	filter {a: 3}               [a in 3]
//	filter {words: {all: x y}}  [words in x, words in y]        or a group each
//	filter {words: {any: x y}}  [words in {x, y}]               one clause of several spans
//	exclude {words: {all: x y}} not [words in x, words in y]
//	filter {a: missing}         not [a in all its keywords]
//
// A clause is met by the objects that have at least one keyword of its spans. A number whose bucket holds values within and
// without what is asked is an edge: its objects meet the clause if one of their stored values lies in the clause's ranges.
// An attribute in which an object has several values meets a clause when one value does, and repeats make no difference.
//
// # Flat
//
// Groups select clauses, and clauses select spans and ranges, by position: a filter is five allocations whatever it asks, has one
// form that can be compared and hashed, and travels to a device as it is. Adding nothing to counts, it has no weights.
//
// The zero value passes all. A filter must not be changed while a plan has it.
type Filter struct {
	Groups  []Group
	Clauses []Clause
	Spans   []Span  // of clauses: keywords all of whose objects meet the clause
	Edges   []Span  // of clauses: keywords of whose objects the stored values decide
	Ranges  []Range // of clauses: the values that are asked for, where there are edges
}

// Group is a conjunction of clauses: it holds for the objects that meet all of them, or, negated, for all others. Without
// clauses it holds for every object, or, negated, for none.
type Group struct {
	First, Count uint32 // clauses
	Negated      bool
}

// Clause asks for objects by the keywords of one attribute. One without spans and edges is met by none.
type Clause struct {
	Attr   uint32 // position among the attributes of the index
	Spans  Part   // of Filter.Spans: ascending and disjoint
	Edges  Part   // of Filter.Edges: ascending and disjoint; only of number attributes whose keywords are buckets
	Ranges Part   // of Filter.Ranges: ascending and disjoint; at least one with edges
}

// Part selects elements of one of a filter's lists.
type Part struct{ First, Count uint32 }

// Range is a closed interval of numbers, Min <= Max, which may be infinite.
type Range struct{ Min, Max float64 }

// StartGroup begins a group; the clauses that follow belong to it.
func (f *Filter) StartGroup(negated bool) {
	f.Groups = append(f.Groups, Group{First: uint32(len(f.Clauses)), Negated: negated})
}

// StartClause begins a clause of the group begun last; the spans, edges and ranges that follow belong to it.
func (f *Filter) StartClause(attr uint32) {
	f.Clauses = append(f.Clauses, Clause{Attr: attr, Spans: Part{First: uint32(len(f.Spans))},
		Edges: Part{First: uint32(len(f.Edges))}, Ranges: Part{First: uint32(len(f.Ranges))}})
	f.Groups[len(f.Groups)-1].Count++
}

// AddSpan adds the keywords [lo, hi) to the clause begun last, all of whose objects meet it. Spans must come in ascending order and be
// disjoint; an empty span is ignored, one that touches its predecessor extends it.
func (f *Filter) AddSpan(lo, hi uint32) {
	f.Spans = addSpan(f.Spans, &f.Clauses[len(f.Clauses)-1].Spans, lo, hi)
}

// AddEdge adds the keywords [lo, hi) to the clause begun last, of whose objects the stored values decide. They come as in AddSpan.
func (f *Filter) AddEdge(lo, hi uint32) {
	f.Edges = addSpan(f.Edges, &f.Clauses[len(f.Clauses)-1].Edges, lo, hi)
}

func addSpan(spans []Span, part *Part, lo, hi uint32) []Span {
	if lo >= hi {
		return spans
	}
	if part.Count > 0 {
		if last := &spans[len(spans)-1]; last.Hi == lo {
			last.Hi = hi
			return spans
		}
	}
	part.Count++
	return append(spans, Span{lo, hi})
}

// AddRange adds the values min to max, both of them too, to what the edges of the clause begun last are held against. Ranges must come in
// ascending order and be disjoint.
func (f *Filter) AddRange(min, max float64) {
	f.Ranges = append(f.Ranges, Range{min, max})
	f.Clauses[len(f.Clauses)-1].Ranges.Count++
}

// GroupClauses returns the clauses of a group.
func (f *Filter) GroupClauses(g Group) []Clause { return f.Clauses[g.First : g.First+g.Count] }

// ClauseSpans returns the spans of a clause.
func (f *Filter) ClauseSpans(c Clause) []Span {
	return f.Spans[c.Spans.First : c.Spans.First+c.Spans.Count]
}

// ClauseEdges returns the edges of a clause.
func (f *Filter) ClauseEdges(c Clause) []Span {
	return f.Edges[c.Edges.First : c.Edges.First+c.Edges.Count]
}

// ClauseRanges returns the ranges of a clause.
func (f *Filter) ClauseRanges(c Clause) []Range {
	return f.Ranges[c.Ranges.First : c.Ranges.First+c.Ranges.Count]
}

// In tells whether a number lies in one of some ranges, which ascend.
func In(ranges []Range, v float64) bool {
	i, found := slices.BinarySearchFunc(ranges, v, func(r Range, v float64) int {
		switch {
		case r.Max < v:
			return -1
		case r.Min > v:
			return 1
		}
		return 0 // NaN is neither, and looked at below
	})
	return found && v >= ranges[i].Min
}

// Set is a set of objects: object 64 w + b is in it when bit b of word w is set. Where a set says who may pass, nil is everybody.
type Set []uint64

// Words is the number of words of a set of so many objects.
func Words(objects int) int { return (objects + 63) / 64 }

// Has tells whether an object is in the set, everybody being in nil.
func (s Set) Has(object uint32) bool { return s == nil || s[object/64]>>(object%64)&1 != 0 }

// Len is the number of objects in a set that is not nil.
func (s Set) Len() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}
