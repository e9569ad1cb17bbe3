// Package postings is the family of inverted lists: an attribute's keywords, and for each keyword the objects that have it. A Builder makes the
// lists of values, Lists are what engines search, in one of several layouts for each attribute, and a MatchQuery is what they are asked.
//
// A layout is a codec in a table (layout.go). A new one is a file and a line there.
package postings

import (
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// What sections hold, of this family.
const (
	SectionAttributes store.SectionKind = 2  // the attribute table
	SectionNumbers    store.SectionKind = 3  // float64 edges, or values, of a Number attribute
	SectionStrings    store.SectionKind = 4  // the keywords of a Text attribute, ascending
	SectionLookup     store.SectionKind = 5  // hash table over the keywords of a Text attribute
	SectionPostings   store.SectionKind = 6  // LayoutPostings of one tile and attribute; in LayoutRare of the frequent keywords
	SectionPlanes     store.SectionKind = 10 // LayoutSliced of one tile and attribute
	SectionCodes      store.SectionKind = 11 // keywords of an attribute in LayoutSliced
	SectionRare       store.SectionKind = 12 // rare keywords of an attribute in LayoutRare
)

// FamilyName is the name of the family of inverted lists.
const FamilyName = "postings"

// Family is the family of inverted lists.
type Family struct{}

// Name returns FamilyName.
func (Family) Name() string { return FamilyName }

var sections = []store.SectionForm{
	{Kind: SectionAttributes, Name: "attributes"},
	{Kind: SectionNumbers, Name: "numbers", PerAttribute: true},
	{Kind: SectionStrings, Name: "strings", PerAttribute: true},
	{Kind: SectionLookup, Name: "lookup", PerAttribute: true},
	{Kind: SectionPostings, Name: "postings", PerAttribute: true, PerTile: true},
	{Kind: SectionPlanes, Name: "planes", PerAttribute: true, PerTile: true},
	{Kind: SectionCodes, Name: "codes", PerAttribute: true},
	{Kind: SectionRare, Name: "rare", PerAttribute: true},
}

// Sections returns the kinds of sections of inverted lists.
func (Family) Sections() []store.SectionForm { return slices.Clone(sections) }

// Lists are the inverted lists of an index: for each tile of T = TileObjects consecutive objects and each
// attribute the postings of its keywords, and the position map that turns values into keywords.
//
// # What they are shaped by
//
// Matching counts, for one query at a time or many, how often the objects of a tile occur in the runs of postings that the
// query's items select. The counters of a tile are meant to stay on chip: in a core's cache, in a GPU's shared
// memory. Everything follows from that.
//
//   - Ids inside a tile need 16 bits, half of what a flat list takes, and need no decoding.
//   - Tiles are the unit of work, of load balancing (a long list is cut by them as the paper cuts it by length, section
//     III-B) and of the file, which is tile-major: any run of tiles is one contiguous copy to a device.
//   - Keywords of an attribute are numbered in the order of their values and lists lie in that order, so a range, however
//     wide, is one run per tile: the two ends are looked up, nothing between them.
//   - The directory that finds a run is two dependent loads for any vocabulary; see Postings. There is one way for a
//     value, a range and a set, and the host only maps values to keywords: finding runs can be the device's work.
//
// The position map is a stored hash table for equality and the sorted strings for ranges, both used where they lie in
// the file. Numbers have no table: their keyword is a binary search over at most a few thousand edges.
//
// Layouts other than plain postings are section kinds of their own, chosen for each attribute: see codec.
//
// # Guarantees
//
// Accessors take constant time, LowerBound and Attribute.Bucket logarithmic, and none but KeywordName and LookupAll allocates. No file can make an
// accessor fail or read outside the file, whoever wrote it. What accessors rely on is checked when the file is opened, checksums or
// not: the bounds of sections, that each tile and attribute has exactly its sections, that offsets and starts ascend, that
// ranks are what the presence bits say, that every posting is of an object that exists. Hash slots are checked when they are followed.
//
// What is left to Verify can only make answers of this index wrong, not unsafe: the order of the strings, edges and
// lists, and the totals (a count bound that is too low lets a narrow counter overflow into its neighbour).
type Lists struct {
	*store.File
	attributes   []Attribute
	vocabularies []vocabulary // by attribute; empty unless Text
	postings     []Postings   // by tile x attributes + attribute; zero in LayoutSliced
	planes       []Planes     // the same; zero in other layouts
	codes        []Codes      // by attribute, of LayoutSliced
	rare         []Rare       // by attribute, of LayoutRare
	frequencies  []frequencies
}

// vocabulary is the position map of a Text attribute: its keywords ascending and the table that finds them.
type vocabulary struct {
	keywords store.StringTable
	lookup   store.HashTable
}

// Open opens the lists of a file.
func (Family) Open(f *store.File, _ *schema.Schema) (store.Structure, error) {
	table, err := f.Read(SectionAttributes)
	if err != nil {
		return nil, err
	}
	x := &Lists{File: f}
	if x.attributes, err = decodeAttributes(table, uint32(f.AttributeCount())); err != nil {
		return nil, err
	}
	if err := x.needSections(); err != nil {
		return nil, err
	}
	x.vocabularies = make([]vocabulary, len(x.attributes))
	x.postings = make([]Postings, x.Tiles()*len(x.attributes))
	x.planes = make([]Planes, x.Tiles()*len(x.attributes))
	x.codes = make([]Codes, len(x.attributes))
	x.rare = make([]Rare, len(x.attributes))
	x.frequencies = make([]frequencies, len(x.attributes))
	// The sections of tiles are checked against those of whole attributes.
	if err := f.Each(func(s *store.Section) bool { return ofAttribute(s.Kind) && s.Tiles == 0 }, x.openWhole); err != nil {
		return nil, err
	}
	if err := f.Each(func(s *store.Section) bool { return ofAttribute(s.Kind) && s.Tiles != 0 }, x.openTile); err != nil {
		return nil, err
	}
	return x, nil
}

// ofAttribute says that sections of a kind are of the lists of one attribute. The attribute of others may be anything: a column of
// another family's, or what a newer geniemq means by it.
func ofAttribute(kind store.SectionKind) bool {
	return slices.ContainsFunc(sections, func(s store.SectionForm) bool { return s.Kind == kind && s.PerAttribute })
}

// wholeSections are the kinds of sections that there are once for an attribute, besides those of its tiles.
func wholeSections(a *Attribute) (kinds []store.SectionKind) {
	switch a.Type {
	case schema.Text:
		kinds = append(kinds, SectionStrings, SectionLookup)
	case schema.Number:
		kinds = append(kinds, SectionNumbers)
	}
	if c := codecOf(a.Layout); c.whole != 0 {
		kinds = append(kinds, c.whole)
	}
	return kinds
}

// needSections says which sections the attributes have, before anything is allocated by numbers that the file claims.
func (x *Lists) needSections() error {
	for i := range x.attributes {
		a := &x.attributes[i]
		for _, kind := range wholeSections(a) {
			if err := x.Need(kind, i, -1); err != nil {
				return err
			}
		}
		for tile := range x.Tiles() {
			if err := x.Need(codecOf(a.Layout).tile, i, tile); err != nil {
				return err
			}
		}
	}
	return nil
}

// openWhole opens a section of a whole attribute.
func (x *Lists) openWhole(s *store.Section, data []byte) error {
	a := &x.attributes[s.Attribute]
	var err error
	switch c := codecOf(a.Layout); s.Kind {
	case SectionNumbers:
		err = openNumbers(a, data)
	case SectionStrings:
		x.vocabularies[s.Attribute].keywords, err = store.DecodeStrings(data, a.Keywords)
	case SectionLookup:
		x.vocabularies[s.Attribute].lookup, err = store.DecodeHashTable(data)
	case c.whole:
		if c.openWhole != nil {
			err = c.openWhole(x, s.Attribute, data)
		}
	}
	return err
}

// openTile opens a section of an attribute in a tile.
func (x *Lists) openTile(s *store.Section, data []byte) error {
	c := codecOf(x.attributes[s.Attribute].Layout)
	if s.Kind != c.tile {
		return nil
	}
	return c.open(x, s.Tile, s.Attribute, data)
}

// openNumbers sets the edges or values of a Number attribute; an attribute without values in the data has none.
func openNumbers(a *Attribute, data []byte) error {
	want := uint64(a.Keywords)
	if !a.Exact && want > 0 {
		want--
	}
	if uint64(len(data)) != 8*want {
		return store.Corrupt("%d bytes; %d keywords need %d numbers", len(data), a.Keywords, want)
	}
	if a.Exact {
		a.Values = store.View[float64](data)
	} else {
		a.Edges = store.View[float64](data)
	}
	return nil
}

// Attributes returns the attributes in schema order. The slice must not be changed.
func (x *Lists) Attributes() []Attribute { return x.attributes }

// Attribute returns an attribute by its position.
func (x *Lists) Attribute(attr int) *Attribute { return &x.attributes[attr] }

// SetDistinct says of an attribute that no object has one of its keywords twice, before the lists are used. Verify checks it.
func (x *Lists) SetDistinct(attr int) { x.attributes[attr].Distinct = true }

// Lookup returns the keyword of a value in a Text attribute; in attributes of other types it finds nothing. It
// takes constant time and allocates nothing.
func (x *Lists) Lookup(attr int, value string) (kw uint32, ok bool) {
	w := &x.vocabularies[attr]
	return w.lookup.Find(&w.keywords, value)
}

// NoKeyword stands for the keyword of a value that an attribute has not.
const NoKeyword = store.NoString

// LookupAll is Lookup for many values, which takes less time than each for itself: it appends their keywords, or NoKeyword.
func (x *Lists) LookupAll(dst []uint32, attr int, values []string) []uint32 {
	w := &x.vocabularies[attr]
	return w.lookup.FindAll(dst, &w.keywords, values)
}

// LowerBound returns the first keyword of a Text attribute that is >= value in the order of the bytes, which in
// UTF-8 is the order of the code points; it is Attribute.Keywords when all are less.
func (x *Lists) LowerBound(attr int, value string) uint32 {
	keywords := &x.vocabularies[attr].keywords
	return uint32(sort.Search(keywords.Len(), func(kw int) bool { return keywords.At(uint32(kw)) >= value }))
}

// KeywordName returns a keyword in words: the value of a Text attribute, the interval or value of a Number attribute, the number of an
// Ordinal one. It is a copy, for people.
func (x *Lists) KeywordName(attr int, kw uint32) string {
	a := &x.attributes[attr]
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	switch {
	case kw >= a.Keywords:
		return "none"
	case a.Type == schema.Text:
		return strings.Clone(x.vocabularies[attr].keywords.At(kw))
	case a.Type == schema.Ordinal:
		return strconv.FormatUint(uint64(kw), 10)
	case a.Exact:
		return number(a.Values[kw])
	}
	low, high, end := a.Min, a.Max, "]"
	if kw > 0 {
		low = a.Edges[kw-1]
	}
	if int(kw) < len(a.Edges) {
		high, end = a.Edges[kw], ")"
	}
	return "[" + number(low) + ", " + number(high) + end
}

// Postings returns the postings of an attribute in a tile as they are stored: in LayoutPostings of all keywords, in
// LayoutRare of the frequent ones by their numbers (Rare.Frequent), in LayoutSliced there are none and the value is zero.
// Decoder.Postings returns those of all keywords in any layout.
func (x *Lists) Postings(tile, attr int) Postings {
	return x.postings[tile*len(x.attributes)+attr]
}

// Planes returns the planes of an attribute in LayoutSliced in a tile; zero in other layouts.
func (x *Lists) Planes(tile, attr int) Planes {
	return x.planes[tile*len(x.attributes)+attr]
}

// Codes returns the codes of the keywords of an attribute in LayoutSliced; zero in other layouts.
func (x *Lists) Codes(attr int) Codes { return x.codes[attr] }

// Rare returns the rare keywords of an attribute in LayoutRare; zero in other layouts.
func (x *Lists) Rare(attr int) Rare { return x.rare[attr] }
