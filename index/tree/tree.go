package tree

import (
	"cmp"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/geniemq/geniemq/internal/varint"
)

// Tree is an ordered, rooted tree whose nodes have labels: the order of a node's children counts, and so does everything about a
// label, which is any UTF-8, the empty one too. A tree has at least one node; a value that is missing is no tree.
//
// # What it guarantees
//
// Nodes are numbered in preorder: a node, then the subtrees of its children from left to right. So a subtree is a run of
// numbers, and two arrays say all: the label of each node and the size of its subtree (parents are kept because siblings are
// asked for). Labels are numbered by where they occur first. Two trees that are equal have the same arrays, whichever of the
// three ways they came in, and so the same encoding and the same keywords.
//
//	Parse    {a{b}{c{d}}}, as the literature on tree edit distance writes them
//	Build    labels and parents, as JSON has them
//	Decode   the encoding of Append, as an index stores them
//
// # Why this way
//
// Input is hostile: 60,000 braces are one path. Nothing here recurses; a tree of n nodes takes memory linear in n whatever its
// shape, and nothing is allocated for what was not seen to be there. What is parsed has one form, so that what is
// compared later needs no checks but those of a damaged file.
//
// # Who owns what
//
// The zero Tree is ready for one of the three and keeps its memory for the next one. Labels are pieces of what was passed
// in, as far as they had no escapes: they live as long as that. A Tree is for one goroutine at a time while it is filled, and for
// any number afterwards.
type Tree struct {
	labels varint.Labels // in the order of their first nodes
	label  []uint32      // of a node: its label's number
	parent []int32       // -1: the root
	size   []int32       // nodes of the subtree

	order []int32 // scratch of Build
	heads []int32
	nexts []int32
}

// Limits bound the trees that are taken in. What an index stores was within its limits when it was built; Decode knows only the
// largest ones.
type Limits struct {
	// Nodes of a tree, 1 to MaxNodes. Default 512, MaxCompared: what is larger can be found by its branches but not compared.
	Nodes int
	// LabelBytes is the length of a label, 1 to MaxLabelBytes. Default 256.
	LabelBytes int
}

const (
	// MaxNodes and MaxLabelBytes are what Limits can be.
	MaxNodes      = 1 << 16
	MaxLabelBytes = 1 << 15

	defaultNodes      = MaxCompared
	defaultLabelBytes = 256
)

// Check returns the first fault.
func (l Limits) Check() error {
	if l.Nodes < 0 || l.Nodes > MaxNodes {
		return fmt.Errorf("a limit of %d nodes: 1 to %d are possible", l.Nodes, MaxNodes)
	}
	if l.LabelBytes < 0 || l.LabelBytes > MaxLabelBytes {
		return fmt.Errorf("labels of at most %d bytes: 1 to %d are possible", l.LabelBytes, MaxLabelBytes)
	}
	return nil
}

func (l Limits) filled() Limits {
	l.Nodes = cmp.Or(l.Nodes, defaultNodes)
	l.LabelBytes = cmp.Or(l.LabelBytes, defaultLabelBytes)
	return l
}

func (l Limits) checkNodes(n int) error {
	if n > l.Nodes {
		return fmt.Errorf("a tree of more than %d nodes, which is the most: cut it", l.Nodes)
	}
	return nil
}

func (l Limits) checkLabel(label string) error {
	if len(label) > l.LabelBytes {
		return fmt.Errorf("the label %.40q... has %d bytes: at most %d are taken", label, len(label), l.LabelBytes)
	}
	if !utf8.ValidString(label) {
		return fmt.Errorf("the label %.40q is not UTF-8", label)
	}
	return nil
}

// Len is the number of nodes.
func (t *Tree) Len() int { return len(t.label) }

// Label is the label of a node.
func (t *Tree) Label(node int) string { return t.labels.Names[t.label[node]] }

// Size is the number of nodes of the subtree of a node: it is nodes node to node+Size-1.
func (t *Tree) Size(node int) int { return int(t.size[node]) }

// reset empties the tree.
func (t *Tree) reset() {
	t.labels.Reset()
	t.label, t.parent, t.size = t.label[:0], t.parent[:0], t.size[:0]
}

// fail empties the tree and returns what was wrong.
func (t *Tree) fail(err error) error {
	t.reset()
	return err
}

// add appends a node, whose subtree is counted later, and returns its number.
func (t *Tree) add(parent int32, label string) int32 {
	t.label = append(t.label, t.labels.Add(label))
	t.parent = append(t.parent, parent)
	t.size = append(t.size, 1)
	return int32(len(t.label) - 1)
}

// count fills in the sizes of subtrees. Parents come before their children.
func (t *Tree) count() {
	for i := len(t.size) - 1; i > 0; i-- {
		t.size[t.parent[i]] += t.size[i]
	}
}

var errEmpty = errors.New("a tree without nodes: leave the value away where there is no tree")

// Build makes the tree whose node i has the label labels[i] and the parent parents[i], which is -1 for the one root. Nodes may come in
// any order; children of a node are ordered as they come. The slices are not kept.
func (t *Tree) Build(labels []string, parents []int, limits Limits) error {
	t.reset()
	limits = limits.filled()
	switch {
	case len(labels) != len(parents):
		return fmt.Errorf("%d labels and %d parents: each node has one of both", len(labels), len(parents))
	case len(labels) == 0:
		return errEmpty
	}
	if err := limits.checkNodes(len(labels)); err != nil {
		return err
	}
	root := -1
	for i, p := range parents {
		switch {
		case p == -1 && root >= 0:
			return fmt.Errorf("nodes %d and %d both have the parent -1: a tree has one root", root, i)
		case p == -1:
			root = i
		case p < -1 || p >= len(parents):
			return fmt.Errorf("node %d has the parent %d: nodes are 0 to %d, and the root has -1", i, p, len(parents)-1)
		}
		if err := limits.checkLabel(labels[i]); err != nil {
			return fmt.Errorf("node %d: %w", i, err)
		}
	}
	if root < 0 {
		return errors.New("no node has the parent -1: a tree has one root")
	}
	t.preorder(labels, parents, int32(root))
	if len(t.label) < len(labels) {
		return t.fail(fmt.Errorf("the parents of node %d go round in a circle and never reach the root", t.unreached(len(labels))))
	}
	t.count()
	return nil
}

// preorder adds all nodes that the root leads to. Children of a node are a list, and so are nodes that wait for their turn.
func (t *Tree) preorder(labels []string, parents []int, root int32) {
	n := len(labels)
	t.heads, t.nexts, t.order = grown(t.heads, n), grown(t.nexts, n), grown(t.order, n)
	for i := range n {
		t.heads[i], t.order[i] = -1, -1
	}
	for i := n - 1; i >= 0; i-- { // so that a list begins with the first child
		if p := parents[i]; p >= 0 {
			t.nexts[i], t.heads[p] = t.heads[p], int32(i)
		}
	}
	t.nexts[root] = -1
	for at := root; at >= 0; {
		above := int32(-1)
		if p := parents[at]; p >= 0 {
			above = t.order[p]
		}
		t.order[at] = t.add(above, labels[at])
		if t.heads[at] >= 0 {
			at = t.heads[at]
			continue
		}
		for at >= 0 && t.nexts[at] < 0 {
			at = int32(parents[at])
		}
		if at >= 0 {
			at = t.nexts[at]
		}
	}
}

// unreached is the first node that preorder did not reach.
func (t *Tree) unreached(n int) int {
	for i := range n {
		if t.order[i] < 0 {
			return i
		}
	}
	return n
}

// grown returns a slice of n elements in the memory of s, if that is enough.
func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
