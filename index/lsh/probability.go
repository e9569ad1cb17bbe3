package lsh

import "math"

// Collision returns the probability that a function's buckets of two vectors at a distance are the same, or neighbours within reach, before
// re-hashing and clamping: s of Theorem 4.1, a falling function of the distance. For l2 and l1 it is Eqn 11, widened by the reach.
//
// With t the distance of two projections in buckets, a random offset puts them at most r buckets apart with probability 1 for t <= r, r + 1 - t up to r + 1, 0 beyond. So
// its mean is the integral of F, the distribution function of t, from r to r + 1.
func (p *Parameters) Collision(distance float64) float64 {
	switch d := math.Max(distance, 0); {
	case math.IsNaN(d):
		return math.NaN()
	case p.Family == Cosine:
		return 1 - math.Min(d, math.Pi)/math.Pi
	case p.Family == Laplacian:
		return math.Exp(-d / p.Width)
	case d/p.Width < 1e-12:
		return 1
	case d/p.Width > 1e12:
		return 0
	default:
		integral := gaussian
		if p.Family == L1 {
			integral = cauchy
		}
		r := float64(p.Reach)
		return math.Max(0, math.Min(1, integral(r+1, d/p.Width)-integral(r, d/p.Width)))
	}
}

// gaussian is the integral from 0 to x of the distribution function of the absolute value of a normal number with a standard deviation.
func gaussian(x, deviation float64) float64 {
	y := x / deviation
	return x*math.Erf(y/math.Sqrt2) + deviation*math.Sqrt(2/math.Pi)*math.Expm1(-y*y/2)
}

// cauchy is the same of a Cauchy number with a scale.
func cauchy(x, scale float64) float64 {
	y := x / scale
	return 2 / math.Pi * (x*math.Atan(y) - scale/2*math.Log1p(y*y))
}

// Chance is the probability that re-hashed keywords agree although their buckets do not: 1/D, and more with a reach, since a query asks 2r+1 keywords.
func (p *Parameters) Chance() float64 {
	if !p.Rehash {
		return 0
	}
	return -math.Expm1(float64(p.Asked()) * math.Log1p(-1/float64(p.Buckets)))
}

// Similarity estimates s of a query and an object from the functions on which they agree: c/m (Eqn 7), and re-hashed what is left of it without chance, at least 0.
func (p *Parameters) Similarity(count uint32) float64 {
	chance := p.Chance()
	return math.Max(0, (float64(count)/float64(p.Functions)-chance)/(1-chance))
}

// Distance returns the distance at which Collision is s, by bisection: 0 for 1 and more, infinity for 0 and less (cosine: a straight angle).
func (p *Parameters) Distance(s float64) float64 {
	switch {
	case math.IsNaN(s):
		return math.NaN()
	case s >= 1:
		return 0
	case p.Family == Cosine:
		return math.Pi * (1 - math.Max(s, 0))
	case s <= 0:
		return math.Inf(1)
	}
	lo, hi := 0.0, p.Width
	for p.Collision(hi) > s {
		lo, hi = hi, 2*hi
	}
	for {
		mid := lo + (hi-lo)/2
		if mid <= lo || mid >= hi {
			return mid
		}
		if p.Collision(mid) > s {
			lo = mid
		} else {
			hi = mid
		}
	}
}
