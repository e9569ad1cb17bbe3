package graph

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// plain is a graph as a textbook has it, for what knows nothing of the package.
type plain struct {
	labels []string
	joined [][]bool
}

var (
	few    = []string{"C", "H"}
	some   = []string{"C", "H", "O", "N", "S"}
	tricky = []string{"", "\x00", "\x01", "\x01a", "a", "検索", "aa"}
)

func newPlain(n int) *plain {
	p := &plain{labels: make([]string, n), joined: make([][]bool, n)}
	for v := range p.joined {
		p.joined[v] = make([]bool, n)
	}
	return p
}

func (p *plain) join(a, b int, is bool) { p.joined[a][b], p.joined[b][a] = is, is }

func random(rng *rand.Rand, labels []string, n int) *plain {
	p := newPlain(n)
	dense := rng.Float64()
	for v := range p.labels {
		p.labels[v] = labels[rng.IntN(len(labels))]
		for u := range v {
			p.join(u, v, rng.Float64() < dense)
		}
	}
	return p
}

// edited is a copy after so many operations, of at most most vertices, which are numbered anew.
func (p *plain) edited(rng *rand.Rand, labels []string, operations, most int) *plain {
	n := len(p.labels)
	c := newPlain(n)
	copy(c.labels, p.labels)
	for v := range n {
		copy(c.joined[v], p.joined[v])
	}
	for range operations {
		n := len(c.labels)
		switch v := rng.IntN(n); {
		case rng.IntN(3) == 0:
			c.labels[v] = labels[rng.IntN(len(labels))]
		case rng.IntN(3) == 0 && n < most:
			d := newPlain(n + 1)
			copy(d.labels, c.labels)
			d.labels[n] = labels[rng.IntN(len(labels))]
			for v := range n {
				copy(d.joined[v], c.joined[v])
			}
			c = d
		case n > 1:
			if u := rng.IntN(n); u != v {
				c.join(u, v, !c.joined[u][v])
			}
		}
	}
	return c.renumbered(rng)
}

func (p *plain) renumbered(rng *rand.Rand) *plain {
	c := newPlain(len(p.labels))
	to := rng.Perm(len(p.labels))
	for v := range to {
		c.labels[to[v]] = p.labels[v]
		for u := range to {
			c.joined[to[v]][to[u]] = p.joined[v][u]
		}
	}
	return c
}

// arrays is the graph as Build takes it, with its edges in a random order and direction.
func (p *plain) arrays(rng *rand.Rand) (labels []string, edges [][2]int) {
	for v := range p.labels {
		for u := range v {
			if p.joined[u][v] {
				e := [2]int{u, v}
				if rng != nil && rng.IntN(2) == 0 {
					e = [2]int{v, u}
				}
				edges = append(edges, e)
			}
		}
	}
	if rng != nil {
		rng.Shuffle(len(edges), func(i, j int) { edges[i], edges[j] = edges[j], edges[i] })
	}
	return p.labels, edges
}

func same(g *Graph, p *plain) bool {
	if g.Len() != len(p.labels) {
		return false
	}
	degree, edges := 0, 0
	for v, label := range p.labels {
		var near []int32
		for u := range p.labels {
			if p.joined[v][u] {
				near = append(near, int32(u))
			}
		}
		degree, edges = max(degree, len(near)), edges+len(near)
		if g.Label(v) != label || !slices.Equal(g.Neighbours(v), near) {
			return false
		}
	}
	return g.Degree() == degree && g.Edges() == edges/2
}

func built(tb testing.TB, p *plain) *Graph {
	tb.Helper()
	g := new(Graph)
	labels, edges := p.arrays(nil)
	if err := g.Build(labels, edges, Limits{}); err != nil {
		tb.Fatal(err)
	}
	return g
}

func stored(tb testing.TB, p *plain) string {
	tb.Helper()
	return string(built(tb, p).Append(nil))
}

// TestTwoWaysIn: lists in any order and the encoding make the same graph, on a Graph that is used again and again.
func TestTwoWaysIn(t *testing.T) {
	rng := seeded.Rand(t)
	var g Graph
	for round := range 3000 {
		p := random(rng, [][]string{few, some, tricky}[rng.IntN(3)], 1+rng.IntN(20))
		code := stored(t, p)
		labels, edges := p.arrays(rng)
		if err := g.Build(labels, edges, Limits{}); err != nil || !same(&g, p) {
			t.Fatalf("round %d: %q %v became %+v, %v", round, labels, edges, g, err)
		}
		if again := string(g.Append(nil)); again != code {
			t.Fatalf("round %d: two encodings of %q %v: %x and %x", round, labels, edges, code, again)
		}
		if err := g.Decode(code); err != nil || !same(&g, p) {
			t.Fatalf("round %d: the encoding of %q %v became %+v, %v", round, labels, edges, g, err)
		}
	}
}

// TestLargest: the largest graphs that limits allow go through everything.
func TestLargest(t *testing.T) {
	labels := make([]string, MaxVertices)
	edges := make([][2]int, 0, MaxEdges)
	for v := 1; len(edges) < MaxEdges; v++ {
		for u := 0; u < v && len(edges) < MaxEdges; u++ {
			edges = append(edges, [2]int{u, v})
		}
	}
	all := Limits{Vertices: MaxVertices, Edges: MaxEdges, LabelBytes: MaxLabelBytes}
	var g, again Graph
	if err := errors.Join(all.Check(), g.Build(labels, edges, all)); err != nil {
		t.Fatal(err)
	}
	code := string(g.Append(nil))
	if err := again.Decode(code); err != nil || string(again.Append(nil)) != code {
		t.Errorf("decoding: %v", err)
	}
	var p Pattern
	p.Reset(&g)
	if _, _, err := p.Distance(code, 1, nil); !errors.Is(err, ErrTooLarge) {
		t.Errorf("compared: %v", err)
	}
	for _, l := range []Limits{{Vertices: MaxVertices + 1}, {Edges: MaxEdges + 1}, {LabelBytes: MaxLabelBytes + 1}, {Edges: -1}} {
		if l.Check() == nil {
			t.Errorf("%+v are limits", l)
		}
	}
}

func TestRefused(t *testing.T) {
	labels := func(n int) []string { return make([]string, n) }
	for _, c := range []struct {
		labels []string
		edges  [][2]int
		says   string
	}{
		{nil, nil, "without vertices"}, {nil, [][2]int{{0, 1}}, "without vertices"}, {labels(5), nil, "more than 4"},
		{labels(4), [][2]int{{0, 1}, {0, 2}, {0, 3}, {1, 2}}, "more than 3"}, {[]string{"abcdefghi"}, nil, "at most 8"},
		{[]string{"a", "\xff"}, nil, "vertex 1"}, {labels(2), [][2]int{{0, 2}}, "0 to 1"}, {labels(2), [][2]int{{-1, 0}}, "0 to 1"},
		{labels(2), [][2]int{{0, 1}, {1, 1}}, "edge 1 joins vertex 1 to itself"}, {labels(3), [][2]int{{1, 2}, {0, 1}, {1, 2}}, "1 and 2 are joined twice"},
		{labels(3), [][2]int{{1, 2}, {2, 1}}, "1 and 2 are joined twice"},
	} {
		g := built(t, random(rand.New(rand.NewPCG(1, 1)), few, 3))
		err := g.Build(c.labels, c.edges, Limits{Vertices: 4, Edges: 3, LabelBytes: 8})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q %v: %v, and not %q", c.labels, c.edges, err, c.says)
		}
		if g.Len() != 0 {
			t.Errorf("%q %v: %d vertices are left", c.labels, c.edges, g.Len())
		}
	}
}

// TestDamaged: every byte of an encoding is needed, and one with another byte is refused, or a graph that has this very encoding.
func TestDamaged(t *testing.T) {
	rng := seeded.Rand(t)
	for range 300 {
		code := []byte(stored(t, random(rng, some, 1+rng.IntN(8))))
		var g Graph
		for n := range code {
			if g.Decode(string(code[:n])) == nil {
				t.Fatalf("%x is a graph without its last %d bytes", code, len(code)-n)
			}
			other := slices.Clone(code)
			other[n] = byte(rng.IntN(256))
			if g.Decode(string(other)) == nil && !slices.Equal(g.Append(nil), other) {
				t.Fatalf("%x is taken for %x", other, g.Append(nil))
			}
		}
		if g.Decode(string(code)+"\x00") == nil {
			t.Fatalf("%x is a graph with a byte more", code)
		}
	}
	var g Graph
	if err := g.Decode("\x03\x00\x01a\x00\x00\x01\x00\x01\x01b\x02\x00\x00"); err != nil || g.Edges() != 3 || g.Label(2) != "b" {
		t.Fatalf("%+v %v", g, err)
	}
	for name, code := range map[string]string{
		"a label twice":            "\x02\x00\x01a\x00\x01\x01a\x00",
		"a label that is no UTF-8": "\x01\x00\x01\xff\x00",
		"a number too long":        "\x82\x00\x00\x01a\x00\x00\x00",
		"a number without end":     "\x02\x00\x01a\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"no vertex":                "\x00",
		"more vertices than bytes": "\xff\x1f\x00\x01a\x00",
		"a label to come":          "\x01\x01\x01a\x00",
		"a neighbour of itself":    "\x02\x00\x01a\x00\x00\x01\x01",
		"too many neighbours":      "\x02\x00\x01a\x00\x00\x02\x00\x00",
		"a gap too far":            "\x03\x00\x01a\x00\x00\x00\x00\x02\x00\x01",
	} {
		if err := g.Decode(code); !errors.Is(err, ErrDamaged) || g.Len() > 0 {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
	}
}

func FuzzBuild(f *testing.F) {
	f.Add("ab", []byte{0, 1})
	f.Add("abca", []byte{0, 1, 1, 2, 3, 0})
	f.Fuzz(func(t *testing.T, text string, ends []byte) {
		var edges [][2]int
		for ; len(ends) > 1; ends = ends[2:] {
			edges = append(edges, [2]int{int(ends[0]) - 1, int(ends[1]) - 1})
		}
		labels := strings.Split(text, "")
		var g, again Graph
		if g.Build(labels, edges, Limits{}) != nil {
			return
		}
		if g.Edges() != len(edges) || g.Len() != len(labels) {
			t.Fatalf("%d vertices and %d edges of %q %v", g.Len(), g.Edges(), labels, edges)
		}
		code := string(g.Append(nil))
		if err := again.Decode(code); err != nil || string(again.Append(nil)) != code {
			t.Fatalf("%q %v is %x, which is read as %x: %v", labels, edges, code, again.Append(nil), err)
		}
		var s Scanner
		seen := map[string]bool{}
		for s.Reset(&g); s.Next(); {
			if key := string(s.Key()); Name(key) == key && key != "" || seen[key] {
				t.Fatalf("%q is no key, or there twice", key)
			} else {
				seen[key] = true
			}
		}
	})
}

// FuzzDecode: what is decoded has that encoding, and what compares reads no more than what is decoded.
func FuzzDecode(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 5 {
		f.Add(stored(f, random(rng, some, 6)))
	}
	f.Add("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
	pattern := built(f, random(rng, some, 5))
	f.Fuzz(func(t *testing.T, data string) {
		var p Pattern
		p.Reset(pattern)
		readable := p.load(data)
		if _, _, err := p.Distance(data, 3, nil); err != nil && readable == nil && p.other.Len() <= MaxCompared {
			t.Fatalf("%x cannot be compared: %v", data, err)
		}
		var g Graph
		if g.Decode(data) != nil {
			return
		}
		if readable != nil {
			t.Fatalf("%x is a graph, and not for a pattern: %v", data, readable)
		}
		if code := string(g.Append(nil)); code != data {
			t.Fatalf("%x is decoded as a graph whose encoding is %x", data, code)
		}
	})
}
