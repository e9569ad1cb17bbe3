package tree

import (
	"fmt"
	"slices"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/sums"
)

// kernels are this machine's. All give the same bits.
var kernels = &sums.All()[0]

// sides are the boxes of a tree whose values are sums of squares, in columns: for each node the least and the largest coordinates of its children, by coordinate, so that a machine holds several
// boxes against a query at once. They are made when a tree is opened, of what is stored by node.
type sides struct {
	at   []uint32 // [node] where its children's are; of leaves nothing
	data []float32
}

// four rounds up to what the kernels take.
func four(n uint32) uint32 { return (n + 3) &^ 3 }

// squares says that a metric's boxes are held against queries by squares.
func (m *measure) squares() bool { return m.chords || m.Kind == metric.L2 || m.Kind == metric.Geo }

func (t *Tree) makeSides() {
	if t.bounds != Box || !t.squares() || t.nodes() < 2 {
		return
	}
	d := uint32(t.dims)
	t.sides.at = make([]uint32, t.nodes())
	size := uint64(0)
	for node := range t.nodes() {
		t.sides.at[node] = uint32(size)
		size += 2 * uint64(t.dims) * uint64(four(t.first[node+1]-t.first[node]))
	}
	if size > 1<<32-1 {
		return // boxes are held against queries one by one
	}
	t.sides.data = make([]float32, size)
	for node := range t.nodes() {
		first, n := t.first[node], t.first[node+1]-t.first[node]
		own := t.sides.data[t.sides.at[node]:]
		for child := range n {
			box := t.boxes[(first+child)*2*d : (first+child+1)*2*d]
			for j := range d {
				own[2*j*four(n)+child], own[(2*j+1)*four(n)+child] = box[j], box[d+j]
			}
		}
	}
}

// bounds are the sums of squares by which a query misses the n children of a node, and some numbers more.
func (s *sides) bounds(dst []float64, node, n uint32, q []float64) []float64 {
	size := four(n)
	dst = slices.Grow(dst[:0], int(size))[:size]
	at := s.at[node]
	kernels.Boxes(dst, s.data[at:at+2*uint32(len(q))*size], q)
	return dst
}

// Columns are the coordinates of the objects of a box tree of few dimensions under l2, by leaf and in it by coordinate: what a machine compares with a query several at a time. They are
// made when a tree is bound to its objects.
type Columns struct {
	at   []uint32 // [node] where those of a leaf are
	data []float32
}

// Columns makes those of the objects, which a space has in the order of the tree; nil where they would be of no use.
func (t *Tree) Columns(space metric.Placed) (*Columns, error) {
	if !t.inColumns(t.bounds) {
		return nil, nil
	}
	if space.Len() != t.objects || space.Dims() != t.dims {
		return nil, fmt.Errorf("columns of %d objects of %d dimensions for a tree over %d of %d", space.Len(), space.Dims(), t.objects, t.dims)
	}
	c := &Columns{at: make([]uint32, t.nodes())}
	size := uint64(0)
	for node := range t.nodes() {
		if c.at[node] = uint32(size); t.isLeaf(node) {
			size += uint64(t.dims) * uint64(four(t.count[node]))
		}
	}
	if size > 1<<32-1 {
		return nil, nil
	}
	c.data = make([]float32, size)
	x := make([]float64, t.dims)
	for node := range t.nodes() {
		if !t.isLeaf(node) {
			continue
		}
		for i := range t.count[node] {
			space.Coordinates(t.begin[node]+i, x)
			for j, v := range x {
				c.data[c.at[node]+uint32(j)*four(t.count[node])+i] = float32(v)
			}
		}
	}
	return c, nil
}

// inColumns says that objects of a tree by such bounds are compared in columns.
func (m *measure) inColumns(b Bounds) bool {
	return b == Box && m.Kind == metric.L2 && m.dims <= sums.MostColumns
}

// Bytes is what they take in memory.
func (c *Columns) Bytes() int64 {
	if c == nil {
		return 0
	}
	return 4 * int64(len(c.at)+len(c.data))
}

// values are those of the objects of a leaf, and some numbers more.
func (c *Columns) values(dst []float64, t *Tree, leaf uint32, q *[sums.MostColumns]float64) []float64 {
	size := four(t.count[leaf])
	dst = slices.Grow(dst[:0], int(size))[:size]
	at := c.at[leaf]
	kernels.Columns(dst, c.data[at:at+uint32(t.dims)*size], t.dims, q)
	return dst[:t.count[leaf]]
}
