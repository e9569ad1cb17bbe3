package postings

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/index/values"
)

// Builder collects the values of objects and makes their inverted lists. They go in by batches (NewBatch, Append), and
// Finish makes what is written; it leaves the builder as it is, so it can be called again. The same
// objects give the same bytes, whatever the batches and the number of workers. It is not safe for concurrent use.
//
// Memory: a posting takes 4 bytes (a 32-bit provisional keyword), in Number attributes 2 and 8 for each number that is distinct
// in its tile (the raw float64, because edges are known only at the end), or 8 where three in four or more than 65,536 are
// distinct; and 2 more (its object's place in the tile) unless the tile has one value of each object. Add to that each distinct
// string (its bytes plus 10 to 20). Writing adds 16 to 32 bytes per keyword to choose the layouts, 4 bytes per posting of rare
// keywords, and for each worker, first 8 bytes per posting of an equi-depth attribute or 8 per distinct number in each tile of an exact
// one, later 4 bytes per keyword of the largest attribute plus two tiles of it.
//
// Strings get provisional numbers as they are first seen and numbers stay numbers: both become keywords, which
// sort by value, only when everything is known. Postings are kept tile by tile, as columns of (value, object)
// in object order, because a tile and attribute is what is sorted, encoded and written at a time.
type Builder struct {
	workers int
	columns []column
	every   []uint16 // the ids of tiles with one value of each object, shared by them
	objects uint32
	err     error // the first error of Append; it is the whole index's
}

// NewBuilder begins the lists of attributes. Workers is the number of goroutines that close tiles and encode postings, by default
// runtime.GOMAXPROCS(0). It reports every fault at once.
func NewBuilder(attrs []schema.AttributeSpec, workers int) (*Builder, error) {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	b := &Builder{workers: workers, columns: make([]column, len(attrs)), every: values.Places()}
	var faults []error
	names := make(map[string]bool, len(attrs))
	for i, spec := range attrs {
		layout, err := spec.Check()
		if names[spec.Name] {
			err = errors.New("declared twice")
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("attribute %d %q: %w", i, spec.Name, err))
		}
		names[spec.Name] = true
		b.columns[i] = column{Column: values.NewColumn(spec.Type), spec: spec, override: layout}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return b, nil
}

// column is one attribute that is being built.
type column struct {
	values.Column
	spec     schema.AttributeSpec
	override schema.Layout
}

// checkSliced tells, of a column that the schema wants in LayoutSliced, that it cannot be, as far as the values added so far
// tell: not after all are in, when much time is lost. That an object has several values its batch tells.
func (c *column) checkSliced() error {
	// After a dropped value some of the strings may be no object's: layOut will know.
	if n := c.Strings().Len(); c.override == schema.LayoutSliced && n > MaxSlicedKeywords && !c.Discarded {
		return tooManySliced(c.spec.Name, n)
	}
	return nil
}

// Strings returns the values of a Text attribute by its position and name, nil where it is another: for who makes something else of them. They
// are the builder's.
func (b *Builder) Strings(attr int, name string) *values.Column {
	if attr >= len(b.columns) || b.columns[attr].spec.Type != schema.Text || b.columns[attr].spec.Name != name {
		return nil
	}
	return &b.columns[attr].Column
}

// Finish numbers the keywords and chooses the layouts. The draft is good until the next object.
func (b *Builder) Finish(ctx context.Context) (store.Draft, error) {
	if b.err != nil {
		return store.Draft{}, b.err
	}
	columns, err := b.finish(ctx)
	if err != nil {
		return store.Draft{}, err
	}
	d := store.Draft{Sections: 1 + store.TilesOf(b.objects)*len(columns)}
	for i := range columns {
		a := &columns[i].attribute
		d.Work += int64(a.Postings)
		d.Sections += len(wholeSections(a))
	}
	d.Write = func(ctx context.Context, w *store.Writer, progress func(done int64)) error {
		return b.write(ctx, w, columns, progress)
	}
	return d, nil
}

// write writes what a reader needs first, then the postings of all tiles, which are one contiguous piece for a device.
func (b *Builder) write(ctx context.Context, w *store.Writer, columns []finalColumn, progress func(done int64)) error {
	w.SetAttributes(len(columns))
	w.Add(SectionAttributes, -1, -1, encodeAttributes(columns))
	for i := range columns {
		f := &columns[i]
		switch f.attribute.Type {
		case schema.Text:
			w.Add(SectionStrings, i, -1, f.keywords.Strings.Parts()...)
			w.Add(SectionLookup, i, -1, store.Raw(store.NewHashTable(&f.keywords.Strings, store.HashSlots(int(f.keywords.Count)))))
		case schema.Number:
			w.Add(SectionNumbers, i, -1, store.Raw(f.keywords.Numbers))
		}
		if c := codecOf(f.attribute.Layout); c.whole != 0 {
			w.Add(c.whole, i, -1, c.encodeWhole(f, store.TilesOf(b.objects)))
		}
	}
	done := int64(0)
	return b.encodePostings(ctx, columns, func(tile, attr int, data []byte) error {
		w.Add(codecOf(columns[attr].attribute.Layout).tile, attr, tile, data)
		done += int64(len(columns[attr].source.Tile(tile).IDs))
		progress(done)
		return w.Err()
	})
}
