// Package fenced is the mathematics of distances: sines, arcs and roots that have the same bits on every machine.
//
// The library's functions differ between architectures: some have them in assembly, and where a machine can fuse a product with a sum the
// compiler does. Here each product stands within a conversion, which keeps it from being fused (math.FMA is fused everywhere, and rounds once).
// Square roots are exact by the standard.
//
// # Monotone
//
// Asin, AcosDegrees and Root never fall where they should rise, or the order of what is reported would not be that of values, and a radius would
// have no largest value. A polynomial that is right to one unit in the last place promises nothing of that kind. So these compute a sum hi + lo
// whose error is below 2^-95 of it. Two arguments that follow each other are 2^-53 of themselves apart at least, and their results 2^-57
// (the relative slope of a p-th root is 1/p, those of arcs are larger): so the sums rise strictly, and rounding, which is last, is monotone.
// Where that cannot be said, around a right angle, the result is made of steps each of which is monotone after rounding. Results are right within
// 0.76 units in the last place, and those of Root and Asin within 0.51.
package fenced

import "math"

// Asin is the arc sine of 0 <= x <= 1, in radians.
func Asin(x float64) float64 {
	if x <= 0.5 {
		return arc(pair{x, 0}).hi
	}
	const hi, lo = 0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54 // a right angle
	if x >= 1 {
		return hi
	}
	return pair{hi, lo}.minus(arc(root((1 - x) / 2)).twice()).hi
}

// AcosDegrees is the arc cosine of -1 <= c <= 1, in degrees: 0 to 180.
func AcosDegrees(c float64) float64 {
	switch {
	case c >= 1:
		return 0
	case c <= -1:
		return 180
	case c > 0.5:
		return degrees(arc(root((1 - c) / 2)).twice())
	case c < -0.5:
		return 180 - degrees(arc(root((1+c)/2)).twice())
	case math.Abs(c) < 0x1p-60:
		return 90
	case c < 0:
		return 90 + degrees(arc(pair{-c, 0}))
	default:
		return 90 - degrees(arc(pair{c, 0}))
	}
}

// degrees are those of an angle in radians.
func degrees(a pair) float64 {
	return a.times(pair{0x1.ca5dc1a63c1f8p+5, -0x1.1e7ab456405f9p-49}).hi
}

// arc is the arc sine of 0 <= x <= 1/2: of an approximation, by a step of Newton's with a sine of twice as many bits.
func arc(x pair) pair {
	if x.hi < 0x1p-30 { // the next term is 2^-122 of it
		return normal(x.hi, x.lo+float64(float64(x.hi*x.hi)*x.hi)/6)
	}
	y := near(x.hi)
	s := sine(y)
	// (x - sin y) / cos y; what comes next is the square of that, which is 2^-100.
	e := (x.hi - s.hi) - s.lo + x.lo
	return normal(y, e/math.Sqrt(1-float64(s.hi*s.hi)))
}

// near is the arc sine of 0 <= x <= 1/2 within some units in the last place, by its series, and Newton's step where that is slow.
func near(x float64) float64 {
	z := float64(x * x)
	// x + x^3/6 + 3x^5/40 + ...: coefficients ((2n)! / (4^n n!^2 (2n+1))).
	s := 0.0
	for n := 12; n > 0; n-- {
		// The next coefficient is this one times (2n-1)^2 / (2n (2n+1)).
		s = float64(z*float64(float64((2*n-1)*(2*n-1))/float64(2*n*(2*n+1)))) * (1 + s)
	}
	y := x + float64(x*s)
	k := sine(y)
	return y + float64((x-k.hi)/math.Sqrt(1-float64(k.hi*k.hi)))
}

// sine is that of 0 <= y <= 0.6, by its series.
func sine(y float64) pair {
	// 1/(2n+1)! with signs, the last first.
	series := [...]pair{
		{0x1.3f3ccdd165fa9p-84, -0x1.58ddadf344487p-139},
		{-0x1.761b41316381ap-75, 0x1.3423c7d91404fp-130},
		{0x1.71b8ef6dcf572p-66, -0x1.d043ae40c4647p-120},
		{-0x1.2f49b46814157p-57, -0x1.2650f61dbdcb4p-112},
		{0x1.952c77030ad4ap-49, 0x1.ac981465ddc6cp-103},
		{-0x1.ae7f3e733b81fp-41, -0x1.1d8656b0ee8cbp-97},
		{0x1.6124613a86d09p-33, 0x1.f28e0cc748ebep-87},
		{-0x1.ae64567f544e4p-26, 0x1.c062e06d1f209p-80},
		{0x1.71de3a556c734p-19, -0x1.c154f8ddc6c00p-73},
		{-0x1.a01a01a01a01ap-13, -0x1.a01a01a01a01ap-73},
		{0x1.1111111111111p-7, 0x1.1111111111111p-63},
		{-0x1.5555555555555p-3, -0x1.5555555555555p-57},
	}
	z := product(y, y)
	s := series[0]
	for _, c := range series[1:] {
		s = s.times(z).plus(c)
	}
	s = s.times(z).times(pair{y, 0})
	return normal(y, s.hi).plus(pair{s.lo, 0})
}

// Root is the p-th root of v >= 0, p at least 1.
func Root(v float64, p int) float64 {
	switch {
	case v == 0 || math.IsInf(v, 1) || p == 1:
		return v
	case p == 2:
		return math.Sqrt(v)
	}
	m, e := math.Frexp(v) // m in [1/2, 1)
	// v = m 2^(pq): m in [2^-p, 1), a root in [1/2, 1).
	q := (e + p*4096 + p - 1) / p
	m = math.Ldexp(m, e+p*4096-q*p)
	y := 0.75
	for range 64 {
		power := y
		for range p - 2 {
			power = float64(power * y)
		}
		step := float64(y-float64(m/power)) / float64(p)
		if y -= step; math.Abs(step) < 0x1p-50 {
			break
		}
	}
	// One step more, of twice as many bits.
	power := pair{y, 0}
	for range p - 1 {
		power = power.times(pair{y, 0})
	}
	step := ((m - power.hi) - power.lo) / (float64(p) * power.hi / y)
	return math.Ldexp(y+step, q-4096)
}
