package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// points is plainPoints: four at a time, a register per coordinate.
func points(c *constants) {
	TEXT("pointsAVX2", NOSPLIT, "func(dst, units []float64, q *[3]float64)")
	Pragma("noescape")
	Doc("pointsAVX2 is plainPoints, of a multiple of 4 points.")
	dst, left := Load(Param("dst").Base(), GP64()), Load(Param("dst").Len(), GP64())
	units, query := Load(Param("units").Base(), GP64()), Load(Param("q"), GP64())
	var q [3]reg.VecVirtual
	for i := range q {
		q[i] = YMM()
		VBROADCASTSD(Mem{Base: query, Disp: 8 * i}, q[i])
	}
	infinity := YMM()
	VMOVUPD(c.infinity, infinity)
	SHRQ(U8(2), left)
	loop("four", left, func() {
		var m [3]reg.VecVirtual // x0 y0 x2 y2; z0 x1 z2 x3; y1 z1 y3 z3
		for i := range m {
			m[i] = YMM()
			VMOVUPD(Mem{Base: units, Disp: 16 * i}, m[i].AsX())
			VINSERTF128(U8(1), Mem{Base: units, Disp: 48 + 16*i}, m[i], m[i])
		}
		x, y, z := YMM(), YMM(), YMM()
		VSHUFPD(U8(0b1010), m[1], m[0], x)
		VSHUFPD(U8(0b0101), m[2], m[0], y)
		VSHUFPD(U8(0b1010), m[2], m[1], z)
		for i, e := range []reg.VecVirtual{x, y, z} {
			VSUBPD(q[i], e, e)
			VMULPD(e, e, e)
		}
		VADDPD(y, x, x)
		VADDPD(z, x, x)
		VMINPD(infinity, x, x)
		VMOVUPD(x, Mem{Base: dst})
		ADDQ(U32(96), units)
		ADDQ(U32(32), dst)
	})
	VZEROUPPER()
	RET()
}

// cosines is plainCosines, four at a time.
func cosines(c *constants) {
	TEXT("cosinesAVX2", NOSPLIT, "func(dst, norms []float64, norm float64)")
	Pragma("noescape")
	Doc("cosinesAVX2 is plainCosines, of a multiple of 4 products.")
	dst, left := Load(Param("dst").Base(), GP64()), Load(Param("dst").Len(), GP64())
	norms, norm := Load(Param("norms").Base(), GP64()), Load(Param("norm"), XMM())
	var fixed [5]reg.VecVirtual
	for i, m := range []Mem{c.sign, c.minus, c.ones, c.infinity} {
		fixed[i] = YMM()
		VMOVUPD(m, fixed[i])
	}
	sign, minus, one, infinity := fixed[0], fixed[1], fixed[2], fixed[3]
	zero, query := YMM(), YMM()
	VXORPD(zero, zero, zero)
	VBROADCASTSD(norm.(reg.VecVirtual).AsX(), query)
	SHRQ(U8(2), left)
	loop("four", left, func() {
		both, v, mask := YMM(), YMM(), YMM()
		VMULPD(Mem{Base: norms}, query, both)
		VXORPD(Mem{Base: dst}, sign, v)
		VDIVPD(both, v, v)
		VCMPPD(U8(unorder), v, v, mask)
		VMINPD(one, v, v)
		VMAXPD(minus, v, v)
		VBLENDVPD(mask, infinity, v, v)
		VCMPPD(U8(equal), zero, both, mask)
		VANDNPD(v, mask, v)
		VADDPD(zero, v, v)
		VMOVUPD(v, Mem{Base: dst})
		ADDQ(U32(32), norms)
		ADDQ(U32(32), dst)
	})
	VZEROUPPER()
	RET()
}

// widenHalves makes float32s of float16s, and widenBytes of bytes, eight at a time.
func widenHalves() {
	widen("halvesAVX2", "func(dst []float32, src []uint16)", 16, func(src, dst Mem) {
		t := YMM()
		VCVTPH2PS(src, t)
		VMOVUPS(t, dst)
	})
}

func widenBytes() {
	widen("bytesAVX2", "func(dst []float32, src []uint8)", 8, func(src, dst Mem) {
		t := YMM()
		VPMOVZXBD(src, t)
		VCVTDQ2PS(t, t)
		VMOVUPS(t, dst)
	})
}

func widen(name, signature string, size int, eight func(src, dst Mem)) {
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(name + " makes float32s of a multiple of 8 elements.")
	dst, left, src := Load(Param("dst").Base(), GP64()), Load(Param("dst").Len(), GP64()), Load(Param("src").Base(), GP64())
	SHRQ(U8(3), left)
	loop("eight", left, func() {
		eight(Mem{Base: src}, Mem{Base: dst})
		ADDQ(U32(uint32(size)), src)
		ADDQ(U32(32), dst)
	})
	VZEROUPPER()
	RET()
}
