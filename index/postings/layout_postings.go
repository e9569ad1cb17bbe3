package postings

import (
	"math/bits"
	"slices"

	"github.com/geniemq/geniemq/index/store"
)

// Postings are the postings of one attribute in one tile, in LayoutPostings: the tile-local ids of the objects
// that have a keyword, list after list in keyword order, ascending within a list, an id repeated as often as
// the object has the keyword.
//
// The directory finds a list in two dependent loads. A word covers 32 keywords: the lower half has a bit for each
// keyword that occurs in the tile, the upper half the number of such keywords before the word. So the rank of a
// keyword among the present ones is one load and one population count, on a GPU as on a CPU, and starts[rank] is
// where its list begins. An absent keyword has the rank of the next present one: a run of keywords needs no
// case for absent ends, and one of absent keywords alone is empty. Sparse vocabularies cost 2 bits per keyword, plus
// 4 bytes per list that is there.
type Postings struct {
	directory
	ids []uint16
}

// Run returns the postings of the keywords [lo, hi), lo <= hi <= V, which are one contiguous run. It points into the
// map.
func (p Postings) Run(lo, hi uint32) []uint16 {
	return p.ids[p.starts[rank(p.words, lo)]:p.starts[rank(p.words, hi)]]
}

// Len returns the number of postings.
func (p Postings) Len() int { return len(p.ids) }

// Arrays returns the directory words, the starts and the ids as they lie in the file, for a device to copy. They
// must not be changed.
func (p Postings) Arrays() (words []uint64, starts []uint32, ids []uint16) {
	return p.words, p.starts, p.ids
}

// tileEncoder turns the postings of one tile and attribute into the bytes of a section. It is one worker's and
// keeps its memory from tile to tile.
type tileEncoder struct {
	// Posting i is keywords[i] of object ids[i]; ids ascend.
	keywords []uint32
	ids      []uint16

	out     []uint64 // the encoded bytes, as words so that they are aligned
	counts  []uint32 // one per keyword, all 0 between tiles
	keptIDs []uint16 // of LayoutRare
}

// grow makes out hold n bytes, rounded up to words, and returns them; what they contain is undefined.
func (e *tileEncoder) grow(n int) []byte {
	words := (n + 7) / 8
	e.out = slices.Grow(e.out[:0], words)[:words]
	return store.Raw(e.out)[:n]
}

// encodePostings is LayoutPostings: a counting sort by keyword, stable in the object id. It costs O(V + postings).
func (e *tileEncoder) encodePostings(keywords uint32) int {
	if len(e.counts) < int(keywords) {
		e.counts = make([]uint32, keywords)
	}
	counts := e.counts[:keywords]
	lists := 0
	for _, keyword := range e.keywords {
		if counts[keyword] == 0 {
			lists++
		}
		counts[keyword]++
	}

	size := directoryBytes(keywords, lists) + 2*len(e.ids)
	d, rest := newDirectory(e.grow(size), keywords, lists, len(e.ids))
	ids := store.View[uint16](rest)
	d.lay(counts)
	for i, keyword := range e.keywords {
		ids[counts[keyword]] = e.ids[i]
		counts[keyword]++
	}
	clear(counts)
	return size
}

// decodePostings reads a section of LayoutPostings and checks everything that Run relies on, in O(directory). The ids
// themselves are left to checkObjects, and their order to validate.
func decodePostings(section []byte, keywords uint32) (Postings, error) {
	d, rest, err := decodeDirectory(section, keywords)
	if err != nil {
		return Postings{}, err
	}
	if postings := d.postings(); uint64(len(rest)) != 2*postings {
		return Postings{}, store.Corrupt("%d bytes of ids; %d postings need %d", len(rest), postings, 2*postings)
	}
	return Postings{directory: d, ids: store.View[uint16](rest)}, nil
}

// openList opens a section of postings of so many keywords.
func openList(x *Lists, tile, attr int, section []byte, keywords uint32) (err error) {
	p := &x.postings[tile*len(x.attributes)+attr]
	if *p, err = decodePostings(section, keywords); err != nil {
		return err
	}
	return p.checkObjects(x.TileLen(tile))
}

// checkObjects checks that a tile's postings are of its objects. Engines have counters for these and no others, and no time to
// look: in a block of a GPU what lies behind the counters is read as addresses, and on the CPU counters that are not
// cleared with the tile's count for the next query, of any index.
func (p Postings) checkObjects(objects int) error {
	var a, b, c, d uint16 // four, so that they do not wait for each other
	ids := p.ids
	for ; len(ids) >= 4; ids = ids[4:] {
		a, b, c, d = max(a, ids[0]), max(b, ids[1]), max(c, ids[2]), max(d, ids[3])
	}
	for _, id := range ids {
		a = max(a, id)
	}
	if last := max(a, b, c, d); int(last) >= objects && len(p.ids) > 0 {
		return store.Corrupt("a posting is of object %d of a tile of %d", last, objects)
	}
	return nil
}

func workOfList(x *Lists, tile, attr int) uint64 { return uint64(x.Postings(tile, attr).Len()) }

// addLists adds the tiles' lists to the statistics, and to lengths.
func (x *Lists) addLists(attr int, s *ListStatistics, lengths []uint64) {
	for tile := range x.Tiles() {
		p := x.Postings(tile, attr)
		s.PostingsBytes += 2 * int64(p.Len())
		p.addLengths(lengths)
	}
}

func (p Postings) addLengths(lengths []uint64) {
	p.each(func(keyword uint32, ids []uint16) { lengths[keyword] += uint64(len(ids)) })
}

// eachBit calls visit for every keyword whose bit is set in directory words, ascending.
func eachBit(words []uint64, visit func(keyword uint32)) {
	for w, word := range words {
		for present := uint32(word); present != 0; present &= present - 1 {
			visit(uint32(w)*32 + uint32(bits.TrailingZeros32(present)))
		}
	}
}

// each calls visit for every keyword that occurs in the tile, ascending.
func (p Postings) each(visit func(keyword uint32, ids []uint16)) {
	list := 0
	eachBit(p.words, func(keyword uint32) {
		visit(keyword, p.ids[p.starts[list]:p.starts[list+1]])
		list++
	})
}
