package index

import (
	"slices"
	"sync"
	"sync/atomic"
)

// columnTile is one tile of a column: posting i is of object ids[i], in ascending object order, and has the value values[i]
// (Text, Ordinal), numbers[codes[i]], or where there are no codes numbers[i].
type columnTile struct {
	values  []uint32
	numbers []float64 // with codes: distinct and ascending
	codes   []uint16
	ids     []uint16
}

// sealTiles closes the open tile of every column, columns in parallel, since looking for equal numbers takes time.
func (b *Builder) sealTiles() {
	if b.every == nil {
		b.every = make([]uint16, TileObjects)
		for i := range b.every {
			b.every[i] = uint16(i)
		}
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(b.options.Workers, len(b.columns)) {
		workers.Go(func() {
			var scratch []float64
			for i := int(next.Add(1)) - 1; i < len(b.columns); i = int(next.Add(1)) - 1 {
				scratch = b.columns[i].sealTile(b.every, scratch[:0])
			}
		})
	}
	workers.Wait()
}

// sealTile moves the open tile away, in no more memory than it needs. It returns the memory of scratch.
func (c *column) sealTile(every []uint16, scratch []float64) []float64 {
	tile := columnTile{values: slices.Clone(c.values), ids: every}
	if !slices.Equal(c.ids, every) {
		tile.ids = slices.Clone(c.ids)
	}
	if len(c.numbers) > 0 {
		scratch = append(scratch, c.numbers...)
		slices.Sort(scratch)
		distinct := slices.Compact(scratch)
		if len(distinct) <= 1<<16 && 8*len(distinct)+2*len(c.numbers) < 8*len(c.numbers) {
			tile.numbers = slices.Clone(distinct)
			tile.codes = make([]uint16, len(c.numbers))
			for i, v := range c.numbers {
				tile.codes[i] = uint16(countLE(tile.numbers, v) - 1)
			}
		} else {
			tile.numbers = slices.Clone(c.numbers)
		}
	}
	c.tiles = append(c.tiles, tile)
	c.values, c.numbers, c.ids = c.values[:0], c.numbers[:0], c.ids[:0]
	return scratch
}

// tile returns the closed objects of tile t.
func (c *column) tile(t int) columnTile {
	if t < len(c.tiles) {
		return c.tiles[t]
	}
	open := columnTile{ids: c.ids}
	if c.spec.Type == Number {
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
