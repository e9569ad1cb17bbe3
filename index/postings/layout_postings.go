package postings

import (
	"math/bits"

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

// Lists returns the number of keywords that occur in the tile.
func (p Postings) Lists() int { return p.lists() }

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

// grow makes out hold at least n bytes, rounded up to words; what they contain is undefined.
func (e *tileEncoder) grow(n int) {
	words := (n + 7) / 8
	if cap(e.out) < words {
		e.out = make([]uint64, words)
	}
	e.out = e.out[:words]
}

// encodeAll is LayoutPostings of a tile.
func encodeAll(e *tileEncoder, f *finalColumn, _ int) int {
	return e.encodePostings(f.attribute.Keywords)
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
	e.grow(size)
	d, rest := layDirectory(store.Raw(e.out)[:size], keywords, lists, len(e.ids))
	words, starts, ids := d.words, d.starts, store.View[uint16](rest)

	// Each count becomes the place of its list's next posting.
	list, start := uint32(0), uint32(0)
	for w := range words {
		word := uint64(list) << 32
		base := w * 32
		for bit, count := range counts[base:min(base+32, len(counts))] {
			if count != 0 {
				word |= 1 << bit
				starts[list] = start
				list++
				counts[base+bit] = start
				start += count
			}
		}
		words[w] = word
	}
	starts[list] = start
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

// openPostings opens a section of LayoutPostings.
func openPostings(x *Lists, tile, attr int, section []byte) error {
	return openList(x, tile, attr, section, x.attributes[attr].Keywords)
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

// describePostings adds an attribute in LayoutPostings to its statistics.
func describePostings(x *Lists, attr int, s *ListStatistics, lengths []uint64) {
	x.addLists(s, attr, lengths)
}

// addLists adds the tiles' lists to the statistics, and to lengths.
func (x *Lists) addLists(s *ListStatistics, attr int, lengths []uint64) {
	for tile := range x.Tiles() {
		p := x.Postings(tile, attr)
		s.Lists += uint64(p.Lists())
		s.PostingsBytes += 2 * int64(p.Len())
		p.each(func(keyword uint32, ids []uint16) { lengths[keyword] += uint64(len(ids)) })
	}
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
