package postings

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/index/values"
)

// Builder collects the values of objects and makes their inverted lists. Values go in with Add..., EndObject closes an object, and
// Finish makes what is written; it leaves the builder as it is, so it can be called again. The same
// calls give the same bytes, whatever the number of workers. It is not safe for concurrent use.
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
	every   []uint16 // the ids of tiles with one value of each object, shared by them; nil before the first is closed
	objects uint32
	err     error // the first error of an Add without a result, and of Ready; they are the whole index's
}

// NewBuilder begins the lists of attributes. Workers is the number of goroutines that close tiles and encode postings, by default
// runtime.GOMAXPROCS(0). It reports every fault at once.
func NewBuilder(attrs []schema.AttributeSpec, workers int) (*Builder, error) {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	b := &Builder{workers: workers, columns: make([]column, len(attrs))}
	var faults []error
	names := make(map[string]bool, len(attrs))
	for i, spec := range attrs {
		if spec.Type == schema.Number {
			if spec.Edges == "" {
				spec.Edges = schema.EqualWidth
			}
			if spec.Buckets == 0 {
				spec.Buckets = schema.DefaultBuckets
			}
		}
		layout, err := schema.ParseLayout(spec.Layout)
		switch {
		case spec.Name == "" || len(spec.Name) > schema.MaxNameBytes || !utf8.ValidString(spec.Name):
			err = fmt.Errorf("the name must be UTF-8 of 1 to %d bytes", schema.MaxNameBytes)
		case names[spec.Name]:
			err = errors.New("declared twice")
		case spec.Type < schema.Number || spec.Type > schema.Ordinal:
			err = fmt.Errorf("unknown type %d", spec.Type)
		case spec.Type == schema.Number && spec.Edges != schema.EqualWidth && spec.Edges != schema.EquiDepth && spec.Edges != schema.Exact:
			err = fmt.Errorf("unknown edges %q", spec.Edges)
		case spec.Type == schema.Number && (spec.Buckets < 1 || spec.Buckets > schema.MaxBuckets):
			err = fmt.Errorf("%d buckets; must be 1 to %d", spec.Buckets, schema.MaxBuckets)
		case err == nil:
			err = layout.Takes(spec.Type)
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

// AddString gives the object that is being built the keyword value of a Text attribute. The bytes are copied when
// the value is new. Adding a value twice makes it count twice.
func (b *Builder) AddString(attr int, value string) {
	c := &b.columns[attr]
	if c.spec.Type != schema.Text {
		b.fail(fmt.Errorf("attribute %q is of type %v and takes no strings", c.spec.Name, c.spec.Type))
		return
	}
	if !c.AddString(value) {
		b.fail(fmt.Errorf("attribute %q has more than 4 GiB of distinct values, the most that one index holds; "+
			"split the data into several indexes", c.spec.Name))
	}
}

// AddNumber gives the object that is being built a value of a Number attribute. NaN and infinities are refused.
func (b *Builder) AddNumber(attr int, value float64) error {
	c := &b.columns[attr]
	if c.spec.Type != schema.Number {
		return fmt.Errorf("attribute %q is of type %v and takes no numbers", c.spec.Name, c.spec.Type)
	}
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return fmt.Errorf("attribute %q: %v is not a finite number", c.spec.Name, value)
	}
	c.AddNumber(value)
	return nil
}

// AddOrdinal gives the object that is being built the keyword value of an Ordinal attribute.
func (b *Builder) AddOrdinal(attr int, value uint32) error {
	c := &b.columns[attr]
	if c.spec.Type != schema.Ordinal {
		return fmt.Errorf("attribute %q is of type %v and takes no ordinals", c.spec.Name, c.spec.Type)
	}
	if value >= c.spec.Keywords {
		return fmt.Errorf("attribute %q: %d is not below its %d keywords", c.spec.Name, value, c.spec.Keywords)
	}
	c.AddOrdinal(value)
	return nil
}

// Ready says why the object that is being built cannot be closed. Such an error is the whole index's and comes again from every later
// call, but for one that tells of too many values in a tile.
func (b *Builder) Ready() error {
	if b.err != nil {
		return b.err
	}
	for i := range b.columns {
		switch c := &b.columns[i]; {
		case uint64(c.Pending())+uint64(c.InTile()) > math.MaxUint32:
			return fmt.Errorf("attribute %q has more than 2^32 values in 64,512 consecutive objects", c.spec.Name)
		case c.override == schema.LayoutSliced:
			if err := c.checkSliced(); err != nil {
				b.fail(err) // not the object is wrong but the schema
				return err
			}
		}
	}
	return nil
}

// EndObject closes the object, which is ready: it gets the next id, and the values added since the last call.
func (b *Builder) EndObject() {
	local := uint16(b.objects % store.TileObjects)
	for i := range b.columns {
		b.columns[i].EndObject(local)
	}
	b.objects++
	if b.objects%store.TileObjects == 0 {
		b.sealTiles()
	}
}

// sealTiles closes the open tile of every column, columns in parallel, since looking for equal numbers takes time.
func (b *Builder) sealTiles() {
	if b.every == nil {
		b.every = make([]uint16, store.TileObjects)
		for i := range b.every {
			b.every[i] = uint16(i)
		}
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(b.workers, len(b.columns)) {
		workers.Go(func() {
			var n values.Numbering
			for i := int(next.Add(1)) - 1; i < len(b.columns); i = int(next.Add(1)) - 1 {
				b.columns[i].Seal(b.every, &n)
			}
		})
	}
	workers.Wait()
}

// DiscardObject drops the values added since the last EndObject, for a record that turns out bad half-way.
func (b *Builder) DiscardObject() {
	for i := range b.columns {
		b.columns[i].Discard()
	}
}

func (b *Builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// draft is the lists of all objects with their keywords known, ready to be written.
type draft struct {
	builder  *Builder
	columns  []finalColumn
	sections int
	postings int64
}

// Finish numbers the keywords and chooses the layouts. The draft is good until the next object.
func (b *Builder) Finish(ctx context.Context) (store.Draft, error) {
	if b.err != nil {
		return nil, b.err
	}
	columns, err := b.finish(ctx)
	if err != nil {
		return nil, err
	}
	d := &draft{builder: b, columns: columns, sections: 1 + store.TilesOf(b.objects)*len(columns)}
	for i := range columns {
		switch columns[i].attribute.Type {
		case schema.Text:
			d.sections += 2
		case schema.Number:
			d.sections++
		}
		if codecOf(columns[i].attribute.Layout).whole != 0 {
			d.sections++
		}
		d.postings += int64(columns[i].attribute.Postings)
	}
	return d, nil
}

// Sections returns the number of sections.
func (d *draft) Sections() int { return d.sections }

// Work returns the number of postings.
func (d *draft) Work() int64 { return d.postings }

// Write writes what a reader needs first, then the postings of all tiles, which are one contiguous piece for a device.
func (d *draft) Write(ctx context.Context, w *store.Writer, progress func(done int64)) error {
	w.SetAttributes(len(d.columns))
	w.Add(SectionAttributes, -1, -1, encodeAttributes(d.columns))
	for i := range d.columns {
		f := &d.columns[i]
		switch f.attribute.Type {
		case schema.Text:
			w.Add(SectionStrings, i, -1, f.keywords.Parts()...)
			w.Add(SectionLookup, i, -1, store.Raw(store.NewHashTable(&f.keywords, store.HashSlots(f.keywords.Len()))))
		case schema.Number:
			numbers := f.attribute.Edges
			if f.attribute.Exact {
				numbers = f.attribute.Values
			}
			w.Add(SectionNumbers, i, -1, store.Raw(numbers))
		}
		if c := codecOf(f.attribute.Layout); c.whole != 0 {
			w.Add(c.whole, i, -1, c.encodeWhole(f, store.TilesOf(d.builder.objects)))
		}
	}
	done := int64(0)
	return d.builder.encodePostings(ctx, d.columns, func(tile, attr int, data []byte) error {
		w.Add(codecOf(d.columns[attr].attribute.Layout).tile, attr, tile, data)
		done += int64(len(d.columns[attr].source.Tile(tile).IDs))
		progress(done)
		return w.Err()
	})
}
