package graph

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/geniemq/geniemq/internal/varint"
)

// Graph is an undirected, simple graph whose vertices have labels: any UTF-8, the empty one too. It has at least one vertex; a value
// that is missing is no graph. It may fall into parts that are not connected.
//
// # What it guarantees
//
// No edge is there twice and none joins a vertex to itself. Both are refused and not mended: a doubled edge may be a double bond, or
// an edge that was listed in both directions, and only the user knows which.
//
// Vertices keep the numbers that they came with, so graphs that differ in these alone have different encodings. They have the same
// keywords, and the edit distance 0. Neighbours ascend, and labels are numbered by where they occur first: graphs with the same vertices and edges
// are the same, in whatever order their edges came.
//
// # Who owns what
//
// The zero Graph is ready for Build or Decode and keeps its memory for the next one. Labels are pieces of what was passed in and live
// as long as that. A Graph is for one goroutine at a time while it is filled, and for any number afterwards.
type Graph struct {
	labels varint.Labels // in the order of their first vertices
	label  []uint32      // of a vertex: its label's number
	start  []int32       // the neighbours of v are near[start[v]:start[v+1]]
	near   []int32
}

// Limits bound the graphs that are taken in. What an index stored was within its limits when it was built; Decode knows only the
// largest ones. The keywords of a graph have at most (Vertices + 2 Edges) (LabelBytes + 3) bytes, which an administrator who raises
// all three should know.
type Limits struct {
	// Vertices of a graph, 1 to MaxVertices. Default 256. Those of more than MaxCompared can be found by their stars but not compared.
	Vertices int
	// Edges of a graph, 1 to MaxEdges. Default 1,024.
	Edges int
	// LabelBytes is the length of a label, 1 to MaxLabelBytes. Default 64.
	LabelBytes int
}

// What Limits can be.
const (
	MaxVertices   = 1 << 12
	MaxEdges      = 1 << 16
	MaxLabelBytes = 1 << 10
)

// Check returns the first fault.
func (l Limits) Check() error {
	for _, f := range []struct {
		name        string
		value, most int
	}{{"vertices", l.Vertices, MaxVertices}, {"edges", l.Edges, MaxEdges}, {"bytes of a label", l.LabelBytes, MaxLabelBytes}} {
		if f.value < 0 || f.value > f.most {
			return fmt.Errorf("a limit of %d %s: 1 to %d are possible", f.value, f.name, f.most)
		}
	}
	return nil
}

func (l Limits) filled() Limits {
	l.Vertices = cmp.Or(l.Vertices, 256)
	l.Edges = cmp.Or(l.Edges, 1024)
	l.LabelBytes = cmp.Or(l.LabelBytes, 64)
	return l
}

// Len is the number of vertices.
func (g *Graph) Len() int { return len(g.label) }

// Neighbours of a vertex, ascending. The slice belongs to the graph.
func (g *Graph) Neighbours(vertex int) []int32 { return g.near[g.start[vertex]:g.start[vertex+1]] }

// Degree is the largest number of neighbours that a vertex has.
func (g *Graph) Degree() int {
	most := 0
	for v := range g.label {
		most = max(most, len(g.Neighbours(v)))
	}
	return most
}

func (g *Graph) reset() {
	g.labels.Reset()
	g.label, g.start, g.near = g.label[:0], g.start[:0], g.near[:0]
}

// fail empties the graph and returns what was wrong.
func (g *Graph) fail(err error) error {
	g.reset()
	return err
}

// Build makes the graph whose vertex v has the label labels[v], with edges between pairs of vertices. Each edge is listed once, in
// either direction. The slices are not kept.
func (g *Graph) Build(labels []string, edges [][2]int, limits Limits) error {
	g.reset()
	limits = limits.filled()
	switch {
	case len(labels) == 0:
		return errors.New("a graph without vertices: leave the value away where there is no graph")
	case len(labels) > limits.Vertices:
		return fmt.Errorf("a graph of %d vertices, more than %d, which is the most: cut it", len(labels), limits.Vertices)
	case len(edges) > limits.Edges:
		return fmt.Errorf("a graph of %d edges, more than %d, which is the most: cut it", len(edges), limits.Edges)
	}
	for v, label := range labels {
		if len(label) > limits.LabelBytes {
			return g.fail(fmt.Errorf("vertex %d: the label %.40q... has %d bytes: at most %d are taken", v, label, len(label), limits.LabelBytes))
		}
		if !utf8.ValidString(label) {
			return g.fail(fmt.Errorf("vertex %d: the label %.40q is not UTF-8", v, label))
		}
		g.label = append(g.label, g.labels.Add(label))
	}
	g.start = grown(g.start, len(labels)+1)
	clear(g.start)
	for i, e := range edges {
		for _, v := range e {
			if v < 0 || v >= len(labels) {
				return g.fail(fmt.Errorf("edge %d joins %d and %d: vertices are 0 to %d", i, e[0], e[1], len(labels)-1))
			}
		}
		if e[0] == e[1] {
			return g.fail(fmt.Errorf("edge %d joins vertex %d to itself: loops cannot be compared", i, e[0]))
		}
		g.start[e[0]]++
		g.start[e[1]]++
	}
	if a, b := g.join(edges); a >= 0 {
		return g.fail(fmt.Errorf("vertices %d and %d are joined twice: list each edge once, in one direction", a, b))
	}
	return nil
}

// join fills in the neighbours, where start counts how many a vertex has. It returns two that are joined twice, else -1.
func (g *Graph) join(edges [][2]int) (a, b int) {
	sum := int32(0)
	for v, n := range g.start {
		sum += n
		g.start[v] = sum // the end of v's, until they are there
	}
	g.near = grown(g.near, int(sum))
	for _, e := range edges {
		for i, v := range e {
			g.start[v]--
			g.near[g.start[v]] = int32(e[1-i])
		}
	}
	for v := range g.label {
		near := g.Neighbours(v)
		slices.Sort(near)
		for i := 1; i < len(near); i++ {
			if near[i-1] == near[i] {
				return v, int(near[i])
			}
		}
	}
	return -1, -1
}

// grown returns a slice of n elements in the memory of s, if that is enough.
func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
