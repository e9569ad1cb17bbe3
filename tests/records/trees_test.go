package records

import (
	"math"
	"math/rand/v2"
	"strings"
)

// node is a tree of few nodes.
type node struct {
	label string
	kids  []*node
}

// randomTree makes one of up to so many nodes.
func randomTree(r *rand.Rand, most int) *node {
	all := []*node{{label: string(rune('a' + r.IntN(3)))}}
	for range r.IntN(most) {
		n := &node{label: string(rune('a' + r.IntN(3)))}
		parent := all[r.IntN(len(all))]
		parent.kids = append(parent.kids, n)
		all = append(all, n)
	}
	return all[0]
}

// String is the tree in brackets.
func (n *node) String() string {
	var out strings.Builder
	out.WriteString("{" + n.label)
	for _, kid := range n.kids {
		out.WriteString(kid.String())
	}
	return out.String() + "}"
}

func (n *node) size() int {
	all := 1
	for _, kid := range n.kids {
		all += kid.size()
	}
	return all
}

// parse reads brackets that String wrote, with labels of one letter.
func parse(text string) *node {
	var open []*node
	var root *node
	for i := 0; i < len(text); i++ {
		if text[i] == '}' {
			open = open[:len(open)-1]
			continue
		}
		i++
		n := &node{label: text[i : i+1]}
		if len(open) > 0 {
			parent := open[len(open)-1]
			parent.kids = append(parent.kids, n)
		} else {
			root = n
		}
		open = append(open, n)
	}
	return root
}

// branches counts nodes by their label, their first child's and their next sibling's.
func (n *node) branches(sibling string, counts map[[3]string]int) {
	child := ""
	for i, kid := range n.kids {
		next := ""
		if i == 0 {
			child = kid.label
		}
		if i+1 < len(n.kids) {
			next = n.kids[i+1].label
		}
		kid.branches(next, counts)
	}
	counts[[3]string{n.label, child, sibling}]++
}

// lists is the tree by labels and parents.
func (n *node) lists() object {
	var labels, parents []any
	var visit func(n *node, parent int)
	visit = func(n *node, parent int) {
		at := len(labels)
		labels, parents = append(labels, n.label), append(parents, parent)
		for _, kid := range n.kids {
			visit(kid, at)
		}
	}
	visit(n, -1)
	return object{"labels": labels, "parents": parents}
}

func (w *world) askTree(c *column) *condition {
	asked := randomTree(w.r, 6)
	if id := w.r.IntN(2*len(c.values) + 1); id < len(c.values) && len(c.values[id]) > 0 {
		asked = parse(c.values[id][0].(string))
	}
	q := &condition{c: c, tree: asked, json: asked.String(), items: []uint64{1}}
	if w.r.IntN(2) == 0 {
		q.json = asked.lists()
	}
	own := make(map[[3]string]int)
	asked.branches("", own)
	q.count = func(id int) (n uint64) {
		for _, v := range c.values[id] {
			counts := make(map[[3]string]int)
			parse(v.(string)).branches("", counts)
			for branch, times := range counts {
				n += uint64(min(times, own[branch]))
			}
		}
		return n
	}
	return q
}

// edits is the edit distance of two forests, by its definition: the last tree's root goes, or comes, or one stands for the other.
func edits(a, b []*node, known map[[2]string]int) int {
	size := func(forest []*node) (n int) {
		for _, tree := range forest {
			n += tree.size()
		}
		return n
	}
	if len(a) == 0 || len(b) == 0 {
		return size(a) + size(b)
	}
	text := func(forest []*node) (s string) {
		for _, tree := range forest {
			s += tree.String()
		}
		return s
	}
	key := [2]string{text(a), text(b)}
	if d, ok := known[key]; ok {
		return d
	}
	x, y := a[len(a)-1], b[len(b)-1]
	a, b = a[:len(a)-1:len(a)-1], b[:len(b)-1:len(b)-1]
	d := edits(append(a, x.kids...), append(b, y), known) + 1
	d = min(d, edits(append(a, x), append(b, y.kids...), known)+1)
	both := edits(x.kids, y.kids, known) + edits(a, b, known)
	if x.label != y.label {
		both++
	}
	d = min(d, both)
	known[key] = d
	return d
}

// treeDistance compares an object's tree. Those without one come last.
func (r *rescore) treeDistance(id int) score {
	values := r.is.c.values[id]
	if len(values) == 0 {
		return score{key: math.Inf(1), value: math.Inf(1)}
	}
	d := float64(edits([]*node{r.is.tree}, []*node{parse(values[0].(string))}, make(map[[2]string]int)))
	return score{key: d, value: d}
}
