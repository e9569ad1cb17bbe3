package values

import (
	"math"
	"slices"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// A Tile is one tile of a column: posting i is of object ids[i], in ascending object order, and has the value values[i]
// (Text, Ordinal), numbers[codes[i]], or where there are no codes numbers[i].
type Tile struct {
	Values  []uint32
	Numbers []float64 // with codes: distinct
	Codes   []uint16
	IDs     []uint16
}

// Places returns the places of a tile's objects, in order: the ids of every tile with one value of each object, which share them.
func Places() []uint16 {
	places := make([]uint16, store.TileObjects)
	for i := range places {
		places[i] = uint16(i)
	}
	return places
}

// Seal moves the open tile away, in no more memory than it needs.
func (c *Column) Seal(every []uint16, n *Numbering) {
	tile := Tile{Values: slices.Clone(c.values), IDs: every}
	if !slices.Equal(c.ids, every) {
		tile.IDs = slices.Clone(c.ids)
	}
	if n.number(c.numbers) {
		tile.Numbers, tile.Codes = slices.Clone(n.distinct), slices.Clone(n.codes)
	} else {
		tile.Numbers = slices.Clone(c.numbers)
	}
	c.tiles = append(c.tiles, tile)
	c.values, c.numbers, c.ids = c.values[:0], c.numbers[:0], c.ids[:0]
}

// A Numbering finds equal numbers. Its memory is used again from column to column.
type Numbering struct {
	distinct []float64 // in the order in which they are first seen
	codes    []uint16  // of each number: which of the distinct ones it is
	slots    []uint32  // a hash table of distinct, at most half full: 1 + a code, or 0
}

const numberingBits = 17

// number fills distinct and codes. It is false, and stops, where they would take no less memory than the numbers.
func (n *Numbering) number(numbers []float64) bool {
	if len(numbers) == 0 {
		return false
	}
	if n.slots == nil {
		n.slots = make([]uint32, 1<<numberingBits)
	}
	clear(n.slots)
	n.distinct, n.codes = n.distinct[:0], n.codes[:0]
	most := min(1<<16, (3*len(numbers)-1)/4) // 8 bytes each, and 2 per code, are less than 8 per number
	for _, v := range numbers {
		at := math.Float64bits(v) * 0x9E3779B97F4A7C15 >> (64 - numberingBits)
		for n.slots[at] != 0 && n.distinct[n.slots[at]-1] != v {
			at = (at + 1) % (1 << numberingBits)
		}
		if n.slots[at] == 0 {
			if len(n.distinct) == most {
				return false
			}
			n.distinct = append(n.distinct, v)
			n.slots[at] = uint32(len(n.distinct))
		}
		n.codes = append(n.codes, uint16(n.slots[at]-1))
	}
	return true
}

// Tile returns the closed objects of tile t.
func (c *Column) Tile(t int) Tile {
	if t < len(c.tiles) {
		return c.tiles[t]
	}
	open := Tile{IDs: c.ids}
	if c.kind == schema.Number {
		open.Numbers = c.numbers[:len(c.ids)]
	} else {
		open.Values = c.values[:len(c.ids)]
	}
	return open
}

// AppendNumbers appends the number of every posting.
func (t *Tile) AppendNumbers(dst []float64) []float64 {
	if t.Codes == nil {
		return append(dst, t.Numbers...)
	}
	for _, code := range t.Codes {
		dst = append(dst, t.Numbers[code])
	}
	return dst
}
