package tree

import (
	"context"
	"fmt"

	"github.com/geniemq/geniemq/index/metric"
)

// check looks at what a section says.
func (t *Tree) check() error {
	for _, err := range []error{t.checkShape(), t.checkOrder(), t.checkBounds()} {
		if err != nil {
			return err
		}
	}
	for i, r := range t.calibration.Rows {
		if !r.sound() {
			return &Damaged{fmt.Sprintf("row %d of its table is %+v", i, r)}
		}
	}
	return nil
}

// checkShape checks that every node but the root is a child of one node above it, and that the parts of a node are all of it.
func (t *Tree) checkShape() error {
	nodes := t.nodes()
	if t.first[0] != 1 || t.first[nodes] != nodes || t.begin[0] != 0 || t.count[0] != t.objects {
		return &Damaged{"its root does not hold everything"}
	}
	for node := range nodes {
		from, to := t.first[node], t.first[node+1]
		if from <= node || to < from || to > nodes {
			return &Damaged{fmt.Sprintf("node %d has the children %d to %d of %d", node, from, to, nodes)}
		}
		if from == to {
			if t.count[node] > uint32(t.leaf) {
				return &Damaged{fmt.Sprintf("leaf %d has %d objects, more than %d", node, t.count[node], t.leaf)}
			}
			continue
		}
		if parts := to - from; parts < 2 || parts > uint32(t.capacity) {
			return &Damaged{fmt.Sprintf("node %d has %d children", node, parts)}
		}
		at := uint64(t.begin[node])
		for child := from; child < to; child++ {
			if uint64(t.begin[child]) != at || t.count[child] == 0 {
				return &Damaged{fmt.Sprintf("node %d has its objects elsewhere than where those of its sibling end", child)}
			}
			at += uint64(t.count[child])
		}
		if at != uint64(t.begin[node])+uint64(t.count[node]) {
			return &Damaged{fmt.Sprintf("the children of node %d have not as many objects as it has", node)}
		}
	}
	if height := len(levelsOf(t.first)) - 2; height != t.height {
		return &Damaged{fmt.Sprintf("its height is %d, not %d", height, t.height)}
	}
	return nil
}

// checkOrder checks that each object has one position.
func (t *Tree) checkOrder() error {
	seen := make([]uint64, (int(t.objects)+63)/64)
	for i := range t.objects {
		id := t.order[i]
		if id >= t.objects || seen[id/64]>>(id%64)&1 != 0 {
			return &Damaged{fmt.Sprintf("the object at position %d is %d, which is none of %d or elsewhere too", i, id, t.objects)}
		}
		seen[id/64] |= 1 << (id % 64)
	}
	return nil
}

func (t *Tree) checkBounds() error {
	for node := range t.nodes() {
		if t.bounds == Box {
			box := t.boxes[int(node)*2*t.dims:]
			for j := range t.dims {
				if lo, hi := box[j], box[t.dims+j]; t.objects > 0 && !(lo <= hi) {
					return &Damaged{fmt.Sprintf("coordinate %d of the box of node %d is %v to %v", j, node, lo, hi)}
				}
			}
			continue
		}
		if t.pivots[node] >= max(t.objects, 1) {
			return &Damaged{fmt.Sprintf("the pivot of node %d is at position %d of %d", node, t.pivots[node], t.objects)}
		}
		if lo, hi := t.lo[node], t.hi[node]; !(lo >= 0 && lo <= hi) {
			return &Damaged{fmt.Sprintf("the distances of node %d are %v to %v", node, lo, hi)}
		}
	}
	return nil
}

// Verify computes everything again that bounds say of the objects of a space, whose numbers are those that the tree was built with. It costs
// as many distances as the tree has objects, times its height. The error is a *Damaged, or the context's.
func (t *Tree) Verify(ctx context.Context, space metric.Space) error {
	if space.Len() != t.objects {
		return &Damaged{fmt.Sprintf("it is over %d objects, of a space of %d", t.objects, space.Len())}
	}
	placed, ok := space.(metric.Placed)
	if t.bounds == Box && !ok {
		return &Damaged{"it has boxes, but the space has no coordinates"}
	}
	x := make([]float64, t.dims)
	for node := range t.nodes() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for i := t.begin[node]; t.bounds == Box && t.isLeaf(node) && i < t.begin[node]+t.count[node]; i++ {
			placed.Coordinates(t.order[i], x)
			t.place(x)
			if err := t.verifyBoxes(node, x); err != nil {
				return err
			}
		}
		if t.bounds == Pivot && !t.isLeaf(node) {
			if err := t.verifyPivot(node, space.Of(t.order[t.pivots[node]])); err != nil {
				return err
			}
		}
	}
	return nil
}

// verifyBoxes checks that the boxes of a leaf and of what is above it hold a point.
func (t *Tree) verifyBoxes(node uint32, x []float64) error {
	for {
		box := t.boxes[int(node)*2*t.dims:]
		for j, v := range x {
			if v < float64(box[j]) || v > float64(box[t.dims+j]) {
				return &Damaged{fmt.Sprintf("coordinate %d of an object of node %d is %v, outside of its box", j, node, v)}
			}
		}
		if node == 0 {
			return nil
		}
		node = t.parent[node]
	}
}

// verifyPivot checks the distances of the objects of a node to its pivot.
func (t *Tree) verifyPivot(node uint32, pivot metric.Asker) error {
	depth := 0
	for up := node; up != 0; up = t.parent[up] {
		depth++
	}
	for child := t.first[node]; child < t.first[node+1]; child++ {
		lo, hi := t.lo[child], t.hi[child]
		leaf := child
		for i := t.begin[child]; i < t.begin[child]+t.count[child]; i++ {
			leaf = t.leafOf(leaf, i)
			d := t.distance(pivot.Value(t.order[i]))
			b := int(t.column(leaf, depth)[i-t.begin[leaf]])
			if d < float64(lo) || d > float64(hi) || d < cellLeast(lo, hi, b) || d > cellMost(lo, hi, b) {
				return &Damaged{fmt.Sprintf("the object at position %d is at distance %v from the pivot of node %d, which says %v to %v, cell %d", i, d, node, lo, hi, b)}
			}
		}
	}
	return nil
}

// leafOf is the leaf of a position, from a node on that is near it.
func (t *Tree) leafOf(node, position uint32) uint32 {
	for position < t.begin[node] || position >= t.begin[node]+t.count[node] {
		node = t.parent[node]
	}
	for !t.isLeaf(node) {
		for node = t.first[node]; position >= t.begin[node]+t.count[node]; {
			node++
		}
	}
	return node
}
