package lsh

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/geniemq/geniemq/index/lsh/block"
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
// objects are computed. Objects are added in parts, so that an index can be measured while it is built; it holds the best of each
// query and nothing else. It belongs to one goroutine.
type Measurement struct {
	family   Family
	queries  []float32
	dim      int
	asked    []uint32 // keywords of the queries, with the largest reach
	width    int      // keywords per function
	ordered  bool
	m        []int // how many of the first functions count: one measurement each
	measures Measures
	largest  int // reach
	kernels  block.Kernels
	objects  uint32
	tallies  []tally // per query
}

// tally is what is known of one query.
type tally struct {
	nearest best
	counted []best   // per number of functions and reach
	matches []uint64 // the same: sums of all counts
	counts  []uint32 // scratch: per reach, of the functions so far
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
	x := &Measurement{family: f.parameters.Family, queries: queries, dim: f.parameters.Dim, ordered: f.parameters.ordered(), m: m, kernels: block.Best()}
	x.measures = Measures{distinct(measures.Neighbours), distinct(measures.Candidates), distinct(measures.Reaches)}
	x.largest = x.measures.Reaches[len(x.measures.Reaches)-1]
	f, err := f.WithReach(x.largest)
	if err != nil {
		return nil, err
	}
	x.width = f.parameters.Asked()
	x.asked = make([]uint32, len(queries)/x.dim*f.parameters.Functions*x.width)
	if err := f.HashQueries(x.asked, queries, 1); err != nil {
		return nil, fmt.Errorf("measuring recall: held-out queries: %w", err)
	}
	x.tallies = make([]tally, len(queries)/x.dim)
	for i := range x.tallies {
		t := &x.tallies[i]
		t.nearest.limit = x.measures.Neighbours[len(x.measures.Neighbours)-1]
		t.counted = make([]best, len(m)*len(x.measures.Reaches))
		t.matches = make([]uint64, len(t.counted))
		t.counts = make([]uint32, len(x.measures.Reaches))
		for j := range t.counted {
			t.counted[j].limit = x.measures.Candidates[len(x.measures.Candidates)-1]
		}
	}
	return x, nil
}

func distinct(x []int) []int { return slices.Compact(slices.Sorted(slices.Values(x))) }

// Add adds objects: their vectors, and their keywords as Hash wrote them. Objects count from 0 in the order in which they are added.
func (x *Measurement) Add(keywords []uint32, vectors []float32, workers int) {
	var next atomic.Int64
	work := func() {
		for {
			i := int(next.Add(1)) - 1
			if i >= len(x.tallies) {
				return
			}
			x.add(i, keywords, vectors)
		}
	}
	var group sync.WaitGroup
	for range min(workers, len(x.tallies)) - 1 {
		group.Go(work)
	}
	work()
	group.Wait()
	x.objects += uint32(len(vectors) / x.dim)
}

// add adds objects to what is known of one query.
func (x *Measurement) add(query int, keywords []uint32, vectors []float32) {
	t := &x.tallies[query]
	point := x.queries[query*x.dim : (query+1)*x.dim]
	m := x.m[len(x.m)-1]
	asked := x.asked[query*m*x.width : (query+1)*m*x.width]
	for id := x.objects; len(vectors) > 0; id++ {
		t.nearest.add(-x.family.Distance(point, vectors[:x.dim]), id)
		clear(t.counts)
		first := 0
		for i, end := range x.m {
			x.count(t.counts, asked[first*x.width:end*x.width], keywords[first:end])
			first = end
			for j, count := range t.counts {
				at := i*len(t.counts) + j
				t.matches[at] += uint64(count)
				t.counted[at].add(float64(count), id)
			}
		}
		vectors, keywords = vectors[x.dim:], keywords[m:]
	}
}

// count adds the functions that agree with each reach.
func (x *Measurement) count(counts, asked, keywords []uint32) {
	if x.ordered {
		for j, reach := range x.measures.Reaches {
			counts[j] += x.kernels.Within(asked, keywords, uint32(reach))
		}
		return
	}
	for i, k := range keywords {
		own := asked[i*x.width : (i+1)*x.width]
		step := slices.Index(own, k)
		if step < 0 {
			continue
		}
		for j, reach := range x.measures.Reaches {
			if step <= 2*reach { // as HashQueries orders them
				counts[j]++
			}
		}
	}
}

// Table returns what was found.
func (x *Measurement) Table() (Table, error) {
	if most := x.measures.Neighbours[len(x.measures.Neighbours)-1]; x.objects < uint32(most) || len(x.tallies) == 0 {
		return Table{}, fmt.Errorf("measuring recall of %d neighbours: there are %d objects and %d queries", most, x.objects, len(x.tallies))
	}
	t := Table{Objects: uint64(x.objects), Queries: uint32(len(x.tallies))}
	for j, reach := range x.measures.Reaches {
		for _, k := range x.measures.Neighbours {
			for _, candidates := range x.measures.Candidates {
				if candidates < k {
					continue
				}
				row := Row{K: uint32(k), Candidates: uint32(candidates), Reach: uint32(reach)}
				for i := range x.tallies {
					row.Found += uint64(x.tallies[i].found(j, k, candidates))
				}
				t.Rows = append(t.Rows, row)
			}
		}
	}
	return t, nil
}

// found is how many of the k nearest are among the candidates of one number of functions and reach.
func (t *tally) found(at, k, candidates int) (n int) {
	nearest, counted := t.nearest.first(k), t.counted[at].first(candidates)
	ids := make(map[uint32]bool, k)
	for _, e := range nearest {
		ids[e.id] = true
	}
	for _, e := range counted {
		if ids[e.id] {
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
	score float64
	id    uint32
}

func (b *best) add(score float64, id uint32) {
	if b.full && score <= b.least {
		return
	}
	b.entries = append(b.entries, scored{score, id})
	if len(b.entries) >= 2*b.limit+16 {
		b.cut()
	}
}

func (b *best) cut() {
	slices.SortFunc(b.entries, func(x, y scored) int {
		return cmp.Or(cmp.Compare(y.score, x.score), cmp.Compare(x.id, y.id))
	})
	if len(b.entries) >= b.limit {
		b.entries = b.entries[:b.limit]
		b.full, b.least = true, b.entries[b.limit-1].score
	}
}

// first returns the first n.
func (b *best) first(n int) []scored {
	b.cut()
	return b.entries[:min(n, len(b.entries))]
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
