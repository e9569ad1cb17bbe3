package forward

import (
	"unsafe"

	"github.com/geniemq/geniemq/index/store"
)

// Record is where an object's terms lie and what their sums are: 16 bytes, so that one access to memory tells all of an object but
// the terms themselves.
type Record struct {
	Start  uint32 // of its terms in TermsTile.Words
	Terms  uint32 // how many distinct ones
	Length uint32 // how many with repeats: words of a text
	Sum    uint32 // of the weights of its distinct terms at the column's scale; 0 without one
}

// TermsTile is the terms of a tile's objects. Those of an object are Words[Start:Start+Terms], keywords in ascending order. Where Length is
// greater than Terms the frequencies follow: a byte each, padded to whole words, where Length - Terms is below 255, which bounds every one
// of them to 255; a word each otherwise. So an object of which each term occurs once, as those of sets and most of titles, takes four bytes a
// term.
type TermsTile struct {
	Records []Record
	Words   []uint32
}

// wideFrequencies: from that many repeats on frequencies take words.
const wideFrequencies = 255

// frequencyWords is how many words the frequencies of an object take.
func frequencyWords(r *Record) uint64 {
	switch repeats := r.Length - r.Terms; {
	case repeats == 0:
		return 0
	case repeats < wideFrequencies:
		return (uint64(r.Terms) + 3) / 4
	default:
		return uint64(r.Terms)
	}
}

// Row returns the terms of an object whose record it is, and their frequencies.
func (t *TermsTile) Row(r *Record) Row {
	end := r.Start + r.Terms
	row := Row{Keywords: t.Words[r.Start:end:end]}
	if r.Length > r.Terms {
		row.wide = r.Length-r.Terms >= wideFrequencies
		row.frequencies = t.Words[end : uint64(end)+frequencyWords(r)]
	}
	return row
}

// Row is the terms of an object.
type Row struct {
	Keywords    []uint32
	frequencies []uint32 // nil: one each
	wide        bool
}

// Frequency returns how often the i-th term occurs.
func (r *Row) Frequency(i int) uint32 {
	switch {
	case r.frequencies == nil:
		return 1
	case r.wide:
		return r.frequencies[i]
	}
	return r.frequencies[i/4] >> (i % 4 * 8) & 0xFF
}

// TermsTile returns the terms of a tile, in the form KeptTerms.
func (c *Column) TermsTile(tile int) *TermsTile { return &c.terms[tile] }

// Frequency returns how many objects have a term, 0 of unknown ones.
func (c *Column) Frequency(term uint32) uint32 {
	if uint64(term) >= uint64(len(c.frequency)) {
		return 0
	}
	return c.frequency[term]
}

// Lookup returns the number of a term in a column that has a vocabulary of its own; in others it finds nothing.
func (c *Column) Lookup(value string) (term uint32, ok bool) {
	return c.finder.Find(&c.dictionary, value)
}

func decodeTerms(data []byte, n int, keywords uint32) (t TermsTile, err error) {
	records := 16 * n
	if len(data) < records || len(data)%4 != 0 {
		return t, store.Corrupt("%d bytes cannot hold the records of %d objects", len(data), n)
	}
	t.Records = viewRecords(data[:records])
	t.Words = store.View[uint32](data[records:])
	next, words := uint64(0), uint64(len(t.Words))
	for i := range t.Records {
		r := &t.Records[i]
		if uint64(r.Start) != next || r.Length < r.Terms || r.Terms == 0 && r.Length != 0 {
			return t, store.Corrupt("the record of object %d of the tile is %d, and its terms should begin at %d", i, *r, next)
		}
		if next += uint64(r.Terms) + frequencyWords(r); next > words {
			return t, store.Corrupt("the terms of object %d of the tile end at %d, there are %d", i, next, words)
		}
		for _, term := range t.Words[r.Start : r.Start+r.Terms] {
			if term >= keywords {
				return t, store.Corrupt("object %d of the tile has term %d of %d", i, term, keywords)
			}
		}
	}
	if next != words {
		return t, store.Corrupt("the terms end at %d, there are %d words", next, words)
	}
	return t, nil
}

// viewRecords returns data, which is 16 bytes times n, as records in place.
func viewRecords(data []byte) []Record {
	if len(data) == 0 {
		return nil
	}
	return unsafe.Slice((*Record)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/16)
}

func rawRecords(records []Record) []byte {
	if len(records) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(records))), 16*len(records))
}

// verify checks what opening leaves: the order of terms, frequencies and sums. seen counts the objects of each term.
func (t *TermsTile) verify(c *Column, weights []uint8, total *totals, count func(term uint32)) error {
	for i := range t.Records {
		r := &t.Records[i]
		row := t.Row(r)
		length, sum := uint64(0), uint64(0)
		for j, term := range row.Keywords {
			if j > 0 && term <= row.Keywords[j-1] {
				return store.Corrupt("the terms of object %d of the tile do not ascend", i)
			}
			f := row.Frequency(j)
			if f == 0 {
				return store.Corrupt("a term of object %d of the tile occurs never", i)
			}
			length += uint64(f)
			if c.IDFScale > 0 {
				sum += uint64(weights[term])
			}
			count(term)
		}
		if length != uint64(r.Length) || sum != uint64(r.Sum) {
			return store.Corrupt("object %d of the tile has length %d and sum %d, should have %d and %d", i, r.Length, r.Sum, length, sum)
		}
		if n := len(row.Keywords); r.Length > r.Terms && !row.wide && n%4 != 0 && row.frequencies[n/4]>>(n%4*8) != 0 {
			return store.Corrupt("bytes follow the frequencies of object %d of the tile", i)
		}
		total.add(r.Terms)
		total.length += length
	}
	return nil
}
