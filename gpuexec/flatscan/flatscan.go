// Package flatscan is the plain way to answer a match-count query, which the CPU engine is measured against: postings
// lists of 32-bit ids, one 32-bit counter per object in a flat array, and a full sort of all objects that were
// found. One query at a time on one core.
//
// Read its ratio with care: on Adult times 20 (Zen 4, k = 100) sorting is 95 % of its time. Its scan alone is only about
// 1.3 times slower than the whole CPU engine there, since long ascending lists stream through a flat array as well; so
// Stats tells the two apart, and a report should give both.
//
// It is written with the care that a good programmer would give it, without knowledge of tiles, packed counters or
// the Gate, and serves as an independent check of the answers as well. It is no engine and has no place in a service.
package flatscan

import (
	"slices"
	"time"

	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/store"
)

// Scanner answers queries over the plain form of an index, of which it keeps a copy: 4 bytes per posting. It is for one
// goroutine.
type Scanner struct {
	// Stored are the values that the index keeps beside its lists, for filters with edges.
	Stored filter.Stored

	index   *postings.Lists
	lists   []attribute
	counts  []uint32
	entries []uint64
}

// attribute holds the lists of an attribute end to end; list kw is ids[starts[kw]:starts[kw+1]].
type attribute struct {
	starts []int
	ids    []uint32
}

// Hit is an object of an answer.
type Hit struct {
	ID, Count uint32
}

// Stats say what a query cost, and how many objects pass its filter.
type Stats struct {
	Postings uint64        // of items
	Count    time.Duration // clearing counters and scanning lists; the rest is finding what passes, and collecting and sorting objects
	Total    uint64
}

// New copies the postings of x.
func New(x *postings.Lists) *Scanner {
	s := &Scanner{index: x, counts: make([]uint32, x.Objects())}
	var decoder postings.Decoder
	for attr := range x.Attributes() {
		keywords := x.Attributes()[attr].Keywords
		// Once to count the lists, once to fill them.
		a := attribute{starts: make([]int, keywords+2)}
		each := func(visit func(keyword uint32, tile int, ids []uint16)) {
			for tile := range x.Tiles() {
				lists := decoder.Postings(x, tile, attr)
				for kw := range keywords {
					visit(kw, tile, lists.Run(kw, kw+1))
				}
			}
		}
		each(func(kw uint32, _ int, ids []uint16) { a.starts[kw+2] += len(ids) })
		for kw := range keywords {
			a.starts[kw+2] += a.starts[kw+1]
		}
		a.ids = make([]uint32, a.starts[keywords+1])
		each(func(kw uint32, tile int, ids []uint16) { // starts[kw+1] moves from the start of list kw to its end
			next := a.starts[kw+1]
			for i, id := range ids {
				a.ids[next+i] = uint32(tile)*store.TileObjects + uint32(id)
			}
			a.starts[kw+1] = next + len(ids)
		})
		a.starts = a.starts[:keywords+1]
		s.lists = append(s.lists, a)
	}
	return s
}

// Search appends the top k with counts of at least max(1, minCount), of the objects that pass q's filter, to dst. Of a query that is
// nothing but a filter it is the first k that pass.
func (s *Scanner) Search(dst []Hit, q *postings.MatchQuery, k int, minCount uint32) ([]Hit, Stats) {
	var stats Stats
	passing := s.passing(q.Filter)
	for _, passes := range passing {
		if passes {
			stats.Total++
		}
	}

	start := time.Now()
	counts := s.counts
	clear(counts)
	for _, item := range q.Items {
		a := &s.lists[item.Attr]
		for _, span := range q.ItemSpans(item) {
			ids := a.ids[a.starts[span.Lo]:a.starts[span.Hi]]
			stats.Postings += uint64(len(ids))
			for _, id := range ids {
				counts[id] += item.Weight
			}
		}
	}
	stats.Count = time.Since(start)

	s.entries = s.entries[:0]
	_, only, _ := q.Filtering()
	for id, count := range counts {
		if passing[id] && (only || count >= max(1, minCount)) {
			s.entries = append(s.entries, uint64(^count)<<32|uint64(id)) // ascending: count descending, id ascending
		}
	}
	slices.Sort(s.entries)
	for _, e := range s.entries[:min(k, len(s.entries))] {
		dst = append(dst, Hit{ID: uint32(e), Count: ^uint32(e >> 32)})
	}
	return dst, stats
}

// passing says of every object whether it passes a filter, clause by clause; nil passes all.
func (s *Scanner) passing(f *filter.Filter) []bool {
	passing := slices.Repeat([]bool{true}, len(s.counts))
	if f == nil {
		return passing
	}
	for _, g := range f.Groups {
		holds := slices.Repeat([]bool{true}, len(s.counts))
		for _, c := range f.GroupClauses(g) {
			met := s.met(f, c)
			for id := range holds {
				holds[id] = holds[id] && met[id]
			}
		}
		for id := range passing {
			passing[id] = passing[id] && holds[id] != g.Negated
		}
	}
	return passing
}

// met says of every object whether it meets a clause.
func (s *Scanner) met(f *filter.Filter, c filter.Clause) []bool {
	met := make([]bool, len(s.counts))
	a := &s.lists[c.Attr]
	for _, span := range f.ClauseSpans(c) {
		for _, id := range a.ids[a.starts[span.Lo]:a.starts[span.Hi]] {
			met[id] = true
		}
	}
	for _, span := range f.ClauseEdges(c) {
		numbers, _ := s.Stored.StoredNumbers(s.index.Attributes()[c.Attr].Name)
		for _, id := range a.ids[a.starts[span.Lo]:a.starts[span.Hi]] {
			for _, v := range numbers.Numbers(id) {
				for _, r := range f.ClauseRanges(c) {
					met[id] = met[id] || r.Min <= v && v <= r.Max
				}
			}
		}
	}
	return met
}
