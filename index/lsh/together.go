package lsh

import (
	"cmp"
	"context"
	"math/bits"
	"slices"

	"github.com/geniemq/geniemq/internal/spread"
)

// Objects around a query do not agree with it one by one. A hyperplane that passes near a query parts it from many of them, one far from it from none; a Cauchy number that is large parts
// it from all. So their counts rise and fall together, and which come among the candidates is decided by what is left.
//
// Say that of a function each object has a share in what they have in common, l for an object and L for those at the edge, the last candidates, so that the covariance of two is the product of
// their shares. A count is to be compared with one at the edge, which moves by L. Of its variance v that leaves v - l^2 + (l-L)^2 = v - 2 lL + L^2, and both products are covariances
// that can be seen: of the object with those at the edge, and of these with each other. With that variance a count of m functions is spread as one of
// m v / (v - 2 lL + L^2) that agree independently.
//
// How large it is depends on the family, the width, and on how objects lie. So it is seen on a few of them: witnesses, an object of each ring of some queries, which are
// hashed by functions that nothing else is hashed by.
const (
	witnessed  = 64  // queries
	witnessing = 128 // functions; a multiple of 64
	// nearestRings are as neighbours are.
	nearestRings = 4
	// leastLeft and mostLeft of the variance are left.
	leastLeft, mostLeft = .05, 2
)

// witness finds an object of each ring, of which it has the distance; -1 where there is none that is not another ring's.
func witness(distances []float64, rings []ring) {
	for i := range rings {
		rings[i].witness = -1
	}
	for id, d := range distances {
		at, ok := slices.BinarySearchFunc(rings, d, func(r ring, d float64) int { return cmp.Compare(r.middle, d) })
		for ; ok && at < len(rings) && rings[at].middle == d; at++ {
			if rings[at].witness < 0 {
				rings[at].witness = id
				break
			}
		}
	}
}

// agreement says of each witness on which functions it agrees with the query.
type agreement [witnessing / 64]uint64

func (a *agreement) and(b *agreement) (n float64) {
	for i := range a {
		n += float64(bits.OnesCount64(a[i] & b[i]))
	}
	return n
}

// covariance of two agreements, over the functions.
func (a *agreement) covariance(b *agreement) float64 {
	const m = witnessing
	return (a.and(b) - a.and(a)*b.and(b)/m) / (m - 1)
}

// together returns how much is left of the variance of a ring's objects, as a share of it, by ring. Where witnesses cannot be hashed it is all: parameters that are chosen
// and at fault are told by who makes functions of them.
func (x *forecast) together(p Parameters) []float64 {
	p.Functions, p.Seed = witnessing, ^x.Seed
	if p.ordered() {
		p.Buckets, p.Centre = MaxBuckets, x.objects[:x.Dim]
	}
	left := slices.Repeat([]float64{1}, len(x.queries[0].rings))
	f, err := New(p)
	if err != nil {
		return left
	}
	queries := min(witnessed, len(x.queries))
	seen := make([][]shared, queries) // added up in their order, so that the sums are always the same
	_ = spread.Run(context.Background(), x.Workers, queries, func() func(int) {
		vectors, keywords := make([]float32, len(left)*x.Dim), make([]uint32, len(left)*witnessing)
		asked := make([]uint32, witnessing*p.Asked())
		return func(q int) {
			clear(vectors)
			rings := x.queries[q].rings
			for i, r := range rings {
				if r.witness >= 0 {
					copy(vectors[i*x.Dim:], x.objects[r.witness*x.Dim:(r.witness+1)*x.Dim])
				}
			}
			if f.Hash(keywords, vectors, 1) == nil && f.HashQueries(asked, x.asked[q*x.Dim:(q+1)*x.Dim], 1) == nil {
				seen[q] = inCommon(rings, f.agreements(asked, keywords), float64(x.Candidates))
			}
		}
	})
	for i := range left {
		var sum shared
		for _, rings := range seen {
			if rings != nil {
				sum.variance += rings[i].variance
				sum.covariance += rings[i].covariance
				sum.edge += rings[i].edge
			}
		}
		if v := sum.variance; v > 0 {
			left[i] = max(leastLeft, min(mostLeft, (v-2*sum.covariance+sum.edge)/v))
		}
	}
	return left
}

// agreements compares keywords of objects with those that a query asks.
func (f *Functions) agreements(asked, keywords []uint32) []agreement {
	p := &f.parameters
	width := p.Asked()
	all := make([]agreement, len(keywords)/witnessing)
	for at, keyword := range keywords {
		i, j := at/witnessing, at%witnessing
		for _, own := range asked[j*width : (j+1)*width] {
			if lo, hi := p.Span(own); lo <= keyword && keyword < hi {
				all[i][j/64] |= 1 << (j % 64)
				break
			}
		}
	}
	return all
}

// shared is what the witness of a ring has in common with those at the edge: v, l L and L^2.
type shared struct{ variance, covariance, edge float64 }

// inCommon finds that of a query's rings. The edge is the ring with the last candidate, and those beside it.
func inCommon(rings []ring, all []agreement, candidates float64) []shared {
	last, objects := 0, 0.0
	for last = range rings {
		if objects += rings[last].objects; objects >= candidates {
			break
		}
	}
	first, end := max(0, last-1), min(len(rings), last+2)
	own, edge, pairs := make([]shared, len(rings)), 0.0, 0.0
	for i := range rings {
		others := 0.0
		for j := first; j < end; j++ {
			if i == j || rings[i].witness < 0 || rings[j].witness < 0 {
				continue
			}
			covariance := all[i].covariance(&all[j])
			own[i].covariance += covariance
			others++
			if i >= first && i < end {
				edge += covariance
				pairs++
			}
		}
		if others > 0 {
			own[i].variance = all[i].covariance(&all[i])
			own[i].covariance /= others
		}
	}
	for i := range own {
		if own[i].variance > 0 {
			own[i].edge = edge / max(1, pairs)
		}
	}
	return own
}
