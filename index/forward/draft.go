package forward

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// draft is what the objects hold, ready to be written.
type draft struct {
	builder *Builder
	columns []finalColumn
}

// finalColumn is a column whose terms have their numbers.
type finalColumn struct {
	Column
	builder *columnBuilder
	terms   store.StringTable // ascending
	place   []uint32          // of a term, by when it was first seen
	counts  []uint32          // objects that have each term
	weights []uint8           // of each term; nil without a scale
}

// weightsOf returns the weights of terms by the numbers of objects that have them; nil without a scale.
func weightsOf(counts []uint32, scale int, objects uint32) []uint8 {
	w := newWeigher(scale, objects)
	if w == nil {
		return nil
	}
	weights := make([]uint8, len(counts))
	for i, n := range counts {
		weights[i] = uint8(w.of(n))
	}
	return weights
}

// write writes the table and what belongs to whole columns, then tile after tile.
func (d *draft) write(ctx context.Context, w *store.Writer, _ func(int64)) error {
	table := make([]Column, len(d.columns))
	for i := range d.columns {
		table[i] = d.columns[i].Column
	}
	w.Add(SectionColumns, -1, -1, encodeTable(table))
	for i := range d.columns {
		f := &d.columns[i]
		if f.Form == schema.KeptNumbers {
			if err := d.writeFloats(w, i); err != nil {
				return err
			}
		}
		if f.Form == schema.KeptTerms {
			w.Add(SectionFrequencies, i, -1, store.Raw(f.counts))
		}
		if f.Vocabulary {
			w.Add(SectionDictionary, i, -1, f.terms.Parts()...)
			w.Add(SectionFinder, i, -1, store.Raw(store.NewHashTable(&f.terms, store.HashSlots(f.terms.Len()))))
		}
	}
	return d.writeTiles(ctx, w)
}

// writeFloats writes the section of a column of numbers.
func (d *draft) writeFloats(w *store.Writer, column int) error {
	c := d.columns[column].builder
	b := c.tile.(*floatsBuilder)
	var buffer []byte
	w.Begin(SectionFloats, column, -1)
	err := writeFloats(w, b.any, d.builder.objects, func(visit func(tile floats) error) error {
		for tile := range store.TilesOf(d.builder.objects) {
			sealed, n := b.parts(), len(b.counts)
			if tile < len(c.sealed) {
				data, err := d.builder.spool.get(c.sealed[tile][0], buffer)
				if err != nil {
					return err
				}
				sealed, n = [][]byte{data}, store.TileObjects
				if c.sealed[tile][0].data == nil {
					buffer = data
				}
			}
			decoded, err := decodeFloats(joined(sealed), n)
			if err != nil {
				return err
			}
			if err := visit(decoded); err != nil {
				return err
			}
		}
		return nil
	})
	w.End()
	return err
}

// joined returns parts in one piece, which is aligned.
func joined(parts [][]byte) []byte {
	if len(parts) == 1 {
		return parts[0]
	}
	n := 0
	for _, part := range parts {
		n += len(part)
	}
	all := aligned(n)[:0]
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

// A termsJob is a tile of terms that is being encoded.
type termsJob struct {
	column, tile int
	done         chan [][]byte // capacity 1: a worker never waits
}

// writeTiles writes the sections of tiles. Terms are encoded by the workers ahead of that; the queue bounds how far.
func (d *draft) writeTiles(ctx context.Context, w *store.Writer) error {
	jobs := make(chan *termsJob)
	ordered := make(chan *termsJob, 2*d.builder.workers)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(jobs)
		defer close(ordered)
		for tile := range store.TilesOf(d.builder.objects) {
			for i := range d.columns {
				if d.columns[i].Form != schema.KeptTerms {
					continue
				}
				j := &termsJob{i, tile, make(chan [][]byte, 1)}
				for _, queue := range []chan *termsJob{ordered, jobs} {
					select {
					case queue <- j:
					case <-ctx.Done():
						return ctx.Err()
					}
				}
			}
		}
		return nil
	})
	for range d.builder.workers {
		group.Go(func() error {
			for j := range jobs {
				parts, err := d.encodeTerms(j)
				if err != nil {
					return err
				}
				j.done <- parts
			}
			return nil
		})
	}
	group.Go(func() error { return d.emit(ctx, w, ordered) })
	return group.Wait()
}

// encodeTerms makes the section of a job.
func (d *draft) encodeTerms(j *termsJob) ([][]byte, error) {
	f := &d.columns[j.column]
	b := f.builder.tile.(*termsBuilder)
	n, repeats := int(b.objects), b.repeats
	if j.tile < len(f.builder.sealed) {
		data, err := d.builder.spool.get(f.builder.sealed[j.tile][0], nil)
		if err != nil {
			return nil, err
		}
		n, repeats = store.TileObjects, store.View[uint32](data)
	}
	return f.encodeTerms(b.source.Tile(j.tile), n, repeats), nil
}

// emit writes the sections in their order.
func (d *draft) emit(ctx context.Context, w *store.Writer, terms <-chan *termsJob) error {
	b := d.builder
	var buffer []byte
	section := func(kind store.SectionKind, column, tile int, pieces []piece, rest [][]byte) error {
		w.Begin(kind, column, tile)
		for _, p := range pieces {
			data, err := b.spool.get(p, buffer)
			if err != nil {
				return err
			}
			if p.data == nil {
				buffer = data
			}
			w.Append(data)
		}
		for _, part := range rest {
			w.Append(part)
		}
		w.End()
		return nil
	}
	for tile := range store.TilesOf(b.objects) {
		for i := range d.columns {
			c := d.columns[i].builder
			var err error
			switch {
			case tileKind(c.Form) == 0:
				continue
			case c.Form == schema.KeptTerms:
				select {
				case j, ok := <-terms:
					if !ok {
						return ctx.Err()
					}
					select {
					case parts := <-j.done:
						err = section(SectionTerms, i, tile, nil, parts)
					case <-ctx.Done():
						return ctx.Err()
					}
				case <-ctx.Done():
					return ctx.Err()
				}
			case tile < len(c.sealed):
				err = section(tileKind(c.Form), i, tile, c.sealed[tile], nil)
			default:
				err = section(tileKind(c.Form), i, tile, c.early, c.tile.parts())
			}
			if err != nil {
				return err
			}
		}
		if b.stored == nil {
			continue
		}
		var err error
		if tile < len(b.sealed) {
			err = section(SectionStored, -1, tile, b.sealed[tile], nil)
		} else {
			err = section(SectionStored, -1, tile, b.stored.pieces(), nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
