package postings

import (
	"math"
	"slices"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// LayoutRare is for texts, most of whose keywords are rare: a directory per tile spends two bits on each keyword of the
// vocabulary and four bytes on each list, which for lists of one or two ids is more than the ids. So the keywords are
// split. The frequent ones, renumbered in order, have postings tile by tile; of the rare ones there is one list each
// for the whole index, of 32-bit ids.
//
// Which keywords are rare is a matter of bytes alone. With n postings that lie in l of t tiles, a keyword costs
//
//	frequent:  2n + 4l + t/4     ids, a start per list, two bits per tile
//	rare:      4n + 4            ids and a start
//
// and is rare where that is less. Spread evenly that is below about 2.1 t postings, in one tile alone below t/8.

// Rare are the lists of the rare keywords of one attribute in LayoutRare, over the whole index. The rare keywords
// are numbered in order; a list holds object ids, ascending, an id as often as the object has the keyword. Open has
// checked that they ascend and that the objects exist.
type Rare struct {
	directory // the bits are those of frequent keywords, the starts by rare keyword
	ids       []uint32
}

// Frequent returns how many frequent keywords come before keyword, at most Attribute.Keywords: its number in the tiles'
// Postings if it is frequent. keyword - Frequent(keyword) is how many rare ones do. So the keywords [lo, hi) are the
// frequent ones [Frequent(lo), Frequent(hi)) and the rare lists [lo - Frequent(lo), hi - Frequent(hi)).
func (r Rare) Frequent(keyword uint32) uint32 { return rank(r.words, keyword) }

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

// prepareRare splits the keywords of a column.
func prepareRare(f *finalColumn, tiles int) error {
	f.rare = newRareTable(f.frequencies, tiles)
	return nil
}

// encodeFrequent is LayoutRare of a tile: LayoutPostings of the frequent keywords.
func encodeFrequent(e *tileEncoder, f *finalColumn, _ int) int {
	t := &f.rare
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
func encodeRare(f *finalColumn, tiles int) []byte {
	t := &f.rare
	keywords := f.attribute.Keywords
	lists := keywords - t.frequent
	size := directoryBytes(keywords, int(lists)) + 4*int(t.postings)
	section := store.Raw(make([]uint64, (size+7)/8))[:size]
	d, rest := newDirectory(section, keywords, int(lists), int(t.postings))
	ids := store.View[uint32](rest)

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
		tile := f.source.Tile(i)
		scratch = f.keywords.Of(scratch[:0], tile)
		for j, keyword := range scratch {
			if t.of[keyword] == rareKeyword {
				list := keyword - rank(d.words, keyword)
				ids[next[list]] = uint32(i)*store.TileObjects + uint32(tile.IDs[j])
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
	if lists := uint64(d.Lists()); frequent+lists != uint64(keywords) {
		return Rare{}, store.Corrupt("%d frequent and %d rare keywords of %d", frequent, lists, keywords)
	}
	if postings := uint64(store.View[uint32](section[:directoryHead])[1]); uint64(len(rest)) != 4*postings {
		return Rare{}, store.Corrupt("%d bytes of ids; %d postings need %d", len(rest), postings, 4*postings)
	}
	r := Rare{d, store.View[uint32](rest)}
	if err := checkStarts(r.starts, uint64(len(r.ids))); err != nil {
		return Rare{}, err
	}
	for list, start := range r.starts[:r.Lists()] {
		previous := uint32(0)
		for _, id := range r.ids[start:r.starts[list+1]] {
			if id < previous {
				return Rare{}, store.Corrupt("rare list %d does not ascend", list)
			}
			previous = id
		}
		if previous >= objects {
			return Rare{}, store.Corrupt("rare list %d has object %d of %d", list, previous, objects)
		}
	}
	return r, nil
}

// acceptsRare checks an entry of the attribute table.
func acceptsRare(a *Attribute) error {
	if a.Type != schema.Text {
		return store.Corrupt("attribute %q has rare keywords but is of type %v", a.Name, a.Type)
	}
	return nil
}

func openRare(x *Lists, attr int, section []byte) (err error) {
	x.rare[attr], err = decodeRare(section, x.attributes[attr].Keywords, x.Objects())
	return err
}

// openFrequent opens the postings of the frequent keywords in a tile.
func openFrequent(x *Lists, tile, attr int, section []byte) error {
	return openList(x, tile, attr, section, x.rare[attr].Frequent(x.attributes[attr].Keywords))
}

// rareCursor remembers how far the rare lists of an attribute have been read.
type rareCursor struct {
	lists      *Lists
	attr, tile int
	next       []uint32 // by rare keyword: its first id from the tile on
}

// seek moves the cursor to a tile: forward, or from the beginning of the lists.
func (c *rareCursor) seek(x *Lists, tile, attr int) {
	r := x.rare[attr]
	if c.lists != x || c.attr != attr || c.tile > tile {
		c.next = append(c.next[:0], r.starts[:r.Lists()]...)
		c.lists, c.attr, c.tile = x, attr, 0
	}
	if c.tile == tile {
		return
	}
	c.tile = tile
	first := uint32(tile) * store.TileObjects
	for list, at := range c.next {
		for at < r.starts[list+1] && r.ids[at] < first {
			at++
		}
		c.next[list] = at
	}
}

// decodeJoined joins the lists of frequent and rare keywords.
func decodeJoined(d *Decoder, x *Lists, tile, attr int) Postings {
	d.rare.seek(x, tile, attr)
	d.rare.tile = tile + 1
	r, frequent, keywords := x.rare[attr], x.Postings(tile, attr), x.attributes[attr].Keywords
	first := uint64(tile) * store.TileObjects
	end := first + uint64(x.TileLen(tile))

	d.words = slices.Grow(d.words[:0], len(r.words))[:len(r.words)]
	d.starts, d.ids = d.starts[:0], d.ids[:0]
	number, rare := uint32(0), uint32(0) // of the frequent and rare keywords before
	list := 0                            // of frequent keywords in the tile
	for w, word := range r.words {
		out := uint64(len(d.starts)) << 32
		for bit := range min(32, keywords-uint32(w)*32) {
			start := uint32(len(d.ids))
			if word>>bit&1 != 0 {
				if frequent.words[number/32]>>(number%32)&1 != 0 {
					d.ids = append(d.ids, frequent.ids[frequent.starts[list]:frequent.starts[list+1]]...)
					list++
				}
				number++
			} else {
				at, stop := d.rare.next[rare], r.starts[rare+1]
				for ; at < stop && uint64(r.ids[at]) < end; at++ {
					d.ids = append(d.ids, uint16(uint64(r.ids[at])-first))
				}
				d.rare.next[rare] = at
				rare++
			}
			if uint32(len(d.ids)) > start {
				out |= 1 << bit
				d.starts = append(d.starts, start)
			}
		}
		d.words[w] = out
	}
	lists := len(d.starts)
	d.starts = append(d.starts, uint32(len(d.ids)))
	return Postings{directory{d.words, d.starts[:lists+1]}, d.ids}
}

// describeRare adds an attribute in LayoutRare to its statistics.
func describeRare(x *Lists, attr int, s *ListStatistics, lengths []uint64) {
	r := x.rare[attr]
	x.addLists(attr, s, lengths[:r.Frequent(uint32(len(lengths)))])
	// The lengths of the frequent keywords, with which lengths begins now, move to their places, and the rare ones come beside them.
	s.PostingsBytes += 4 * int64(len(r.ids))
	for keyword := uint32(len(lengths)); keyword > 0; {
		keyword-- // a keyword's number is not above it, so that going down none is overwritten before it has moved
		number := r.Frequent(keyword)
		if r.isFrequent(keyword) {
			lengths[keyword] = lengths[number]
		} else {
			lengths[keyword] = uint64(r.starts[keyword-number+1] - r.starts[keyword-number])
		}
	}
}
