package filters

import (
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
)

// Number is an attribute's stored values on the device: where they begin in the memory of all, and how many objects and values there are.
type Number struct {
	Attribute      int
	Starts, Values int64 // offsets; Starts is 0 where each object has one value
	Count          int64
	name           string
}

// Numbers are the stored values of attributes of numbers that are buckets, on the device beside the lists: what filters hold the objects
// of edges against. They begin with a table by attribute (abi.Numbers).
type Numbers struct {
	Stored     filter.Stored
	Attributes []Number
	End        int64 // of all; 0: there are none

	lists *postings.Lists
	tiles run.Tiles
}

// NewNumbers finds the values of a range of tiles.
func NewNumbers(lists *postings.Lists, tiles run.Tiles, stored filter.Stored) (n Numbers) {
	if stored == nil {
		return n
	}
	n.Stored, n.lists, n.tiles = stored, lists, tiles
	attributes := len(lists.Attributes())
	at := abi.Align(abi.NumbersBytes * int64(attributes))
	for a := range attributes {
		attribute := lists.Attribute(a)
		values, ok := stored.StoredNumbers(attribute.Name)
		if !ok || attribute.Type != schema.Number || attribute.Exact {
			continue
		}
		own := Number{Attribute: a, name: attribute.Name}
		several := false
		for tile := tiles.First; tile < tiles.End; tile++ {
			starts, values := values.NumbersTile(tile)
			own.Count += int64(len(values))
			several = several || starts != nil
		}
		own.Values, at = at, abi.Align(at+8*own.Count)
		if several {
			own.Starts, at = at, abi.Align(at+abi.WordBytes*(int64(tiles.Objects(lists.Objects()))+1))
		}
		n.Attributes = append(n.Attributes, own)
	}
	if len(n.Attributes) > 0 {
		n.End = at
	}
	return n
}

// Starts are those of an attribute's objects, of all tiles of the range together.
func (n *Numbers) Starts(own *Number) []uint32 {
	values, _ := n.Stored.StoredNumbers(own.name)
	all := make([]uint32, 0, n.tiles.Objects(n.lists.Objects())+1)
	end := uint32(0)
	for tile := n.tiles.First; tile < n.tiles.End; tile++ {
		starts, values := values.NumbersTile(tile)
		if starts == nil {
			for range values {
				all = append(all, end)
				end++
			}
			continue
		}
		for _, start := range starts[:len(starts)-1] {
			all = append(all, end+start)
		}
		end += uint32(len(values))
	}
	return append(all, end)
}

// EachTile calls visit for the values of an attribute, tile after tile.
func (n *Numbers) EachTile(own *Number, visit func(values []float64)) {
	values, _ := n.Stored.StoredNumbers(own.name)
	for tile := n.tiles.First; tile < n.tiles.End; tile++ {
		if _, values := values.NumbersTile(tile); len(values) > 0 {
			visit(values)
		}
	}
}

// Table says where the values lie when they begin at memory.
func (n *Numbers) Table(memory abi.Pointer) []abi.Numbers {
	table := make([]abi.Numbers, len(n.lists.Attributes()))
	for i := range n.Attributes {
		own := &n.Attributes[i]
		table[own.Attribute].Values = memory + abi.Pointer(own.Values)
		if own.Starts > 0 {
			table[own.Attribute].Starts = memory + abi.Pointer(own.Starts)
		}
	}
	return table
}
