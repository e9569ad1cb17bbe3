package planner

import (
	"math"
	"math/big"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// The figures that the paper and its reading have.
func TestKnownFigures(t *testing.T) {
	if m := Theorem41(.06, .06); m != 2174 {
		t.Errorf("Theorem 4.1 asks for %d functions", m)
	}
	points, largest := Curve(.06, .06, 100)
	if len(points) != 99 || largest != (Point{.5, 258}) {
		t.Errorf("Eqn 9 asks for %+v at most, of %d", largest, len(points))
	}
	for i, p := range points {
		if p.Functions != points[98-i].Functions || p.Functions > 258 || p.Functions < 1 {
			t.Errorf("%+v and %+v", p, points[98-i])
		}
	}
	// Of 100,000 objects all at s = .3 the best of 237 functions show .42 to .45.
	if e := Selected(100_000, 237, .06); e < .15 || e > .2 {
		t.Errorf("hits are within %v", e)
	}
}

// exactly is Eqn 9 in fractions.
func exactly(m int, s, epsilon *big.Rat) float64 {
	one := big.NewRat(1, 1)
	q := new(big.Rat).Sub(one, s)
	sum := new(big.Rat)
	for c := range m + 1 {
		off := new(big.Rat).Sub(big.NewRat(int64(c), int64(m)), s)
		if off.Abs(off).Cmp(epsilon) > 0 {
			continue
		}
		term := new(big.Rat).SetInt(new(big.Int).Binomial(int64(m), int64(c)))
		for range c {
			term.Mul(term, s)
		}
		for range m - c {
			term.Mul(term, q)
		}
		sum.Add(sum, term)
	}
	f, _ := sum.Float64()
	return f
}

func TestWithinIsExact(t *testing.T) {
	rng := seeded.Rand(t)
	for range 150 {
		m, i, e := 1+rng.IntN(60), 1+rng.Int64N(99), 1+rng.Int64N(40)
		want := exactly(m, big.NewRat(i, 100), big.NewRat(e, 100))
		if got := Within(m, float64(i)/100, float64(e)/100); math.Abs(got-want) > 1e-12 {
			t.Fatalf("m = %d, s = .%02d, epsilon = .%02d: %.15f, not %.15f", m, i, e, got, want)
		}
	}
}

// By the rule no larger m fails, and the one before does. Far beyond, too, where no bound was asked.
func TestEqn9IsTheRule(t *testing.T) {
	rng := seeded.Rand(t)
	for range 60 {
		s, epsilon, delta := .01+.98*rng.Float64(), .03+.2*rng.Float64(), .01+.3*rng.Float64()
		m := Eqn9(s, epsilon, delta)
		if m > 1 && Within(m-1, s, epsilon) >= 1-delta {
			t.Fatalf("s = %v, epsilon = %v, delta = %v: %d functions are enough too", s, epsilon, delta, m-1)
		}
		for more := m; more < 4*m+100; more++ {
			if p := Within(more, s, epsilon); p < 1-delta {
				t.Fatalf("s = %v, epsilon = %v, delta = %v: %d functions, but %d have %v", s, epsilon, delta, m, more, p)
			}
		}
	}
}

// Tails stay right where sums of terms lose them: by their logarithms.
func TestTails(t *testing.T) {
	for _, c := range []struct {
		m, n int
		s    float64
	}{{100_000, 51_000, .5}, {1_000_000, 499_000, .5}, {20_000, 30, .001}, {5000, 4990, .99}} {
		want := 0.0
		for k := range c.n {
			a, _ := math.Lgamma(float64(c.m + 1))
			b, _ := math.Lgamma(float64(k + 1))
			d, _ := math.Lgamma(float64(c.m - k + 1))
			want += math.Exp(a - b - d + float64(k)*math.Log(c.s) + float64(c.m-k)*math.Log1p(-c.s))
		}
		if got := below(c.m, c.s, c.n); math.Abs(got-want) > 1e-7*want {
			t.Errorf("fewer than %d of %d at %v: %v, not %v", c.n, c.m, c.s, got, want)
		}
	}
}

// The largest of many estimates is further off than one, and within the bound of all.
func TestSelectedHolds(t *testing.T) {
	rng := seeded.Rand(t)
	const objects, m, s, delta, rounds = 20_000, 237, .3, .06, 20
	outside, beyond := 0, 0
	for range rounds {
		most := 0
		for range objects {
			c := 0
			for word := range (m + 63) / 64 { // bits that are set with probability .3 = .01001100110011... in binary, 20 digits of it
				bits := uint64(0)
				for digit := 20; digit > 0; digit-- {
					if 314573>>(20-digit)&1 == 1 {
						bits |= rng.Uint64()
					} else {
						bits &= rng.Uint64()
					}
				}
				for i := range min(64, m-64*word) {
					c += int(bits >> i & 1)
				}
			}
			most = max(most, c)
		}
		if float64(most)/m-s > Selected(objects, m, delta) {
			outside++
		}
		if float64(most)/m-s > .06 {
			beyond++
		}
	}
	if outside > 4 || beyond < rounds {
		t.Errorf("the best of %d are outside of the bound for hits %d times of %d, of that for a pair %d times", objects, outside, rounds, beyond)
	}
}
