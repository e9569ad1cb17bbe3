package tree

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// node is a tree as a textbook has it, for what knows nothing of the package.
type node struct {
	label string
	kids  []*node
}

var (
	few    = []string{"a", "b"}
	some   = []string{"a", "b", "c", "d", "e", "f"}
	tricky = []string{"", " ", "{", "}", `\`, `{\}`, " a ", "\n", "検索", "a\tb", "\x00", "\x01a"}
)

// random returns a tree of n nodes. bias moves new nodes towards the last one, which makes paths, or the root, which makes stars.
func random(rng *rand.Rand, labels []string, n int) *node {
	root := &node{label: labels[rng.IntN(len(labels))]}
	all := []*node{root}
	shape := rng.IntN(4)
	for len(all) < n {
		at := rng.IntN(len(all))
		switch {
		case shape == 1:
			at = max(0, len(all)-1-rng.IntN(2))
		case shape == 2:
			at = min(at, rng.IntN(2))
		}
		p := all[at]
		child := &node{label: labels[rng.IntN(len(labels))]}
		p.kids = slices.Insert(p.kids, rng.IntN(len(p.kids)+1), child)
		all = append(all, child)
	}
	return root
}

func (n *node) clone() *node {
	c := &node{label: n.label}
	for _, k := range n.kids {
		c.kids = append(c.kids, k.clone())
	}
	return c
}

func (n *node) all(dst []*node) []*node {
	dst = append(dst, n)
	for _, k := range n.kids {
		dst = k.all(dst)
	}
	return dst
}

// edited is a copy after some operations, none of which deletes the root.
func (n *node) edited(rng *rand.Rand, labels []string, operations int) *node {
	c := n.clone()
	for range operations {
		all := c.all(nil)
		at := all[rng.IntN(len(all))]
		label := labels[rng.IntN(len(labels))]
		switch rng.IntN(3) {
		case 0:
			at.label = label
		case 1: // a new node takes a run of children
			from := rng.IntN(len(at.kids) + 1)
			to := from + rng.IntN(len(at.kids)-from+1)
			child := &node{label: label, kids: slices.Clone(at.kids[from:to])}
			at.kids = slices.Replace(at.kids, from, to, child)
		default: // a child's children take its place
			if len(at.kids) > 0 {
				i := rng.IntN(len(at.kids))
				at.kids = slices.Replace(at.kids, i, i+1, slices.Clone(at.kids[i].kids)...)
			}
		}
	}
	return c
}

// text is the tree in brackets, with more blanks than there need be.
func (n *node) text(rng *rand.Rand) string {
	var b strings.Builder
	blank := func() {
		if rng != nil && rng.IntN(3) == 0 {
			b.WriteByte(blanks[rng.IntN(4)])
		}
	}
	blank()
	b.WriteByte('{')
	blank()
	for i := range len(n.label) {
		if strings.IndexByte(`{}\`+blanks, n.label[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(n.label[i])
	}
	blank()
	for _, k := range n.kids {
		b.WriteString(k.text(rng))
		blank()
	}
	b.WriteByte('}')
	blank()
	return b.String()
}

// arrays is the tree as Build takes it, with its nodes in a random order that keeps that of siblings.
func (n *node) arrays(rng *rand.Rand) (labels []string, parents []int) {
	type waiting struct {
		n      *node
		parent *node
	}
	place := map[*node]int{}
	var order []waiting
	var visit func(n, parent *node)
	visit = func(n, parent *node) {
		order = append(order, waiting{n, parent})
		for _, k := range n.kids {
			visit(k, n)
		}
	}
	visit(n, nil)
	// Riffle: a random number each, sorted among siblings.
	keys := map[*node]float64{n: rng.Float64()}
	for _, w := range order {
		of := make([]float64, len(w.n.kids))
		for i := range of {
			of[i] = rng.Float64()
		}
		slices.Sort(of)
		for i, k := range w.n.kids {
			keys[k] = of[i]
		}
	}
	slices.SortFunc(order, func(a, b waiting) int {
		switch {
		case keys[a.n] < keys[b.n]:
			return -1
		case keys[a.n] > keys[b.n]:
			return 1
		}
		return 0
	})
	for i, w := range order {
		place[w.n] = i
	}
	for _, w := range order {
		parent := -1
		if w.parent != nil {
			parent = place[w.parent]
		}
		labels, parents = append(labels, w.n.label), append(parents, parent)
	}
	return labels, parents
}

// same compares a tree with the textbook's.
func same(t *Tree, n *node) bool {
	all := n.all(nil)
	if t.Len() != len(all) {
		return false
	}
	at := map[*node]int{}
	for i, k := range all {
		at[k] = i
	}
	parents := make([]int, len(all))
	parents[0] = -1
	for i, k := range all {
		for _, child := range k.kids {
			parents[at[child]] = i
		}
	}
	for i, k := range all {
		if t.Label(i) != k.label || t.Parent(i) != parents[i] || t.Size(i) != len(k.all(nil)) {
			return false
		}
	}
	return true
}

func mustParse(tb testing.TB, text string) *Tree {
	tb.Helper()
	t := new(Tree)
	if err := t.Parse(text, Limits{Nodes: MaxNodes, LabelBytes: MaxLabelBytes}); err != nil {
		tb.Fatalf("parsing %.100q: %v", text, err)
	}
	return t
}

// TestThreeWaysIn: text with blanks, arrays in any order and the encoding make the same tree, on a Tree that is used again and again.
func TestThreeWaysIn(t *testing.T) {
	rng := seeded.Rand(t)
	var tree Tree
	for round := range 3000 {
		labels := [][]string{few, some, tricky}[rng.IntN(3)]
		n := random(rng, labels, 1+rng.IntN(1+rng.IntN(40)))
		text := n.text(rng)
		if err := tree.Parse(text, Limits{}); err != nil || !same(&tree, n) {
			t.Fatalf("round %d: %q became %v, %v", round, text, &tree, err)
		}
		plain, code := tree.String(), string(tree.Append(nil))
		l, p := n.arrays(rng)
		if err := tree.Build(l, p, Limits{}); err != nil || !same(&tree, n) {
			t.Fatalf("round %d: %q %v became %v, %v; want %s", round, l, p, &tree, err, plain)
		}
		if again := string(tree.Append(nil)); again != code {
			t.Fatalf("round %d: two encodings of %s: %x and %x", round, plain, code, again)
		}
		if err := tree.Parse(plain, Limits{}); err != nil || !same(&tree, n) {
			t.Fatalf("round %d: %q became %v, %v", round, plain, &tree, err)
		}
		if err := tree.Decode(code); err != nil || !same(&tree, n) {
			t.Fatalf("round %d: the encoding of %s became %v, %v", round, plain, &tree, err)
		}
	}
}

// TestDeep: the deepest legal trees go through everything, and deeper ones are refused.
func TestDeep(t *testing.T) {
	deep := strings.Repeat("{", MaxNodes) + strings.Repeat("}", MaxNodes)
	tree := mustParse(t, deep)
	if tree.Len() != MaxNodes || tree.Size(0) != MaxNodes || tree.String() != deep {
		t.Errorf("%d nodes, the root has %d", tree.Len(), tree.Size(0))
	}
	var again Tree
	if err := again.Decode(string(tree.Append(nil))); err != nil || again.String() != deep {
		t.Errorf("decoding: %v", err)
	}
	parents := make([]int, MaxNodes)
	for i := range parents {
		parents[i] = i + 1 // the root comes last
	}
	parents[MaxNodes-1] = -1
	if err := again.Build(make([]string, MaxNodes), parents, Limits{Nodes: MaxNodes}); err != nil || again.String() != deep {
		t.Errorf("building: %v", err)
	}
	var p Pattern
	p.Reset(tree)
	if err := again.Parse(strings.Repeat("{", 1<<24), Limits{Nodes: MaxNodes}); err == nil || again.Len() > 0 {
		t.Error("2^24 open braces are a tree")
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ text, says string }{
		{"", "without nodes"}, {" \n", "without nodes"}, {"a", "byte 0"}, {"é{}", `"é"`}, {"}", "begins with {"},
		{"{", "} is missing"}, {"{a{b}", "node \"a\""}, {"{a}}", "behind the root"}, {"{a}b", "behind the root"}, {"{a}{b}", "second tree"},
		{"{a{b}c}", "after a child"}, {`{a\b}`, "byte 2: a backslash"}, {`{\`, "backslash"}, {"{\xff}", "UTF-8"},
		{"{aaaaaaaaa}", "at most 8"}, {"{{{{{}}}}}", "more than 4 nodes"},
	} {
		tree := mustParse(t, "{full{of}}")
		err := tree.Parse(c.text, Limits{Nodes: 4, LabelBytes: 8})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, and not %q", c.text, err, c.says)
		}
		if tree.Len() != 0 {
			t.Errorf("%q: %d nodes are left", c.text, tree.Len())
		}
	}
	for _, c := range []struct {
		parents []int
		says    string
	}{
		{nil, "without nodes"}, {[]int{0}, "no node"}, {[]int{-1, -1}, "nodes 0 and 1"}, {[]int{-1, 2, 1}, "node 1"}, {[]int{-1, 5}, "nodes are 0 to 1"},
		{[]int{-1, -2}, "the root has -1"}, {[]int{-1, 1}, "circle"}, {[]int{-1, 0, 0, 0, 0}, "more than 4"}, {[]int{2, 0, 1}, "no node"},
	} {
		tree := mustParse(t, "{full{of}}")
		err := tree.Build(make([]string, len(c.parents)), c.parents, Limits{Nodes: 4})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v, and not %q", c.parents, err, c.says)
		}
		if tree.Len() != 0 {
			t.Errorf("%v: %d nodes are left", c.parents, tree.Len())
		}
	}
	var tree Tree
	if err := tree.Build([]string{"a"}, nil, Limits{}); err == nil {
		t.Error("a label without a parent is taken")
	}
	if err := tree.Build([]string{"\xff"}, []int{-1}, Limits{}); err == nil {
		t.Error("a label that is not UTF-8 is taken")
	}
	for _, l := range []Limits{{Nodes: MaxNodes + 1}, {Nodes: -1}, {LabelBytes: MaxLabelBytes + 1}, {LabelBytes: -1}} {
		if l.Check() == nil {
			t.Errorf("%+v are limits", l)
		}
	}
	if err := (Limits{Nodes: MaxNodes, LabelBytes: MaxLabelBytes}).Check(); err != nil {
		t.Error(err)
	}
}

// TestDamaged: every byte of an encoding is needed, and no encoding with one byte more or another one is taken for what it is not: it is
// refused, or a tree that has this very encoding.
func TestDamaged(t *testing.T) {
	rng := seeded.Rand(t)
	for range 300 {
		code := mustParse(t, random(rng, some, 1+rng.IntN(12)).text(nil)).Append(nil)
		var tree Tree
		for n := range code {
			if tree.Decode(string(code[:n])) == nil {
				t.Fatalf("%x is a tree without its last %d bytes", code, len(code)-n)
			}
			other := slices.Clone(code)
			other[n] = byte(rng.IntN(256))
			if tree.Decode(string(other)) == nil && !slices.Equal(tree.Append(nil), other) {
				t.Fatalf("%x is taken for %v, whose encoding is %x", other, &tree, tree.Append(nil))
			}
		}
		if tree.Decode(string(code)+"\x00") == nil {
			t.Fatalf("%x is a tree with a byte more", code)
		}
	}
}

// TestDamagedLabels: what only the spelling of numbers and labels has wrong.
func TestDamagedLabels(t *testing.T) {
	var tree Tree
	if err := tree.Decode("\x02\x01\x00\x01a\x00\x01\x01b"); err != nil || tree.String() != "{a{b}}" {
		t.Fatalf("%v %v", &tree, err)
	}
	for name, code := range map[string]string{
		"a label twice":            "\x02\x01\x00\x01a\x00\x01\x01a",
		"a label that is no UTF-8": "\x01\x00\x00\x01\xff",
		"a number too long":        "\x82\x00\x01\x00\x01a\x00\x01\x01b",
		"a number without end":     "\x02\x01\x00\x01a\x00\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"no node":                  "\x00",
		"more nodes than bytes":    "\xff\xff\x03\x01\x00\x01a",
		"too many children":        "\x01\x01\x00\x01a",
		"a label to come":          "\x01\x00\x01\x01a",
	} {
		if err := tree.Decode(code); !errors.Is(err, ErrDamaged) || tree.Len() > 0 {
			t.Errorf("%s: %v, %v", name, &tree, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"{a{b}{c{d}}}", "{", "{}}", `{\{\}\\\ }`, " { a { b } } ", "{\xff}", "{a{b}c}", "{ \\  }"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var tree, again Tree
		if tree.Parse(text, Limits{}) != nil {
			return
		}
		plain := tree.String()
		if err := again.Parse(plain, Limits{}); err != nil || again.String() != plain {
			t.Fatalf("%q says %q, which says %q: %v", text, plain, again.String(), err)
		}
		if err := again.Decode(string(tree.Append(nil))); err != nil || again.String() != plain {
			t.Fatalf("%q is decoded as %q: %v", plain, again.String(), err)
		}
		labels, parents := make([]string, tree.Len()), make([]int, tree.Len())
		for i := range labels {
			labels[i], parents[i] = tree.Label(i), tree.Parent(i)
		}
		if err := again.Build(labels, parents, Limits{}); err != nil || again.String() != plain {
			t.Fatalf("%q is built as %q: %v", plain, again.String(), err)
		}
	})
}

func FuzzBuild(f *testing.F) {
	f.Add("ab", []byte{0, 1})
	f.Add("abc", []byte{2, 0, 3})
	f.Fuzz(func(t *testing.T, text string, above []byte) {
		labels, parents := strings.Split(text, ""), make([]int, len(above))
		for i, p := range above {
			parents[i] = int(p) - 1
		}
		var tree, again Tree
		if tree.Build(labels, parents, Limits{}) != nil {
			return
		}
		if err := again.Parse(tree.String(), Limits{}); err != nil || string(again.Append(nil)) != string(tree.Append(nil)) {
			t.Fatalf("%q %v is %s, which is read as %s: %v", labels, parents, &tree, &again, err)
		}
	})
}

// FuzzDecode: what is decoded has that encoding, and what compares reads no more than what is decoded.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"{a{b}{c{d}}}", "{a{a}{a}}", "{}"} {
		f.Add(string(mustParse(f, s).Append(nil)))
	}
	f.Add("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
	f.Add("\x80\x00")
	pattern := mustParse(f, "{a{b}{c{d}}}")
	f.Fuzz(func(t *testing.T, data string) {
		var p Pattern
		p.Reset(pattern)
		readable := p.load(data)
		if _, _, err := p.Distance(data, 1000, nil); err != nil && readable == nil && p.other.Len() <= MaxCompared {
			t.Fatalf("%x cannot be compared: %v", data, err)
		}
		var tree Tree
		if tree.Decode(data) != nil {
			return
		}
		if readable != nil {
			t.Fatalf("%x is a tree, and not for a pattern: %v", data, readable)
		}
		if code := string(tree.Append(nil)); code != data {
			t.Fatalf("%x is decoded as %v, whose encoding is %x", data, &tree, code)
		}
	})
}
