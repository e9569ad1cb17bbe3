package lsh

import (
	"math"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// Kolmogorov's test: the distribution of a hundred thousand variates is no further from the one that it should be than chance puts one of a billion.
func TestVariates(t *testing.T) {
	rng := seeded.Rand(t)
	v := newVariates(rng.Uint64(), rng.IntN(1000), L2)
	const n = 100_000
	normal := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	for _, c := range []struct {
		name     string
		draw     func() float64
		function func(float64) float64
	}{
		{"uniform", v.uniform, func(x float64) float64 { return x }},
		{"offset", func() float64 { return float64(v.offset()) }, func(x float64) float64 { return x }},
		{"exponential", v.exponential, func(x float64) float64 { return -math.Expm1(-x) }},
		{"gaussian, first", func() float64 { a, _ := v.gaussians(); return a }, normal},
		{"gaussian, second", func() float64 { _, b := v.gaussians(); return b }, normal},
		{"gaussian, sum of a pair", func() float64 { a, b := v.gaussians(); return (a + b) / math.Sqrt2 }, normal},
		{"gaussian, product's sign", func() float64 { a, b := v.gaussians(); return (a*a + b*b) / 2 }, func(x float64) float64 { return -math.Expm1(-x) }},
		{"cauchy", v.cauchy, func(x float64) float64 { return .5 + math.Atan(x)/math.Pi }},
		{"gamma", v.gamma, func(x float64) float64 { return 1 - (1+x)*math.Exp(-x) }},
	} {
		x := make([]float64, n)
		for i := range x {
			x[i] = c.draw()
		}
		slices.Sort(x)
		worst := 0.0
		for i, at := range x {
			f := c.function(at)
			worst = max(worst, math.Abs(f-float64(i)/n), math.Abs(f-float64(i+1)/n))
		}
		if limit := math.Sqrt(math.Log(2/1e-9) / 2 / n); !(worst < limit) {
			t.Errorf("%s: the distribution is off by %.4f, where %.4f is the limit", c.name, worst, limit)
		}
	}
}

// On random pairs the estimate of s is that of Theorem 4.1, at least as often as it says, and right on average.
func TestTheorem41(t *testing.T) {
	rng := seeded.Rand(t)
	const m, epsilon, delta = 2174, .06, .06
	pairs := 150
	if testing.Short() {
		pairs = 20
	}
	for _, family := range Families() {
		for _, rehash := range []bool{false, true} {
			for _, reach := range []int{0, 3} {
				p := Parameters{Family: family, Dim: 16, Functions: m, Buckets: 1000, Width: 1, Rehash: rehash, Reach: reach}
				if family == Cosine {
					p.Width, p.Buckets = 0, 2
				}
				if p.Check() != nil {
					continue
				}
				outside, bias := 0, 0.0
				for range pairs {
					p.Seed = rng.Uint64()
					f := must(t, p)
					a, step := normal(rng, p.Dim, 1), normal(rng, p.Dim, 1)
					b := make([]float32, p.Dim)
					scale := float32(rng.Float64() * .5) // pairs at all distances
					if reach > 0 {
						scale *= 5
					}
					for i := range b {
						b[i] = a[i] + step[i]*scale
					}
					c := matches(t, f, a, b)
					s := p.Collision(family.Distance(a, b))
					if math.Abs(float64(c)/m-s) > epsilon+p.Chance() {
						outside++
					}
					bias += (float64(c)/m-p.Chance())/(1-p.Chance()) - s
				}
				if float64(outside) > delta*float64(pairs) {
					t.Errorf("%v, re-hashed %v, reach %d: %d of %d pairs are outside", family, rehash, reach, outside, pairs)
				}
				// A mean of pairs x m trials, each of a standard deviation of at most 1/2; six of its own.
				if limit := 6 * .5 / math.Sqrt(float64(pairs)*m); math.Abs(bias/float64(pairs)) > limit {
					t.Errorf("%v, re-hashed %v, reach %d: the estimates are off by %.5f on average, where %.5f is the limit", family, rehash, reach, bias/float64(pairs), limit)
				}
			}
		}
	}
}

// Of vectors that are far apart keywords agree by chance alone, which is no similarity.
func TestChance(t *testing.T) {
	rng := seeded.Rand(t)
	for _, family := range []Family{L2, L1, Laplacian} {
		for _, reach := range []int{0, 3} {
			p := Parameters{Family: family, Dim: 8, Functions: 20_000, Buckets: 20, Width: 1, Rehash: true, Reach: reach, Seed: rng.Uint64()}
			if p.Check() != nil {
				continue
			}
			c := matches(t, must(t, p), normal(rng, p.Dim, 1e6), normal(rng, p.Dim, 1e6))
			limit := 6 * .5 / math.Sqrt(20_000)
			if s := p.Similarity(c); s > limit || math.Abs(float64(c)/20_000-p.Chance()) > limit {
				t.Errorf("%v, reach %d: %d of 20,000 agree, where chance is %.4f: s = %.4f", family, reach, c, p.Chance(), s)
			}
		}
	}
}

// Each dimension has a width of its own. With one for all, the kernel of these would be .531 where .402 is right.
func TestLaplacianKernel(t *testing.T) {
	const dim, m, distance = 128, 20_000, .911
	p := Parameters{Family: Laplacian, Dim: dim, Functions: m, Buckets: MaxBuckets, Width: 2, Rehash: true, Seed: seeded.Rand(t).Uint64()}
	a, b := make([]float32, dim), make([]float32, dim)
	for i := range b {
		b[i] = float32(distance * p.Width / dim)
	}
	s := p.Similarity(matches(t, must(t, p), a, b))
	if want := math.Exp(-distance); math.Abs(want-.402) > .001 || math.Abs(s-want) > 6*.5/math.Sqrt(m) {
		t.Errorf("s is %.4f where the kernel is %.4f", s, want)
	}
}

func TestDistanceInverts(t *testing.T) {
	rng := seeded.Rand(t)
	for range 2000 {
		p := some(rng, Families()[rng.IntN(4)])
		d := math.Exp(rng.NormFloat64()) * max(p.Width, 1)
		if p.Family == Cosine {
			d = rng.Float64() * math.Pi
		}
		s := p.Collision(d)
		if s <= 0 || s > 1-1e-9 {
			continue
		}
		// Where s hardly depends on the distance, the distance is known no better.
		slope := (p.Collision(d*1.0001) - s) / (d * .0001)
		if got := p.Distance(s); math.Abs(got-d) > 1e-9*d+1e-11/math.Abs(slope) {
			t.Fatalf("%+v: s is %v at %v, the distance of which is %v", p, s, d, got)
		}
		if p.Collision(d*1.1) > s {
			t.Fatalf("%+v: s rises after %v", p, d)
		}
	}
	p := some(rng, L2)
	if p.Distance(1) != 0 || !math.IsInf(p.Distance(0), 1) || !math.IsInf(p.Distance(-1), 1) || p.Collision(0) != 1 || !math.IsNaN(p.Distance(math.NaN())) {
		t.Errorf("the ends: %v, %v, %v", p.Distance(1), p.Distance(0), p.Collision(0))
	}
}

// Eqn 11 and its widened form, by the trapezoid rule.
func TestCollisionIsTheIntegral(t *testing.T) {
	for _, family := range []Family{L2, L1} {
		for _, reach := range []int{0, 1, 4} {
			for _, distance := range []float64{.01, .3, 1, 2.5, 20, 1000} {
				p := Parameters{Family: family, Width: 1.7, Reach: reach}
				density := func(t float64) float64 {
					t /= distance
					if family == L2 {
						return math.Sqrt(2/math.Pi) * math.Exp(-t*t/2) / distance
					}
					return 2 / math.Pi / (1 + t*t) / distance
				}
				const steps = 400_000
				end, want := p.Width*float64(reach+1), 0.0
				for i := range steps {
					at := (float64(i) + .5) * end / steps
					want += density(at) * min(1, float64(reach+1)-at/p.Width) * end / steps
				}
				if got := p.Collision(distance); math.Abs(got-want) > 1e-6 {
					t.Errorf("%v, reach %d, distance %v: %v, not %v", family, reach, distance, got, want)
				}
			}
		}
	}
}
