package tree

import (
	"math"

	"github.com/geniemq/geniemq/index/metric"
)

// A measure is a metric of objects of some size: its distances, which bounds are made of, and what rounding may have done to them.
//
// Two distances to a pivot may differ by more than a third, between query and object, by less than metric.Slack, which rises with them in a straight line and so is kept as two
// numbers. Of cosines that is 10^-6 of a chord: vectors that are nearer to each other than that are compared rather than pruned.
//
// Boxes are held against coordinates, in values. What is summed up there may be too large by a share of (d/8 + 16) 2^-49, which covers d additions and what the value of an object
// lost. Unit vectors are made by a root and a division per element, and boxes hold what came of that, so the square of a chord may be wrong by (d/8 + 16) 2^-48, as a value that
// is -cos may.
type measure struct {
	metric.Metric
	dims        int
	share, lost float64 // slack = share (a + b) + lost
	ulps        float64 // what the sum of a box may be too large by
	square      float64 // what the square of a chord may be wrong by
	whole       bool    // values are counts
	chords      bool    // distances are chords of unit vectors
}

func newMeasure(m metric.Metric, dims int) measure {
	x := measure{Metric: m, dims: dims, whole: m.Kind == metric.Edit || m.Kind == metric.Hamming, chords: m.Kind == metric.Cosine || m.Kind == metric.Angular}
	x.lost = m.Slack(dims, 0, 0)
	x.share = (m.Slack(dims, 1, 0) - x.lost) * (1 + 0x1p-20)
	size := float64(dims)/8 + 16
	x.ulps, x.square = size*0x1p-49, size*0x1p-48
	return x
}

// slack is by how much two computed distances to a pivot may differ more than a third that is computed says.
func (m *measure) slack(a, b float64) float64 {
	if m.whole {
		return 0
	}
	return float64(m.share*(a+b)) + m.lost
}

// interval is how far objects with distances lo to hi from a pivot are from a query at distance d from it, at least.
func (m *measure) interval(d float64, lo, hi float32) float64 {
	gap := max(d-float64(hi), float64(lo)-d)
	if !(gap > 0) { // damaged objects are infinitely far from all
		return 0
	}
	if gap -= m.slack(d, float64(hi)); gap > 0 {
		return gap
	}
	return 0
}

// place makes coordinates of what boxes are put around: under cosine and angular, unit vectors. What rounding moves them by is less than square allows for.
func (m *measure) place(x []float64) {
	if !m.chords {
		return
	}
	norm := 0.0
	for _, v := range x {
		norm += float64(v * v)
	}
	if norm = math.Sqrt(norm); norm == 0 {
		return // a damaged object, which is infinitely far from all
	}
	for i := range x {
		x[i] /= norm
	}
}

// box is the least value that an object within a box can have. The box is its least coordinates and then its largest.
func (m *measure) box(q []float64, box []float32) float64 {
	lo, hi := box[:len(q)], box[len(q):2*len(q)]
	sum := 0.0
	for i, x := range q {
		gap := max(float64(lo[i])-x, x-float64(hi[i]), 0)
		switch m.Kind {
		case metric.L1:
			sum += gap
		case metric.Linf:
			sum = max(sum, gap)
		case metric.Lp:
			power := gap
			for range m.P - 1 {
				power = float64(power * gap)
			}
			sum += power
		default: // l2, and chords of unit vectors
			sum += float64(gap * gap)
		}
	}
	return m.outside(sum)
}

// outside is the least value of what is outside by so much, added up by coordinate.
func (m *measure) outside(sum float64) float64 {
	least := sum - float64(sum*m.ulps) - 0x1p-1050
	if m.chords {
		return float64((least-m.square)*0.5) - 1
	}
	return max(least, 0)
}

// distance is the true metric of a value. Values that are wanted may be less than any.
func (m *measure) distance(v float64) float64 {
	if m.chords {
		return m.Distance(max(v, -1))
	}
	return m.Distance(max(v, 0))
}

// value is one whose distance is d, or nearly.
func (m *measure) value(d float64) float64 {
	switch {
	case m.chords:
		return float64(d*d)/2 - 1
	case m.Kind == metric.L2 || m.Kind == metric.Geo:
		return float64(d * d)
	case m.Kind == metric.Lp:
		power := d
		for range m.P - 1 {
			power = float64(power * d)
		}
		return power
	case m.whole:
		return math.Floor(d)
	}
	return d
}
