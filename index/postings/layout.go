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

	// Validating: what is to be checked beside the postings of each tile. counters is how many counters it takes, count adds a tile
	// that was decoded, and agree checks the sums. All nil: nothing.
	counters func(x *Lists, attr int) int
	count    func(d *Decoder, counts []uint64, objects int)
	agree    func(x *Lists, attr int, counts []uint64) error

	// describe adds an attribute to its statistics, and the postings of each keyword to lengths.
	describe func(x *Lists, attr int, s *ListStatistics, lengths []uint64)
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
		tile:     SectionPostings,
		prepare:  func(*finalColumn, int) error { return nil },
		encode:   encodeAll,
		accepts:  func(*Attribute) error { return nil },
		open:     openPostings,
		decode:   func(_ *Decoder, x *Lists, tile, attr int) Postings { return x.Postings(tile, attr) },
		work:     workOfList,
		describe: describePostings,
	},
	schema.LayoutSliced: {
		tile: SectionPlanes, whole: SectionCodes,
		prepare: prepareSliced, encodeWhole: encodeCodes, encode: encodePlanes,
		accepts: acceptsSliced, openWhole: openCodes, open: openPlanes, decode: decodeSliced, work: workOfPlanes,
		counters: countersSliced, count: countCodes, agree: agreeSliced,
		describe: describeSliced,
	},
	schema.LayoutRare: {
		tile: SectionPostings, whole: SectionRare,
		prepare: prepareRare, encodeWhole: encodeRare, encode: encodeFrequent,
		accepts: acceptsRare, openWhole: openRare, open: openFrequent, decode: decodeJoined,
		work:     workOfList, // of the frequent keywords, which are most of all postings
		describe: describeRare,
	},
}
