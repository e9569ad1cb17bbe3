package schema

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
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

// layoutNames are the names that a schema uses.
var layoutNames = [...]string{"auto", LayoutPostings: "postings", LayoutSliced: "sliced", LayoutRare: "rare"}

// String returns the name that a schema uses.
func (l Layout) String() string {
	if l == 0 || int(l) >= len(layoutNames) {
		return fmt.Sprintf("layout %d", uint16(l))
	}
	return layoutNames[l]
}

// ParseLayout reads the layout override of a schema, for attributes of a type; 0 means that the builder chooses.
func ParseLayout(name string, t AttributeType) (Layout, error) {
	l := slices.Index(layoutNames[:], cmp.Or(name, "auto"))
	switch {
	case l < 0:
		return 0, fmt.Errorf("layout %q is unknown: use auto, postings, sliced or rare", name)
	case Layout(l) == LayoutRare && t != Text:
		return 0, errors.New("layout rare is for categories and texts; use auto, postings or sliced")
	}
	return Layout(l), nil
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
	names := [...]string{"unknown", Number: "number", Text: "text", Ordinal: "ordinal"}
	if int(t) >= len(names) {
		return names[0]
	}
	return names[t]
}

// AttributeSpec declares an attribute to a builder.
type AttributeSpec struct {
	Name string // unique, not empty
	Type AttributeType
	// Buckets and Edges of Number attributes. Defaults 1,024 and equal-width; Buckets is not used by Exact.
	Buckets int
	Edges   EdgeRule
	// Distinct says that no object is given a value twice.
	Distinct bool
	// Keywords is the number of keywords V of an Ordinal attribute: its values are 0 to V-1.
	Keywords uint32
	// Layout overrides the choice of the layout, by its name in the schema. An attribute that cannot have it is refused as
	// soon as that is known: when it is declared (rare, unless Text), when an object ends (sliced, a second value of an object or a
	// text too many), or when the index is written (sliced, a number or ordinal too many). Default auto.
	Layout string
}

// Check fills in the defaults, and returns the layout (0: the builder chooses) or what is wrong.
func (s *AttributeSpec) Check() (Layout, error) {
	if s.Type == Number {
		s.Edges, s.Buckets = cmp.Or(s.Edges, EqualWidth), cmp.Or(s.Buckets, DefaultBuckets)
	}
	switch {
	case s.Name == "" || len(s.Name) > MaxNameBytes || !utf8.ValidString(s.Name):
		return 0, fmt.Errorf("the name must be UTF-8 of 1 to %d bytes", MaxNameBytes)
	case s.Type < Number || s.Type > Ordinal:
		return 0, fmt.Errorf("unknown type %d", s.Type)
	case s.Type == Number && !slices.Contains([]EdgeRule{EqualWidth, EquiDepth, Exact}, s.Edges):
		return 0, fmt.Errorf("unknown edges %q", s.Edges)
	case s.Type == Number && (s.Buckets < 1 || s.Buckets > MaxBuckets):
		return 0, fmt.Errorf("%d buckets; must be 1 to %d", s.Buckets, MaxBuckets)
	}
	return ParseLayout(s.Layout, s.Type)
}

// Takes says why the attribute takes no values of a type.
func (s *AttributeSpec) Takes(t AttributeType) error {
	if s.Type == t {
		return nil
	}
	values := map[AttributeType]string{Text: "strings", Number: "numbers", Ordinal: "ordinals"}
	return fmt.Errorf("attribute %q is of type %v and takes no %s", s.Name, s.Type, values[t])
}

// TakesNumber says why it does not take a number. NaN and infinities are taken by none.
func (s *AttributeSpec) TakesNumber(v float64) error {
	if s.Type == Number && v-v != 0 {
		return fmt.Errorf("attribute %q: %v is not a finite number", s.Name, v)
	}
	return s.Takes(Number)
}

// TakesOrdinal says why it does not take an ordinal.
func (s *AttributeSpec) TakesOrdinal(v uint32) error {
	if s.Type == Ordinal && v >= s.Keywords {
		return fmt.Errorf("attribute %q: %d is not below its %d keywords", s.Name, v, s.Keywords)
	}
	return s.Takes(Ordinal)
}
