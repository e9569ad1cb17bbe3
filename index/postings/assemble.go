package postings

import (
	"context"
	"fmt"
	"math"

	"golang.org/x/sync/errgroup"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/index/values"
)

// finish gives every column its keywords, columns in parallel.
func (b *Builder) finish(ctx context.Context) ([]finalColumn, error) {
	final := make([]finalColumn, len(b.columns))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(b.workers)
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
		if first += uint64(a.Keywords); first > math.MaxUint32 {
			return nil, fmt.Errorf("attributes up to %q have %d keywords, an index holds at most %d; "+
				"use fewer buckets or split the data into several indexes", a.Name, first, uint32(math.MaxUint32))
		}
	}
	return final, nil
}

// finalColumn is a column whose keywords are known, and its description.
type finalColumn struct {
	source    *column
	attribute Attribute
	keywords  values.Keywords

	frequencies []frequency // by keyword, where the layout takes them
	codes       codeTable   // of LayoutSliced
	rare        rareTable   // of LayoutRare
}

func (f *finalColumn) finish(c *column, objects uint32) (err error) {
	f.source = c
	if f.keywords, err = c.Number(&c.spec, store.TilesOf(objects)); err != nil {
		return err
	}
	a := &f.attribute
	*a = Attribute{
		Name: c.spec.Name, Type: c.spec.Type, Keywords: f.keywords.Count, MaxPerObject: c.MaxPerObject, Postings: c.Postings, Objects: c.Objects,
	}
	if a.Type == schema.Number && a.Postings > 0 {
		a.Min, a.Max = c.Low, c.High
	}
	if a.Exact = a.Type == schema.Number && c.spec.Edges == schema.Exact; a.Exact {
		a.Values = f.keywords.Numbers
	} else {
		a.Edges = f.keywords.Numbers
	}
	return f.layOut(objects)
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
	workers := b.workers
	todo := make(chan *job)
	ordered := make(chan *job, 2*workers)
	buffers := make(chan []uint64, 3*workers+1) // spent ones, to be used again
	group, ctx := errgroup.WithContext(ctx)

	group.Go(func() error {
		defer close(todo)
		defer close(ordered)
		for tile := range store.TilesOf(b.objects) {
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
				tile := f.source.Tile(j.tile)
				encoder.keywords = f.keywords.Of(encoder.keywords[:0], tile)
				encoder.ids = tile.IDs
				j.bytes = codecOf(f.attribute.Layout).encode(&encoder, f, int(min(store.TileObjects, b.objects-uint32(j.tile)*store.TileObjects)))
				j.done <- encoder.out
			}
			return nil
		})
	}
	group.Go(func() error {
		for j := range ordered {
			select {
			case words := <-j.done:
				if err := emit(j.tile, j.attr, store.Raw(words)[:j.bytes]); err != nil {
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
