// Package forward is the family of what objects hold: the other direction of inverted lists. It keeps, by column and addressed by object, the
// numbers, terms, vectors, texts, trees and graphs that rescoring compares, exact filters look at and hits return.
package forward

import (
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// What sections hold, of this family. PerColumn ones are of the columns in the table, by their position there.
const (
	SectionColumns     store.SectionKind = 13 // the table of columns
	SectionFloats      store.SectionKind = 14 // KeptNumbers of one column
	SectionTerms       store.SectionKind = 15 // KeptTerms of one tile and column
	SectionVectors     store.SectionKind = 16 // KeptVectors of one tile and column
	SectionBlobs       store.SectionKind = 17 // KeptTexts, KeptTrees, KeptGraphs of one tile and column
	SectionStored      store.SectionKind = 18 // values of a tile that are returned with hits, compressed
	SectionFrequencies store.SectionKind = 19 // of terms: objects that have each
	SectionDictionary  store.SectionKind = 20 // of terms that are not an attribute's keywords: strings, ascending
	SectionFinder      store.SectionKind = 21 // hash table over them
)

// FamilyName is the name of the family.
const FamilyName = "forward"

// Family is the family of what objects hold.
type Family struct{}

// Name returns FamilyName.
func (Family) Name() string { return FamilyName }

// Sections returns the kinds of sections.
func (Family) Sections() []store.SectionForm {
	return []store.SectionForm{
		{Kind: SectionColumns, Name: "columns"},
		{Kind: SectionFloats, Name: "floats", PerColumn: true},
		{Kind: SectionTerms, Name: "terms", PerColumn: true, PerTile: true},
		{Kind: SectionVectors, Name: "vectors", PerColumn: true, PerTile: true},
		{Kind: SectionBlobs, Name: "blobs", PerColumn: true, PerTile: true},
		{Kind: SectionStored, Name: "stored", PerTile: true},
		{Kind: SectionFrequencies, Name: "frequencies", PerColumn: true},
		{Kind: SectionDictionary, Name: "dictionary", PerColumn: true},
		{Kind: SectionFinder, Name: "finder", PerColumn: true},
	}
}

// Forward is what the objects of an index hold.
//
// # What it is shaped by
//
// Who asks has candidates: objects far apart, a hundred for a query, a hundred million in a second. So a value is found by
// arithmetic, without decoding, and what is needed of an object lies together: of terms one record of 16 bytes has the place, the number,
// the length and the weight, and the terms follow each other where the record says. Scans, which take object after object, read
// the same memory front to back. Tiles are those of the lists, so that a device can take a range of them.
//
// What is only returned with hits is another matter: ten objects of a query at most, and texts. It is compressed in blocks of some
// kilobytes, rows of all such columns together, since a hit wants them all. One block is decoded for a hit (Reader).
//
// An original is there once: a column's number, vector or text that is kept anyway is what a hit returns too.
//
// # Guarantees
//
//   - Immutable and safe for any number of goroutines. Accessors take constant time and do not allocate. Slices and strings point into the
//     map, must not be changed and die with it.
//   - No file can make an accessor fail or read outside the file, whoever wrote it: bounds, the number of keywords, sizes of rows are
//     checked when it is opened. What is left to Verify can only make answers wrong: the order of keywords, sums, finite
//     numbers, compressed blocks that cannot be read, which count as missing.
//   - The same objects give the same bytes.
type Forward struct {
	file    *store.File
	columns []Column
	byName  map[string]int
	stored  []storedTile // nil: none is
	rows    []int        // the columns whose values are stored in rows, in their order
}

// Open opens what the objects of a file hold.
func (Family) Open(f *store.File, _ *schema.Schema) (store.Structure, error) {
	x, err := open(f)
	if err != nil {
		return nil, err
	}
	return x, nil
}

func open(f *store.File) (*Forward, error) {
	table, err := f.Read(SectionColumns)
	if err != nil {
		return nil, err
	}
	x := &Forward{file: f}
	if x.columns, err = decodeTable(table, f.Objects()); err != nil {
		return nil, err
	}
	x.byName = make(map[string]int, len(x.columns))
	weighers := make(map[int]*weigher) // by scale: there may be many columns, and making one takes a millisecond
	for i := range x.columns {
		c := &x.columns[i]
		c.file = f
		if _, twice := x.byName[c.Name]; twice {
			return nil, store.Corrupt("two kept columns are named %q", c.Name)
		}
		x.byName[c.Name] = i
		if weighers[c.IDFScale] == nil && c.IDFScale > 0 {
			weighers[c.IDFScale] = newWeigher(c.IDFScale, f.Objects())
		}
		c.weigher = weighers[c.IDFScale]
		if inRows(&c.KeptSpec) {
			x.rows = append(x.rows, i)
		}
	}
	if err := x.needSections(); err != nil {
		return nil, err
	}
	x.allocate()
	err = f.Each(x.has, func(s *store.Section, data []byte) error {
		if s.Kind == SectionStored {
			var err error
			x.stored[s.Tile], err = decodeStored(data, f.TileLen(s.Tile))
			return err
		}
		return x.columns[s.Attribute].open(s, data)
	})
	if err != nil {
		return nil, err
	}
	for i := range x.columns {
		if err := x.columns[i].checkBlobs(); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// inRows says that a column's value is stored in the rows of what is returned, since it is not kept otherwise.
func inRows(spec *schema.KeptSpec) bool {
	kept := spec.Form == schema.KeptNumbers || spec.Form == schema.KeptVectors || spec.Form == schema.KeptTexts
	return spec.Returned && !kept
}

// tileKind is the kind of section in which a form lies, tile by tile; 0 where it does not.
func tileKind(form schema.KeptForm) store.SectionKind {
	switch form {
	case schema.KeptTerms:
		return SectionTerms
	case schema.KeptVectors:
		return SectionVectors
	case schema.KeptTexts, schema.KeptTrees, schema.KeptGraphs:
		return SectionBlobs
	}
	return 0
}

// needSections says which sections the columns have, before anything is allocated by numbers that the file claims.
func (x *Forward) needSections() error {
	for i := range x.columns {
		c := &x.columns[i]
		var whole []store.SectionKind
		if c.Form == schema.KeptNumbers {
			whole = append(whole, SectionFloats)
		}
		if c.Form == schema.KeptTerms {
			whole = append(whole, SectionFrequencies)
		}
		if c.Vocabulary {
			whole = append(whole, SectionDictionary, SectionFinder)
		}
		for _, kind := range whole {
			if err := x.file.Need(kind, i, -1); err != nil {
				return err
			}
		}
		for tile := range x.file.Tiles() {
			if tileKind(c.Form) == 0 {
				break
			}
			if err := x.file.Need(tileKind(c.Form), i, tile); err != nil {
				return err
			}
		}
	}
	if len(x.rows) > 0 {
		for tile := range x.file.Tiles() {
			if err := x.file.Need(SectionStored, -1, tile); err != nil {
				return err
			}
		}
	}
	return nil
}

// has says whether a section is one that needSections has named. Others are left over, which is an error.
func (x *Forward) has(s *store.Section) bool {
	switch s.Kind {
	case SectionTerms, SectionVectors, SectionBlobs:
		return s.Attribute < len(x.columns) && tileKind(x.columns[s.Attribute].Form) == s.Kind
	case SectionStored:
		return x.stored != nil
	case SectionFloats, SectionFrequencies, SectionDictionary, SectionFinder:
		return s.Attribute < len(x.columns)
	}
	return false
}

// allocate makes room for the sections, all of which are there.
func (x *Forward) allocate() {
	tiles := x.file.Tiles()
	if len(x.rows) > 0 {
		x.stored = make([]storedTile, tiles)
	}
	for i := range x.columns {
		switch c := &x.columns[i]; tileKind(c.Form) {
		case SectionTerms:
			c.terms = make([]TermsTile, tiles)
		case SectionVectors:
			c.vectors = make([]VectorsTile, tiles)
		case SectionBlobs:
			c.blobs = make([]store.StringTable, tiles)
		}
	}
}

// open opens a section of a column.
func (c *Column) open(s *store.Section, data []byte) (err error) {
	n := 0
	if s.Tiles > 0 {
		n = c.file.TileLen(s.Tile)
	}
	switch s.Kind {
	case SectionFloats:
		c.floats, err = decodeFloats(data, int(c.file.Objects()))
	case SectionTerms:
		c.terms[s.Tile], err = decodeTerms(data, n, c.Keywords)
	case SectionVectors:
		c.vectors[s.Tile], err = decodeVectors(data, n, &c.KeptSpec)
	case SectionBlobs:
		c.blobs[s.Tile], err = store.DecodeStrings(data, uint32(n))
	case SectionFrequencies:
		if uint64(len(data)) != 4*uint64(c.Keywords) {
			return store.Corrupt("%d bytes are no frequencies of %d terms", len(data), c.Keywords)
		}
		c.frequency = store.View[uint32](data)
	case SectionDictionary:
		c.dictionary, err = store.DecodeStrings(data, c.Keywords)
	case SectionFinder:
		c.finder, err = store.DecodeHashTable(data)
	}
	return err
}

// Columns returns the columns in the order of the table. The slice must not be changed.
func (x *Forward) Columns() []Column { return x.columns }

// Column returns a column by its name, nil where nothing is kept of it.
func (x *Forward) Column(name string) *Column {
	if i, ok := x.byName[name]; ok {
		return &x.columns[i]
	}
	return nil
}
