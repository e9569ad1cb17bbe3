// Package sums adds up over the elements of two vectors, with the same bits everywhere.
//
// # To the bit
//
// Elements are widened to float64, which holds each of them. Each difference, product and sum is rounded by itself, never fused. Term i is
// added to the partial sum i mod 8, i ascending; all begin with +0; then ((s0+s1)+(s2+s3)) + ((s4+s5)+(s6+s7)). A wide machine does 8 terms
// at once that way, and any machine can.
package sums

import "math"

// Element is what vectors are stored as.
type Element interface{ float32 | uint8 | float64 }

// The loops are written out so that the eight partial sums stay in registers.

// partial is eight partial sums.
type partial [8]float64

// total adds partial sums up, in the one order.
func (s *partial) total() float64 {
	return float64(float64(s[0]+s[1])+float64(s[2]+s[3])) + float64(float64(s[4]+s[5])+float64(s[6]+s[7]))
}

func square(q, o float64) float64 {
	d := q - o
	return float64(d * d)
}

// Squares is the sum of (q-o)^2.
func Squares[E Element](q []float64, o []E) float64 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float64
	i := 0
	for ; i+8 <= len(q) && i+8 <= len(o); i += 8 {
		a, b := (*[8]float64)(q[i:]), (*[8]E)(o[i:])
		s0 += square(a[0], float64(b[0]))
		s1 += square(a[1], float64(b[1]))
		s2 += square(a[2], float64(b[2]))
		s3 += square(a[3], float64(b[3]))
		s4 += square(a[4], float64(b[4]))
		s5 += square(a[5], float64(b[5]))
		s6 += square(a[6], float64(b[6]))
		s7 += square(a[7], float64(b[7]))
	}
	s := partial{s0, s1, s2, s3, s4, s5, s6, s7}
	for ; i < len(q); i++ {
		s[i%8] += square(q[i], float64(o[i]))
	}
	return s.total()
}

// Differences is the sum of |q-o|.
func Differences[E Element](q []float64, o []E) float64 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float64
	i := 0
	for ; i+8 <= len(q) && i+8 <= len(o); i += 8 {
		a, b := (*[8]float64)(q[i:]), (*[8]E)(o[i:])
		s0 += math.Abs(a[0] - float64(b[0]))
		s1 += math.Abs(a[1] - float64(b[1]))
		s2 += math.Abs(a[2] - float64(b[2]))
		s3 += math.Abs(a[3] - float64(b[3]))
		s4 += math.Abs(a[4] - float64(b[4]))
		s5 += math.Abs(a[5] - float64(b[5]))
		s6 += math.Abs(a[6] - float64(b[6]))
		s7 += math.Abs(a[7] - float64(b[7]))
	}
	s := partial{s0, s1, s2, s3, s4, s5, s6, s7}
	for ; i < len(q); i++ {
		s[i%8] += math.Abs(q[i] - float64(o[i]))
	}
	return s.total()
}

// Dots is the sum of q o.
func Dots[E Element](q []float64, o []E) float64 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float64
	i := 0
	for ; i+8 <= len(q) && i+8 <= len(o); i += 8 {
		a, b := (*[8]float64)(q[i:]), (*[8]E)(o[i:])
		s0 += float64(a[0] * float64(b[0]))
		s1 += float64(a[1] * float64(b[1]))
		s2 += float64(a[2] * float64(b[2]))
		s3 += float64(a[3] * float64(b[3]))
		s4 += float64(a[4] * float64(b[4]))
		s5 += float64(a[5] * float64(b[5]))
		s6 += float64(a[6] * float64(b[6]))
		s7 += float64(a[7] * float64(b[7]))
	}
	s := partial{s0, s1, s2, s3, s4, s5, s6, s7}
	for ; i < len(q); i++ {
		s[i%8] += float64(q[i] * float64(o[i]))
	}
	return s.total()
}

// Norm is the sum of squares of a vector's elements.
func Norm[E Element](o []E) float64 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float64
	i := 0
	for ; i+8 <= len(o); i += 8 {
		b := (*[8]E)(o[i:])
		s0 += float64(float64(b[0]) * float64(b[0]))
		s1 += float64(float64(b[1]) * float64(b[1]))
		s2 += float64(float64(b[2]) * float64(b[2]))
		s3 += float64(float64(b[3]) * float64(b[3]))
		s4 += float64(float64(b[4]) * float64(b[4]))
		s5 += float64(float64(b[5]) * float64(b[5]))
		s6 += float64(float64(b[6]) * float64(b[6]))
		s7 += float64(float64(b[7]) * float64(b[7]))
	}
	s := partial{s0, s1, s2, s3, s4, s5, s6, s7}
	for ; i < len(o); i++ {
		s[i%8] += float64(float64(o[i]) * float64(o[i]))
	}
	return s.total()
}

// Powers is the sum of |q-o|^p, each power made by p-1 products, p at least 1.
func Powers[E Element](p int, q []float64, o []E) float64 {
	var s partial
	for i, e := range o[:len(q)] {
		d := math.Abs(q[i] - float64(e))
		power := d
		for range p - 1 {
			power = float64(power * d)
		}
		s[i%8] += power
	}
	return s.total()
}

// Largest is the largest |q-o|, 0 of vectors without elements. What is NaN is passed over.
func Largest[E Element](q []float64, o []E) float64 {
	largest := 0.0
	for i, e := range o[:len(q)] {
		if d := math.Abs(q[i] - float64(e)); d > largest {
			largest = d
		}
	}
	return largest
}

// Unequal counts the elements that differ.
func Unequal[E Element](q []float64, o []E) (n int) {
	for i, e := range o[:len(q)] {
		if q[i] != float64(e) {
			n++
		}
	}
	return n
}
