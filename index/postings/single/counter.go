// Package single looks at single objects and keywords of inverted lists, which engines do not.
package single

import (
	"math/bits"
	"slices"
	"sync"

	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// Counter counts single objects for a query, which a scan that rescores needs of those that were no candidates (verify.Matching). It is
// safe for concurrent use. An object costs a binary search in each list that the query selects, or in LayoutSliced one look at its code: some
// microseconds as a rule, which is why engines count otherwise.
type Counter struct {
	Lists *postings.Lists
	Query *postings.MatchQuery // checked (Lists.CheckQuery); it must not change

	mutex   sync.Mutex
	present map[uint32][]uint64 // by attribute that a presence asks for: a bit for each object that has a keyword
}

// Count returns the match count of an object.
func (c *Counter) Count(id uint32) uint32 {
	if id >= c.Lists.Objects() {
		return 0
	}
	count := uint32(0)
	for _, item := range c.Query.Items {
		n := uint32(0)
		for _, s := range c.Query.ItemSpans(item) {
			n += c.occurrences(int(item.Attr), s, id)
		}
		count += n * item.Weight
	}
	for _, p := range c.Query.Presences {
		if c.Holds(p, id) {
			count += p.Weight
		}
	}
	return count
}

// Holds says whether a presence counts for an object. The first call for an attribute looks at all of its postings, where an object may be in any list.
func (c *Counter) Holds(p filter.Presence, id uint32) bool {
	if c.Lists.Attribute(int(p.Attr)).Layout == schema.LayoutSliced {
		return (p.Keywords > 0 && c.occurrences(int(p.Attr), postings.Span{Hi: p.Keywords}, id) > 0) != p.Missing
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	bits, ok := c.present[p.Attr]
	if !ok {
		if c.present == nil {
			c.present = make(map[uint32][]uint64)
		}
		bits = c.having(int(p.Attr))
		c.present[p.Attr] = bits
	}
	return bits[id/64]>>(id%64)&1 != 0 != p.Missing
}

// having has a bit for each object with a keyword of an attribute that has lists.
func (c *Counter) having(attr int) []uint64 {
	x := c.Lists
	has := make([]uint64, uint64(x.Objects())/64+1)
	for tile := range x.Tiles() {
		_, starts, ids := x.Postings(tile, attr).Arrays()
		if len(starts) == 0 {
			continue
		}
		for _, local := range ids[starts[0]:starts[len(starts)-1]] {
			id := uint64(tile)*store.TileObjects + uint64(local)
			has[id/64] |= 1 << (id % 64)
		}
	}
	if x.Attribute(attr).Layout == schema.LayoutRare {
		_, _, ids := x.Rare(attr).Arrays()
		for _, id := range ids {
			has[id/64] |= 1 << (id % 64)
		}
	}
	return has
}

// Has says whether an object has a keyword of an item.
func (c *Counter) Has(item postings.Item, id uint32) bool {
	for _, s := range c.Query.ItemSpans(item) {
		if c.occurrences(int(item.Attr), s, id) > 0 {
			return true
		}
	}
	return false
}

// Times is how many keywords of an item an object has, with repeats.
func (c *Counter) Times(item postings.Item, id uint32) (n uint32) {
	if id < c.Lists.Objects() {
		for _, s := range c.Query.ItemSpans(item) {
			n += c.occurrences(int(item.Attr), s, id)
		}
	}
	return n
}

// occurrences is how often an object has a keyword of a span.
func (c *Counter) occurrences(attr int, s postings.Span, id uint32) uint32 {
	x := c.Lists
	tile, local := int(id/store.TileObjects), id%store.TileObjects
	switch x.Attribute(attr).Layout {
	case schema.LayoutSliced:
		codes, code := x.Codes(attr), codeOf(x.Planes(tile, attr), local)
		if codes.Of(s.Lo) <= code && code < codes.Of(s.Hi) {
			return 1
		}
		return 0
	case schema.LayoutRare:
		r := x.Rare(attr)
		_, starts, ids := r.Arrays()
		first, end := r.Frequent(s.Lo), r.Frequent(s.Hi) // the frequent ones have numbers of their own
		n := uint32(0)
		for list := s.Lo - first; list < s.Hi-end; list++ {
			n += repeats(ids[starts[list]:starts[list+1]], id)
		}
		return n + occurrencesIn(x.Postings(tile, attr), first, end, local)
	default:
		return occurrencesIn(x.Postings(tile, attr), s.Lo, s.Hi, local)
	}
}

// occurrencesIn is how often an object of the tile is in the lists of the keywords lo to hi-1.
func occurrencesIn(p postings.Postings, lo, hi uint32, local uint32) uint32 {
	words, starts, ids := p.Arrays()
	if len(starts) < 2 {
		return 0
	}
	rank := func(keyword uint32) uint32 {
		w := words[keyword/32]
		return uint32(w>>32) + uint32(bits.OnesCount32(uint32(w)&(1<<(keyword%32)-1)))
	}
	n := uint32(0)
	for list, end := rank(lo), rank(hi); list < end; list++ {
		n += repeats(ids[starts[list]:starts[list+1]], uint16(local))
	}
	return n
}

// repeats is how often an id is in a list, which ascends.
func repeats[T uint16 | uint32](list []T, id T) uint32 {
	at, _ := slices.BinarySearch(list, id)
	n := uint32(0)
	for ; at < len(list) && list[at] == id; at++ {
		n++
	}
	return n
}

// codeOf returns the code of an object of a tile.
func codeOf(p postings.Planes, local uint32) uint32 {
	words := p.Words()[int(local/postings.GroupObjects)*p.Planes()*32:]
	word, bit := int(local%postings.GroupObjects/32), local%32
	code := uint32(0)
	for plane := range p.Planes() {
		code |= words[plane*32+word] >> bit & 1 << plane
	}
	return code
}
