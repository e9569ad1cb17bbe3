package postings

import (
	"fmt"
	"slices"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/index/values"
)

// column is one attribute that is being built.
type column struct {
	values.Column
	spec     schema.AttributeSpec
	override schema.Layout
}

// checkSliced tells, of a column that the schema wants in LayoutSliced, that it cannot be, as far as the values added so far
// tell: not after all are in, when much time is lost.
func (c *column) checkSliced() error {
	if n := c.Pending(); n > 1 {
		return fmt.Errorf("attribute %q has %d values in one object, layout sliced is for one; use layout auto in the schema", c.spec.Name, n)
	}
	// After a discarded value some of the strings may be no object's: layOut will know.
	if n := c.Strings().Len(); n > MaxSlicedKeywords && !c.Discarded {
		return tooManySliced(c.spec.Name, n)
	}
	return nil
}

// finalColumn is a column whose keywords are known: what turns its raw values into keywords, and its description.
type finalColumn struct {
	source    *column
	attribute Attribute
	keywords  store.StringTable // of Text, ascending
	remap     []uint32          // of Text: provisional number to keyword
	grid      values.Grid       // of Number: finds keywords

	frequencies []frequency // by keyword, where the layout takes them
	codes       codeTable   // of LayoutSliced
	rare        rareTable   // of LayoutRare
}

// keywordsOf appends the keywords of a tile's postings to dst.
func (f *finalColumn) keywordsOf(dst []uint32, tile values.Tile) []uint32 {
	switch {
	case f.attribute.Type == schema.Text:
		for _, id := range tile.Values {
			dst = append(dst, f.remap[id])
		}
	case f.attribute.Type == schema.Ordinal:
		dst = append(dst, tile.Values...)
	default:
		own := len(dst) // before it is what the caller has
		for _, v := range tile.Numbers {
			keyword := f.grid.CountLE(v)
			if f.attribute.Exact {
				keyword--
			}
			dst = append(dst, keyword)
		}
		if tile.Codes != nil {
			for _, code := range tile.Codes {
				dst = append(dst, dst[own+int(code)])
			}
			dst = slices.Delete(dst, own, own+len(tile.Numbers))
		}
	}
	return dst
}
