package forward

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// floats are the numbers of all objects, or while an index is being built of a tile's. Those of object i are values[starts[i]:starts[i+1]], or
// without starts, where none has more than one, values[i], which is NaN where it has none. They are one section for the whole index, so that
// filters find them by one addition, on a device too.
type floats struct {
	starts []uint32
	values []float64
}

// Numbers returns the numbers of an object in the form KeptNumbers, in the order they were given.
func (c *Column) Numbers(id uint32) []float64 {
	if c.Form != schema.KeptNumbers || id >= c.file.Objects() {
		return nil
	}
	return c.floats.of(int(id))
}

// NumbersTile implements filter.Numbers: the i-th object of a tile has values[starts[i]:starts[i+1]], or where starts is nil, values[i] alone,
// NaN where it has none.
func (c *Column) NumbersTile(tile int) (starts []uint32, values []float64) {
	first, end := tile*store.TileObjects, tile*store.TileObjects+c.file.TileLen(tile)
	if c.floats.starts != nil {
		return c.floats.starts[first : end+1], c.floats.values
	}
	return nil, c.floats.values[first:end]
}

// StoredNumbers implements filter.Stored: what is kept of an attribute is its column's, which has its name.
func (x *Forward) StoredNumbers(attribute string) (filter.Numbers, bool) {
	c := x.Column(attribute)
	if c == nil || c.Form != schema.KeptNumbers {
		return nil, false
	}
	return c, true
}

// floatsHead: whether there are starts, and zero.
const floatsHead = 8

func decodeFloats(data []byte, n int) (f floats, err error) {
	if len(data) < floatsHead {
		return f, store.Corrupt("%d bytes are no numbers", len(data))
	}
	many := binary.LittleEndian.Uint32(data)
	data = data[floatsHead:]
	switch many {
	case 0:
		if len(data) != 8*n {
			return f, store.Corrupt("%d bytes are no numbers of %d objects", len(data), n)
		}
		f.values = store.View[float64](data)
	case 1:
		starts := (4*(n+1) + 7) &^ 7
		if len(data) < starts || len(data)%8 != 0 {
			return f, store.Corrupt("%d bytes cannot hold the places of numbers of %d objects", len(data), n)
		}
		f.starts, f.values = store.View[uint32](data[:4*(n+1)]), store.View[float64](data[starts:])
		return f, ascending(f.starts, len(f.values))
	default:
		return f, store.Corrupt("numbers in form %d", many)
	}
	return f, nil
}

// ascending checks that starts run from 0 to end without going back.
func ascending(starts []uint32, end int) error {
	previous := uint32(0)
	for i, start := range starts {
		if start < previous {
			return store.Corrupt("the start of object %d is below its predecessor", i)
		}
		previous = start
	}
	if starts[0] != 0 || uint64(previous) != uint64(end) {
		return store.Corrupt("starts run from %d to %d, there are %d values", starts[0], previous, end)
	}
	return nil
}

// verify checks what opening leaves.
func (f *floats) verify(total *totals) error {
	if f.starts == nil {
		for i, v := range f.values {
			if math.IsInf(v, 0) {
				return store.Corrupt("the number of object %d is %v", i, v)
			}
			if v == v {
				total.add(1)
			}
		}
		return nil
	}
	many := false
	for i := range len(f.starts) - 1 {
		n := f.starts[i+1] - f.starts[i]
		many = many || n > 1
		total.add(n)
	}
	if !many {
		return store.Corrupt("numbers have places, but no object has two")
	}
	for _, v := range f.values {
		if math.IsInf(v, 0) || v != v {
			return store.Corrupt("a number is %v", v)
		}
	}
	return nil
}

// floatsBuilder collects the numbers of a tile. It seals them as if the tile was an index; the one section of all is made when they are
// written.
type floatsBuilder struct {
	counts []uint32
	values []float64
	many   bool
	any    bool // the same, of all tiles
	total  uint64
	head   []byte
	starts []uint32
	single []float64
}

func (b *floatsBuilder) add(v *schema.Values) (uint32, error) {
	if b.total += uint64(len(v.Numbers)); b.total > math.MaxUint32 {
		return 0, errors.New("more than 2^32 numbers; split the data into several indexes")
	}
	b.counts = append(b.counts, uint32(len(v.Numbers)))
	for _, number := range v.Numbers {
		if math.IsNaN(number) || math.IsInf(number, 0) {
			return 0, errNotFinite(number)
		}
		if number == 0 {
			number = 0 // -0 and 0 are one value
		}
		b.values = append(b.values, number)
	}
	b.many = b.many || len(v.Numbers) > 1
	b.any = b.any || b.many
	return uint32(len(v.Numbers)), nil
}

// parts are the tile as it is sealed.
func (b *floatsBuilder) parts() [][]byte {
	b.head = append(b.head[:0], make([]byte, floatsHead)...)
	if !b.many {
		b.single = b.single[:0]
		next := 0
		for _, n := range b.counts {
			v := math.NaN()
			if n > 0 {
				v = b.values[next]
				next++
			}
			b.single = append(b.single, v)
		}
		return [][]byte{b.head, store.Raw(b.single)}
	}
	b.head[0] = 1
	b.starts = append(b.starts[:0], 0)
	end := uint32(0)
	for _, n := range b.counts {
		end += n
		b.starts = append(b.starts, end)
	}
	if len(b.starts)%2 != 0 {
		b.starts = append(b.starts, 0)
	}
	return [][]byte{b.head, store.Raw(b.starts), store.Raw(b.values)}
}

func (b *floatsBuilder) reset() { b.counts, b.values, b.many = b.counts[:0], b.values[:0], false }

// writeFloats appends the section of all objects, from sealed tiles that each calls its argument with, in order.
func writeFloats(w *store.Writer, many bool, objects uint32, each func(visit func(tile floats) error) error) error {
	head := make([]byte, floatsHead)
	if !many {
		w.Append(head)
		return each(func(tile floats) error {
			w.Append(store.Raw(tile.values))
			return nil
		})
	}
	head[0] = 1
	w.Append(head)
	end := uint32(0)
	starts := []uint32{0}
	err := each(func(tile floats) error {
		for i := range tile.len() {
			end += uint32(len(tile.of(i)))
			starts = append(starts, end)
		}
		w.Append(store.Raw(starts))
		starts = starts[:0]
		return nil
	})
	if err != nil {
		return err
	}
	w.Append(make([]byte, uint64(objects+1)%2*4))
	var values []float64
	return each(func(tile floats) error {
		values = values[:0]
		for i := range tile.len() {
			values = append(values, tile.of(i)...)
		}
		w.Append(store.Raw(values))
		return nil
	})
}

func (f *floats) len() int {
	if f.starts != nil {
		return len(f.starts) - 1
	}
	return len(f.values)
}

// of returns the numbers of the i-th object.
func (f *floats) of(i int) []float64 {
	if f.starts != nil {
		return f.values[f.starts[i]:f.starts[i+1]]
	}
	if v := f.values[i]; v != v {
		return nil
	}
	return f.values[i : i+1]
}
