package tree

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/geniemq/geniemq/index/metric"
)

// A tree in a file is one section. All numbers are little-endian, and every array begins at a multiple of eight bytes after the section's beginning, filled up with zeros.
//
//	header    64 bytes: u32 form (1), bounds (0 pivot, 1 box), capacity, leaf, objects, nodes, height, dims; u64 seed; f64 idim; u32 rows; 12 zeros
//	order     u32 [objects]            the object at a position
//	first     u32 [nodes + 1]          children of a node
//	begin     u32 [nodes]              positions of a node
//	count     u32 [nodes]
//	pivots    u32 [nodes]              pivot trees: position; 0 for a leaf
//	lo, hi    f32 [nodes], f32 [nodes] pivot trees: distances to the parent's pivot; of the root 0 and infinity
//	boxes     f32 [nodes][2][dims]     box trees
//	path      u8  [objects * height]   pivot trees: leaf by leaf (height * its objects), in it level by level
//	rows      [rows] of rowSize bytes  what a search does, by sampling (calibration.go)
const (
	form       = 1
	headerSize = 64
)

// A Damaged is a section that cannot be a tree.
type Damaged struct{ Reason string }

func (d *Damaged) Error() string {
	return "the section of a tree is damaged: " + d.Reason + "; build the index again"
}

// Encode gives the bytes of a tree in a file.
func (t *Tree) Encode() []byte {
	w := writer(make([]byte, 0, headerSize+4*len(t.order)+len(t.path)+32*len(t.begin)+4*len(t.boxes)+rowSize*len(t.calibration.Rows)))
	bounds := uint32(0)
	if t.bounds == Box {
		bounds = 1
	}
	for _, v := range []uint32{form, bounds, uint32(t.capacity), uint32(t.leaf), t.objects, t.nodes(), uint32(t.height), uint32(t.dims)} {
		w = binary.LittleEndian.AppendUint32(w, v)
	}
	w = binary.LittleEndian.AppendUint64(w, t.seed)
	w = binary.LittleEndian.AppendUint64(w, math.Float64bits(t.calibration.Idim))
	w = binary.LittleEndian.AppendUint32(w, uint32(len(t.calibration.Rows)))
	w = append(w, make([]byte, headerSize-len(w))...)
	for _, numbers := range [][]uint32{t.order, t.first, t.begin, t.count, t.pivots} {
		for _, v := range numbers {
			w = binary.LittleEndian.AppendUint32(w, v)
		}
		w.align()
	}
	for _, numbers := range [][]float32{t.lo, t.hi, t.boxes} {
		for _, v := range numbers {
			w = binary.LittleEndian.AppendUint32(w, math.Float32bits(v))
		}
		w.align()
	}
	w = append(w, t.path...)
	w.align()
	for _, r := range t.calibration.Rows {
		w = r.append(w)
	}
	return w
}

type writer []byte

func (w *writer) align() {
	for len(*w)%8 != 0 {
		*w = append(*w, 0)
	}
}

// Open reads a tree over the objects of one space: `objects` of them, with `dims` elements (0 of texts). It looks at every number that a search relies on, so
// that searching a damaged tree ends, and reads nothing outside; an error is a *Damaged. Wrong bounds make wrong answers of this tree: Verify finds
// these. The path is read in place, so data is kept.
func Open(data []byte, m metric.Metric, objects uint32, dims int) (*Tree, error) {
	r := reader{data: data}
	h := r.take(headerSize)
	if r.short {
		return nil, r.damaged("it has %d bytes, fewer than a header", len(data))
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(h[4*i:]) }
	t := &Tree{
		measure: newMeasure(m, dims), capacity: int(word(2)), leaf: int(word(3)), objects: word(4), height: int(word(6)),
		seed: binary.LittleEndian.Uint64(h[32:]), bounds: Pivot,
	}
	nodes, rows := int(word(5)), int(word(12))
	t.calibration.Idim = math.Float64frombits(binary.LittleEndian.Uint64(h[40:]))
	switch {
	case word(0) != form:
		return nil, r.damaged("form %d is unknown", word(0))
	case word(1) > 1 || word(1) == 1 && (t.whole || dims < 1):
		return nil, r.damaged("bounds %d are none of %s", word(1), m.Kind)
	case t.objects != objects || word(7) != uint32(dims):
		return nil, r.damaged("it is over %d objects of %d elements, of a space of %d with %d", t.objects, word(7), objects, dims)
	case t.capacity < 2 || t.capacity > MostCapacity || t.leaf < 1 || t.leaf > MostLeaf || t.height > mostHeight:
		return nil, r.damaged("capacity %d, leaf %d, height %d", t.capacity, t.leaf, t.height)
	case nodes < 1 || uint64(nodes) > 2*uint64(objects)+1 || rows > mostRows:
		return nil, r.damaged("%d nodes over %d objects, %d rows", nodes, objects, rows)
	case !(t.calibration.Idim >= 0) || math.IsInf(t.calibration.Idim, 1):
		return nil, r.damaged("an intrinsic dimension of %v", t.calibration.Idim)
	}
	if word(1) == 1 {
		t.bounds = Box
	}
	r.read(t, nodes, rows)
	if r.short || r.rest() {
		return nil, r.damaged("%d bytes do not hold %d nodes over %d objects", len(data), nodes, objects)
	}
	if err := t.check(); err != nil {
		return nil, err
	}
	t.derive()
	t.expected = t.expect()
	return t, nil
}

// reader takes arrays off a section.
type reader struct {
	data  []byte
	at    int
	short bool
}

func (r *reader) damaged(format string, args ...any) error {
	return &Damaged{fmt.Sprintf(format, args...)}
}

// take takes so many bytes, and what fills them up.
func (r *reader) take(size int) []byte {
	end := r.at + (size+7)/8*8
	if size < 0 || r.short || end > len(r.data) {
		r.short = true
		return nil
	}
	b := r.data[r.at : r.at+size]
	r.at = end
	return b
}

// rest says whether anything follows.
func (r *reader) rest() bool { return r.at != len(r.data) }

func (r *reader) numbers(n int) []uint32 {
	data := r.take(4 * n)
	x := make([]uint32, len(data)/4)
	for i := range x {
		x[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return x
}

func (r *reader) floats(n int) []float32 {
	data := r.take(4 * n)
	x := make([]float32, len(data)/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return x
}

// read takes the arrays. What a search follows is copied, since a mapped file may change after it was checked; any bytes are a path.
func (r *reader) read(t *Tree, nodes, rows int) {
	t.order = r.numbers(int(t.objects))
	t.first, t.begin, t.count = r.numbers(nodes+1), r.numbers(nodes), r.numbers(nodes)
	if t.bounds == Box {
		t.boxes = r.floats(nodes * 2 * t.dims)
	} else {
		t.pivots, t.lo, t.hi = r.numbers(nodes), r.floats(nodes), r.floats(nodes)
		t.path = r.take(int(t.objects) * t.height)
	}
	data := r.take(rows * rowSize)
	for ; len(data) >= rowSize; data = data[rowSize:] {
		t.calibration.Rows = append(t.calibration.Rows, readRow(data))
	}
}
