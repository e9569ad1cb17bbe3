package array

import (
	"math"
	"testing"
)

func TestHalf(t *testing.T) {
	for bits, want := range map[uint16]float64{0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 0x0001: 0x1p-24, 0x0400: 0x1p-14, 0x3555: 0.333251953125, 0xfc00: math.Inf(-1)} {
		if got := half(bits); got != want {
			t.Errorf("%#x is %v, want %v", bits, got, want)
		}
	}
	if !math.IsNaN(half(0x7e00)) {
		t.Error("NaN is a number")
	}
}
