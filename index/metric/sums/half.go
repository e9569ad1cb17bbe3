package sums

import "math"

// Half is a float16 of IEEE 754, as its bits.
type Half uint16

// Float32 is the same number.
func (h Half) Float32() float32 {
	const (
		exponent = 0x7c00 // of infinities and NaN
		shift    = 23 - 10
	)
	sign, rest := uint32(h&0x8000)<<16, uint32(h&0x7fff)
	switch {
	case rest >= exponent:
		return math.Float32frombits(sign | 0xff<<23 | (rest-exponent)<<shift)
	case rest < 1<<10: // 0, or not normal: a whole number of 2^-24
		return math.Float32frombits(math.Float32bits(float32(rest)*0x1p-24) | sign)
	default:
		return math.Float32frombits(sign | (rest<<shift + (127-15)<<23))
	}
}

// ToHalf is the number as a Half, and whether that is the same number.
func ToHalf(f float32) (Half, bool) {
	b := math.Float32bits(f)
	sign, rest := Half(b>>16&0x8000), math.Float32frombits(b&0x7fffffff)
	switch {
	case rest != rest || rest > 65504:
		return 0, false
	case rest < 0x1p-14: // 0, or not normal
		n := rest * 0x1p24
		return sign | Half(n), n == float32(Half(n))
	default:
		b = b&0x7fffffff - (127-15)<<23
		return sign | Half(b>>13), b&(1<<13-1) == 0
	}
}

// Float32s makes float32s of halves, as many as dst has.
func Float32s(dst []float32, halves []Half) {
	for i, h := range halves[:len(dst)] {
		dst[i] = h.Float32()
	}
}
