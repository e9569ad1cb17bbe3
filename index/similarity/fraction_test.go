package similarity

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// short is n, or a fifth of it where tests are to be short.
func short(n int) int {
	if testing.Short() {
		return n / 5
	}
	return n
}

func (a wide) big() *big.Int {
	v := new(big.Int).SetUint64(a.hi)
	return v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(a.lo))
}

func whole(v uint64) *big.Int { return new(big.Int).SetUint64(v) }

func rat(n, d *big.Int) *big.Rat { return new(big.Rat).SetFrac(n, d) }

// random64 has any number of bits, and now and then only ones or a single one.
func random64(rng *rand.Rand) uint64 {
	v := rng.Uint64() >> rng.IntN(64)
	switch rng.IntN(8) {
	case 0:
		return uint64(1) << rng.IntN(64)
	case 1:
		return 1<<(1+rng.IntN(63)) - 1
	}
	return max(v, 1)
}

// TestRatio compares with math/big, whose Float64 rounds to the nearest, halves to even. Halves come from quotients that are made to be
// between two float64s.
func TestRatio(t *testing.T) {
	rng := seeded.Rand(t)
	halves := 0
	for round := range short(100000) {
		n, d := wide{random64(rng), random64(rng)}, wide{random64(rng), random64(rng)}
		if rng.IntN(3) == 0 {
			n.hi = 0
		}
		if rng.IntN(3) == 0 {
			d.hi = 0
		}
		if rng.IntN(4) == 0 { // a quotient of 54 bits, exactly or nearly
			q := 1<<53 | rng.Uint64()>>11 | 1
			d = wide{0, random64(rng)}
			n = product(q, d.lo)
			if rng.IntN(2) == 0 && n.lo < math.MaxUint64 {
				n.lo++
			} else {
				halves++
			}
		}
		want, _ := rat(n.big(), d.big()).Float64()
		if got := ratio(n, d); got != want {
			t.Fatalf("round %d: %v / %v is %v, want %v", round, n, d, got, want)
		}
		if n.hi|d.hi == 0 {
			if got := Ratio(n.lo, d.lo); got != want {
				t.Fatalf("round %d: %d / %d is %v, want %v", round, n.lo, d.lo, got, want)
			}
		}
	}
	if halves == 0 {
		t.Error("no half was rounded")
	}
	if Ratio(0, 0) != 0 || Ratio(0, 5) != 0 {
		t.Error("0 is not 0")
	}
	// Two float64s are not enough.
	wrong := 0
	for range 10000 {
		n, d := rng.Uint64()>>2, rng.Uint64()|1<<63
		if float64(n)/float64(d) != Ratio(n, d) {
			wrong++
		}
	}
	if wrong == 0 {
		t.Error("dividing float64s is never wrong: the test shows nothing")
	}
}

func TestCompareProducts(t *testing.T) {
	rng := seeded.Rand(t)
	for range short(100000) {
		a, b, c, d := wide{random64(rng), random64(rng)}, random64(rng), wide{random64(rng), random64(rng)}, random64(rng)
		switch rng.IntN(4) {
		case 0:
			c, d = a, b
		case 1:
			c, d = wide{a.hi, a.lo ^ 1}, b
		}
		want := new(big.Int).Mul(a.big(), whole(b)).Cmp(new(big.Int).Mul(c.big(), whole(d)))
		if got := compareProducts(a, b, c, d); got != want {
			t.Fatalf("%v*%d and %v*%d: %d, want %d", a, b, c, d, got, want)
		}
	}
}
