// Package tree finds the nearest objects of a space, and those within a value, without comparing the query with all of them.
package tree

import (
	"fmt"

	"github.com/geniemq/geniemq/index/metric/columns"
	"github.com/geniemq/geniemq/internal/pool"
)

// Bounds say by what a node is passed over.
type Bounds string

const (
	Auto  Bounds = "auto"  // the cheaper one by the cost model
	Box   Bounds = "box"   // the box around the coordinates of its objects
	Pivot Bounds = "pivot" // the interval of their distances to its parent's pivot
)

// The limits of what a tree is made of.
const (
	MostCapacity = 256  // children of a node
	MostLeaf     = 1024 // objects of a leaf
	mostHeight   = 32   // levels below the root: parts are at least two and equal
)

// Tree is a tree over the objects of one space, as GTS has it (Zhu et al., SIGMOD 2024) with what is wrong there put right. It is immutable, and any
// number of searches may use it at the same time.
//
// # What it promises
//
// A search gives the first K hits in the order of (value, id) among the objects that pass and whose value is at most what is wanted: to the bit what comparing everything gives.
// Bounds only ever say "no object here can be better", with what rounding may add, and an object is given up only if its bound is above what is still wanted, never at it: ties at
// the k-th value are decided by id (the paper's Lemma 5.2 loses them). Only objects that pass narrow what is wanted. Pivots prune whether they pass or not.
//
// # What it is made of
//
// Nodes are numbered level by level, and those of a level in the order of their parents, so that the children of node i are first[i] to first[i+1]-1; a leaf has none. Every node
// has its objects at consecutive positions, and order says which object is at a position. A node with more than `leaf` objects is split into parts as equal as can be, as many as
// leaves would do and capacity at most:
//
//   - Pivot trees sort a node's objects by (distance to its pivot, id). A child keeps the least and the largest of its distances, as float32 that are
//     rounded outward. Each object keeps for each pivot above it a byte of its distance (path.go).
//   - Box trees cut a node along its widest coordinate, again and again. A child keeps the box of its objects, rounded outward.
//
// A pivot is a position: its object is in the file for good, whatever happens to it later.
//
// # Why so
//
// Everything is a flat array of numbers, which lies in a file as it lies in memory (file.go), and which a device can search as it is. A
// leaf is a block of consecutive positions: objects stored in this order are read by one run for all the queries of a batch that need the block.
type Tree struct {
	measure
	bounds         Bounds
	capacity, leaf int
	seed           uint64
	objects        uint32
	height         int // levels below the root

	order []uint32 // [position] object

	first        []uint32 // [node and one more]
	begin, count []uint32 // [node] positions
	pivots       []uint32 // [node] position; of leaves and in box trees 0
	lo, hi       []float32
	boxes        []float32 // [node][least, largest][coordinate]
	path         []byte    // of a leaf: [begin * height ...][level][object]

	calibration Calibration
	expected    *expected // of it; nil of a tree that is being built

	// Made of the above.
	parent  []uint32       // [node]
	levels  []uint32       // [level and one more] the first node
	pivotal []uint64       // a bit per position: a pivot
	sides   *columns.Boxes // of each node's children; nil: they are held against a query one by one

	searches pool.Of[Search] // memory of those that have ended
}

// Len is the number of objects.
func (t *Tree) Len() uint32 { return t.objects }

// Order is the object at each position: a space that is permuted by it is searched without Positions, and faster, since runs of positions are compared at once. It must not change.
func (t *Tree) Order() []uint32 { return t.order }

// Leaves calls visit with the positions of each leaf, from begin on, which are the blocks of a scan.
func (t *Tree) Leaves(visit func(begin, count uint32)) {
	for node := range t.nodes() {
		if t.isLeaf(node) {
			visit(t.begin[node], t.count[node])
		}
	}
}

// Shape is what a tree was built with, and what came of it.
type Shape struct {
	Bounds         Bounds
	Capacity, Leaf int
	Nodes, Leaves  int
	Height         int // levels below the root
}

// Shape says how the tree was built.
func (t *Tree) Shape() Shape {
	s := Shape{t.bounds, t.capacity, t.leaf, int(t.nodes()), 0, t.height}
	t.Leaves(func(uint32, uint32) { s.Leaves++ })
	return s
}

func (s Shape) String() string {
	return fmt.Sprintf("%s, capacity %d, leaf %d: %d nodes, %d leaves, height %d", s.Bounds, s.Capacity, s.Leaf, s.Nodes, s.Leaves, s.Height)
}

func (t *Tree) nodes() uint32           { return uint32(len(t.begin)) }
func (t *Tree) isLeaf(node uint32) bool { return t.first[node] == t.first[node+1] }

// limit is what bounds are held against: a distance in a pivot tree, a value in a box tree.
func (t *Tree) limit(value float64) float64 {
	if t.bounds == Box {
		return value
	}
	return t.distance(value)
}

// column is what the objects of a leaf have at a level of their path.
func (t *Tree) column(leaf uint32, level int) []byte {
	begin, count := int(t.begin[leaf]), int(t.count[leaf])
	at := begin*t.height + level*count
	return t.path[at : at+count]
}

// derive makes what searching wants beside what is stored.
func (t *Tree) derive() {
	t.parent = make([]uint32, t.nodes())
	for node := range t.nodes() {
		for child := t.first[node]; child < t.first[node+1]; child++ {
			t.parent[child] = node
		}
	}
	t.levels = levelsOf(t.first)
	if t.bounds == Box && t.squares() {
		t.sides = t.children()
	}
	if t.bounds == Pivot {
		t.pivotal = make([]uint64, (int(t.objects)+63)/64)
		for node := range t.nodes() {
			if !t.isLeaf(node) {
				t.pivotal[t.pivots[node]/64] |= 1 << (t.pivots[node] % 64)
			}
		}
	}
}

// levelsOf finds where levels begin: the children of a level are the next one.
func levelsOf(first []uint32) []uint32 {
	levels := []uint32{0, 1}
	for nodes := uint32(len(first) - 1); levels[len(levels)-1] < nodes; {
		levels = append(levels, first[levels[len(levels)-1]])
	}
	return levels
}

// Arrays are what a tree is made of (see Tree), as a device searches it: the tree's own, which must not change. Levels are the first node of each depth, and the end. Share (a + b)
// + Lost is what rounding may add to the difference of two distances, the share Ulps to a box's sum, Square to the square of a chord.
type Arrays struct {
	First, Begin, Count, Parent, Pivots, Order, Levels []uint32
	Lo, Hi, Boxes                                      []float32
	Path                                               []byte
	Capacity, Leaf, Height                             int
	Share, Lost, Ulps, Square                          float64
}

// Arrays are those of the tree.
func (t *Tree) Arrays() Arrays {
	return Arrays{t.first, t.begin, t.count, t.parent, t.pivots, t.order, t.levels, t.lo, t.hi, t.boxes, t.path, t.capacity, t.leaf, t.height, t.share, t.lost, t.ulps, t.square}
}
