// Package lsh makes keywords of vectors by locality sensitive hashing, so that near vectors have many keywords in common.
//
// # What it is
//
// An index column of vectors has m hash functions. Each is an attribute; a vector's hash is its keyword there. The match count c of a query and an
// object is then the number of functions on which they agree, and c/m estimates s, the probability that a function agrees on
// them, which falls with their distance (GENIE, section IV). Functions hashes, Parameters are all that it is made from and all that
// an index file stores, Choose finds parameters from a sample, and a Table says what recall they reached.
//
//	family     distance  a function                                            re-hashed
//	l2         Euclid    floor((a x + b) / w), a Gaussian (Datar et al. 2004)  if asked; else ends clamp
//	l1         city      the same, a Cauchy                                    always
//	cosine     angle     is a x >= 0, a Gaussian (SimHash; Charikar 2002)      never
//	laplacian  city      floor((x_i - u_i) / g_i) for every i, g_i of          always
//	                     Gamma(2, sigma) (Random Binning; Rahimi, Recht 2007)
//
// # Clamped or re-hashed
//
// Bucket numbers have no ends, keywords have. Of l2 the buckets keep their order: the buckets of the sample's centre are in the middle of [0, D), and what
// lies beyond an end is in the last bucket there. A query of reach r is then one span of 2r+1 keywords, and D is small, which layouts of
// the file and kernels like. What is clamped agrees although it does not collide: such a pair is outside of Theorem 4.1, s comes out too large. Choose takes
// D so large that one hash in a thousand of its sample is clamped at most, and says how many. Where outliers matter more than speed, Rehash is there. Cauchy
// projections have tails so heavy that a clamped end would be the longest list, so l1 is always re-hashed: MurmurHash3 of the bucket number, with a
// seed per function, scaled to [0, D). Re-hashed neighbours are no neighbours, so a query of reach r asks 2r+1 single keywords. The
// cells of laplacian are lists of d numbers and have no order at all; neither they nor cosine's two halves have a reach.
//
// # The same bits everywhere
//
// A query is hashed years after the objects, on another machine. So nothing depends on the machine. Variates are made by methods that need no logarithm or
// cosine, which libraries round as they like (see variates.go), from ChaCha8 with a key per function, whose output C2SP specifies; so
// m functions are the first m of more. Hashing is defined operation by operation in package block. Parameters are stored, functions
// are not: 237 functions of 128 dimensions would take 121 KB, those of Random Binning for 1,156 dimensions 2.2 MB per column.
//
// # Ownership
//
// Functions are immutable and safe for concurrent use. The slices that they are given stay the caller's.
package lsh

import (
	"fmt"
	"math"
)

// Family is a kind of hash function, by the distance that it preserves.
type Family uint8

// The families; their numbers are those of index files.
const (
	L2 Family = 1 + iota
	L1
	Cosine
	Laplacian
)

// Families are all families.
func Families() []Family { return []Family{L2, L1, Cosine, Laplacian} }

// String is the family's name in a schema: l2, l1, cosine or laplacian.
func (f Family) String() string {
	switch f {
	case L2:
		return "l2"
	case L1:
		return "l1"
	case Cosine:
		return "cosine"
	case Laplacian:
		return "laplacian"
	}
	return fmt.Sprintf("family %d", uint8(f))
}

// ParseFamily returns the family of a name.
func ParseFamily(name string) (Family, error) {
	for _, f := range Families() {
		if f.String() == name {
			return f, nil
		}
	}
	return 0, fmt.Errorf("there is no family %q of hash functions: take l2, l1, cosine or laplacian", name)
}

// projects says whether a function is a product with one row of numbers.
func (f Family) projects() bool { return f != Laplacian }

// reaches says whether neighbouring buckets can count.
func (f Family) reaches() bool { return f == L2 || f == L1 }

// Distance returns the distance of two vectors that the family preserves: Euclid's for l2, the city's for l1 and laplacian, the angle in radians for cosine (a
// right angle where a vector has no direction). It is for measuring; answers are rescored elsewhere.
func (f Family) Distance(a, b []float32) float64 {
	b = b[:len(a)]
	var sum, aa, bb float64
	switch f {
	case L2:
		for i, x := range a {
			d := float64(x) - float64(b[i])
			sum += d * d
		}
		return math.Sqrt(sum)
	case Cosine:
		for i, x := range a {
			x, y := float64(x), float64(b[i])
			sum += x * y
			aa += x * x
			bb += y * y
		}
		if aa == 0 || bb == 0 {
			return math.Pi / 2
		}
		return math.Acos(max(-1, min(1, sum/math.Sqrt(aa)/math.Sqrt(bb))))
	}
	for i, x := range a {
		sum += math.Abs(float64(x) - float64(b[i]))
	}
	return sum
}
