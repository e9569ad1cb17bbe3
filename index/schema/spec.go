package schema

import (
	"errors"
	"fmt"
)

// Layout is how the postings of an attribute are stored. It is chosen for each attribute when the index is built, and recorded in the
// file. What the layouts are, package postings tells.
type Layout uint16

const (
	// LayoutPostings: per tile a presence directory and plain 16-bit ids in keyword order.
	LayoutPostings Layout = 1
	// LayoutSliced: the objects' keywords as numbers in bit planes, for at most one keyword per object.
	LayoutSliced Layout = 2
	// LayoutRare: as LayoutPostings for frequent keywords, one list for the whole index for rare ones.
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

// ParseLayout reads the layout override of a schema; 0 means that the builder chooses.
func ParseLayout(name string) (Layout, error) {
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

// Takes says why attributes of a type cannot be stored in the layout; 0 takes all.
func (l Layout) Takes(t AttributeType) error {
	if l == LayoutRare && t != Text {
		return errors.New("layout rare is for categories and texts; use auto, postings or sliced")
	}
	return nil
}

// AttributeType says how the keywords of an attribute are named and looked up.
type AttributeType uint8

const (
	// Number: keywords are buckets of float64 values.
	Number AttributeType = iota + 1
	// Text: keywords are strings in UTF-8 order: categories, words, ordered n-grams.
	Text
	// Ordinal: keywords are the integers 0 to Keywords-1 themselves: hash values of vectors.
	Ordinal
)

// String returns number, text or ordinal.
func (t AttributeType) String() string {
	switch t {
	case Number:
		return "number"
	case Text:
		return "text"
	case Ordinal:
		return "ordinal"
	}
	return "unknown"
}

// AttributeSpec declares an attribute to a builder.
type AttributeSpec struct {
	Name string // unique, not empty
	Type AttributeType
	// Buckets and Edges of Number attributes. Defaults 1,024 and equal-width; Buckets is not used by Exact.
	Buckets int
	Edges   EdgeRule
	// Keywords is the number of keywords V of an Ordinal attribute: its values are 0 to V-1.
	Keywords uint32
	// Layout overrides the choice of the layout, by its name in the schema. An attribute that cannot have it is refused as
	// soon as that is known: when it is declared (rare, unless Text), when an object ends (sliced, a second value of an object or a
	// text too many), or when the index is written (sliced, a number or ordinal too many). Default auto.
	Layout string
}
