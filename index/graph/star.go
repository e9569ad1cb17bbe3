package graph

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/geniemq/geniemq/internal/varint"
)

// stars are the stars of a graph in an order: a vertex's label and those of its neighbours, ascending, by their ranks.
type stars struct {
	order []int32  // vertices
	root  []uint32 // of a vertex: its rank
	near  []uint32 // of its neighbours: ranks
	start []int32
}

// foreign is the rank of labels that a pattern does not have.
const foreign = ^uint32(0)

// reset makes the stars of a graph with ranks of its labels.
func (s *stars) reset(g *Graph, rank []uint32) {
	s.order, s.root, s.near = s.order[:0], s.root[:0], s.near[:0]
	s.start = append(s.start[:0], g.start...)
	for v, label := range g.label {
		s.root = append(s.root, rank[label])
		for _, u := range g.Neighbours(v) {
			s.near = append(s.near, rank[g.label[u]])
		}
		slices.Sort(s.near[s.start[v]:])
		s.order = append(s.order, int32(v))
	}
	slices.SortFunc(s.order, func(a, b int32) int { return s.compare(a, b) })
}

func (s *stars) of(v int32) []uint32 { return s.near[s.start[v]:s.start[v+1]] }

// compare compares the stars of two vertices.
func (s *stars) compare(a, b int32) int {
	if c := cmp.Compare(s.root[a], s.root[b]); c != 0 {
		return c
	}
	return slices.Compare(s.of(a), s.of(b))
}

// ranks appends the rank of each of a graph's labels, in the order of bytes.
func ranks(dst []uint32, scratch []uint32, g *Graph) (rank, byRank []uint32) {
	for i := range g.labels.Names {
		dst, scratch = append(dst, 0), append(scratch, uint32(i))
	}
	slices.SortFunc(scratch, func(a, b uint32) int { return strings.Compare(g.labels.Names[a], g.labels.Names[b]) })
	for r, label := range scratch {
		dst[label] = uint32(r)
	}
	return dst, scratch
}

// Scanner enumerates the keywords of a graph, one for each vertex: pairs (star, i), where a star is the label of a vertex and the bag
// of its neighbours' labels, and i counts how often the same star was there before; so that the match count of two graphs is the size of the
// multiset intersection of their stars. The zero value is ready; Reset reuses the memory. Not safe for concurrent use.
//
//	for s.Reset(&g); s.Next(); {
//		use(s.Key())
//	}
type Scanner struct {
	graph        *Graph
	stars        stars
	rank, byRank []uint32
	next         int // place in the order of stars
	occurrence   uint32
	key          []byte
}

// Reset begins with a graph, which must not change meanwhile.
func (s *Scanner) Reset(g *Graph) {
	s.graph, s.next, s.occurrence = g, 0, 0
	s.rank, s.byRank = ranks(s.rank[:0], s.byRank[:0], g)
	s.stars.reset(g, s.rank)
}

// Next moves to the next keyword, in the order of stars; it is false after the last.
func (s *Scanner) Next() bool {
	order := s.stars.order
	if s.next == len(order) {
		return false
	}
	s.next++
	if s.next > 1 && s.stars.compare(order[s.next-2], order[s.next-1]) == 0 {
		s.occurrence++
	} else {
		s.occurrence = 0
	}
	return true
}

// Key returns the current keyword, valid until the next call: the labels of the vertex and of its neighbours, these in the order of
// their bytes, each as its length plus 1 and its bytes; 0; then the occurrence, unless it is 0. Numbers are unsigned varints. No two (star,
// occurrence) share a key.
func (s *Scanner) Key() []byte {
	v := s.stars.order[s.next-1]
	s.key = s.appendLabel(s.key[:0], s.stars.root[v])
	for _, rank := range s.stars.of(v) {
		s.key = s.appendLabel(s.key, rank)
	}
	s.key = append(s.key, 0)
	if s.occurrence > 0 {
		s.key = binary.AppendUvarint(s.key, uint64(s.occurrence))
	}
	return s.key
}

func (s *Scanner) appendLabel(dst []byte, rank uint32) []byte {
	name := s.graph.labels.Names[s.byRank[rank]]
	return append(binary.AppendUvarint(dst, uint64(len(name))+1), name...)
}

// Name returns a key for people: "C(H H O) #2" is a vertex C with the neighbours H, H and O, of which the graph has two. A key that Key
// did not make comes out as it is.
func Name(key string) string {
	r := varint.Reader{Data: key}
	var labels []string
	for {
		n := r.Number(MaxLabelBytes + 1)
		if r.Failed || n == 0 {
			break
		}
		if n-1 > len(key)-r.At {
			return strings.Clone(key)
		}
		labels = append(labels, key[r.At:r.At+n-1])
		r.At += n - 1
	}
	if r.Failed || len(labels) == 0 {
		return strings.Clone(key)
	}
	name := labels[0] + "(" + strings.Join(labels[1:], " ") + ")"
	if r.At == len(key) {
		return name
	}
	occurrence := r.Number(MaxVertices)
	if r.Failed || occurrence == 0 || r.At < len(key) {
		return strings.Clone(key)
	}
	return fmt.Sprintf("%s #%d", name, occurrence+1)
}
