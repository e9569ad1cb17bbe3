package index

import "fmt"

// Layout is how the postings of an attribute are stored. It is chosen for each attribute when the index is
// built and recorded in the file. Everything that depends on a layout stands in one file named after it
// (layout_postings.go); what a new layout must supply is listed at the switches below, the only places that
// tell layouts apart.
type Layout uint16

const (
	// LayoutPostings: per tile a presence directory and plain 16-bit ids in keyword order; see Postings.
	LayoutPostings Layout = 1
	// LayoutSliced: the objects' keywords as numbers in bit planes, for at most one keyword an object; see Planes, Codes.
	LayoutSliced Layout = 2
	// LayoutRare: as LayoutPostings for frequent keywords, one list for the whole index for rare ones; see Rare.
	LayoutRare Layout = 3
)

// String returns the name that a schema uses.
func (l Layout) String() string {
	switch l {
	case LayoutPostings:
		return "postings"
	case LayoutSliced:
		return "sliced"
	case LayoutRare:
		return "rare"
	}
	return fmt.Sprintf("layout %d", uint16(l))
}

// parseLayout reads the layout override of a schema; 0 means that the builder chooses.
func parseLayout(name string) (Layout, error) {
	switch name {
	case "", "auto":
		return 0, nil
	case "postings":
		return LayoutPostings, nil
	case "sliced":
		return LayoutSliced, nil
	case "rare":
		return LayoutRare, nil
	}
	return 0, fmt.Errorf("layout %q is unknown: use auto, postings, sliced or rare", name)
}

// chooseLayout decides how an attribute is stored; override comes from the schema.
func chooseLayout(_ *Attribute, override Layout) Layout {
	if override != 0 {
		return override
	}
	return LayoutPostings
}

// sections are the kinds of sections that hold an attribute: one a tile, and, unless it is 0, one for the whole index.
// Both are 0 for a layout that this version cannot read.
func (l Layout) sections() (tile, whole SectionKind) {
	switch l {
	case LayoutPostings:
		return SectionPostings, 0
	case LayoutSliced:
		return SectionPlanes, SectionCodes
	case LayoutRare:
		return SectionPostings, SectionRare
	}
	return 0, 0
}

// layOut chooses the layout of a column and prepares what encoding it takes.
func (f *finalColumn) layOut(tiles int) error {
	a, override := &f.attribute, f.source.override
	f.frequencies = f.countKeywords(tiles)
	a.Layout = chooseLayout(a, override)
	switch a.Layout {
	case LayoutSliced:
		used := 0
		for _, frequency := range f.frequencies {
			if frequency.postings > 0 {
				used++
			}
		}
		if a.MaxPerObject > 1 || used > MaxSlicedKeywords {
			return fmt.Errorf("attribute %q has %d values that occur and up to %d an object, layout sliced is for at most %d and one; "+
				"use layout auto", a.Name, used, a.MaxPerObject, MaxSlicedKeywords)
		}
		f.codes = newCodeTable(f.frequencies)
	case LayoutRare:
		if a.Type != Text {
			return fmt.Errorf("attribute %q is of type %v, layout rare is for texts and categories; use layout auto", a.Name, a.Type)
		}
		f.rare = newRareTable(f.frequencies, tiles)
	}
	return nil
}

// countKeywords counts the postings of each keyword, for the attributes that may have another layout than
// LayoutPostings.
func (f *finalColumn) countKeywords(tiles int) []frequency {
	a, override := &f.attribute, f.source.override
	if override == LayoutPostings || override == 0 {
		return nil
	}
	frequencies := make([]frequency, a.Keywords)
	var keywords []uint32
	for tile := range tiles {
		keywords = f.keywordsOf(keywords[:0], f.source.tile(tile))
		for _, keyword := range keywords {
			of := &frequencies[keyword]
			of.postings++
			if of.last != uint32(tile)+1 {
				of.last = uint32(tile) + 1
				of.lists++
			}
		}
	}
	return frequencies
}

// tileEncoder turns the postings of one tile and attribute into the bytes of a section. It is one worker's and
// keeps its memory from tile to tile.
type tileEncoder struct {
	// Posting i is keywords[i] of object ids[i]; ids ascend.
	keywords []uint32
	ids      []uint16

	out     []uint64 // the encoded bytes, as words so that they are aligned
	counts  []uint32 // one a keyword, all 0 between tiles
	keptIDs []uint16 // of LayoutRare
}

// encode writes the postings of a tile of so many objects into out and returns the number of bytes. It may change
// keywords and ids.
func (e *tileEncoder) encode(f *finalColumn, objects int) int {
	switch f.attribute.Layout {
	case LayoutSliced:
		return e.encodePlanes(f.codes, objects)
	case LayoutRare:
		return e.encodeFrequent(&f.rare)
	}
	return e.encodePostings(f.attribute.Keywords)
}

// grow makes out hold at least n bytes, rounded up to words; what they contain is undefined.
func (e *tileEncoder) grow(n int) {
	words := (n + 7) / 8
	if cap(e.out) < words {
		e.out = make([]uint64, words)
	}
	e.out = e.out[:words]
}
