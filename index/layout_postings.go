package index

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
	d, rest := layDirectory(raw(e.out)[:size], keywords, lists, len(e.ids))
	words, starts, ids := d.words, d.starts, view[uint16](rest)

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
		return Postings{}, corrupt("%d bytes of ids; %d postings need %d", len(rest), postings, 2*postings)
	}
	return Postings{directory: d, ids: view[uint16](rest)}, nil
}
