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
)

// String returns the name that a schema uses.
func (l Layout) String() string {
	switch l {
	case LayoutPostings:
		return "postings"
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
	}
	return 0, fmt.Errorf("layout %q is unknown: use auto or postings", name)
}

// chooseLayout decides how an attribute is stored; override comes from the schema. The cost rule joins here
// when there is a second layout to choose.
func chooseLayout(_ *Attribute, override Layout) Layout {
	if override != 0 {
		return override
	}
	return LayoutPostings
}

// kind is the kind of the sections that hold a layout's tiles; false for a layout this version cannot read.
func (l Layout) kind() (SectionKind, bool) {
	switch l {
	case LayoutPostings:
		return SectionPostings, true
	}
	return 0, false
}

// tileEncoder turns the postings of one tile and attribute into the bytes of a section. It is one worker's and
// keeps its memory from tile to tile.
type tileEncoder struct {
	// Posting i is keywords[i] of object ids[i]; ids ascend.
	keywords []uint32
	ids      []uint16

	out    []uint64 // the encoded bytes, as words so that they are aligned
	counts []uint32 // one a keyword, all 0 between tiles
}

// encode writes the postings into out and returns the number of bytes.
func (e *tileEncoder) encode(layout Layout, keywords uint32) int {
	switch layout {
	case LayoutPostings:
		return e.encodePostings(keywords)
	}
	panic("index: no encoder for " + layout.String()) // chooseLayout returns none such
}

// grow makes out hold at least n bytes, rounded up to words; what they contain is undefined.
func (e *tileEncoder) grow(n int) {
	words := (n + 7) / 8
	if cap(e.out) < words {
		e.out = make([]uint64, words)
	}
	e.out = e.out[:words]
}
