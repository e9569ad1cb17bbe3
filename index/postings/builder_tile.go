package postings

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// columnTile is one tile of a column: posting i is of object ids[i], in ascending object order, and has the value values[i]
// (Text, Ordinal), numbers[codes[i]], or where there are no codes numbers[i].
type columnTile struct {
	values  []uint32
	numbers []float64 // with codes: distinct
	codes   []uint16
	ids     []uint16
}

// sealTiles closes the open tile of every column, columns in parallel, since looking for equal numbers takes time.
func (b *Builder) sealTiles() {
	if b.every == nil {
		b.every = make([]uint16, store.TileObjects)
		for i := range b.every {
			b.every[i] = uint16(i)
		}
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(b.workers, len(b.columns)) {
		workers.Go(func() {
			var n numbering
			for i := int(next.Add(1)) - 1; i < len(b.columns); i = int(next.Add(1)) - 1 {
				b.columns[i].sealTile(b.every, &n)
			}
		})
	}
	workers.Wait()
}

// sealTile moves the open tile away, in no more memory than it needs.
func (c *column) sealTile(every []uint16, n *numbering) {
	tile := columnTile{values: slices.Clone(c.values), ids: every}
	if !slices.Equal(c.ids, every) {
		tile.ids = slices.Clone(c.ids)
	}
	if n.number(c.numbers) {
		tile.numbers, tile.codes = slices.Clone(n.distinct), slices.Clone(n.codes)
	} else {
		tile.numbers = slices.Clone(c.numbers)
	}
	c.tiles = append(c.tiles, tile)
	c.values, c.numbers, c.ids = c.values[:0], c.numbers[:0], c.ids[:0]
}

// numbering finds equal numbers. Its memory is used again from column to column.
type numbering struct {
	distinct []float64 // in the order in which they are first seen
	codes    []uint16  // of each number: which of the distinct ones it is
	slots    []uint32  // a hash table of distinct, at most half full: 1 + a code, or 0
}

const numberingBits = 17

// number fills distinct and codes. It is false, and stops, where they would take no less memory than the numbers.
func (n *numbering) number(numbers []float64) bool {
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

// tile returns the closed objects of tile t.
func (c *column) tile(t int) columnTile {
	if t < len(c.tiles) {
		return c.tiles[t]
	}
	open := columnTile{ids: c.ids}
	if c.spec.Type == schema.Number {
		open.numbers = c.numbers[:len(c.ids)]
	} else {
		open.values = c.values[:len(c.ids)]
	}
	return open
}

// appendNumbers appends the number of every posting.
func (t *columnTile) appendNumbers(dst []float64) []float64 {
	if t.codes == nil {
		return append(dst, t.numbers...)
	}
	for _, code := range t.codes {
		dst = append(dst, t.numbers[code])
	}
	return dst
}
