// Package values keeps the values of an attribute that is being built, until all are known and they can be numbered: in little memory, and tile by
// tile, as they are then encoded. It also knows what numbers become: the edges of buckets, and the bucket that a number is in.
package values

import (
	"math"
	"slices"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// Column holds the values of one attribute as they were added, in object order and by tiles. They become keywords only when all are
// known: strings have numbers by when they were first seen, numbers stay numbers.
type Column struct {
	kind    schema.AttributeType
	strings Interner // Text

	// The open tile, in the order added; memory is reused from tile to tile. values (Text, Ordinal) or numbers
	// (Number) run ahead of ids by the values of the object that is being built.
	values  []uint32
	numbers []float64
	ids     []uint16
	tiles   []Tile // the tiles before

	sorted store.StringTable // of Text, once asked for
	place  []uint32

	Low, High    float64 // extremes of the numbers
	MaxPerObject uint32  // the most values of one object
	Postings     uint64  // values
	Objects      uint64  // objects that have any
	Discarded    bool    // a value was dropped, so strings may hold one that nobody has
}

// NewColumn returns a column of values of a type.
func NewColumn(kind schema.AttributeType) Column {
	return Column{kind: kind, Low: math.Inf(1), High: math.Inf(-1)}
}

// AddString adds a value of the object that is being built; it is false when the strings are full.
func (c *Column) AddString(value string) bool {
	id, ok := c.strings.Intern(value)
	if ok {
		c.values = append(c.values, id)
	}
	return ok
}

// Strings returns the distinct strings, in the order in which they were first seen. After objects were dropped some may be no object's.
func (c *Column) Strings() *store.StringTable { return &c.strings.strings }

// EndObject closes the object that is being built, whose place in the tile is local.
func (c *Column) EndObject(local uint16) {
	n := len(c.values) + len(c.numbers) - len(c.ids)
	if n == 0 {
		return
	}
	for range n {
		c.ids = append(c.ids, local)
	}
	c.MaxPerObject = max(c.MaxPerObject, uint32(n))
	c.Postings += uint64(n)
	c.Objects++
}

// Sorted returns all numbers of the column, ascending.
func (c *Column) Sorted(tiles int) []float64 {
	all := make([]float64, 0, c.Postings)
	for t := range tiles {
		tile := c.Tile(t)
		all = tile.AppendNumbers(all)
	}
	slices.Sort(all)
	return all
}

// Distinct returns the numbers that occur in the column, ascending.
func (c *Column) Distinct(tiles int) []float64 {
	n := 0
	for t := range tiles {
		n += len(c.Tile(t).Numbers)
	}
	all := make([]float64, 0, n)
	for t := range tiles {
		all = append(all, c.Tile(t).Numbers...)
	}
	slices.Sort(all)
	return slices.Clone(slices.Compact(all)) // kept while the index is written, and all may be many times as much
}

// usedStrings tells which strings occur in some object; nil when all do.
func (c *Column) usedStrings(tiles int) []bool {
	if !c.Discarded {
		return nil
	}
	used := make([]bool, c.strings.strings.Len())
	for t := range tiles {
		for _, id := range c.Tile(t).Values {
			used[id] = true
		}
	}
	return used
}

// SortStrings returns the column's strings in the order of their bytes, without those that only dropped
// objects had, and the places that strings have among them by their numbers. Both are kept until there are other strings, and must not change.
func (c *Column) SortStrings(tiles int) (sorted store.StringTable, place []uint32) {
	if c.Discarded || c.place == nil || len(c.place) != c.strings.strings.Len() {
		c.sorted, c.place = c.strings.Sort(c.usedStrings(tiles))
	}
	return c.sorted, c.place
}
