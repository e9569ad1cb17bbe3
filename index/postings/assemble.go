package postings

import (
	"context"
	"fmt"
	"math"

	"golang.org/x/sync/errgroup"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/index/values"
	"github.com/geniemq/geniemq/internal/inorder"
	"github.com/geniemq/geniemq/internal/pool"
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
// after the other in tile-major order. The bytes are emit's only until it returns. There are never more encoded tiles than room for a slow disk.
func (b *Builder) encodePostings(ctx context.Context, columns []finalColumn, emit func(tile, attr int, data []byte) error) error {
	type job struct {
		tile, attr int
		words      []uint64
		bytes      int
	}
	next, jobs := 0, store.TilesOf(b.objects)*len(columns)
	if jobs == 0 {
		return nil
	}
	var encoders pool.Of[tileEncoder]
	return inorder.Run(ctx, b.workers, 3*b.workers+1, func() *job { return new(job) }, func(j *job) (last bool, err error) {
		j.tile, j.attr = next/len(columns), next%len(columns)
		next++
		return next == jobs, nil
	}, func(j *job) error {
		e := encoders.Get()
		defer encoders.Put(e)
		f := &columns[j.attr]
		tile := f.source.Tile(j.tile)
		e.keywords, e.ids, e.out = f.keywords.Of(e.keywords[:0], tile), tile.IDs, j.words
		j.bytes = codecOf(f.attribute.Layout).encode(e, f, int(min(store.TileObjects, b.objects-uint32(j.tile)*store.TileObjects)))
		j.words = e.out
		return nil
	}, func(j *job) error { return emit(j.tile, j.attr, store.Raw(j.words)[:j.bytes]) })
}
