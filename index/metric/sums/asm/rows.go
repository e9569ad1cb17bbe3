package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// atATime is how many rows are compared with one query at a time: as many as keep both units of fused products busy.
const atATime = 4

// oneQuery sieves rows, as they lie in memory, for one query: four at a time, a lane per element.
type oneQuery struct {
	squares                   bool
	query, limit, out         reg.Register
	first, third, step        reg.Register
	quads, groups, tail, mask reg.Register
}

func rowsKernel(c *constants, name string, squares bool) {
	TEXT(name+"RowsAVX2", NOSPLIT, "func(q, rows *float32, step, groups, tail, quads int, limit *[4]float32, out *uint8)")
	Pragma("noescape")
	Doc(name + "RowsAVX2 is the kernel of " + map[bool]string{true: "KeepNear", false: "KeepAngles"}[squares] + ".")
	k := &oneQuery{squares: squares}
	k.query, k.first, k.step = Load(Param("q"), GP64()), Load(Param("rows"), GP64()), Load(Param("step"), GP64())
	k.groups, k.quads = Load(Param("groups"), GP64()), Load(Param("quads"), GP64())
	k.limit, k.out = Load(Param("limit"), GP64()), Load(Param("out"), GP64())
	k.third = GP64()
	LEAQ(Mem{Base: k.step, Index: k.step, Scale: 2}, k.third)
	k.tail, k.mask = Load(Param("tail"), GP64()), YMM()
	masks, before := address(c.masks), GP64()
	MOVQ(k.tail, before)
	NEGQ(before)
	VMOVDQU(Mem{Base: masks, Index: before, Scale: 4, Disp: 32}, k.mask.(reg.VecVirtual))
	loop("quad", k.quads, k.quad)
	VZEROUPPER()
	RET()
}

// quad compares four rows.
func (k *oneQuery) quad() {
	var sums, sizes [atATime]reg.VecVirtual
	for r := range sums {
		sums[r] = YMM()
		VXORPS(sums[r], sums[r], sums[r])
		if !k.squares {
			sizes[r] = YMM()
			VXORPS(sizes[r], sizes[r], sizes[r])
		}
	}
	at, query, left := GP64(), GP64(), GP64()
	MOVQ(k.first, at)
	MOVQ(k.query, query)
	MOVQ(k.groups, left)
	rows := [atATime]Mem{{Base: at}, {Base: at, Index: k.step, Scale: 1}, {Base: at, Index: k.step, Scale: 2}, {Base: at, Index: k.third, Scale: 1}}
	loop("group", left, func() {
		q := YMM()
		VMOVUPS(Mem{Base: query}, q)
		for r, row := range rows {
			x := YMM()
			if k.squares {
				VSUBPS(row, q, x)
			} else {
				VMOVUPS(row, x)
			}
			k.add(x, q, sums[r], sizes[r])
		}
		ADDQ(U32(32), at)
		ADDQ(U32(32), query)
	})
	TESTQ(k.tail, k.tail)
	JZ(LabelRef("total"))
	q := YMM()
	VMOVUPS(Mem{Base: query}, q)
	for r, row := range rows {
		x := YMM()
		VMASKMOVPS(row, k.mask.(reg.VecVirtual), x)
		if k.squares {
			VSUBPS(x, q, x)
		}
		k.add(x, q, sums[r], sizes[r])
	}
	Label("total")
	k.decide(total(sums), sizes)
	LEAQ(Mem{Base: k.first, Index: k.step, Scale: 4}, k.first)
	INCQ(k.out)
}

// add adds the terms of a group: of squares x is the difference.
func (k *oneQuery) add(x, q, sum, size reg.VecVirtual) {
	if k.squares {
		VFMADD231PS(x, x, sum)
		return
	}
	VFMADD231PS(x, q, sum)
	VFMADD231PS(x, x, size)
}

// total is the sum of the lanes of each of four rows.
func total(s [atATime]reg.VecVirtual) reg.VecVirtual {
	VHADDPS(s[1], s[0], s[0])
	VHADDPS(s[3], s[2], s[2])
	VHADDPS(s[2], s[0], s[0])
	high := XMM()
	VEXTRACTF128(U8(1), s[0], high)
	low := s[0].AsX().(reg.VecVirtual)
	VADDPS(high, low, low)
	return low
}

// decide writes which of four rows are kept.
func (k *oneQuery) decide(sum reg.VecVirtual, sizes [atATime]reg.VecVirtual) {
	limit, bits := XMM(), GP32()
	VBROADCASTSS(Mem{Base: k.limit}, limit)
	if k.squares {
		VCMPPS(U8(notGreater), limit, sum, sum)
	} else {
		size, least, most := total(sizes), XMM(), XMM()
		VBROADCASTSS(Mem{Base: k.limit, Disp: 4}, least)
		VBROADCASTSS(Mem{Base: k.limit, Disp: 8}, most)
		VCMPPS(U8(notGreaterEqual), least, size, least)
		VCMPPS(U8(notLess), most, size, most)
		VSQRTPS(size, size)
		VMULPS(limit, size, size)
		VCMPPS(U8(notGreater), sum, size, sum)
		VORPS(least, sum, sum)
		VORPS(most, sum, sum)
	}
	VMOVMSKPS(sum, bits)
	MOVB(bits.As8(), Mem{Base: k.out})
}
