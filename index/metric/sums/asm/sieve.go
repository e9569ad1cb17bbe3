package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	panel           = 32 // rows of a panel
	sieved          = 8  // queries that are sieved at once
	notGreater      = 10 // of VCMPPS: NGT_UQ, which holds of NaN
	notGreaterEqual = 9  // NGE_UQ
	notLess         = 5  // NLT_UQ
)

// sieve multiplies a panel with queries: a lane per row, some queries at a time, so that sums fill the registers that it takes to keep two
// units of fused products busy.
func sieve(name string, wide func() reg.VecVirtual, lanes, queries int) {
	TEXT("sieve"+name, NOSPLIT, "func(q, panel *float32, dims int, norms *[32]float32, limits *[24]float32, out *[8]uint32)")
	Pragma("noescape")
	Doc("sieve" + name + " is the kernel of Sieve.")
	q := Load(Param("q"), GP64())
	rows := Load(Param("panel"), GP64())
	dims := Load(Param("dims"), GP64())
	norms := Load(Param("norms"), GP64())
	limits := Load(Param("limits"), GP64())
	out := Load(Param("out"), GP64())
	parts := panel / lanes
	for first := 0; first < sieved; first += queries {
		sums := make([][]reg.VecVirtual, queries)
		for i := range sums {
			for range parts {
				s := wide()
				VXORPS(s, s, s)
				sums[i] = append(sums[i], s)
			}
		}
		at, query, left := GP64(), GP64(), GP64()
		MOVQ(rows, at)
		MOVQ(q, query)
		MOVQ(dims, left)
		loop(fmt.Sprintf("dimension%d", first), left, func() {
			row := make([]reg.VecVirtual, parts)
			for p := range row {
				row[p] = wide()
				VMOVUPS(Mem{Base: at, Disp: 4 * lanes * p}, row[p])
			}
			for i := range sums {
				e := wide()
				VBROADCASTSS(Mem{Base: query, Disp: 4 * (first + i)}, e)
				for p := range row {
					VFMADD231PS(row[p], e, sums[i][p])
				}
			}
			ADDQ(U32(4*panel), at)
			ADDQ(U32(4*sieved), query)
		})
		for i := range sums {
			ofNorm, ofProduct, limit := wide(), wide(), wide()
			for n, r := range []reg.VecVirtual{ofNorm, ofProduct, limit} {
				VBROADCASTSS(Mem{Base: limits, Disp: 4 * (sieved*n + first + i)}, r)
			}
			for p, s := range sums[i] {
				VMULPS(ofProduct, s, s)
				t := wide()
				VMULPS(Mem{Base: norms, Disp: 4 * lanes * p}, ofNorm, t)
				VADDPS(t, s, s)
				to := Mem{Base: out, Disp: 4*(first+i) + lanes/8*p}
				if lanes == 16 {
					mask := K()
					VCMPPS(U8(notGreater), limit, s, mask)
					KMOVW(mask, to)
				} else {
					bits := GP32()
					VCMPPS(U8(notGreater), limit, s, s)
					VMOVMSKPS(s, bits)
					MOVB(bits.As8(), to)
				}
			}
		}
	}
	VZEROUPPER()
	RET()
}

// turn writes eight rows as columns of a panel, eight elements at a time.
func turn() {
	TEXT("turnAVX2", NOSPLIT, "func(panel, rows *float32, step, groups int)")
	Pragma("noescape")
	Doc("turnAVX2 is the inner loop of Turn: groups of eight elements of eight rows that are step bytes apart.")
	dst, at := Load(Param("panel"), GP64()), Load(Param("rows"), GP64())
	step, groups := Load(Param("step"), GP64()), Load(Param("groups"), GP64())
	third, fourth := GP64(), GP64()
	LEAQ(Mem{Base: step, Index: step, Scale: 2}, third)
	loop("group", groups, func() {
		LEAQ(Mem{Base: at, Index: step, Scale: 4}, fourth)
		var r [8]reg.VecVirtual
		for i := range r {
			r[i] = YMM()
			base := []reg.Register{at, fourth}[i/4]
			VMOVUPS([]Mem{{Base: base}, {Base: base, Index: step, Scale: 1}, {Base: base, Index: step, Scale: 2}, {Base: base, Index: third, Scale: 1}}[i%4], r[i])
		}
		for i := 0; i < 8; i += 2 { // neighbours
			t := YMM()
			VUNPCKHPS(r[i+1], r[i], t)
			VUNPCKLPS(r[i+1], r[i], r[i])
			r[i+1] = t
		}
		for i := 0; i < 8; i += 4 { // pairs
			a, b := YMM(), YMM()
			VSHUFPS(U8(0xee), r[i+2], r[i], a)
			VSHUFPS(U8(0x44), r[i+2], r[i], r[i])
			VSHUFPS(U8(0xee), r[i+3], r[i+1], b)
			VSHUFPS(U8(0x44), r[i+3], r[i+1], r[i+2])
			r[i+1], r[i+3] = a, b
		}
		for i := range 4 { // halves
			t := YMM()
			VPERM2F128(U8(0x31), r[i+4], r[i], t)
			VPERM2F128(U8(0x20), r[i+4], r[i], r[i])
			VMOVUPS(r[i], Mem{Base: dst, Disp: 4 * panel * i})
			VMOVUPS(t, Mem{Base: dst, Disp: 4 * panel * (i + 4)})
		}
		ADDQ(U32(32), at)
		ADDQ(U32(8*4*panel), dst)
	})
	VZEROUPPER()
	RET()
}

// lengths sums up the squares of the elements of each row of a panel.
func lengths() {
	TEXT("lengthsAVX2", NOSPLIT, "func(panel *float32, dims int, out *[32]float32)")
	Pragma("noescape")
	Doc("lengthsAVX2 is the kernel of Lengths.")
	at, left, out := Load(Param("panel"), GP64()), Load(Param("dims"), GP64()), Load(Param("out"), GP64())
	var sums [4]reg.VecVirtual
	for p := range sums {
		sums[p] = YMM()
		VXORPS(sums[p], sums[p], sums[p])
	}
	loop("dimension", left, func() {
		for p, s := range sums {
			e := YMM()
			VMOVUPS(Mem{Base: at, Disp: 32 * p}, e)
			VFMADD231PS(e, e, s)
		}
		ADDQ(U32(4*panel), at)
	})
	for p, s := range sums {
		VMOVUPS(s, Mem{Base: out, Disp: 32 * p})
	}
	VZEROUPPER()
	RET()
}
