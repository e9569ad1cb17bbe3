package lsh

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
)

// variates makes the random numbers of one hash function. They are the same bits on every machine: ChaCha8 is specified (C2SP, chacha8rand), and
// what follows compares, adds, multiplies, divides and takes square roots in float64, which IEEE 754 rounds exactly. No product is fused with a
// sum, since explicit conversions forbid it.
type variates struct{ source *rand.ChaCha8 }

// newVariates makes those of a function: its key is the seed, the function's number and the family.
func newVariates(seed uint64, function int, family Family) variates {
	key := [32]byte{16: 'g', 17: 'e', 18: 'n', 19: 'i', 20: 'e', 21: 'm', 22: 'q', 24: 1, 25: byte(family)}
	binary.LittleEndian.PutUint64(key[:], seed)
	binary.LittleEndian.PutUint64(key[8:], uint64(function))
	return variates{rand.NewChaCha8(key)}
}

// uniform is in [0, 1), a multiple of 2^-53.
func (v variates) uniform() float64 { return float64(v.source.Uint64()>>11) * 0x1p-53 }

// offset is in [0, 1), a multiple of 2^-24, which a float32 holds exactly.
func (v variates) offset() float32 { return float32(v.source.Uint64()>>40) * 0x1p-24 }

// exponential is exponential of mean 1, by von Neumann's comparisons (Various techniques used in connection with random digits, 1951): the run of
// falling numbers that the first one begins has odd length with probability e^-first; else the whole part rises by one, which it does with
// probability 1/e.
func (v variates) exponential() float64 {
	for whole := 0.0; ; whole++ {
		first := v.uniform()
		last, odd := first, true
		for {
			next := v.uniform()
			if next >= last {
				break
			}
			last, odd = next, !odd
		}
		if odd {
			return whole + first
		}
	}
}

// disk is a point of the unit disk but its centre, with the square of its distance from it.
func (v variates) disk() (x, y, square float64) {
	for {
		x, y = 2*v.uniform()-1, 2*v.uniform()-1
		square = float64(x*x) + float64(y*y)
		if square > 0 && square < 1 {
			return x, y, square
		}
	}
}

// gaussians is a pair of independent standard normal numbers: half of the square of their distance from zero is exponential, and their direction is that of a
// point of the disk.
func (v variates) gaussians() (float64, float64) {
	x, y, square := v.disk()
	radius := math.Sqrt(2 * v.exponential() / square)
	return radius * x, radius * y
}

// cauchy is a standard Cauchy number: the ratio of the coordinates of a point of the disk.
func (v variates) cauchy() float64 {
	for {
		if x, y, _ := v.disk(); y != 0 {
			return x / y
		}
	}
}

// gamma is a number of Gamma(2, 1): two exponential ones.
func (v variates) gamma() float64 {
	for {
		if g := v.exponential() + v.exponential(); g > 0 {
			return g
		}
	}
}
