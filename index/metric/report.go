package metric

import (
	"fmt"
	"math"

	"github.com/geniemq/geniemq/index/metric/fenced"
)

// EarthRadius is the mean radius of the earth in metres (IUGG), which Geo's reports are made with.
const EarthRadius = 6371008.8

// Check says what is wrong with a metric, nil if nothing is.
func (m Metric) Check() error {
	switch m.Kind {
	case Lp:
		if m.P < 3 || m.P > 8 {
			return fmt.Errorf("the metric lp with p = %d: p is 3 to 8 (for 1 and 2 there are l1 and l2)", m.P)
		}
	case L1, L2, Linf, Cosine, Angular, IP, Hamming, Edit, Geo:
		if m.P != 0 {
			return fmt.Errorf("the metric %s has no p, and %d is given: only lp has one", m.Kind, m.P)
		}
	default:
		return fmt.Errorf("there is no metric %q: it is one of l1, l2, linf, lp, cosine, angular, ip, hamming, edit and geo", m.Kind)
	}
	return nil
}

// Report is what users are told of a value, their distance: it rises with the value, never falls. It is computed on the host alone, with the
// same bits everywhere.
//
//	l1, linf, hamming, edit  v
//	ip                       v, the product with its sign turned: the largest product is the nearest
//	l2, lp                   the root of v
//	cosine                   1 + v: 0 to 2
//	angular                  the angle, 0 to 180 degrees
//	geo                      metres along the great circle of a sphere with EarthRadius
func (m Metric) Report(v float64) float64 {
	switch m.Kind {
	case L2:
		return math.Sqrt(v)
	case Lp:
		return fenced.Root(v, m.P)
	case Cosine:
		return 1 + v
	case Angular:
		return fenced.AcosDegrees(-v)
	case Geo:
		return 2 * EarthRadius * fenced.Asin(min(1, math.Sqrt(v)/2))
	default:
		return v
	}
}

// Least is the least report of all: 0, but of IP, whose reports may be any number.
func (m Metric) Least() float64 {
	least, _ := m.values()
	return m.Report(least)
}

// Within is the largest value whose report is at most radius, so that an object's value is at most that exactly when its reported distance is
// at most the radius. It is math.Inf(-1) where there is none.
func (m Metric) Within(radius float64) float64 {
	if math.IsInf(radius, 1) {
		return radius
	}
	least, most := m.values()
	switch {
	case !(m.Report(least) <= radius):
		return math.Inf(-1)
	case m.Report(most) <= radius:
		return most
	}
	// The report of lo is within, that of hi is not.
	lo, hi := rank(least), rank(most)
	for uint64(hi-lo) > 1 { // which may be more than an int64 holds
		if mid := lo + int64(uint64(hi-lo)/2); m.Report(number(mid)) <= radius {
			lo = mid
		} else {
			hi = mid
		}
	}
	return number(lo)
}

// values are the least and the largest that an object may have. Those that are damaged have math.Inf(1).
func (m Metric) values() (least, most float64) {
	switch m.Kind {
	case Cosine, Angular:
		return -1, 1
	case IP:
		return -math.MaxFloat64, math.MaxFloat64
	}
	return 0, math.MaxFloat64
}

// rank numbers float64s in their order; both zeros are 0.
func rank(v float64) int64 {
	b := int64(math.Float64bits(math.Abs(v)))
	if v < 0 {
		return -b
	}
	return b
}

// number is the float64 of a rank.
func number(rank int64) float64 {
	if rank < 0 {
		return -math.Float64frombits(uint64(-rank))
	}
	return math.Float64frombits(uint64(rank))
}

// Distance is a true metric that rises with the value, for bounds: it obeys the triangle inequality but for Slack. It is the value or its
// root, and of Cosine, Angular and Geo the chord between unit vectors. IP has none.
func (m Metric) Distance(v float64) float64 {
	switch m.Kind {
	case L2, Geo:
		return math.Sqrt(v)
	case Lp:
		return fenced.Root(v, m.P)
	case Cosine, Angular:
		return math.Sqrt(2 + float64(2*v))
	default:
		return v
	}
}

// Slack is what rounding may add to the difference of two distances. Let q, p and o be objects of as many dimensions, dq the Distance between
// q and p and edge the one between o and p, or a number that is on the safe side of it. If dq - edge > t + Slack, or edge - dq is, then the
// Distance between q and o is above t.
//
// # Why
//
// Let u = 2^-53, and c = dims/8 the terms of a partial sum. A value of l1, l2, lp or geo is a sum of terms that are not negative, each right
// but for 2p-1 roundings, added in c + 3 additions: its relative error is below (c + 2p + 2) 1.01 u, and p times less after the root, and u: e
// = (c + 5) 1.01 u suffices for each. Three distances are wrong by so much of themselves, and the third is at most the sum of both others: 2 e
// (dq + edge) covers them, which 2^-50 (c + 16) (dq + edge) does four times. For lp, powers of small differences vanish: each loses less than
// 2^-1072 in dims terms, a root of which is added; squares of geo's float64 coordinates likewise.
//
// The dot product of cosine is wrong by (c + 4) u |q||o| at most, the norms by (c/2 + 4) u of themselves each, so v by (2c + 14) u, and 2 + 2v
// by x = (4c + 32) u. A root is wrong by the root of that near 0: three times that, and as above for the rest. Counts are exact.
func (m Metric) Slack(dims int, dq, edge float64) float64 {
	c := float64(dims) / 8
	relative := (c + 16) * 0x1p-50 * (dq + edge)
	switch m.Kind {
	case Hamming, Edit:
		return 0
	case Cosine, Angular:
		return 3*math.Sqrt((4*c+32)*0x1p-53) + relative
	case Lp:
		return 3*fenced.Root(float64(dims+1)*0x1p-1070, m.P) + relative
	case Geo:
		return 0x1p-530 + relative
	default:
		return relative
	}
}
