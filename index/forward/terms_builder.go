package forward

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/index/values"
)

// maxTerms bounds the distinct terms of an object, so that the sum of their weights fits 32 bits.
const maxTerms = 1 << 24

// maxWords bounds what the terms of a tile take, in words, so that Record.Start tells where each begins.
const maxWords = math.MaxUint32

var errTooLong = errors.New("the text has more words than an index takes of one object; cut it into several objects")

func errNotFinite(v float64) error { return fmt.Errorf("%v is not a finite number", v) }

// termsBuilder collects what the values of the column's attribute do not tell of its terms: how often they occur. Which terms an object has the
// builder of the lists knows, and they are read there when the index is written; so no string is looked up twice, and no term kept twice. Only
// a column with a vocabulary of its own has values of its own.
type termsBuilder struct {
	source  *values.Column
	every   []uint16 // of own values: the places of a tile; nil where they are the lists'
	objects uint32   // of the tile
	words   uint64   // that the tile's terms take at most
	most    uint64   // of them: maxWords
	// repeats are the objects of the tile that have a term more than once: their place, then the frequencies of their terms as they were given.
	repeats []uint32
}

// newTerms returns a builder of the terms that are in lists.
func newTerms(source *values.Column) *termsBuilder {
	return &termsBuilder{source: source, most: maxWords}
}

// ownTerms returns a builder that keeps the values too.
func ownTerms() *termsBuilder {
	source := values.NewColumn(schema.Text)
	b := newTerms(&source)
	b.every = values.Places()
	return b
}

// add returns the length of the text.
func (b *termsBuilder) add(v *schema.Values) (uint32, error) {
	if len(v.Strings) > maxTerms || len(v.Frequencies) > 0 && len(v.Frequencies) != len(v.Strings) {
		return 0, errTooLong
	}
	length, repeated := uint64(len(v.Strings)), false
	for _, f := range v.Frequencies {
		length += uint64(max(1, f)) - 1
		repeated = repeated || f > 1
	}
	if length > 1<<31 {
		return 0, errTooLong
	}
	words := uint64(len(v.Strings))
	if repeated { // the frequencies
		words *= 2
	}
	if b.words += words; b.words > b.most {
		return 0, fmt.Errorf("the last %d objects have more different words than an index takes of %d objects in a row, %d, or half as many where words repeat: "+
			"leave words out, or split the text into several columns", b.objects+1, store.TileObjects, b.most)
	}
	if b.every != nil {
		for _, s := range v.Strings {
			if !b.source.AddString(s) {
				return 0, errors.New("the column has more than 4 GiB of distinct terms, the most that one index holds; " +
					"split the data into several indexes")
			}
		}
		b.source.EndObject(uint16(b.objects))
	}
	if repeated {
		b.repeats = append(b.repeats, b.objects)
		for _, f := range v.Frequencies {
			b.repeats = append(b.repeats, max(1, f))
		}
	}
	b.objects++
	return uint32(length), nil
}

// parts are the tile's repeats.
func (b *termsBuilder) parts() [][]byte { return [][]byte{store.Raw(b.repeats)} }

func (b *termsBuilder) reset() {
	b.objects, b.words, b.repeats = 0, 0, b.repeats[:0]
	if b.every != nil {
		b.source.Seal(b.every, new(values.Numbering))
	}
}

// count numbers the terms of a column in the order of their strings, as the lists number keywords, and counts the objects of each.
func (f *finalColumn) count(objects uint32) {
	source := f.builder.tile.(*termsBuilder).source
	tiles := store.TilesOf(objects)
	f.terms, f.place = source.SortStrings(tiles)
	f.Keywords = uint32(f.terms.Len())
	f.counts = make([]uint32, f.Keywords)
	last := make([]uint32, f.Keywords) // the object that had the term last, 1 and up
	for t := range tiles {
		tile := source.Tile(t)
		for i := 0; i < len(tile.IDs); {
			local, n := tile.IDs[i], uint32(0)
			object := uint32(t*store.TileObjects) + uint32(local) + 1
			for ; i < len(tile.IDs) && tile.IDs[i] == local; i++ {
				if term := f.place[tile.Values[i]]; last[term] != object {
					last[term] = object
					f.counts[term]++
					n++
				}
			}
			f.Objects++
			f.Most = max(f.Most, n)
		}
	}
	f.weights = weightsOf(f.counts, f.IDFScale, objects)
}

// encodeTerms makes the section of a tile of n objects.
func (f *finalColumn) encodeTerms(tile values.Tile, n int, repeats []uint32) [][]byte {
	records := make([]Record, n)
	words := make([]uint32, 0, len(tile.Values)+len(repeats))
	var terms []uint64 // of an object: the term, and how often it occurs
	i := 0
	for object := range records {
		r := &records[object]
		r.Start = uint32(len(words))
		terms = terms[:0]
		for ; i < len(tile.IDs) && int(tile.IDs[i]) == object; i++ {
			terms = append(terms, uint64(f.place[tile.Values[i]])<<32|1)
		}
		if len(terms) == 0 {
			continue
		}
		if len(repeats) > 0 && int(repeats[0]) == object {
			for j := range terms {
				terms[j] += uint64(repeats[1+j]) - 1
			}
			repeats = repeats[1+len(terms):]
		}
		words = appendRow(words, terms, r)
		for _, term := range words[r.Start : r.Start+r.Terms] {
			if f.weights != nil {
				r.Sum += uint32(f.weights[term])
			}
		}
	}
	return [][]byte{rawRecords(records), store.Raw(words)}
}

// appendRow appends the terms of an object, which are terms with frequencies, and the frequencies where there are repeats.
func appendRow(words []uint32, terms []uint64, r *Record) []uint32 {
	slices.Sort(terms)
	distinct := terms[:0]
	for _, t := range terms {
		r.Length += uint32(t)
		if last := len(distinct) - 1; last >= 0 && distinct[last]>>32 == t>>32 { // given twice
			distinct[last] += uint64(uint32(t))
		} else {
			distinct = append(distinct, t)
		}
	}
	r.Terms = uint32(len(distinct))
	for _, t := range distinct {
		words = append(words, uint32(t>>32))
	}
	switch {
	case r.Length == r.Terms:
	case r.Length-r.Terms >= wideFrequencies:
		for _, t := range distinct {
			words = append(words, uint32(t))
		}
	default:
		for i, t := range distinct {
			if i%4 == 0 {
				words = append(words, 0)
			}
			words[len(words)-1] |= uint32(t) << (i % 4 * 8)
		}
	}
	return words
}
