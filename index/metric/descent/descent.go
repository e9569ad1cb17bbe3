// Package descent searches box trees over few coordinates, depth first.
package descent

import (
	"fmt"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/columns"
	"github.com/geniemq/geniemq/index/metric/tree"
	"github.com/geniemq/geniemq/internal/pool"
)

// Most is how many coordinates objects may have.
const Most = columns.Most

// Tree is a box tree as it is searched where objects have few coordinates. It is made of a tree when that is loaded, is immutable, and any number of searches may use it at the same time.
//
// # Why
//
// Where coordinates are few a query enters some ten nodes and compares some ten objects, so what a search does beside that is most of what it takes. A search by the least bound keeps a heap of
// nodes and has a call per object; this one keeps a stack, and loops over numbers that lie one after the other. It enters a few leaves more than the least, which are small.
//
// # What it promises
//
// What tree.Tree promises: to the bit the hits that comparing everything gives, ties by id. A value of 8 terms at most has one term to a partial sum, so it is summed here as package sums
// does. A child is passed over only if its bound is above what is wanted, by more than rounding may have added to it (reach).
//
// # Memory
//
// Beside the file, per object its coordinates (float32, of points float64), and per node where its children or objects are and, where several boxes are held against a query at once, its box once
// more. The stack of a search has the height times the capacity of nodes at most.
type Tree struct {
	metric  metric.Kind
	dims    int
	nodes   []node
	boxes   *columns.Boxes // of each node's children, where values are squares
	sides   []float32      // else: of a node its least coordinates and then its largest
	order   []uint32       // [position] object
	rows    rows
	share   float64 // what rounding may have added to a bound
	deepest int     // nodes of a stack at most

	searches pool.Of[Search] // memory of those that have ended
}

// node is an inner one, with children, or a leaf, with the objects at some positions.
type node struct {
	first, count uint32
	leaf         bool
}

const nodeBytes = 12

// rows are the coordinates of objects.
type rows interface {
	// values are those of a leaf's objects, in dst, which is made long enough.
	values(dst []float64, leaf uint32, n node, q *[Most]float64) []float64
	Bytes() int64
}

// New makes it of a tree, over a space that has the objects in the tree's order. nil: the tree is not one of few coordinates.
func New(t *tree.Tree, space metric.Space) (*Tree, error) {
	placed, ok := space.(metric.Placed)
	if !ok || !t.Few() {
		return nil, nil
	}
	if space.Len() != t.Len() || space.Metric() != t.Metric {
		return nil, fmt.Errorf("%d objects under %s for a tree over %d under %s", space.Len(), space.Metric().Kind, t.Len(), t.Metric.Kind)
	}
	a := t.Arrays()
	x := &Tree{metric: t.Metric.Kind, dims: placed.Dims(), order: a.Order, share: 2 * a.Ulps, nodes: make([]node, len(a.Begin)), deepest: 1 + a.Height*a.Capacity}
	inner, leaves := make([]columns.Block, len(x.nodes)), make([]columns.Block, len(x.nodes))
	for i := range x.nodes {
		if children := a.First[i+1] - a.First[i]; children > 0 {
			x.nodes[i] = node{a.First[i], children, false}
			inner[i] = columns.Block{First: a.First[i], Count: children}
		} else {
			x.nodes[i] = node{a.Begin[i], a.Count[i], true}
			leaves[i] = columns.Block{First: a.Begin[i], Count: a.Count[i]}
		}
	}
	switch x.metric {
	case metric.L1, metric.Linf:
		x.sides, x.rows = a.Boxes, newDifferences(placed, x.metric)
		return x, nil
	case metric.Geo:
		x.rows = newUnits(placed)
	default:
		objects := columns.NewObjects(leaves, x.dims, placed.Coordinates)
		if objects == nil {
			return nil, nil // more than are counted
		}
		x.rows = squares{objects}
	}
	if x.boxes = columns.NewBoxes(inner, a.Boxes, x.dims); x.boxes == nil {
		return nil, nil
	}
	return x, nil
}

// Bytes is what it takes in memory; of nil 0.
func (t *Tree) Bytes() int64 {
	if t == nil {
		return 0
	}
	return t.rows.Bytes() + t.boxes.Bytes() + nodeBytes*int64(len(t.nodes))
}
