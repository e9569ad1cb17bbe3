package fenced

import "math"

// pair is an unevaluated sum: hi is hi + lo rounded, so that lo is what hi lacks. It has some 104 bits.
type pair struct{ hi, lo float64 }

// normal makes a pair of two numbers of which the first is the larger (or zero).
func normal(hi, lo float64) pair {
	s := hi + lo
	return pair{s, lo - (s - hi)}
}

// sum is a + b, exactly.
func sum(a, b float64) pair {
	s := a + b
	t := s - a
	return pair{s, (a - (s - t)) + (b - t)}
}

// product is a b, exactly, unless it is so small that a bit of it is below all numbers.
func product(a, b float64) pair {
	p := float64(a * b)
	return pair{p, math.FMA(a, b, -p)}
}

func (a pair) times(b pair) pair {
	p := product(a.hi, b.hi)
	return normal(p.hi, p.lo+(float64(a.hi*b.lo)+float64(a.lo*b.hi)))
}

func (a pair) plus(b pair) pair {
	s := sum(a.hi, b.hi)
	return normal(s.hi, s.lo+(a.lo+b.lo))
}

func (a pair) minus(b pair) pair { return a.plus(pair{-b.hi, -b.lo}) }

// twice is exact.
func (a pair) twice() pair { return pair{2 * a.hi, 2 * a.lo} }

// root is the square root of z > 0, which is no less than 2^-900.
func root(z float64) pair {
	s := math.Sqrt(z)
	return normal(s, math.FMA(-s, s, z)/(2*s))
}
