package distance

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/sums"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/spill"
)

// Build implements store.Buildable: there is something to build where a column names an access path in index.
func (Family) Build(s *schema.Schema, workers int) (store.Builder, error) {
	if b := newBuilder(s, workers, spillMemory); len(b.columns) > 0 {
		return b, nil
	}
	return nil, nil
}

// newBuilder is a builder whose values take so many bytes of memory.
func newBuilder(s *schema.Schema, workers int, limit int64) *builder {
	b, budget := &builder{workers: workers}, &spill.Budget{Limit: limit}
	position := 0
	for i := range s.Columns {
		c := &s.Columns[i]
		of, ok := sort(s, c)
		if !ok {
			continue
		}
		var paths []Path
		for _, p := range Paths() {
			if slices.Contains(c.Index, p.Name) {
				paths = append(paths, p)
			}
		}
		if len(paths) > 0 {
			b.columns = append(b.columns, columnBuilder{
				source: i, position: position, schema: c, of: of, empty: s.Kind == schema.Sequences, paths: paths,
				values: spill.New(budget), ends: spill.New(budget),
			})
		}
		position++
	}
	return b
}

// spillMemory is what the values of all columns take in memory while an index is built.
const spillMemory = 256 << 20

// builder collects what the objects have in columns with access paths.
//
// Memory: values take up to spillMemory; beyond they wait in temporary files (package spill), from which paths are built through a map. A path takes what it makes: of cells
// 16 bytes per object, of a tree 20 and a byte per level, of a permutation index a byte per permutant. Neither the limit nor the number of workers changes a byte of the index.
type builder struct {
	workers int
	aid     *metric.Aid
	columns []columnBuilder
}

// columnBuilder is one column: the values of the objects that have one.
type columnBuilder struct {
	source, position int // in the schema; among the columns of the family
	schema           *schema.Column
	of               Values
	empty            bool // an empty text is a value
	paths            []Path

	values *spill.Run // rows as they are stored; unit vectors; texts, one after the other
	ends   *spill.Run // of texts: where each ends, a u64
	row    []byte     // of the object that is added
}

// FindBy lets an engine find nearest vectors while access paths are built. Files are the same to the byte. note is told if it fails to.
func (b *builder) FindBy(e metric.Engine, note func(string)) {
	b.aid = &metric.Aid{Engine: e, Note: note}
}

// Add implements store.Builder.
func (b *builder) Add(values []schema.Values) error {
	for i := range b.columns {
		c := &b.columns[i]
		if err := c.add(&values[c.source]); err != nil {
			return fmt.Errorf("column %q: %w", c.schema.Name, err)
		}
	}
	return nil
}

func (c *columnBuilder) add(v *schema.Values) error {
	switch c.of {
	case Texts:
		if v.Text == "" && !c.empty {
			return nil
		}
		c.row = append(c.row[:0], v.Text...)
		if err := c.values.Append(c.row); err != nil {
			return err
		}
		c.row = binary.LittleEndian.AppendUint64(c.row[:0], uint64(c.values.Len()))
		return c.ends.Append(c.row)
	case Points:
		if len(v.Numbers) != 2 {
			return nil
		}
		unit, err := metric.Unit(v.Numbers[0], v.Numbers[1])
		if err != nil {
			return err
		}
		return c.values.Append(store.Raw(unit[:]))
	}
	return c.addVector(v.Vector)
}

// addVector adds a vector, which may be none, as it is stored.
func (c *columnBuilder) addVector(v []float32) error {
	switch c.schema.Storage {
	case StorageU8:
		c.row = c.row[:0]
		for _, e := range v {
			c.row = append(c.row, uint8(e))
		}
	case StorageF16:
		c.row = c.row[:0]
		for _, e := range v {
			h, _ := sums.ToHalf(e) // which loses nothing, as was checked
			c.row = binary.LittleEndian.AppendUint16(c.row, uint16(h))
		}
	default:
		return c.values.Append(store.Raw(v))
	}
	return c.values.Append(c.row)
}

// space is the objects that have a value. It is good as long as the builder is reachable.
func (c *columnBuilder) space() (metric.Space, error) {
	name := c.schema.Metric
	name = cmp.Or(name, metricsOf(c.of)[0])
	m, err := ParseMetric(name)
	if err != nil {
		return nil, err
	}
	data, err := c.values.Bytes()
	if err != nil {
		return nil, err
	}
	switch c.of {
	case Texts:
		ends, err := c.ends.Bytes()
		if err != nil {
			return nil, err
		}
		return metric.NewTexts(uint32(len(ends)/8), texts(data, store.View[uint64](ends)), nil)
	case Points:
		return metric.NewPoints(store.View[float64](data))
	}
	return vectorsOf(m, c.schema.Dims, c.schema.Storage, data)
}

// texts are texts that lie one after the other.
func texts(data []byte, ends []uint64) func(i uint32) string {
	return func(i uint32) string {
		first := uint64(0)
		if i > 0 {
			first = ends[i-1]
		}
		return unsafe.String(unsafe.SliceData(data[first:ends[i]]), ends[i]-first)
	}
}

// section is what is written of an access path, or the rows in its order.
type section struct {
	kind  store.SectionKind
	of    *columnBuilder
	data  []byte
	order []uint32 // of rows
}

// Finish implements store.Builder: it builds the access paths.
func (b *builder) Finish(ctx context.Context) (store.Draft, error) {
	var all []section
	for i := range b.columns {
		c := &b.columns[i]
		own, err := c.finish(ctx, b.workers, b.aid)
		if err != nil {
			return store.Draft{}, fmt.Errorf("column %q: %w", c.schema.Name, err)
		}
		all = append(all, own...)
	}
	return store.Draft{Sections: len(all), Write: func(ctx context.Context, w *store.Writer, _ func(int64)) error {
		for _, s := range all {
			if s.order == nil {
				w.Add(s.kind, s.of.position, -1, s.data)
			} else if err := s.writeRows(ctx, w); err != nil {
				return err
			}
		}
		runtime.KeepAlive(b) // whose values were read
		return w.Err()
	}}, nil
}

// finish builds the access paths of a column.
func (c *columnBuilder) finish(ctx context.Context, workers int, aid *metric.Aid) (all []section, err error) {
	space, err := c.space()
	if err != nil {
		return nil, err
	}
	for _, p := range c.paths {
		built, err := p.Build(ctx, c.schema, space, workers, aid)
		if err != nil {
			return nil, err
		}
		all = append(all, section{kind: p.Section, of: c, data: store.Frame(built.Parts)})
		if p.Rows != 0 && c.of == Vectors && len(built.Order) > 0 {
			all = append(all, section{kind: p.Rows, of: c, order: built.Order})
		}
	}
	runtime.KeepAlive(c)
	return all, nil
}

// writeRows writes the vectors of a column in the order of a path. A reader who does not know them finds the vectors by id.
func (s *section) writeRows(ctx context.Context, w *store.Writer) error {
	data, err := s.of.values.Bytes()
	if err != nil {
		return err
	}
	size := s.of.schema.Dims * int(elementBytes(s.of.schema.Storage))
	w.BeginOptional(s.kind, s.of.position, -1)
	some := make([]byte, 0, 1<<16)
	for _, id := range s.order {
		if some = append(some, data[int(id)*size:(int(id)+1)*size]...); len(some)+size > cap(some) {
			w.Append(some)
			some = some[:0]
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	}
	w.Append(some)
	w.End()
	return nil
}
