package graph

import (
	"math/bits"
	"slices"
)

// set is some of a graph's vertices.
type set uint16

func (s set) len() int { return bits.OnesCount16(uint16(s)) }

// first is the place of a member.
func (s set) first() int { return bits.TrailingZeros16(uint16(s)) }

// small is a graph of at most MaxCompared vertices.
type small struct {
	n     int
	label [MaxCompared]uint32
	near  [MaxCompared]set
}

func (s *small) reset(g *Graph, rank []uint32) {
	*s = small{n: g.Len()}
	for v := range s.n {
		s.label[v] = rank[g.label[v]]
		for _, u := range g.Neighbours(v) {
			s.near[v] |= 1 << u
		}
	}
}

func (s *small) edges() int {
	ends := 0
	for _, near := range s.near {
		ends += near.len()
	}
	return ends / 2
}

// reordered puts the vertices into the order in which they are mapped: always the one with most neighbours before it, and of these the one
// with most neighbours. So edges are settled early.
func (s *small) reordered() small {
	var place [MaxCompared]int
	t := small{n: s.n}
	for done, i := set(0), 0; i < s.n; i++ {
		best, most := 0, -1
		for v := range s.n {
			if rate := (s.near[v]&done).len()<<4 | s.near[v].len(); done>>v&1 == 0 && rate > most {
				best, most = v, rate
			}
		}
		done |= 1 << best
		place[best] = i
		t.label[i] = s.label[best]
	}
	for v := range s.n {
		for rest := s.near[v]; rest != 0; rest &= rest - 1 {
			t.near[place[v]] |= 1 << place[rest.first()]
		}
	}
	return t
}

// search is the comparison of a and b, which has at least as many vertices, and how far it has come.
type search struct {
	active bool
	a, b   small
	bound  int
	best   int // the least distance that was found, else one more than bound

	shared [MaxCompared][2]set // for labels that both have: the vertices of a and b that have it
	labels int

	depth int
	image [MaxCompared]int // of the vertices before depth
	level [MaxCompared + 1]level
	work  int // levels since the pace was asked
}

// level is a choice of where to map the vertex of its number.
type level struct {
	cost    int // of the vertices before
	used    set // of b
	choices [MaxCompared]choice
	n, next int
}

type choice struct{ vertex, cost, least int }

// paceWork is how many levels are looked at between two questions to a pace, about a millisecond.
const paceWork = 1 << 9

func (s *search) begin(a, b *small, bound int) {
	s.active, s.a, s.b = true, a.reordered(), *b
	most := s.b.n + s.a.edges() + s.b.edges() // every edge and label changes
	s.bound = min(bound, most)
	s.best = s.bound + 1
	s.work, s.labels = 0, 0
	for v := range s.a.n {
		s.share(s.a.label[v])
	}
	s.depth = 0
	s.level[0] = level{}
	if s.rest(0, 0) >= s.best {
		s.depth = -1
		return
	}
	s.choose()
}

// share notes who has a label, once.
func (s *search) share(label uint32) {
	var in [2]set
	for v, l := range s.a.label[:s.a.n] {
		if l == label {
			in[0] |= 1 << v
		}
	}
	for v, l := range s.b.label[:s.b.n] {
		if l == label {
			in[1] |= 1 << v
		}
	}
	if slices.Contains(s.shared[:s.labels], in) {
		return
	}
	if in[1] != 0 {
		s.shared[s.labels] = in
		s.labels++
	}
}

// run searches to the end, or until the pace stops it.
func (s *search) run(pace func() error) error {
	for s.depth >= 0 {
		if s.work >= paceWork {
			if pace != nil {
				if err := pace(); err != nil {
					return err
				}
			}
			s.work = 0
		}
		l := &s.level[s.depth]
		if l.next == l.n || l.choices[l.next].least >= s.best { // nor is any after it better
			s.depth--
			continue
		}
		c := l.choices[l.next]
		l.next++
		s.image[s.depth] = c.vertex
		if s.depth+1 == s.a.n { // least is exact then
			s.best = c.least
			continue
		}
		s.depth++
		s.level[s.depth] = level{cost: c.cost, used: l.used | 1<<c.vertex}
		s.choose()
	}
	return nil
}

// choose finds where the vertex of the depth can go, in the order of what that costs at least.
func (s *search) choose() {
	s.work++
	l, u := &s.level[s.depth], s.depth
	images := set(0) // of u's neighbours before it
	for rest := s.a.near[u] & (1<<u - 1); rest != 0; rest &= rest - 1 {
		images |= 1 << s.image[rest.first()]
	}
	for v := range s.b.n {
		if l.used>>v&1 == 1 {
			continue
		}
		c := choice{vertex: v, cost: l.cost + (images ^ s.b.near[v]&l.used).len()}
		if s.a.label[u] != s.b.label[v] {
			c.cost++
		}
		if c.cost >= s.best {
			continue
		}
		s.image[u] = v
		if c.least = c.cost + s.rest(u+1, l.used|1<<v); c.least >= s.best {
			continue
		}
		at := l.n
		for ; at > 0 && l.choices[at-1].least > c.least; at-- {
			l.choices[at] = l.choices[at-1]
		}
		l.choices[at] = c
		l.n++
	}
}

// rest is what mapping the vertices from depth on costs at least, where used are the images of those before. When none is left it is exact.
func (s *search) rest(depth int, used set) int {
	mine, theirs := (set(1)<<s.a.n-1)&^(set(1)<<depth-1), (set(1)<<s.b.n-1)&^used
	vertices := theirs.len() // the larger rest
	for _, in := range s.shared[:s.labels] {
		vertices -= min((in[0] & mine).len(), (in[1] & theirs).len())
	}
	mapped := 0
	for w := range depth {
		d := (s.a.near[w] & mine).len() - (s.b.near[s.image[w]] & theirs).len()
		mapped += max(d, -d)
	}
	// How many vertices of a have a degree of at least i, less those of b: sorted degrees differ by the sum of that.
	var inner, cross [MaxCompared]int
	for rest := mine; rest != 0; rest &= rest - 1 {
		near := s.a.near[rest.first()]
		inner[(near&mine).len()]++
		cross[(near&^mine).len()]++
	}
	for rest := theirs; rest != 0; rest &= rest - 1 {
		near := s.b.near[rest.first()]
		inner[(near&theirs).len()]--
		cross[(near&^theirs).len()]--
	}
	within, between, i, c := 0, 0, 0, 0
	for d := MaxCompared - 1; d > 0; d-- {
		i += inner[d]
		c += cross[d]
		within += max(i, -i)
		between += max(c, -c)
	}
	return vertices + (within+1)/2 + max(mapped, between)
}
