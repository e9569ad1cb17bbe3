package index

import "math"

// LayoutRare is for texts, most of whose keywords are rare: a directory a tile spends two bits on each keyword of the
// vocabulary and four bytes on each list, which for lists of one or two ids is more than the ids. So the keywords are
// split. The frequent ones, renumbered in order, have postings tile by tile; of the rare ones there is one list each
// for the whole index, of 32-bit ids.
//
// Which keywords are rare is a matter of bytes alone. With n postings that lie in l of t tiles, a keyword costs
//
//	frequent:  2n + 4l + t/4     ids, a start a list, two bits a tile
//	rare:      4n + 4            ids and a start
//
// and is rare where that is less. Spread evenly that is below about 2.1 t postings, in one tile alone below t/8.

// Rare are the lists of the rare keywords of one attribute in LayoutRare, over the whole index. The rare keywords
// are numbered in order; a list holds object ids, ascending, an id as often as the object has the keyword. Open has
// checked that they ascend and that the objects exist.
type Rare struct {
	words  []uint64 // V/32 + 1: the bits of frequent keywords, and above them the number of those before the word
	starts []uint32 // by rare keyword, and the end
	ids    []uint32
}

// Frequent returns how many frequent keywords come before keyword, at most Attribute.Keywords: its number in the tiles'
// Postings if it is frequent. keyword - Frequent(keyword) is how many rare ones do. So the keywords [lo, hi) are the
// frequent ones [Frequent(lo), Frequent(hi)) and the rare lists [lo - Frequent(lo), hi - Frequent(hi)).
func (r Rare) Frequent(keyword uint32) uint32 { return rank(r.words, keyword) }

// Lists returns the number of rare keywords.
func (r Rare) Lists() int { return max(len(r.starts)-1, 0) }

// Run returns the ids of the rare keywords among [lo, hi), lo <= hi <= V, list after list: ids ascend within a
// list, not across lists. It points into the map.
func (r Rare) Run(lo, hi uint32) []uint32 {
	return r.ids[r.starts[lo-rank(r.words, lo)]:r.starts[hi-rank(r.words, hi)]]
}

// Arrays returns the words, starts and ids as they lie in the file, for a device to copy: starts[n] is where the list of rare
// keyword n begins among the ids. They must not be changed.
func (r Rare) Arrays() (words []uint64, starts, ids []uint32) { return r.words, r.starts, r.ids }

// isFrequent tells whether a keyword is frequent.
func (r Rare) isFrequent(keyword uint32) bool { return r.words[keyword/32]>>(keyword%32)&1 != 0 }

// frequency is what the layout of an attribute depends on, of one keyword.
type frequency struct {
	postings uint64
	lists    uint32 // tiles in which it occurs
	last     uint32 // while counting: 1 + the tile counted last
}

func (f frequency) frequentBytes(tiles int) float64 {
	return 2*float64(f.postings) + 4*float64(f.lists) + float64(tiles)/4
}

func (f frequency) rareBytes() float64 { return 4*float64(f.postings) + 4 }

// rareKeyword stands for the number of a keyword that is not frequent.
const rareKeyword = math.MaxUint32

// rareTable splits the keywords of an attribute.
type rareTable struct {
	of       []uint32 // by keyword: its number among the frequent ones, or rareKeyword
	frequent uint32
	postings uint32 // of the rare ones
}

func newRareTable(frequencies []frequency, tiles int) rareTable {
	t := rareTable{of: make([]uint32, len(frequencies))}
	for keyword, f := range frequencies {
		if f.rareBytes() < f.frequentBytes(tiles) && f.postings <= math.MaxUint32-uint64(t.postings) {
			t.of[keyword] = rareKeyword
			t.postings += uint32(f.postings)
		} else {
			t.of[keyword] = t.frequent
			t.frequent++
		}
	}
	return t
}

// encodeFrequent is LayoutRare of a tile: LayoutPostings of the frequent keywords.
func (e *tileEncoder) encodeFrequent(t *rareTable) int {
	e.keptIDs = e.keptIDs[:0]
	kept := 0
	for i, keyword := range e.keywords {
		if number := t.of[keyword]; number != rareKeyword {
			e.keywords[kept] = number
			kept++
			e.keptIDs = append(e.keptIDs, e.ids[i])
		}
	}
	e.keywords, e.ids = e.keywords[:kept], e.keptIDs
	return e.encodePostings(t.frequent)
}

// encodeRare returns the section of the rare keywords of a column.
func (f *finalColumn) encodeRare(tiles int) []byte {
	t := &f.rare
	keywords := f.attribute.Keywords
	lists := keywords - t.frequent
	size := directoryBytes(keywords, int(lists)) + 4*int(t.postings)
	section := raw(make([]uint64, (size+7)/8))[:size]
	d, rest := layDirectory(section, keywords, int(lists), int(t.postings))
	ids := view[uint32](rest)

	next := make([]uint32, lists) // by rare keyword: where its next id goes
	list, start := uint32(0), uint32(0)
	for keyword, number := range t.of {
		if keyword%32 == 0 {
			d.words[keyword/32] = uint64(uint32(keyword)-list) << 32
		}
		if number != rareKeyword {
			d.words[keyword/32] |= 1 << (keyword % 32)
			continue
		}
		next[list], d.starts[list] = start, start
		list++
		start += uint32(f.frequencies[keyword].postings)
	}
	d.starts[list] = start
	if keywords%32 == 0 {
		d.words[keywords/32] = uint64(t.frequent) << 32
	}

	var scratch []uint32
	for i := range tiles {
		tile := f.source.tile(i)
		scratch = f.keywordsOf(scratch[:0], tile)
		for j, keyword := range scratch {
			if t.of[keyword] == rareKeyword {
				list := keyword - rank(d.words, keyword)
				ids[next[list]] = uint32(i)*TileObjects + uint32(tile.ids[j])
				next[list]++
			}
		}
	}
	return section
}

// decodeRare reads a rare section and checks all of it, the ids too: an engine makes tiles of them.
func decodeRare(section []byte, keywords, objects uint32) (Rare, error) {
	d, rest, err := splitDirectory(section, keywords)
	if err != nil {
		return Rare{}, err
	}
	frequent, err := checkRanks(d.words, keywords)
	if err != nil {
		return Rare{}, err
	}
	if lists := uint64(d.lists()); frequent+lists != uint64(keywords) {
		return Rare{}, corrupt("%d frequent and %d rare keywords of %d", frequent, lists, keywords)
	}
	if postings := uint64(view[uint32](section[:directoryHead])[1]); uint64(len(rest)) != 4*postings {
		return Rare{}, corrupt("%d bytes of ids; %d postings need %d", len(rest), postings, 4*postings)
	}
	r := Rare{words: d.words, starts: d.starts, ids: view[uint32](rest)}
	if err := checkStarts(r.starts, uint64(len(r.ids))); err != nil {
		return Rare{}, err
	}
	for list, start := range r.starts[:r.Lists()] {
		previous := uint32(0)
		for _, id := range r.ids[start:r.starts[list+1]] {
			if id < previous {
				return Rare{}, corrupt("rare list %d does not ascend", list)
			}
			previous = id
		}
		if previous >= objects {
			return Rare{}, corrupt("rare list %d has object %d of %d", list, previous, objects)
		}
	}
	return r, nil
}
