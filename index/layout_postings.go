package index

import (
	"math/bits"
)

// Postings are the postings of one attribute in one tile, in LayoutPostings: the tile-local ids of the objects
// that have a keyword, list after list in keyword order, ascending within a list, an id repeated as often as
// the object has the keyword.
//
// The directory finds a list in two dependent loads. A word covers 32 keywords: the lower half has a bit for each
// keyword that occurs in the tile, the upper half the number of such keywords before the word. So the rank of a
// keyword among the present ones is one load and one population count, on a GPU as on a CPU, and starts[rank] is
// where its list begins. An absent keyword has the rank of the next present one: a run of keywords needs no
// case for absent ends, and one of absent keywords alone is empty. Sparse vocabularies cost 2 bits a keyword, plus
// 4 bytes a list that is there.
type Postings struct {
	words  []uint64 // V/32 + 1, so that V itself has a rank
	starts []uint32 // of the present keywords, and the end
	ids    []uint16
}

// Run returns the postings of the keywords [lo, hi), lo <= hi <= V, which are one contiguous run. It points into the
// map.
func (p Postings) Run(lo, hi uint32) []uint16 {
	return p.ids[p.starts[rank(p.words, lo)]:p.starts[rank(p.words, hi)]]
}

// Len returns the number of postings.
func (p Postings) Len() int { return len(p.ids) }

// Lists returns the number of keywords that occur in the tile.
func (p Postings) Lists() int { return len(p.starts) - 1 }

// Arrays returns the directory words, the starts and the ids as they lie in the file, for a device to copy. They
// must not be changed.
func (p Postings) Arrays() (words []uint64, starts []uint32, ids []uint16) {
	return p.words, p.starts, p.ids
}

func rank(words []uint64, keyword uint32) uint32 {
	w := words[keyword/32]
	return uint32(w>>32) + uint32(bits.OnesCount32(uint32(w)&(1<<(keyword%32)-1)))
}

// Sizes of the section: a head of the number of lists and of postings, then words, starts and ids.
const postingsHead = 8

func directoryWords(keywords uint32) int { return int(keywords/32) + 1 }

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

	wordBytes, startBytes := 8*directoryWords(keywords), 4*(lists+1)
	size := postingsHead + wordBytes + startBytes + 2*len(e.ids)
	e.grow(size)
	out := raw(e.out)
	head := view[uint32](out[:postingsHead])
	head[0], head[1] = uint32(lists), uint32(len(e.ids))
	out = out[postingsHead:]
	words := view[uint64](out[:wordBytes])
	starts := view[uint32](out[wordBytes : wordBytes+startBytes])
	ids := view[uint16](out[wordBytes+startBytes : size-postingsHead])

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
// themselves are left to validate: see Index for why they cannot hurt a reader.
func decodePostings(section []byte, keywords uint32) (Postings, error) {
	if len(section) < postingsHead {
		return Postings{}, corrupt("%d bytes are no postings", len(section))
	}
	head := view[uint32](section[:postingsHead])
	lists, postings := uint64(head[0]), uint64(head[1])
	wordBytes, startBytes := 8*uint64(directoryWords(keywords)), 4*(lists+1)
	if want := postingsHead + wordBytes + startBytes + 2*postings; uint64(len(section)) != want {
		return Postings{}, corrupt("%d bytes; %d lists of %d postings need %d", len(section), lists, postings, want)
	}
	body := section[postingsHead:]
	p := Postings{
		words:  view[uint64](body[:wordBytes]),
		starts: view[uint32](body[wordBytes : wordBytes+startBytes]),
		ids:    view[uint16](body[wordBytes+startBytes:]),
	}
	sum := uint64(0)
	for w, word := range p.words {
		if word>>32 != sum {
			return Postings{}, corrupt("directory word %d has rank %d, should be %d", w, word>>32, sum)
		}
		sum += uint64(bits.OnesCount32(uint32(word)))
	}
	if beyond := uint32(p.words[len(p.words)-1]) >> (keywords % 32); beyond != 0 {
		return Postings{}, corrupt("the directory has keywords beyond the last")
	}
	if sum != lists {
		return Postings{}, corrupt("the directory has %d lists, should be %d", sum, lists)
	}
	previous := p.starts[0]
	if previous != 0 {
		return Postings{}, corrupt("the first list starts at %d", previous)
	}
	for i, start := range p.starts[1:] {
		if start <= previous {
			return Postings{}, corrupt("list %d has no postings", i)
		}
		previous = start
	}
	if uint64(previous) != postings {
		return Postings{}, corrupt("the lists end at %d of %d postings", previous, postings)
	}
	return p, nil
}
