package similarity

import "math"

// angle is the arc of a key of Angular: acos c = 2 atan sqrt((1-c)/(1+c)), which stays precise near 0 and pi.
func angle(key float64) float64 {
	c := math.Sqrt(min(math.Abs(key), 1))
	if key > 0 {
		c = -c
	}
	if c == -1 {
		return math.Pi
	}
	return float64(2 * arctan(math.Sqrt(float64(1-c)/float64(1+c))))
}

// arctan is the arc tangent of x >= 0, within two units in the last place, and the same on every machine. It is that of Cephes: x is brought below tan(pi/8), where
// a rational function takes its place.
func arctan(x float64) float64 {
	const (
		more = 6.123233995736765886130e-17 // pi/2 less its float64
		high = 2.41421356237309504880      // tan(3 pi/8)
	)
	switch {
	case x <= 0.66:
		return arctanLow(x)
	case x > high:
		return math.Pi/2 - arctanLow(1/x) + more
	default:
		return math.Pi/4 + arctanLow((x-1)/(x+1)) + 0.5*more
	}
}

// arctanLow is for x from -0.42 to 0.66.
func arctanLow(x float64) float64 {
	const (
		p0 = -8.750608600031904122785e-01
		p1 = -1.615753718733365076637e+01
		p2 = -7.500855792314704667340e+01
		p3 = -1.228866684490136173410e+02
		p4 = -6.485021904942025371773e+01
		q0 = +2.485846490142306297962e+01
		q1 = +1.650270098316988542046e+02
		q2 = +4.328810604912902668951e+02
		q3 = +4.853903996359136964868e+02
		q4 = +1.945506571482613964425e+02
	)
	z := float64(x * x)
	p := p0
	for _, c := range [...]float64{p1, p2, p3, p4} {
		p = float64(p*z) + c
	}
	q := float64(z + q0)
	for _, c := range [...]float64{q1, q2, q3, q4} {
		q = float64(q*z) + c
	}
	return float64(x*float64(float64(z*p)/q)) + x
}
