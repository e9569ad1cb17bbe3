package lsh

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/mathext"

	"github.com/geniemq/geniemq/index/metric/sums"
	"github.com/geniemq/geniemq/internal/spread"
)

// forecast says which recall hash functions will have, and what they cost, without hashing anything: a count is the number of functions that agree, each with
// a probability that depends on the distance alone (Collision), so distances of a few queries from a sample say how counts will be spread,
// whatever the width, reach and number of functions. So many of them can be compared, and each by smooth probabilities in place of neighbours found or missed.
//
// Where the index will have f times as many objects as the sample, each object of the sample stands for f, and neighbours lie nearer than
// in the sample. How much nearer, the nearest of the sample say: around a query, the number of objects within a distance grows as a power of it.
//
// Objects near each other agree with a query by the same functions, so that whole clusters of them are not large by luck as single ones are: how far, a few that are hashed say
// (together). What is left out is hashes that are clamped.
type forecast struct {
	*Options
	asked   []float32 // vectors of the queries
	objects []float32 // of the sample
	spread  float64   // how far objects lie from their mean: the root of the mean square (l2)
	queries []outlook
	means   []float64 // by number of neighbours less one: their mean distance
}

// outlook is what a query will see: distances of its nearest neighbours, ascending, and of all objects in rings around it.
type outlook struct {
	neighbours []float64
	rings      []ring
}

// ring is some of the objects: how far they are on average, and the object in their middle.
type ring struct {
	distance, objects, middle float64
	witness                   int // of the sample; of some queries
}

const (
	// singles are the nearest objects that are a ring each; wider makes each ring after these so much larger than all before it.
	singles = 24
	wider   = .3
	// anchors are the nearest objects of a sample that say how near those are that it lacks.
	anchors = 8
)

// newForecast measures the distances of queries from the objects of a sample.
func newForecast(o *Options, queries, objects []float32) *forecast {
	n := len(objects) / o.Dim
	x := &forecast{Options: o, asked: queries, objects: objects, queries: make([]outlook, len(queries)/o.Dim)}
	f := max(1, float64(o.Objects)/float64(n))
	nearest := make([][]float64, len(x.queries))
	kernels := sums.All()[0]
	_ = spread.Run(context.Background(), o.Workers, len(x.queries), func() func(int) {
		s := newScratch(&kernels)
		distances, sorted := make([]float64, n), make([]float64, n)
		return func(q int) {
			s.distances(o.Family, queries[q*o.Dim:(q+1)*o.Dim], objects, distances)
			copy(sorted, distances)
			slices.Sort(sorted)
			nearest[q] = slices.Clone(sorted[:min(n, max(anchors, o.Neighbours))])
			x.queries[q].rings = rings(sorted, f)
			if q < witnessed {
				witness(distances, x.queries[q].rings)
			}
		}
	})
	x.neighbourhoods(nearest, f)
	if o.Family == L2 {
		x.spread = spreadOf(objects[:min(len(objects), fitted*o.Dim)], o.Dim)
	}
	return x
}

// rings groups ascending distances.
func rings(distances []float64, f float64) (all []ring) {
	for first := 0; first < len(distances); {
		end := min(len(distances), first+1)
		if first >= singles {
			end = min(len(distances), first+int(wider*float64(first)))
		}
		sum := 0.0
		for _, d := range distances[first:end] {
			sum += d
		}
		all = append(all, ring{sum / float64(end-first), f * float64(end-first), distances[(first+end)/2], -1})
		first = end
	}
	return all
}

// neighbourhoods fills in the distances of neighbours by the nearest of the sample, which has one object in f.
//
// The objects within a distance d of a query are about c d^D, D and c those of the query. Then D ln d of the i-th nearest is digamma(i) less ln c on average, and 1/D is the mean of ln(d_m/d_i) over the
// nearest m. These means differ from query to query by chance too, with a variance of 1/D^2/(m-1): they are drawn together so far that what is left is their own.
func (x *forecast) neighbourhoods(nearest [][]float64, f float64) {
	slopes := make([]float64, len(nearest)) // 1/D
	known := 0
	for q, d := range nearest {
		if m := min(anchors, len(d)) - 1; m > 0 && d[0] > 0 {
			for _, inner := range d[:m] {
				slopes[q] += math.Log(d[m]/inner) / float64(m)
			}
			known++
		} else {
			slopes[q] = math.NaN()
		}
	}
	drawTogether(slopes, known)
	x.means = make([]float64, x.Neighbours)
	for q, d := range nearest {
		own := make([]float64, x.Neighbours)
		copy(own, d)
		if f > 1 {
			d = d[:min(anchors, len(d))]
			level := 0.0
			for i, at := range d {
				level += (math.Log(at) - slopes[q]*mathext.Digamma(float64(i+1))) / float64(len(d))
			}
			for j := range own {
				own[j] = math.Exp(level + slopes[q]*(mathext.Digamma(float64(j+1))-math.Log(f))) // 0 where objects are equal
			}
		}
		x.queries[q].neighbours = own
		for j, at := range own {
			x.means[j] += at / float64(len(nearest))
		}
	}
}

// drawTogether draws slopes together: those that are known to what they differ by of their own, others to the mean.
func drawTogether(slopes []float64, known int) {
	mean, variance := 0.0, 0.0
	for _, s := range slopes {
		if !math.IsNaN(s) {
			mean += s / float64(known)
		}
	}
	for _, s := range slopes {
		if !math.IsNaN(s) {
			variance += (s - mean) * (s - mean) / float64(max(1, known-1))
		}
	}
	own := 0.0
	if chance := mean * mean / (anchors - 1); variance > chance {
		own = math.Sqrt(1 - chance/variance)
	}
	for q, s := range slopes {
		if slopes[q] = mean; !math.IsNaN(s) {
			slopes[q] += own * (s - mean)
		}
	}
}

// spreadOf is the root of the mean square of distances from the mean.
func spreadOf(objects []float32, dim int) float64 {
	mean, n := make([]float64, dim), float64(len(objects)/dim)
	for i, e := range objects {
		mean[i%dim] += float64(e) / n
	}
	square := 0.0
	for i, e := range objects {
		square += (float64(e) - mean[i%dim]) * (float64(e) - mean[i%dim]) / n
	}
	return math.Sqrt(square)
}

// seen are the probabilities with which a function agrees on a query and what is around it. Of each p there are ln p and ln(1-p).
type seen struct {
	neighbours, rings []odds
	objects           []float64 // by ring
	// independent functions are as good as one, by ring, and of neighbours, where objects agree together.
	independent []float64
	nearest     float64
}

type odds struct{ p, yes, no float64 }

func newOdds(p float64) odds { return odds{p, math.Log(p), math.Log1p(-p)} }

// atLeast is the probability that at least count of m functions agree, where each is as good as some independent ones: the binomial distribution, by its divergence between two
// counts (A. M. Zubkov, A. A. Serov 2013).
func (o *odds) atLeast(count, m int, independent float64) float64 {
	switch {
	case count > m:
		return 0
	case count <= 0:
		return 1
	}
	at := newOdds((float64(count) - .5) / float64(m))
	return o.beyond(&at, independent*float64(m))
}

// beyond is the probability that more than a share of m functions agree.
func (o *odds) beyond(share *odds, m float64) float64 {
	if o.p >= 1 || o.p <= 0 {
		return o.p
	}
	z := math.Sqrt(max(0, m*(share.p*(share.yes-o.yes)+(1-share.p)*(share.no-o.no)))) // of sqrt(2)
	switch {
	case share.p < o.p:
		z = -z
	case z > 6:
		return 0
	}
	return math.Erfc(z) / 2
}

// see finds probabilities, and the mean of a function over all objects: what share of them its lists have that a query reads.
func (x *forecast) see(p *Parameters) (all []seen, share float64) {
	chance, left := p.Chance(), x.together(*p)
	nearest, _ := meanAndError(left[:min(len(left), nearestRings)])
	at := func(distance float64) odds { return newOdds(chance + (1-chance)*p.Collision(distance)) }
	for q := range x.queries {
		own := &x.queries[q]
		s := seen{nearest: 1 / nearest}
		for _, d := range own.neighbours {
			s.neighbours = append(s.neighbours, at(d))
		}
		sum, objects := 0.0, 0.0
		for i, r := range own.rings {
			o := at(r.distance)
			s.rings, s.objects, s.independent = append(s.rings, o), append(s.objects, r.objects), append(s.independent, 1/left[i])
			sum += o.p * r.objects
			objects += r.objects
		}
		share += sum / objects / float64(len(x.queries))
		all = append(all, s)
	}
	return all, share
}

// found is the share of neighbours that are expected among the candidates. Of objects that have the last candidate's count as many are among them as there is
// room for.
func (s *seen) found(functions, candidates int) (share float64) {
	above := func(count int) (n float64) {
		if count > functions {
			return 0
		}
		at := newOdds((float64(count) - .5) / float64(functions))
		for i := range s.rings {
			if n += s.objects[i] * s.rings[i].beyond(&at, s.independent[i]*float64(functions)); n > 1e3*float64(candidates) {
				break
			}
		}
		return n
	}
	last := 1 + sort.Search(functions, func(i int) bool { return above(i+1) <= float64(candidates) }) // a count that leaves room
	more, room := above(last-1), float64(candidates)-above(last)
	ties := room / max(room, more-above(last))
	for i := range s.neighbours {
		certain := s.neighbours[i].atLeast(last, functions, s.nearest)
		share += certain + ties*(s.neighbours[i].atLeast(last-1, functions, s.nearest)-certain)
	}
	return share / float64(len(s.neighbours))
}

// recall is the mean of what is found, and its standard error.
func (x *forecast) recall(all []seen, functions int) (mean, deviation float64) {
	shares := make([]float64, len(all))
	for q := range all {
		shares[q] = all[q].found(functions, x.Candidates)
	}
	return meanAndError(shares)
}

// cheapest is what reaches a recall at the least cost, by the mean less 1.645 standard errors: with 95 % confidence. Where nothing does, it is what comes nearest.
func (x *forecast) cheapest(wanted float64) (c Choice, reached bool) {
	for _, width := range x.Widths {
		for _, reach := range x.Reaches {
			p := Parameters{Family: x.Family, Dim: x.Dim, Width: width, Reach: reach, Rehash: x.Rehash, Buckets: x.buckets(width)}
			all, share := x.see(&p)
			try := func(functions int) (own Choice, ok bool) {
				p.Functions = functions
				own = Choice{Parameters: p, Load: share * float64(functions), Cost: p.cost(share)}
				own.Recall, own.Error = x.recall(all, functions)
				return own, own.Recall-1.645*own.Error >= wanted
			}
			// More functions find more and cost more: of those that are cheaper than what was found the most, then the fewest that do.
			own := p
			most, _ := slices.BinarySearchFunc(x.Functions, c.Cost, func(functions int, cost float64) int {
				own.Functions = functions
				return cmp.Compare(own.cost(share), cost)
			})
			if !reached {
				most = len(x.Functions)
			}
			if most == 0 {
				continue
			}
			best, ok := try(x.Functions[most-1])
			if !ok {
				if !reached && (c.Cost == 0 || best.Recall > c.Recall) {
					c = best
				}
				continue
			}
			sort.Search(most-1, func(i int) bool {
				own, ok := try(x.Functions[i])
				if ok {
					best = own
				}
				return ok
			})
			c, reached = best, true
		}
	}
	return c, reached
}

// buckets are how many there will be, about, where nobody says.
func (x *forecast) buckets(width float64) int {
	switch {
	case x.Family == Cosine:
		return 2
	case x.Buckets > 0:
		return x.Buckets
	case x.Rehash:
		return 8192
	}
	return min(MaxBuckets, 2*int(math.Ceil(1+3.3*x.spread/width)))
}

// bounded functions at most are counted by a device's matrix product, for which shared memory must have room. More take several times as long.
const bounded = 448

// cost is what functions cost a query for each object, in postings of lists, when each agrees on a share of the objects. A share is counted in lists, or
// where it is large on bit planes (gpuexec/cpu). And each function is memory, time to build, and a step of the product by which a device counts,
// whatever is asked of it: a few hundredths of a posting.
func (p *Parameters) cost(share float64) float64 {
	bits := math.Log2(float64(p.Buckets))
	each := .01 * bits
	if p.Functions > bounded {
		each *= 3
	}
	if p.ordered() {
		share = min(share, .09+.03*bits)
	}
	return float64(p.Functions) * (share + each)
}
