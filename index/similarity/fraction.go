package similarity

import (
	"math"
	"math/bits"
)

// wide is an unsigned integer of 128 bits.
type wide struct{ hi, lo uint64 }

func product(a, b uint64) wide {
	hi, lo := bits.Mul64(a, b)
	return wide{hi, lo}
}

func (a wide) less(b wide) bool { return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo }

func (a wide) zeros() int {
	if a.hi == 0 {
		return 64 + bits.LeadingZeros64(a.lo)
	}
	return bits.LeadingZeros64(a.hi)
}

func (a wide) shifted(n int) wide {
	if n >= 64 {
		return wide{a.lo << (n - 64), 0}
	}
	return wide{a.hi<<n | a.lo>>(64-n), a.lo << n}
}

func (a wide) minus(b wide) wide {
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	hi, _ := bits.Sub64(a.hi, b.hi, borrow)
	return wide{hi, lo}
}

// compareProducts compares a*b with c*d.
func compareProducts(a wide, b uint64, c wide, d uint64) int {
	a2, a1, a0 := times(a, b)
	c2, c1, c0 := times(c, d)
	for _, p := range [3][2]uint64{{a2, c2}, {a1, c1}, {a0, c0}} {
		if p[0] != p[1] {
			if p[0] < p[1] {
				return -1
			}
			return 1
		}
	}
	return 0
}

// times is a product of 192 bits.
func times(a wide, b uint64) (hi, mid, lo uint64) {
	low, high := product(a.lo, b), product(a.hi, b)
	mid, carry := bits.Add64(low.hi, high.lo, 0)
	return high.hi + carry, mid, low.lo
}

// exact is 2^53: up to there a float64 holds every integer.
const exact = 1 << 53

// Ratio returns the float64 nearest to n/d, halves to even; 0 where n is 0, whatever d is. Else d must not be 0.
func Ratio(n, d uint64) float64 { return ratio(wide{0, n}, wide{0, d}) }

// ratio is Ratio for 128 bits. Where both integers are float64s, the processor's division is rounded once. Elsewhere two of them would be
// rounded before it, so the quotient is made bit by bit: 56 bits and whether anything is left are enough to round to 53.
func ratio(n, d wide) float64 {
	if n == (wide{}) {
		return 0
	}
	if n.hi|d.hi == 0 && n.lo <= exact && d.lo <= exact {
		return float64(n.lo) / float64(d.lo)
	}
	// Both with their first bit set: the quotient lies between 1/2 and 2.
	ns, ds := n.zeros(), d.zeros()
	n, d = n.shifted(ns), d.shifted(ds)
	const places = 55
	q, carry := uint64(0), uint64(0)
	for range places + 1 {
		q <<= 1
		if carry > 0 || !n.less(d) {
			n = n.minus(d)
			q |= 1
		}
		carry = n.hi >> 63
		n = n.shifted(1)
	}
	drop := bits.Len64(q) - 53
	half := uint64(1) << (drop - 1)
	rest := q & (2*half - 1)
	q >>= drop
	if rest > half || rest == half && (carry > 0 || n != (wide{}) || q&1 == 1) {
		q++
	}
	return math.Ldexp(float64(q), drop-places+ds-ns)
}
