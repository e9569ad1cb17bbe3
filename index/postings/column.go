package postings

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// column holds the values of one attribute.
type column struct {
	spec     schema.AttributeSpec
	override schema.Layout
	strings  interner // Text

	// The open tile, in the order added; memory is reused from tile to tile. values (Text, Ordinal) or numbers
	// (Number) run ahead of ids by the values of the object that is being built.
	values  []uint32
	numbers []float64
	ids     []uint16
	tiles   []columnTile // the tiles before

	low, high    float64 // extremes of the numbers
	maxPerObject uint32
	postings     uint64
	objects      uint64
	discarded    bool // a value was dropped, so strings may hold one that nobody has
}

func (c *column) pending() int {
	return len(c.values) + len(c.numbers) - len(c.ids)
}

// checkSliced tells, of a column that the schema wants in LayoutSliced, that it cannot be, as far as the values added so far
// tell: not after all are in, when much time is lost.
func (c *column) checkSliced() error {
	if n := c.pending(); n > 1 {
		return fmt.Errorf("attribute %q has %d values in one object, layout sliced is for one; use layout auto in the schema", c.spec.Name, n)
	}
	// After a discarded value some of the strings may be no object's: layOut will know.
	if n := c.strings.strings.Len(); n > MaxSlicedKeywords && !c.discarded {
		return tooManySliced(c.spec.Name, n)
	}
	return nil
}

func (c *column) endObject(local uint16) {
	n := c.pending()
	if n == 0 {
		return
	}
	for range n {
		c.ids = append(c.ids, local)
	}
	if c.spec.Type == schema.Number {
		for _, v := range c.numbers[len(c.numbers)-n:] {
			c.low, c.high = min(c.low, v), max(c.high, v)
		}
	}
	c.maxPerObject = max(c.maxPerObject, uint32(n))
	c.postings += uint64(n)
	c.objects++
}

func (c *column) discard() {
	if c.pending() == 0 {
		return
	}
	c.discarded = true
	if c.spec.Type == schema.Number {
		c.numbers = c.numbers[:len(c.ids)]
	} else {
		c.values = c.values[:len(c.ids)]
	}
}

// finalColumn is a column whose keywords are known: what turns its raw values into keywords, and its description.
type finalColumn struct {
	source    *column
	attribute Attribute
	keywords  store.StringTable // of Text, ascending
	remap     []uint32          // of Text: provisional number to keyword
	grid      grid              // of Number: finds keywords

	frequencies []frequency // by keyword, where the layout takes them
	codes       codeTable   // of LayoutSliced
	rare        rareTable   // of LayoutRare
}

// sorted returns all numbers of the column, ascending.
func (c *column) sorted(tiles int) []float64 {
	all := make([]float64, 0, c.postings)
	for t := range tiles {
		tile := c.tile(t)
		all = tile.appendNumbers(all)
	}
	slices.Sort(all)
	return all
}

// distinct returns the numbers that occur in the column, ascending.
func (c *column) distinct(tiles int) []float64 {
	n := 0
	for t := range tiles {
		n += len(c.tile(t).numbers)
	}
	all := make([]float64, 0, n)
	for t := range tiles {
		all = append(all, c.tile(t).numbers...)
	}
	slices.Sort(all)
	return slices.Clone(slices.Compact(all)) // kept while the index is written, and all may be many times as much
}

// sortStrings puts the column's strings into the order of their bytes and leaves out those that only dropped
// objects had.
func (f *finalColumn) sortStrings(tiles int) {
	c, from := f.source, &f.source.strings.strings
	type entry struct {
		prefix uint64 // the first 8 bytes decide most comparisons without touching the string
		id     uint32
	}
	order := make([]entry, 0, from.Len())
	used := c.usedStrings(tiles)
	size := 0
	for id := range uint32(from.Len()) {
		if used != nil && !used[id] {
			continue
		}
		s := from.Bytes(id)
		var prefix [8]byte
		copy(prefix[:], s)
		order = append(order, entry{binary.BigEndian.Uint64(prefix[:]), id})
		size += len(s)
	}
	slices.SortFunc(order, func(a, b entry) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		return strings.Compare(from.At(a.id), from.At(b.id))
	})
	f.remap = make([]uint32, from.Len())
	f.keywords = store.NewStringTable(len(order), size)
	for keyword, e := range order {
		f.remap[e.id] = uint32(keyword)
		f.keywords.Add(from.At(e.id))
	}
}

// usedStrings tells which strings occur in some object; nil when all do.
func (c *column) usedStrings(tiles int) []bool {
	if !c.discarded {
		return nil
	}
	used := make([]bool, c.strings.strings.Len())
	for t := range tiles {
		for _, id := range c.tile(t).values {
			used[id] = true
		}
	}
	return used
}

// keywordsOf appends the keywords of a tile's postings to dst.
func (f *finalColumn) keywordsOf(dst []uint32, tile columnTile) []uint32 {
	switch {
	case f.attribute.Type == schema.Text:
		for _, id := range tile.values {
			dst = append(dst, f.remap[id])
		}
	case f.attribute.Type == schema.Ordinal:
		dst = append(dst, tile.values...)
	default:
		own := len(dst) // before it is what the caller has
		for _, v := range tile.numbers {
			keyword := f.grid.countLE(v)
			if f.attribute.Exact {
				keyword--
			}
			dst = append(dst, keyword)
		}
		if tile.codes != nil {
			for _, code := range tile.codes {
				dst = append(dst, dst[own+int(code)])
			}
			dst = slices.Delete(dst, own, own+len(tile.numbers))
		}
	}
	return dst
}
