package forward

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/index/values"
)

// pieceBytes is of what size pieces of vectors leave memory.
const pieceBytes = 4 << 20

// Builder collects what objects hold and makes the sections of it. Finish leaves it as it is, so it can be called again; the same calls
// give the same bytes, whatever the number of workers. It is not safe for concurrent use.
//
// Memory: a tile of each column but vectors, and up to 256 MiB of what is sealed; the rest waits in a temporary file (spool). Terms are the
// lists'; finishing takes 8 bytes for each distinct one.
type Builder struct {
	workers int
	columns []columnBuilder
	stored  *storedBuilder // nil: nothing is stored in rows
	sealed  [][]piece      // of rows, by tile
	objects uint32
	spool   spool
}

// columnBuilder is one column that is being built.
type columnBuilder struct {
	Column
	source int // its position in the schema
	tile   tileBuilder
	early  []piece   // of the open tile
	sealed [][]piece // by tile
}

// tileBuilder collects the values of a tile in one form.
type tileBuilder interface {
	// add adds the next object's and returns how many numbers, terms or bytes it has.
	add(v *schema.Values) (uint32, error)
	// parts are the section of the tile, or what it is made of.
	parts() [][]byte
	reset()
}

// NewBuilder begins what is kept of the columns of a schema, as specs say by their positions; nil where nothing is. Workers is the number
// of goroutines that encode, by default runtime.GOMAXPROCS(0). lists returns the values of a column's one attribute of strings, from which the lists
// are made and which get the same objects; they are read by Finish and when its draft is written. nil, or returning nil: there are none. It reports every
// fault at once.
func NewBuilder(s *schema.Schema, specs []schema.KeptSpec, workers int, lists func(column int) *values.Column) (*Builder, error) {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	b := &Builder{workers: workers, spool: spool{limit: spoolMemory}}
	var faults []error
	var rows []int
	for i := range specs {
		spec := &specs[i]
		if spec.Form == 0 && !spec.Returned {
			continue
		}
		c := columnBuilder{Column: Column{KeptSpec: *spec, Name: s.Columns[i].Name}, source: i}
		if err := c.check(); err != nil {
			faults = append(faults, fmt.Errorf("column %q: %w", c.Name, err))
		}
		if inRows(spec) {
			rows = append(rows, i)
		}
		var shared *values.Column
		if lists != nil {
			shared = lists(i)
		}
		c.begin(shared)
		b.columns = append(b.columns, c)
	}
	if err := errors.Join(faults...); err != nil || len(b.columns) == 0 {
		return nil, err
	}
	if len(rows) > 0 {
		var err error
		if b.stored, err = newStoredBuilder(rows, workers); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// begin makes room for a tile. lists are the values of the column's attribute, which the lists are made of.
func (c *columnBuilder) begin(lists *values.Column) {
	switch c.Form {
	case schema.KeptNumbers:
		c.tile = &floatsBuilder{}
	case schema.KeptTerms:
		c.tile = newTerms(lists)
		if lists == nil || c.Vocabulary {
			c.tile = ownTerms()
		}
	case schema.KeptVectors:
		c.tile = &vectorsBuilder{spec: &c.KeptSpec}
	case schema.KeptTexts, schema.KeptTrees, schema.KeptGraphs:
		c.tile = &blobsBuilder{texts: c.Form == schema.KeptTexts}
	}
}

// Add adds the next object, by the values of the schema's columns. An error is the whole index's.
func (b *Builder) Add(values []schema.Values) error {
	if b.objects == math.MaxUint32 {
		return errors.New("an index holds no more objects")
	}
	for i := range b.columns {
		c := &b.columns[i]
		if c.tile == nil {
			continue
		}
		if err := c.add(&values[c.source], &b.spool); err != nil {
			return fmt.Errorf("column %q: %w", c.Name, err)
		}
	}
	if b.stored != nil {
		if err := b.stored.add(values); err != nil {
			return err
		}
		if err := b.stored.leave(&b.spool); err != nil {
			return err
		}
	}
	b.objects++
	if b.objects%store.TileObjects == 0 {
		return b.seal()
	}
	return nil
}

func (c *columnBuilder) add(v *schema.Values, s *spool) error {
	n, err := c.tile.add(v)
	if err != nil {
		return err
	}
	c.Total += uint64(n)
	if n > 0 && c.Form != schema.KeptTerms { // terms are counted when all are there
		c.Objects++
		c.Most = max(c.Most, n)
	}
	if vectors, ok := c.tile.(*vectorsBuilder); ok {
		if rows := vectors.early(); rows != nil {
			p, err := s.put(rows)
			if err != nil {
				return err
			}
			c.early = append(c.early, p)
		}
	}
	return nil
}

// seal closes the open tile.
func (b *Builder) seal() error {
	for i := range b.columns {
		c := &b.columns[i]
		if c.tile == nil {
			continue
		}
		p, err := b.spool.put(c.tile.parts()...)
		if err != nil {
			return err
		}
		c.sealed = append(c.sealed, append(c.early, p))
		c.early = nil
		c.tile.reset()
	}
	if b.stored == nil {
		return nil
	}
	b.stored.closeBlock()
	var pieces []piece
	for _, p := range b.stored.pieces() {
		if !p.kept {
			var err error
			if p, err = b.spool.put(p.data); err != nil {
				return err
			}
		}
		pieces = append(pieces, p)
	}
	b.sealed = append(b.sealed, pieces)
	b.stored.reset()
	return nil
}

// Finish numbers the terms. The draft is good until the next object.
func (b *Builder) Finish(ctx context.Context) (store.Draft, error) {
	d := &draft{builder: b, columns: make([]finalColumn, len(b.columns))}
	sections := 1
	tiles := store.TilesOf(b.objects)
	for i := range d.columns {
		if err := ctx.Err(); err != nil {
			return store.Draft{}, err
		}
		c, f := &b.columns[i], &d.columns[i]
		f.Column, f.builder = c.Column, c
		if tileKind(c.Form) != 0 {
			sections += tiles
		}
		if c.Form == schema.KeptNumbers {
			sections++
		}
		if c.Form == schema.KeptTerms {
			f.count(b.objects)
			sections++
		}
		if c.Vocabulary {
			sections += 2
		}
	}
	if b.stored != nil {
		sections += tiles
	}
	return store.Draft{Sections: sections, Write: d.write}, nil // copying takes no time beside encoding postings
}

// blobsBuilder collects texts, trees or graphs of a tile.
type blobsBuilder struct {
	texts bool // else Values.Stored
	table store.StringTable
}

func (b *blobsBuilder) add(v *schema.Values) (uint32, error) {
	s := v.Text
	if !b.texts {
		s = string(v.Stored)
	}
	if !b.table.Fits(len(s)) {
		return 0, errors.New("64,512 consecutive objects have more than 4 GiB together; split the data into several indexes")
	}
	b.table.Add(s)
	return uint32(len(s)), nil
}

func (b *blobsBuilder) parts() [][]byte { return b.table.Parts() }

func (b *blobsBuilder) reset() { b.table.Reset() }
