package similarity

import (
	"fmt"
	"math"
	"slices"

	"github.com/geniemq/geniemq/index/metric/sums"
)

// Metric says how far two vectors are from each other.
type Metric uint8

const (
	L2      Metric = iota + 1 // the Euclidean distance
	L1                        // the sum of absolute differences
	IP                        // the inner product: a similarity, the larger the nearer
	Angular                   // the angle, 0 to pi
)

// String is the name that queries use.
func (m Metric) String() string {
	if m < L2 || m > Angular {
		return fmt.Sprintf("metric %d", uint8(m))
	}
	return [...]string{"l2", "l1", "ip", "angular"}[m-L2]
}

// ParseMetric finds a metric by its name.
func ParseMetric(name string) (Metric, bool) {
	for m := L2; m <= Angular; m++ {
		if m.String() == name {
			return m, true
		}
	}
	return 0, false
}

// Element is what vectors are stored as.
type Element interface{ float32 | uint8 }

// Widen appends the elements of a vector to dst as float64s, which hold each of them.
func Widen[E Element](dst []float64, v []E) []float64 {
	for _, e := range v {
		dst = append(dst, float64(e))
	}
	return dst
}

// NotFinite returns the place of the first element that is NaN or infinite, -1 if there is none. Vectors with one are refused where they
// come in: they have no distance.
func NotFinite(v []float32) int {
	for i, e := range v {
		if math.IsNaN(float64(e)) || math.IsInf(float64(e), 0) {
			return i
		}
	}
	return -1
}

// Vector is a query's vector made ready for being compared with many objects' by a metric.
//
// # Keys
//
// Vectors are ordered by keys, which need no roots: the less, the nearer.
//
//	l2       sum (q-o)^2
//	l1       sum |q-o|
//	ip       -sum qo
//	angular  -d|d| / (sum qq  sum oo),  d = sum qo; 0 where one of the vectors is 0, as if it was at a right angle to all
//
// # To the bit
//
// Engines compute keys, so they are defined to the bit. Elements are widened to float64 first. Each difference, product and sum is rounded by
// itself, never fused. Term i is added to the partial sum i mod 8, i ascending; then ((s0+s1)+(s2+s3)) + ((s4+s5)+(s6+s7)). A wide
// machine does 8 terms at once that way, and any machine can. Finite float32s can neither overflow nor vanish in these: squares lie
// between 2^-298 and 2^256, and keys of 65,536 dimensions within twice that.
//
// Only Report takes roots and arcs, on the host, for the few that are hits.
type Vector struct {
	metric Metric
	query  sums.Query
	square float64 // sum qq, of angular
}

// Reset makes a widened vector of finite elements ready.
func (v *Vector) Reset(m Metric, query []float64) {
	*v = Vector{metric: m, query: sums.NewQuery(query)[:len(query)]}
	if m == Angular {
		v.square = sums.Norm(query)
	}
}

// angular is the key of a dot product, and of the sum of squares of the object's elements.
func (v *Vector) angular(dot, square float64) float64 {
	if dot == 0 || square == 0 {
		return 0
	}
	return float64(-dot*math.Abs(dot)) / float64(v.square*square)
}

// Comparer compares vectors by the widest instructions that the machine has, many at a time, so that these do not wait for each other. What it
// finds are the keys that Vector defines, to the bit; only of objects with elements that are not finite, which a file may have that was made on purpose, it may find anything. It is for one goroutine.
type Comparer struct {
	worker  *sums.Worker
	query   [1]sums.Query
	squares []float64
}

// NewComparer returns one for this machine.
func NewComparer() *Comparer { return newComparer(&sums.All()[0]) }

func newComparer(k *sums.Kernels) *Comparer { return &Comparer{worker: sums.NewWorker(k)} }

// Bytes makes a row for Keys of one of bytes, of as many elements.
func (c *Comparer) Bytes(dst []float32, row []uint8) { c.worker.Widen(dst, row) }

// Halves makes a row for Keys of one of float16s, of as many elements.
func (c *Comparer) Halves(dst []float32, row []sums.Half) { c.worker.Halves(dst, row) }

// Keys compares the query with objects' vectors of as many elements, of which there is one at least. These lie one after the other, and dst is as long as they are
// many.
func (c *Comparer) Keys(dst []float64, v *Vector, rows []float32) {
	find := func(op sums.Op, dst []float64) {
		c.worker.Floats(op, 0, c.query[:], rows[:len(dst)*len(v.query)], len(v.query), dst, 0)
	}
	c.query[0] = v.query
	switch v.metric {
	case L2:
		find(sums.OpSquares, dst)
	case L1:
		find(sums.OpDifferences, dst)
	case IP:
		find(sums.OpDots, dst)
		for i, dot := range dst {
			dst[i] = 0 - dot
		}
	default:
		c.squares = slices.Grow(c.squares[:0], len(dst))[:len(dst)]
		find(sums.OpDots, dst)
		find(sums.OpNorms, c.squares)
		for i, dot := range dst {
			dst[i] = v.angular(dot, c.squares[i])
		}
	}
}

// Report returns what is said of a key: a distance, or a score where the metric is a similarity.
func (m Metric) Report(key float64) float64 {
	switch m {
	case L2:
		return math.Sqrt(key)
	case IP:
		return 0 - key
	case Angular:
		return angle(key)
	default:
		return key
	}
}
