package postings

import (
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// codec is all that there is to a layout. How it encodes and decodes stands in one file named after it (layout_postings.go); nothing
// outside these files and the choice (choose.go) knows which layouts there are.
type codec struct {
	// The kinds of sections that hold an attribute: one per tile, and, unless it is 0, one for the whole index.
	tile, whole store.SectionKind

	// Encoding: prepare is called once the keywords of a column are counted; it says why the column cannot have the layout. encode writes a
	// tile of so many objects into the encoder's memory and returns the bytes.
	prepare     func(f *finalColumn, tiles int) error
	encodeWhole func(f *finalColumn, tiles int) []byte
	encode      func(e *tileEncoder, f *finalColumn, objects int) int

	// Decoding: accepts checks an entry of the attribute table. openWhole and open check sections and set what the accessors of Lists return,
	// and decode turns a tile into postings of all keywords.
	accepts   func(a *Attribute) error
	openWhole func(x *Lists, attr int, section []byte) error
	open      func(x *Lists, tile, attr int, section []byte) error
	decode    func(d *Decoder, x *Lists, tile, attr int) Postings
	work      func(x *Lists, tile, attr int) uint64 // what a query of all keywords costs in a tile, in postings

	// describe adds an attribute to its statistics, and the postings of each keyword to lengths. counts says that it takes the lengths from
	// elsewhere than from the tiles, so that whether they agree is to be validated.
	describe func(x *Lists, attr int, s *ListStatistics, lengths []uint64)
	counts   bool
}

// Decoder turns any layout into postings over all keywords of an attribute, the form that everything can be derived
// from. It holds one worker's memory; the zero value is ready to use. It is not safe for concurrent use.
type Decoder struct {
	words  []uint64
	starts []uint32
	ids    []uint16

	low   []byte   // of the codes of a tile
	codes []uint16 // the same, where they have more than 8 bits
	next  []uint32 // by code: objects, then where its next object goes

	rare rareCursor
}

// Postings returns the postings of an attribute in a tile, over all keywords, whatever the layout. They point into the
// map or into d, where they are valid until d's next call. In LayoutRare take the tiles of an attribute in ascending
// order: a call for the same or an earlier tile, or for another attribute, reads the rare lists from their beginning again.
func (d *Decoder) Postings(x *Lists, tile, attr int) Postings {
	return codecOf(x.attributes[attr].Layout).decode(d, x, tile, attr)
}

// codecOf returns the codec of a layout, nil of one that this version cannot read.
func codecOf(l schema.Layout) *codec {
	if int(l) >= len(codecs) {
		return nil
	}
	return codecs[l]
}

// codecs is the table of layouts. It is not changed.
var codecs = [...]*codec{
	schema.LayoutPostings: {
		tile:    SectionPostings,
		prepare: func(*finalColumn, int) error { return nil },
		encode:  func(e *tileEncoder, f *finalColumn, _ int) int { return e.encodePostings(f.attribute.Keywords) },
		accepts: func(*Attribute) error { return nil },
		open: func(x *Lists, tile, attr int, section []byte) error {
			return openList(x, tile, attr, section, x.attributes[attr].Keywords)
		},
		decode:   func(_ *Decoder, x *Lists, tile, attr int) Postings { return x.Postings(tile, attr) },
		work:     workOfList,
		describe: (*Lists).addLists,
	},
	schema.LayoutSliced: {
		tile: SectionPlanes, whole: SectionCodes,
		prepare: prepareSliced, encodeWhole: encodeCodes, encode: encodePlanes,
		accepts: acceptsSliced, openWhole: openCodes, open: openPlanes, decode: decodeSliced, work: workOfPlanes,
		describe: describeSliced, counts: true,
	},
	schema.LayoutRare: {
		tile: SectionPostings, whole: SectionRare,
		prepare: prepareRare, encodeWhole: encodeRare, encode: encodeFrequent,
		accepts: acceptsRare, openWhole: openRare, open: openFrequent, decode: decodeJoined,
		work:     workOfList, // of the frequent keywords, which are most of all postings
		describe: describeRare,
	},
}
