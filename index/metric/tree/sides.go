package tree

import (
	"fmt"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/columns"
)

// squares says that a metric's boxes are held against queries by squares: several at once, in columns that are made when a tree is opened.
func (m *measure) squares() bool { return m.chords || m.Kind == metric.L2 || m.Kind == metric.Geo }

// children makes columns of the boxes of each node's children.
func (t *Tree) children() *columns.Boxes {
	blocks := make([]columns.Block, t.nodes())
	for node := range blocks {
		blocks[node] = columns.Block{First: t.first[node], Count: t.first[node+1] - t.first[node]}
	}
	return columns.NewBoxes(blocks, t.boxes, t.dims)
}

// inColumns says that objects of a tree by such bounds are compared in columns.
func (m *measure) inColumns(b Bounds) bool {
	return b == Box && m.Kind == metric.L2 && m.dims <= columns.Most
}

// Columns makes columns of the objects of each leaf, for Ask. A space has them in the order of the tree. nil: they would be of no use.
func (t *Tree) Columns(space metric.Placed) (*columns.Objects, error) {
	if !t.inColumns(t.bounds) {
		return nil, nil
	}
	if space.Len() != t.objects || space.Dims() != t.dims {
		return nil, fmt.Errorf("columns of %d objects of %d dimensions for a tree over %d of %d", space.Len(), space.Dims(), t.objects, t.dims)
	}
	blocks := make([]columns.Block, t.nodes())
	for node := range t.nodes() {
		if t.isLeaf(node) {
			blocks[node] = columns.Block{First: t.begin[node], Count: t.count[node]}
		}
	}
	return columns.NewObjects(blocks, t.dims, space.Coordinates), nil
}
