// Asm writes the assembly of package sums: go generate ./index/metric/sums.
package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build" // avo's programs are written so
)

func main() {
	ConstraintExpr("amd64")
	c := &constants{
		magnitude: constant("magnitude", 1<<63-1),
		ones:      constant("ones", math.Float64bits(1)),
		infinity:  constant("infinity", math.Float64bits(math.Inf(1))),
		sign:      constant("sign", 1<<63),
		minus:     constant("minus", math.Float64bits(-1)),
		bit:       constant("bit", 0x0101010101010101),
		magic:     constant("magic", math.Float64bits(1<<52)),
	}
	c.masks = sliding("masks", 4, 8)
	c.bytes = sliding("bytes", 1, 32)
	for _, f := range []*family{
		{"AVX2", 2, YMM, c}, {"AVX512", 1, ZMM, c},
	} {
		for _, op := range []string{"squares", "differences", "dots", "largest"} {
			f.floats(op, 1)
			f.floats(op, many)
		}
		for _, op := range []string{"norms", "powers", "unequal"} {
			f.floats(op, 1)
		}
	}
	for _, op := range []string{"squares", "differences", "dots", "largest", "unequal"} {
		bytesKernel(c, "AVX2", op, 1)
		bytesKernel(c, "AVX2", op, many)
	}
	for _, op := range []string{"squares", "dots"} {
		bytesKernel(c, "VNNI", op, 1)
		bytesKernel(c, "VNNI", op, many)
	}
	points(c)
	cosines(c)
	for dims := 1; dims <= 8; dims++ {
		columns(c, dims)
	}
	boxes()
	widenHalves()
	widenBytes()
	sieve("AVX512", ZMM, 16, sieved)
	sieve("AVX2", YMM, 8, 2)
	turn()
	lengths()
	rowsKernel(c, "squares", true)
	rowsKernel(c, "angles", false)
	Generate()
}
