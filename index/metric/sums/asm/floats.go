package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// family is what kernels of a set of instructions have in common: eight partial sums take so many registers.
type family struct {
	name  string
	parts int
	wide  func() reg.VecVirtual
	*constants
}

func (f *family) lanes() int { return 8 / f.parts }

// floats is a kernel of float32s for one query or for many.
func (f *family) floats(op string, queries int) {
	name := op + f.name
	if queries > 1 {
		name = op + "Many" + f.name
	}
	TEXT(name, NOSPLIT, "func(a *[12]uintptr)")
	Pragma("noescape")
	Doc(name + " is the kernel of the plain one's name.")
	a := load(queries)
	k := &kernel{family: f, op: op, queries: queries, a: a}
	k.prepare()
	loop("row", a.count, func() {
		sums := make([][]reg.VecVirtual, queries)
		for q := range sums {
			for range f.parts {
				s := f.wide()
				VXORPD(s, s, s)
				sums[q] = append(sums[q], s)
			}
		}
		a.rewind()
		at := GP64()
		MOVQ(a.row, at)
		groups := a.field(argGroups)
		loop("group", groups, func() {
			for part := range f.parts {
				o := f.wide()
				VCVTPS2PD(Mem{Base: at, Disp: 4 * f.lanes() * part}, o)
				k.add(o, part, sums)
			}
			ADDQ(U32(32), at)
			a.advance(64)
		})
		tail := a.field(argTail)
		TESTQ(tail, tail)
		JZ(LabelRef("total"))
		for part := range f.parts {
			k.add(f.masked(at, tail, part), part, sums)
		}
		Label("total")
		k.total(sums)
		ADDQ(a.step, a.row)
		ADDQ(U32(8), a.dst)
	})
	VZEROUPPER()
	RET()
}

// masked are the last elements of a row, of which there are so many, and zeros. Nothing beyond them is read.
func (f *family) masked(at, tail reg.Register, part int) reg.VecVirtual {
	o := f.wide()
	masks := address(f.masks)
	before := GP64()
	MOVQ(tail, before)
	NEGQ(before)
	mask := Mem{Base: masks, Index: before, Scale: 4, Disp: 32 + 4*f.lanes()*part}
	if f.parts == 2 {
		half, m := XMM(), XMM()
		VMOVDQU(mask, m)
		VMASKMOVPS(Mem{Base: at, Disp: 4 * f.lanes() * part}, m, half)
		VCVTPS2PD(half, o)
		return o
	}
	all, m := YMM(), YMM()
	VMOVDQU(mask, m)
	VMASKMOVPS(Mem{Base: at}, m, all)
	VCVTPS2PD(all, o)
	return o
}

type kernel struct {
	*family
	op        string
	queries   int
	a         *arguments
	magnitude reg.VecVirtual
	unit      reg.VecVirtual
	loops     int
}

// prepare loads what stays in registers.
func (k *kernel) prepare() {
	switch k.op {
	case "differences", "largest", "powers":
		k.magnitude = k.wide()
		VMOVUPD(k.family.constants.magnitude, k.magnitude)
	case "unequal":
		k.unit = k.wide()
		VMOVUPD(k.ones, k.unit)
	}
}

// add adds the terms of a part of a group to the sums of each query.
func (k *kernel) add(o reg.VecVirtual, part int, sums [][]reg.VecVirtual) {
	for q := range sums {
		s, t := sums[q][part], k.wide()
		query := k.a.query(q, 8*k.lanes()*part)
		switch k.op {
		case "squares":
			VSUBPD(query, o, t)
			VMULPD(t, t, t)
		case "dots":
			VMULPD(query, o, t)
		case "norms":
			VMULPD(o, o, t)
		case "unequal":
			if k.parts == 1 {
				mask := K()
				VCMPPD(U8(notEqual), query, o, mask)
				VMOVAPD_Z(k.unit, mask, t)
			} else {
				VCMPPD(U8(notEqual), query, o, t)
				VANDPD(k.unit, t, t)
			}
		default:
			VSUBPD(query, o, t)
			VANDPD(k.magnitude, t, t)
		}
		switch k.op {
		case "largest":
			VMAXPD(s, t, s) // of NaN it takes the other
			continue
		case "powers":
			k.power(t)
		}
		VADDPD(t, s, s)
	}
}

// power makes t^p of t.
func (k *kernel) power(t reg.VecVirtual) {
	base := k.wide()
	VMOVAPD(t, base)
	left := k.a.field(argPower)
	DECQ(left)
	k.loops++
	loop("power"+string(rune('a'+k.loops)), left, func() { VMULPD(base, t, t) })
}

// total adds up partial sums in the one order, or finds the largest, and writes them.
func (k *kernel) total(sums [][]reg.VecVirtual) {
	halves := make([][2]reg.VecVirtual, len(sums))
	for q, s := range sums {
		if k.parts == 2 {
			halves[q] = [2]reg.VecVirtual{s[0], s[1]}
			continue
		}
		high := YMM()
		VEXTRACTF64X4(U8(1), s[0], high)
		halves[q] = [2]reg.VecVirtual{s[0].AsY().(reg.VecVirtual), high}
	}
	var pairs []reg.VecVirtual // of each query: (0,1) (4,5) (2,3) (6,7)
	for _, h := range halves {
		k.fold(h[1], h[0], h[0])
		pairs = append(pairs, h[0])
	}
	if k.queries == 1 {
		high, low := XMM(), pairs[0].AsX()
		VEXTRACTF128(U8(1), pairs[0], high)
		k.join(high, low)
		VPERMILPD(U8(1), low, high)
		k.join(high, low)
		if k.finite() {
			VMINSD(k.infinity, low, low)
		}
		VMOVSD(low, Mem{Base: k.a.dst})
		return
	}
	for q := 0; q < many; q += 2 {
		low := YMM()
		VPERM2F128(U8(0x20), pairs[q+1], pairs[q], low)
		VPERM2F128(U8(0x31), pairs[q+1], pairs[q], pairs[q])
		k.join(low, pairs[q])
	}
	k.fold(pairs[2], pairs[0], pairs[0])
	if k.finite() {
		VMINPD(k.infinity, pairs[0], pairs[0])
	}
	k.a.results(pairs[0])
}

// finite says that what is NaN is to be infinite.
func (k *kernel) finite() bool { return k.op != "dots" && k.op != "norms" }

// fold joins neighbours: those of b at even places, those of a at odd ones.
func (k *kernel) fold(a, b, dst reg.VecVirtual) {
	if k.op != "largest" {
		VHADDPD(a, b, dst)
		return
	}
	t := YMM()
	VUNPCKHPD(a, b, t)
	VUNPCKLPD(a, b, dst)
	VMAXPD(t, dst, dst)
}

// join makes b the sum or the larger of a and b.
func (k *kernel) join(a, b reg.Register) {
	if k.op == "largest" {
		VMAXPD(a, b, b)
	} else {
		VADDPD(a, b, b)
	}
}
