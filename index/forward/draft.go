package forward

import (
	"context"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/inorder"
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

// A tileJob is the section of a column in a tile, or with column -1 that of what is stored, on its way to the file.
type tileJob struct {
	column, tile int
	terms        [][]byte // encoded
}

// writeTiles writes the sections of tiles. Terms are encoded by the workers ahead of that, as far as there is room.
func (d *draft) writeTiles(ctx context.Context, w *store.Writer) error {
	var columns []int
	for i := range d.columns {
		if tileKind(d.columns[i].Form) != 0 {
			columns = append(columns, i)
		}
	}
	if d.builder.stored != nil {
		columns = append(columns, -1)
	}
	next, jobs := 0, store.TilesOf(d.builder.objects)*len(columns)
	if jobs == 0 {
		return nil
	}
	var buffer []byte
	workers := d.builder.workers
	return inorder.Run(ctx, workers, 3*workers, func() *tileJob { return new(tileJob) }, func(j *tileJob) (last bool, err error) {
		j.tile, j.column = next/len(columns), columns[next%len(columns)]
		next++
		return next == jobs, nil
	}, func(j *tileJob) (err error) {
		if j.column >= 0 && d.columns[j.column].Form == schema.KeptTerms {
			j.terms, err = d.encodeTerms(j)
		}
		return err
	}, func(j *tileJob) (err error) {
		buffer, err = d.writeTile(w, j, buffer)
		j.terms = nil
		return err
	})
}

// encodeTerms makes the section of a job.
func (d *draft) encodeTerms(j *tileJob) ([][]byte, error) {
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

// writeTile writes the section of a job. The buffer is used again.
func (d *draft) writeTile(w *store.Writer, j *tileJob, buffer []byte) ([]byte, error) {
	b := d.builder
	kind, pieces, rest := SectionStored, []piece(nil), j.terms
	switch {
	case j.column < 0 && j.tile < len(b.sealed):
		pieces = b.sealed[j.tile]
	case j.column < 0:
		pieces = b.stored.pieces()
	default:
		c := d.columns[j.column].builder
		kind = tileKind(c.Form)
		switch {
		case c.Form == schema.KeptTerms:
		case j.tile < len(c.sealed):
			pieces = c.sealed[j.tile]
		default:
			pieces, rest = c.early, c.tile.parts()
		}
	}
	w.Begin(kind, j.column, j.tile)
	for _, p := range pieces {
		data, err := b.spool.get(p, buffer)
		if err != nil {
			return nil, err
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
	return buffer, nil
}
