package graph

import (
	"errors"
	"fmt"
)

// MaxCompared is the size up to which graphs are compared.
const MaxCompared = 10

// ErrTooLarge is wrapped by errors about a graph of more than MaxCompared vertices, which cannot be compared. Its keywords are as good as
// those of any other.
var ErrTooLarge = errors.New("too large to be compared")

// Pattern is one graph made ready for being compared with many stored ones: exact graph edit distances, and match counts.
//
// The graph edit distance is the fewest operations that turn one graph into the other, where an operation gives a vertex another label,
// inserts or deletes a vertex without edges, or inserts or deletes an edge. All cost 1.
//
// # How
//
// A script is a mapping of vertices: what it keeps, and what it does to labels and edges follows. Mapping a vertex to another one costs no
// more than deleting the one and inserting the other (1 and the edges of both, against 2 and the edges of both), so only injective mappings of
// all vertices of the smaller graph into the larger one are looked at. They are searched depth first, most promising first, and
// given up as soon as what they cost already and what the rest must cost at least reach the best so far, or the bound. The rest costs:
//
//   - vertices: as many as the larger rest has, less the labels that both have in common;
//   - edges within the rests: half of what their degrees differ by when both are sorted, since an edge has two ends;
//   - edges between a rest and what is mapped: what their numbers differ by at each vertex that is mapped; or at those of the rests
//     when both are sorted; whichever is more.
//
// Graphs of 10 vertices that look the same to these (one label, regular) take 20 ms; others microseconds. So a pace is
// asked every millisecond or so. When it returns an error the comparison stops with that error, and Resume goes on with it, to the
// same result. Nothing is allocated per comparison. A Pattern is for one goroutine at a time.
type Pattern struct {
	graph   Graph
	decoder decoder
	rank    []uint32
	byRank  []uint32

	other Graph    // of the comparison
	ranks []uint32 // ranks of its labels

	search search
}

// Reset makes a copy of a graph the pattern.
func (p *Pattern) Reset(g *Graph) {
	p.search.active = false
	q := &p.graph
	q.reset()
	for _, name := range g.labels.Names {
		q.labels.Add(name)
	}
	q.label = append(q.label, g.label...)
	q.start = append(q.start, g.start...)
	q.near = append(q.near, g.near...)
	p.rank, p.byRank = ranks(p.rank[:0], p.byRank[:0], q)
}

// Len is the number of vertices of the pattern.
func (p *Pattern) Len() int { return p.graph.Len() }

// load reads a stored graph and gives its labels the pattern's ranks.
func (p *Pattern) load(stored string) error {
	p.search.active = false
	if err := p.decoder.read(&p.other, stored); err != nil {
		return err
	}
	p.ranks = grown(p.ranks, len(p.other.labels.Names))
	for i, name := range p.other.labels.Names {
		p.ranks[i] = foreign
		if id, ok := p.graph.labels.Of(name); ok {
			p.ranks[i] = p.rank[id]
		}
	}
	return nil
}

// Distance returns the edit distance of the pattern and a stored graph, and true, when it is at most bound. Otherwise it returns
// false, as soon as that is certain, and a number that means nothing. pace may be nil. The error is the pace's, after which Resume
// goes on; ErrTooLarge; or ErrDamaged.
func (p *Pattern) Distance(stored string, bound int, pace func() error) (distance int, within bool, err error) {
	if err := p.load(stored); err != nil {
		return 0, false, err
	}
	n, m := p.Len(), p.other.Len()
	if n > MaxCompared {
		return 0, false, fmt.Errorf("the query's graph has %d vertices, more than %d: %w", n, MaxCompared, ErrTooLarge)
	}
	if m > MaxCompared {
		return 0, false, fmt.Errorf("a stored graph has %d vertices, more than %d: %w", m, MaxCompared, ErrTooLarge)
	}
	var a, b small
	a.reset(&p.graph, p.rank)
	b.reset(&p.other, p.ranks)
	if n > m {
		a, b = b, a
	}
	p.search.begin(&a, &b, bound)
	return p.Resume(pace)
}

// Resume goes on with the comparison that a pace has stopped, and returns what Distance would have returned.
func (p *Pattern) Resume(pace func() error) (distance int, within bool, err error) {
	if !p.search.active {
		return 0, false, errors.New("there is no comparison of graphs to go on with")
	}
	if err := p.search.run(pace); err != nil {
		return 0, false, err
	}
	p.search.active = false
	return p.search.best, p.search.best <= p.search.bound, nil
}
