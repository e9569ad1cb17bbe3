package index

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// finalColumn is a column whose keywords are known: what turns its raw values into keywords, and its description.
type finalColumn struct {
	source    *column
	attribute Attribute
	keywords  stringTable // of Text, ascending
	remap     []uint32    // of Text: provisional number to keyword
	grid      grid        // of Number: finds keywords

	frequencies []frequency // by keyword, where the layout takes them
	codes       codeTable   // of LayoutSliced
	rare        rareTable   // of LayoutRare
}

// finish gives every column its keywords, columns in parallel.
func (b *Builder) finish(ctx context.Context) ([]finalColumn, error) {
	final := make([]finalColumn, len(b.columns))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(b.options.Workers)
	for i := range b.columns {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return final[i].finish(&b.columns[i], b.objects)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	first := uint64(0)
	for i := range final {
		a := &final[i].attribute
		a.First = uint32(first)
		if first += uint64(a.Keywords); first > math.MaxUint32 {
			return nil, fmt.Errorf("attributes up to %q have %d keywords, an index holds at most %d; "+
				"use fewer buckets or split the data into several indexes", a.Name, first, uint32(math.MaxUint32))
		}
	}
	return final, nil
}

func (f *finalColumn) finish(c *column, objects uint32) error {
	tiles := tilesOf(objects)
	f.source = c
	a := &f.attribute
	*a = Attribute{
		Name: c.spec.Name, Type: c.spec.Type, MaxPerObject: c.maxPerObject, Postings: c.postings, Objects: c.objects,
	}
	switch c.spec.Type {
	case Text:
		f.sortStrings(tiles)
		a.Keywords = uint32(f.keywords.len())
	case Ordinal:
		a.Keywords = c.spec.Keywords
	case Number:
		a.Exact = c.spec.Edges == Exact
		if c.postings == 0 {
			break
		}
		a.Min, a.Max = c.low, c.high
		if a.Exact {
			a.Values = c.distinct(tiles)
			if uint64(len(a.Values)) > math.MaxUint32 {
				return fmt.Errorf("attribute %q has more than %d distinct values", a.Name, uint32(math.MaxUint32))
			}
			a.Keywords = uint32(len(a.Values))
			f.grid = newGrid(a.Values, a.Min, a.Max)
			break
		}
		a.Edges = interiorEdges(c.spec.Edges, c.spec.Buckets, c.low, c.high, func() []float64 { return c.sorted(tiles) })
		a.Keywords = uint32(len(a.Edges)) + 1
		f.grid = newGrid(a.Edges, a.Min, a.Max)
	}
	return f.layOut(objects)
}

// tileLen returns the number of objects in a tile.
func (b *Builder) tileLen(tile int) int {
	return int(min(TileObjects, b.objects-uint32(tile)*TileObjects))
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
	order := make([]entry, 0, from.len())
	used := c.usedStrings(tiles)
	size := 0
	for id := range uint32(from.len()) {
		if used != nil && !used[id] {
			continue
		}
		s := from.bytes(id)
		var prefix [8]byte
		copy(prefix[:], s)
		order = append(order, entry{binary.BigEndian.Uint64(prefix[:]), id})
		size += len(s)
	}
	slices.SortFunc(order, func(a, b entry) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		return strings.Compare(from.at(a.id), from.at(b.id))
	})
	f.remap = make([]uint32, from.len())
	f.keywords = stringTable{offsets: make([]uint32, 0, len(order)+1), data: make([]byte, 0, size)}
	f.keywords.offsets = append(f.keywords.offsets, 0)
	for keyword, e := range order {
		f.remap[e.id] = uint32(keyword)
		f.keywords.add(from.at(e.id))
	}
}

// usedStrings tells which strings occur in some object; nil when all do.
func (c *column) usedStrings(tiles int) []bool {
	if !c.discarded {
		return nil
	}
	used := make([]bool, c.strings.strings.len())
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
	case f.attribute.Type == Text:
		for _, id := range tile.values {
			dst = append(dst, f.remap[id])
		}
	case f.attribute.Type == Ordinal:
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

// encodePostings encodes the postings of all (tile, attribute) pairs on the builder's workers and hands them to emit one
// after the other in tile-major order. The bytes are emit's only until it returns.
//
// Jobs are queued twice, in the same order: for the workers to take and for emit to wait on. The second queue is
// bounded, and with it the encoded tiles that wait for a slow disk.
func (b *Builder) encodePostings(ctx context.Context, columns []finalColumn, emit func(tile, attr int, data []byte) error) error {
	type job struct {
		tile, attr int
		done       chan []uint64 // the encoded words; capacity 1, so that a worker never waits
		bytes      int
	}
	workers := b.options.Workers
	todo := make(chan *job)
	ordered := make(chan *job, 2*workers)
	buffers := make(chan []uint64, 3*workers+1) // spent ones, to be used again
	group, ctx := errgroup.WithContext(ctx)

	group.Go(func() error {
		defer close(todo)
		defer close(ordered)
		for tile := range tilesOf(b.objects) {
			for attr := range columns {
				j := &job{tile: tile, attr: attr, done: make(chan []uint64, 1)}
				select {
				case ordered <- j:
				case <-ctx.Done():
					return ctx.Err()
				}
				select {
				case todo <- j:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}
		return nil
	})
	for range workers {
		group.Go(func() error {
			var encoder tileEncoder
			for j := range todo {
				select {
				case encoder.out = <-buffers:
				default:
					encoder.out = nil
				}
				f := &columns[j.attr]
				tile := f.source.tile(j.tile)
				encoder.keywords = f.keywordsOf(encoder.keywords[:0], tile)
				encoder.ids = tile.ids
				j.bytes = encoder.encode(f, b.tileLen(j.tile))
				j.done <- encoder.out
			}
			return nil
		})
	}
	group.Go(func() error {
		for j := range ordered {
			select {
			case words := <-j.done:
				if err := emit(j.tile, j.attr, raw(words)[:j.bytes]); err != nil {
					return err
				}
				select {
				case buffers <- words:
				default:
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	return group.Wait()
}
