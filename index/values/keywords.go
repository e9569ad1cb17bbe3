package values

import (
	"fmt"
	"math"
	"slices"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// Keywords are what the values of a column become, once all are known: the numbers of values, of buckets of them, or the values themselves.
type Keywords struct {
	Count   uint32
	Strings store.StringTable // of Text, ascending
	Places  []uint32          // of Text: keywords by the numbers that strings had when they were first seen
	Numbers []float64         // of Number: the edges of buckets, of an exact attribute its values

	spec *schema.AttributeSpec
	grid Grid // of Number: finds keywords
}

// Number numbers the keywords of a column of so many tiles.
func (c *Column) Number(spec *schema.AttributeSpec, tiles int) (Keywords, error) {
	k := Keywords{spec: spec}
	switch {
	case spec.Type == schema.Text:
		k.Strings, k.Places = c.SortStrings(tiles)
		k.Count = uint32(k.Strings.Len())
	case spec.Type == schema.Ordinal:
		k.Count = spec.Keywords
	case c.Postings == 0:
	case spec.Edges == schema.Exact:
		k.Numbers = c.Distinct(tiles)
		if uint64(len(k.Numbers)) > math.MaxUint32 {
			return k, fmt.Errorf("attribute %q has more than %d distinct values", spec.Name, uint32(math.MaxUint32))
		}
		k.Count = uint32(len(k.Numbers))
	default:
		k.Numbers = Edges(spec.Edges, spec.Buckets, c.Low, c.High, func() []float64 { return c.Sorted(tiles) })
		k.Count = uint32(len(k.Numbers)) + 1
	}
	if spec.Type == schema.Number && k.Count > 0 {
		k.grid = NewGrid(k.Numbers, c.Low, c.High)
	}
	return k, nil
}

// Of appends the keywords of a tile's postings to dst.
func (k *Keywords) Of(dst []uint32, tile Tile) []uint32 {
	switch k.spec.Type {
	case schema.Text:
		for _, id := range tile.Values {
			dst = append(dst, k.Places[id])
		}
	case schema.Ordinal:
		dst = append(dst, tile.Values...)
	default:
		own := len(dst) // before it is what the caller has
		for _, v := range tile.Numbers {
			keyword := k.grid.CountLE(v)
			if k.spec.Edges == schema.Exact {
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
