package lsh

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/geniemq/geniemq/index/lsh/block"
	"github.com/geniemq/geniemq/index/metric/sums"
	"github.com/geniemq/geniemq/internal/spread"
)

// Measures say what a Measurement is of: every combination makes a row. They may be in any order.
type Measures struct {
	// Neighbours are the numbers k of nearest neighbours that are looked for.
	Neighbours []int
	// Candidates are how many of the best by match count are looked at; what is less than k is left out.
	Candidates []int
	// Reaches; only 0 where a family has none.
	Reaches []int
}

// Measurement finds the share of the nearest neighbours of held-out queries that are among the candidates by match count, exactly: distances and match counts of all
// objects are computed. Objects are added in parts, so that an index can be measured while it is built. It holds the nearest of each query, and how many objects have
// which count: that says how many come before a neighbour, however many candidates are asked about. It belongs to one goroutine.
type Measurement struct {
	family   Family
	dim      int
	asked    []uint32 // where pairs are compared: keywords of the queries
	lists    *lists   // else, with the largest reach
	rings    []int    // per step that a query asks: the first of the reaches that has it
	m        []int    // how many of the first functions count: one measurement each
	measures Measures
	kernels  block.Kernels
	sums     *sums.Kernels
	objects  uint32
	tallies  []tally // per query
}

// tally is what is known of one query. A way to count is a number of functions and a reach.
type tally struct {
	point     sums.Query
	nearest   best
	matches   []uint64   // per way: sums of all counts
	histogram [][]uint32 // per way: how many objects have a count
}

// NewMeasurement makes one of functions, with queries that are no objects, one after the other.
func NewMeasurement(f *Functions, queries []float32, measures Measures) (*Measurement, error) {
	return newMeasurement(f, queries, measures, []int{f.parameters.Functions})
}

// newMeasurement makes measurements of the first few functions too; m ascends.
func newMeasurement(f *Functions, queries []float32, measures Measures, m []int) (*Measurement, error) {
	if len(measures.Neighbours) == 0 || len(measures.Candidates) == 0 || len(measures.Reaches) == 0 ||
		slices.Min(measures.Neighbours) < 1 || slices.Max(measures.Candidates) < slices.Min(measures.Neighbours) {
		return nil, fmt.Errorf("measuring recall of %v neighbours among %v candidates with reaches %v: there is nothing to measure",
			measures.Neighbours, measures.Candidates, measures.Reaches)
	}
	own := sums.All()[0]
	x := &Measurement{family: f.parameters.Family, dim: f.parameters.Dim, m: m, kernels: block.Best(), sums: &own}
	x.measures = Measures{distinct(measures.Neighbours), distinct(measures.Candidates), distinct(measures.Reaches)}
	f, err := f.WithReach(x.measures.Reaches[len(x.measures.Reaches)-1])
	if err != nil {
		return nil, err
	}
	width := f.parameters.Asked()
	x.asked = make([]uint32, len(queries)/x.dim*f.parameters.Functions*width)
	if err := f.HashQueries(x.asked, queries, 1); err != nil {
		return nil, fmt.Errorf("measuring recall: held-out queries: %w", err)
	}
	if !f.parameters.paired() {
		for step := range width {
			ring, _ := slices.BinarySearch(x.measures.Reaches, (step+1)/2) // as HashQueries orders them
			x.rings = append(x.rings, ring)
		}
		x.lists, x.asked = newLists(x.asked, f.parameters.Functions, width), nil
	}
	x.tallies = make([]tally, len(queries)/x.dim)
	for i := range x.tallies {
		t := &x.tallies[i]
		t.point = pointOf(queries[i*x.dim : (i+1)*x.dim])
		t.nearest.limit = x.measures.Neighbours[len(x.measures.Neighbours)-1]
		for _, functions := range m {
			for range x.measures.Reaches {
				t.matches, t.histogram = append(t.matches, 0), append(t.histogram, make([]uint32, functions+1))
			}
		}
	}
	return x, nil
}

func distinct(x []int) []int { return slices.Compact(slices.Sorted(slices.Values(x))) }

// scratch is what one goroutine measures with.
type scratch struct {
	sums   *sums.Worker
	scores []float64 // of the objects
	norms  []float64
	counts []uint32 // per reach, of the functions so far; per reach and object where there are lists
	ways   []uint32 // per way and object
}

func newScratch(kernels *sums.Kernels) *scratch { return &scratch{sums: sums.NewWorker(kernels)} }

// Add adds objects: their vectors, and their keywords as Hash wrote them. Objects count from 0 in the order in which they are added.
func (x *Measurement) Add(keywords []uint32, vectors []float32, workers int) {
	m := x.m[len(x.m)-1]
	for len(vectors) > 0 {
		n := min(atOnce, len(vectors)/x.dim)
		x.block(keywords[:n*m], vectors[:n*x.dim], workers)
		keywords, vectors = keywords[n*m:], vectors[n*x.dim:]
		x.objects += uint32(n)
	}
}

// block adds the objects of a block.
func (x *Measurement) block(keywords []uint32, vectors []float32, workers int) {
	if l := x.lists; l != nil {
		_ = spread.Run(context.Background(), workers, (l.functions+beside-1)/beside, func() func(int) {
			f := newFinder(l.most)
			return func(i int) {
				for function := i * beside; function < min(l.functions, (i+1)*beside); function++ {
					l.fill(function, keywords, f)
				}
			}
		})
	}
	_ = spread.Run(context.Background(), workers, len(x.tallies), func() func(int) {
		s, reaches := newScratch(x.sums), len(x.measures.Reaches)
		s.counts, s.ways = make([]uint32, reaches), make([]uint32, len(x.m)*reaches*atOnce)
		if x.lists != nil {
			s.counts = make([]uint32, reaches*atOnce)
		}
		return func(i int) { x.add(i, keywords, vectors, s) }
	})
}

// add adds the objects of a block to what is known of one query.
func (x *Measurement) add(query int, keywords []uint32, vectors []float32, s *scratch) {
	t := &x.tallies[query]
	s.score(x.family, t.point, vectors, x.dim)
	if x.lists != nil {
		x.list(query, s)
	} else {
		x.pair(query, keywords, s)
	}
	for i, score := range s.scores {
		if t.nearest.wants(score) {
			places := make([]place, len(t.matches))
			for way := range places {
				count := s.ways[way*atOnce+i]
				places[way] = place{count, t.histogram[way][count]}
			}
			t.nearest.add(scored{score, x.objects + uint32(i), places})
		}
		for way, histogram := range t.histogram {
			count := s.ways[way*atOnce+i]
			t.matches[way] += uint64(count)
			histogram[count]++
		}
	}
}

// list counts by lists, for all objects of the block.
func (x *Measurement) list(query int, s *scratch) {
	clear(s.counts)
	first, ways := 0, s.ways
	for _, end := range x.m {
		x.lists.count(s.counts, x.rings, query, first, end)
		first = end
		// What agrees with a reach does so with larger ones.
		copy(ways, s.counts[:atOnce])
		for at := atOnce; at < len(s.counts); at++ {
			ways[at] = ways[at-atOnce] + s.counts[at]
		}
		ways = ways[len(s.counts):]
	}
}

// pair counts by comparing keywords, for objects of the block.
func (x *Measurement) pair(query int, keywords []uint32, s *scratch) {
	m := x.m[len(x.m)-1]
	asked := x.asked[query*m : (query+1)*m]
	for i := range s.scores {
		clear(s.counts)
		first, own := 0, keywords[i*m:(i+1)*m]
		for j, end := range x.m {
			x.count(s.counts, asked[first:end], own[first:end])
			first = end
			for k, count := range s.counts {
				s.ways[(j*len(s.counts)+k)*atOnce+i] = count
			}
		}
	}
}

// count adds the functions that agree with each reach, where pairs are compared.
func (x *Measurement) count(counts, asked, keywords []uint32) {
	for j, reach := range x.measures.Reaches {
		counts[j] += x.kernels.Within(asked, keywords, uint32(reach))
	}
}

// score finds how near objects are to a query: the nearer, the larger. The order is that of distances.
func (s *scratch) score(family Family, query sums.Query, vectors []float32, dim int) {
	s.scores, s.norms = slices.Grow(s.scores[:0], len(vectors)/dim)[:len(vectors)/dim], slices.Grow(s.norms[:0], len(vectors)/dim)[:len(vectors)/dim]
	op := sums.OpDifferences
	switch family {
	case L2:
		op = sums.OpSquares
	case Cosine:
		op = sums.OpDots
		s.sums.Floats(sums.OpNorms, 0, []sums.Query{query}, vectors, dim, s.norms, 0)
	}
	s.sums.Floats(op, 0, []sums.Query{query}, vectors, dim, s.scores, 0)
	for i := range s.scores {
		switch {
		case family != Cosine:
			s.scores[i] = -s.scores[i]
		case s.norms[i] > 0:
			s.scores[i] /= math.Sqrt(s.norms[i])
		default:
			s.scores[i] = 0 // a right angle
		}
	}
}

// distances writes how far objects are from a query.
func (s *scratch) distances(family Family, query, vectors []float32, dst []float64) {
	s.score(family, pointOf(query), vectors, len(query))
	norm := 0.0
	for _, e := range query {
		norm += float64(e) * float64(e)
	}
	for i, score := range s.scores {
		switch {
		case family == L2:
			dst[i] = math.Sqrt(-score)
		case family != Cosine:
			dst[i] = -score
		case norm > 0:
			dst[i] = math.Acos(max(-1, min(1, score/math.Sqrt(norm))))
		default:
			dst[i] = math.Pi / 2
		}
	}
}

// pointOf is a vector as a query of sums.
func pointOf(vector []float32) sums.Query {
	point := make([]float64, len(vector))
	for i, e := range vector {
		point[i] = float64(e)
	}
	return sums.NewQuery(point)
}

// Table returns what was found.
func (x *Measurement) Table() (Table, error) {
	if most := x.measures.Neighbours[len(x.measures.Neighbours)-1]; x.objects < uint32(most) || len(x.tallies) == 0 {
		return Table{}, fmt.Errorf("measuring recall of %d neighbours: there are %d objects and %d queries", most, x.objects, len(x.tallies))
	}
	t := Table{Objects: uint64(x.objects), Queries: uint32(len(x.tallies))}
	ranks := make([][]uint32, len(x.tallies))
	for j, reach := range x.measures.Reaches {
		for i := range x.tallies {
			ranks[i] = x.tallies[i].ranks(j)
		}
		for _, k := range x.measures.Neighbours {
			for _, candidates := range x.measures.Candidates {
				if candidates < k {
					continue
				}
				row := Row{K: uint32(k), Candidates: uint32(candidates), Reach: uint32(reach)}
				for _, own := range ranks {
					row.Found += uint64(found(own, k, candidates))
				}
				t.Rows = append(t.Rows, row)
			}
		}
	}
	return t, nil
}

// Reaching returns the least reach with which the share of k neighbours that are among the candidates is wanted at least, less 1.645 standard errors of its mean over the
// queries. Where none has that, it is the one that finds most, the least of several.
func (x *Measurement) Reaching(k, candidates int, wanted float64) int {
	ways := x.shares(k, candidates)
	best, most := 0, -1.0
	for j, shares := range ways[len(ways)-len(x.measures.Reaches):] {
		mean, deviation := meanAndError(shares)
		if mean-1.645*deviation >= wanted {
			return x.measures.Reaches[j]
		}
		if mean > most {
			best, most = x.measures.Reaches[j], mean
		}
	}
	return best
}

// ranks are how many objects come before each of the nearest by the counts of a way, the nearest first.
func (t *tally) ranks(way int) []uint32 {
	histogram := t.histogram[way]
	above := make([]uint32, len(histogram)) // objects of a higher count
	for count := len(histogram) - 2; count >= 0; count-- {
		above[count] = above[count+1] + histogram[count+1]
	}
	nearest := t.nearest.first()
	ranks := make([]uint32, len(nearest))
	for i, e := range nearest {
		p := e.places[way]
		ranks[i] = above[p.count] + p.before
	}
	return ranks
}

// found is how many of the k nearest are among the candidates.
func found(ranks []uint32, k, candidates int) (n int) {
	for _, rank := range ranks[:min(k, len(ranks))] {
		if rank < uint32(candidates) {
			n++
		}
	}
	return n
}

// best keeps the first objects by score descending, then id ascending. They come by ascending ids.
type best struct {
	limit   int
	entries []scored
	full    bool
	least   float64 // where full: the score that is not enough
}

type scored struct {
	score  float64
	id     uint32
	places []place // per way
}

// place is where an object comes by its count: after all of higher counts, and after those that had the same before it.
type place struct{ count, before uint32 }

func (b *best) wants(score float64) bool { return !b.full || score > b.least }

func (b *best) add(e scored) {
	b.entries = append(b.entries, e)
	if len(b.entries) >= 2*b.limit+16 {
		b.cut()
	}
}

func (b *best) cut() {
	slices.SortFunc(b.entries, func(x, y scored) int {
		return cmp.Or(cmp.Compare(y.score, x.score), cmp.Compare(x.id, y.id))
	})
	if len(b.entries) >= b.limit {
		clear(b.entries[b.limit:])
		b.entries = b.entries[:b.limit]
		b.full, b.least = true, b.entries[b.limit-1].score
	}
}

// first returns them.
func (b *best) first() []scored {
	b.cut()
	return b.entries
}

// meanAndError returns the mean of shares and its standard error.
func meanAndError(shares []float64) (mean, deviation float64) {
	n := float64(len(shares))
	for _, s := range shares {
		mean += s / n
	}
	for _, s := range shares {
		deviation += (s - mean) * (s - mean)
	}
	return mean, math.Sqrt(deviation / max(n-1, 1) / n)
}
