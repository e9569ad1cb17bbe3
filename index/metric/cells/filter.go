package cells

import (
	"math"
	"slices"

	"github.com/geniemq/geniemq/index/lsh/block"
	"github.com/geniemq/geniemq/index/metric"
)

// filter finds which centroids may be the nearest by products of float32s, each many times cheaper than a value, with a bound on what rounding does to them. Only what
// remains, one or two centroids as a rule, is compared by values. So the filter decides how fast an assignment is, and never what it is.
//
// # What it computes
//
// For l2 objects x and centroids c are moved by the mean of the centroids, and scaled by one power of two, so that the farthest centroid has a norm C from 1,024 to 2,048. The nearest
// has the largest s = x.c - c.c/2, since |x-c|^2 is x.x - 2s. For cosine and angular both are scaled to norms of 4,096, and the nearest has the largest
// s = x.c. Package block gives whole numbers below s. Objects with a norm X above 8 times that of all centroids are compared with all of them.
//
// # Why it is right
//
// Let u = 2^-24 and N = X + C. Rounding x and c to float32 moves each by u of its norm at most, and so |x-c|^2/2, or x.c, by u N^2 1.01 together. The product in eight
// partial sums of dims/8 terms is wrong by (dims/8 + 4) u X C 1.01, its sum with c.c/2 and that itself by 2 u N^2, and rounding down takes 1. Underflow is below
// 2^-120. So s is wrong by less than (dims/8 + 8) u N^2 + 1, and a centroid whose s is less than the largest by more than twice that is not nearest. The
// margin is twice (dims/8 + 16) u N^2 + 2, which leaves 16 u N^2 for the rounding of values, of float64, and for that of the margin.
type filter struct {
	metric metric.Metric
	dims   int
	centre []float64 // l2: what is subtracted
	scale  float64   // l2: power of two; else norm
	norm   float64   // of the largest centroid
	parts  []part
}

// What is compared with the filter at a time: as many vectors as package block takes for one reading of its rows, and as many centroids as leave their products in a near cache.
const (
	batch    = 24
	parallel = 1024
	fewest   = 32       // centroids; fewer are compared all
	farthest = 8 * 2048 // norm of an object
)

// newFilter makes a filter of centroids; nil where there is none for the metric or it would say nothing.
func newFilter(centroids *metric.Vectors) *filter {
	f := &filter{metric: centroids.Metric(), dims: centroids.Dims()}
	n := centroids.Len()
	switch f.metric.Kind {
	case metric.L2:
		f.between(centroids)
	case metric.Cosine, metric.Angular:
		f.scale, f.norm = 4096, 4096
	default:
		return nil
	}
	if n < fewest || !(f.scale > 0x1p-500 && f.scale < 0x1p500) {
		return nil
	}
	wide, narrow := make([]float64, f.dims), make([]float32, f.dims)
	for c := range n {
		at := c % parallel
		if at == 0 {
			rows := min(parallel, n-c)
			f.parts = append(f.parts, part{block.NewMatrix(int(rows), f.dims), c, rows})
		}
		centroids.Coordinates(c, wide)
		if _, ok := f.narrow(narrow, wide); !ok {
			return nil
		}
		half := 0.0
		if f.metric.Kind == metric.L2 {
			for _, e := range narrow {
				half += float64(e) * float64(e) / 2
			}
		}
		f.parts[len(f.parts)-1].Set(int(at), narrow, float32(-half))
	}
	return f
}

// between finds the mean of the centroids and the scale of their distances from it.
func (f *filter) between(centroids *metric.Vectors) {
	f.centre = make([]float64, f.dims)
	wide := make([]float64, f.dims)
	for c := range centroids.Len() {
		centroids.Coordinates(c, wide)
		for j, e := range wide {
			f.centre[j] += e / float64(centroids.Len())
		}
	}
	most := 0.0
	for c := range centroids.Len() {
		centroids.Coordinates(c, wide)
		square := 0.0
		for j, e := range wide {
			square += (e - f.centre[j]) * (e - f.centre[j])
		}
		most = max(most, math.Sqrt(square))
	}
	_, exponent := math.Frexp(most) // most is below 2 to it, and half of that at least
	f.scale, f.norm = math.Ldexp(1, 11-exponent), 2048
}

// narrow writes a vector as the filter compares it, and returns its norm; ok is false where it has none.
func (f *filter) narrow(dst []float32, wide []float64) (norm float64, ok bool) {
	scale := f.scale
	if f.centre == nil {
		square := 0.0
		for _, e := range wide {
			square += e * e
		}
		scale /= math.Sqrt(square)
	}
	square := 0.0
	for j, e := range wide {
		if f.centre != nil {
			e -= f.centre[j]
		}
		e *= scale
		square += e * e
		dst[j] = float32(e)
	}
	norm = math.Sqrt(square)
	return norm, norm <= farthest
}

// margin is how far below the largest s the nearest centroid's may be, for an object of a norm.
func (f *filter) margin(norm float64) int64 {
	both := norm + f.norm
	return int64(2*((float64(f.dims)/8+16)*0x1p-24*both*both+2)) + 1
}

// part is some centroids, from number first on.
type part struct {
	*block.Matrix
	first, rows uint32
}

// sieve is what one goroutine filters with.
type sieve struct {
	*filter
	worker  *block.Worker
	wide    []float64
	narrows []float32
	scores  []int32
	objects [batch]remaining
}

// remaining are the centroids that may be the nearest of an object, ascending; all, if all is set.
type remaining struct {
	all       bool
	margin    int64
	most      int64 // the largest s so far
	centroids []scored
}

type scored struct {
	score    int64
	centroid uint32
}

func (f *filter) sieve() *sieve {
	return &sieve{filter: f, worker: block.NewWorker(block.Best()), wide: make([]float64, f.dims), narrows: make([]float32, batch*f.dims),
		scores: make([]int32, batch*parallel)}
}

// sift returns what remains for each of some objects, a batch at most. It holds until the next call.
func (s *sieve) sift(space *metric.Vectors, ids []uint32) []remaining {
	objects := s.objects[:len(ids)]
	for i, id := range ids {
		r := &objects[i]
		space.Coordinates(id, s.wide)
		own := s.narrows[i*s.dims : (i+1)*s.dims]
		norm, ok := s.narrow(own, s.wide)
		if !ok {
			clear(own)
		}
		r.all, r.margin, r.most, r.centroids = !ok, s.margin(min(norm, farthest)), math.MinInt32, r.centroids[:0]
	}
	for _, p := range s.parts {
		scores := s.scores[:len(ids)*int(p.rows)]
		s.worker.Buckets(scores, p.Matrix, s.narrows[:len(ids)*s.dims])
		for i := range objects {
			objects[i].add(p.first, scores[i*int(p.rows):(i+1)*int(p.rows)])
		}
	}
	for i := range objects {
		r := &objects[i]
		r.centroids = slices.DeleteFunc(r.centroids, func(c scored) bool { return c.score < r.most-r.margin })
	}
	return objects
}

func (r *remaining) add(first uint32, scores []int32) {
	least := r.most - r.margin
	for c, score := range scores {
		if int64(score) >= least {
			r.centroids = append(r.centroids, scored{int64(score), first + uint32(c)})
			r.most = max(r.most, int64(score))
			least = r.most - r.margin
		}
	}
}
