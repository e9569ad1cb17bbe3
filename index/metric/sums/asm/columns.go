package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// columns is plainColumns of so many coordinates, four objects at a time: a lane has all partial sums of its object, each of one term at most.
func columns(c *constants, dims int) {
	name := fmt.Sprintf("columns%dAVX2", dims)
	TEXT(name, NOSPLIT, "func(dst []float64, columns []float32, q *[8]float64)")
	Pragma("noescape")
	Doc(name + " is plainColumns, of a multiple of 4 objects.")
	dst, left := Load(Param("dst").Base(), GP64()), Load(Param("dst").Len(), GP64())
	column, query := Load(Param("columns").Base(), GP64()), Load(Param("q"), GP64())
	next, infinity := GP64(), YMM()
	MOVQ(left, next)
	SHLQ(U8(2), next)
	VMOVUPD(c.infinity, infinity)
	SHRQ(U8(2), left)
	loop("four", left, func() {
		var terms [8]reg.VecVirtual
		at := GP64()
		MOVQ(column, at)
		for i := range dims {
			q, o := YMM(), YMM()
			VCVTPS2PD(Mem{Base: at}, o)
			VBROADCASTSD(Mem{Base: query, Disp: 8 * i}, q)
			VSUBPD(o, q, o)
			VMULPD(o, o, o)
			terms[i] = o
			if i < dims-1 {
				ADDQ(next, at)
			}
		}
		for apart := 1; apart < 8; apart *= 2 {
			for i := 0; i+apart < dims; i += 2 * apart {
				VADDPD(terms[i+apart], terms[i], terms[i])
			}
		}
		VMINPD(infinity, terms[0], terms[0])
		VMOVUPD(terms[0], Mem{Base: dst})
		ADDQ(U32(16), column)
		ADDQ(U32(32), dst)
	})
	VZEROUPPER()
	RET()
}

// boxes is plainBoxes, four boxes at a time.
func boxes() {
	TEXT("boxesAVX2", NOSPLIT, "func(dst []float64, sides []float32, q []float64)")
	Pragma("noescape")
	Doc("boxesAVX2 is plainBoxes, of a multiple of 4 boxes.")
	dst, left := Load(Param("dst").Base(), GP64()), Load(Param("dst").Len(), GP64())
	sides, query, dims := Load(Param("sides").Base(), GP64()), Load(Param("q").Base(), GP64()), Load(Param("q").Len(), GP64())
	side, zero := GP64(), YMM()
	MOVQ(left, side)
	SHLQ(U8(2), side)
	VXORPD(zero, zero, zero)
	SHRQ(U8(2), left)
	loop("four", left, func() {
		sum, at, from, coordinates := YMM(), GP64(), GP64(), GP64()
		VXORPD(sum, sum, sum)
		MOVQ(sides, at)
		MOVQ(query, from)
		MOVQ(dims, coordinates)
		loop("side", coordinates, func() {
			q, lo, hi := YMM(), YMM(), YMM()
			VBROADCASTSD(Mem{Base: from}, q)
			VCVTPS2PD(Mem{Base: at}, lo)
			VCVTPS2PD(Mem{Base: at, Index: side, Scale: 1}, hi)
			VSUBPD(q, lo, lo)
			VSUBPD(hi, q, hi)
			VMAXPD(hi, lo, lo)
			VMAXPD(zero, lo, lo)
			VMULPD(lo, lo, lo)
			VADDPD(lo, sum, sum)
			LEAQ(Mem{Base: at, Index: side, Scale: 2}, at)
			ADDQ(U32(8), from)
		})
		VMOVUPD(sum, Mem{Base: dst})
		ADDQ(U32(16), sides)
		ADDQ(U32(32), dst)
	})
	VZEROUPPER()
	RET()
}
