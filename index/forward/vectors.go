package forward

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/geniemq/geniemq/index/metric/sums"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// VectorsTile is the vectors of a tile's objects, row after row: floats, 16-bit floats or bytes. The rows of objects without one are zero.
type VectorsTile struct {
	Floats  []float32
	Halves  []sums.Half
	Bytes   []byte
	Present []uint64 // bit i: object i has a vector
}

// Has says whether the i-th object of the tile has a vector.
func (t *VectorsTile) Has(i uint32) bool { return t.Present[i/64]>>(i%64)&1 != 0 }

// VectorsTile returns the vectors of a tile, in the form KeptVectors.
func (c *Column) VectorsTile(tile int) *VectorsTile { return &c.vectors[tile] }

// Widen appends numbers that were stored as 16-bit floats.
func Widen(dst []float32, halves []sums.Half) []float32 {
	first := len(dst)
	dst = slices.Grow(dst, len(halves))[:first+len(halves)]
	sums.Float32s(dst[first:], halves)
	return dst
}

// Vector returns the vector of an object: its floats (of 16-bit ones a copy), or with Column.Bytes its bytes; both nil where it has none.
func (c *Column) Vector(id uint32) (floats []float32, bytes []byte) {
	tile, local, ok := c.place(id)
	if !ok || c.vectors == nil || !c.vectors[tile].Has(local) {
		return nil, nil
	}
	t, first, end := &c.vectors[tile], int(local)*c.Dimensions, int(local+1)*c.Dimensions
	if c.Bytes {
		return nil, t.Bytes[first:end:end]
	}
	if c.Halves {
		return Widen(make([]float32, 0, c.Dimensions), t.Halves[first:end]), nil
	}
	return t.Floats[first:end:end], nil
}

// elementBytes is the size of an element of a column's vectors.
func elementBytes(spec *schema.KeptSpec) int {
	switch {
	case spec.Bytes:
		return 1
	case spec.Halves:
		return 2
	}
	return 4
}

func decodeVectors(data []byte, n int, spec *schema.KeptSpec) (t VectorsTile, err error) {
	rows := n * spec.Dimensions * elementBytes(spec)
	first := (rows + 7) &^ 7
	if want := first + (n+63)/64*8; len(data) != want {
		return t, store.Corrupt("%d bytes are no vectors of %d objects: %d should be", len(data), n, want)
	}
	switch {
	case spec.Bytes:
		t.Bytes = data[:rows:rows]
	case spec.Halves:
		t.Halves = store.View[sums.Half](data[:rows])
	default:
		t.Floats = store.View[float32](data[:rows])
	}
	t.Present = store.View[uint64](data[first:])
	return t, nil
}

// verify checks what opening leaves.
func (t *VectorsTile) verify(n int, spec *schema.KeptSpec, total *totals) error {
	for i := range n {
		if t.Has(uint32(i)) {
			total.add(uint32(spec.Dimensions))
			continue
		}
		for at := i * spec.Dimensions; at < (i+1)*spec.Dimensions; at++ {
			if t.Bytes != nil && t.Bytes[at] != 0 || t.Halves != nil && t.Halves[at] != 0 || t.Floats != nil && math.Float32bits(t.Floats[at]) != 0 {
				return store.Corrupt("object %d of the tile has no vector, but a row that is not zero", i)
			}
		}
	}
	for i, v := range t.Floats {
		if v-v != 0 {
			return store.Corrupt("the vector of object %d of the tile has an element %v", i/spec.Dimensions, v)
		}
	}
	for i, h := range t.Halves {
		if v := h.Float32(); v-v != 0 {
			return store.Corrupt("the vector of object %d of the tile has an element %v", i/spec.Dimensions, v)
		}
	}
	if n%64 != 0 && t.Present[n/64]>>(n%64) != 0 {
		return store.Corrupt("an object that is not there has a vector")
	}
	return nil
}

// vectorsBuilder collects the vectors of a tile. Rows leave it in pieces.
type vectorsBuilder struct {
	spec    *schema.KeptSpec
	rows    []byte
	written int // bytes of rows that have left
	present []uint64
	n       int
}

func (b *vectorsBuilder) add(v *schema.Values) (uint32, error) {
	dimensions := b.spec.Dimensions
	if b.n%64 == 0 {
		b.present = append(b.present, 0)
	}
	b.n++
	switch len(v.Vector) {
	case 0:
		b.rows = append(b.rows, make([]byte, dimensions*elementBytes(b.spec))...)
		return 0, nil
	case dimensions:
	default:
		return 0, fmt.Errorf("a vector has %d elements, those of the column have %d", len(v.Vector), dimensions)
	}
	for _, e := range v.Vector {
		if b.spec.Bytes && (e != float32(byte(e))) {
			return 0, fmt.Errorf("%v is no byte", e)
		}
		if e-e != 0 {
			return 0, errNotFinite(float64(e))
		}
		switch half, exact := sums.ToHalf(e); {
		case b.spec.Bytes:
			b.rows = append(b.rows, byte(e))
		case b.spec.Halves && !exact:
			return 0, fmt.Errorf("%v is no 16-bit float", e)
		case b.spec.Halves:
			b.rows = binary.LittleEndian.AppendUint16(b.rows, uint16(half))
		}
	}
	if !b.spec.Bytes && !b.spec.Halves {
		b.rows = append(b.rows, store.Raw(v.Vector)...)
	}
	b.present[(b.n-1)/64] |= 1 << ((b.n - 1) % 64)
	return uint32(dimensions), nil
}

// early returns rows that can leave already, good until the next call.
func (b *vectorsBuilder) early() []byte {
	if len(b.rows) < pieceBytes {
		return nil
	}
	rows := b.rows
	b.written += len(rows)
	b.rows = b.rows[:0]
	return rows
}

// parts are what of the tile's section has not left.
func (b *vectorsBuilder) parts() [][]byte {
	padding := (b.written+len(b.rows)+7)&^7 - (b.written + len(b.rows))
	return [][]byte{b.rows, make([]byte, padding), store.Raw(b.present)}
}

func (b *vectorsBuilder) reset() { b.rows, b.written, b.present, b.n = b.rows[:0], 0, b.present[:0], 0 }
