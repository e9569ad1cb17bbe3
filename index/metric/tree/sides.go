package tree

import (
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

// few says that objects of trees by such bounds have so few coordinates that searches go depth first, several objects at once (package descent).
func (m *measure) few(b Bounds) bool {
	k := m.Kind
	return b == Box && m.dims <= columns.Most && (k == metric.L2 || k == metric.Geo || k == metric.L1 || k == metric.Linf)
}

// Few says that package descent searches the tree.
func (t *Tree) Few() bool { return t.few(t.bounds) }
