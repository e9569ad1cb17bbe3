package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// bytesKernel is a kernel of bytes for one query or for many. Groups are 32 elements; behind the last element of all rows 31 bytes may be read.
func bytesKernel(c *constants, set, op string, queries int) {
	name := op + "Bytes" + set
	if queries > 1 {
		name = op + "BytesMany" + set
	}
	TEXT(name, NOSPLIT, "func(a *[12]uintptr)")
	Pragma("noescape")
	Doc(name + " is the kernel of the plain one's name.")
	a := load(queries)
	k := &bytesOf{constants: c, set: set, op: op, a: a}
	if op == "unequal" {
		k.unit = YMM()
		VMOVDQU(c.bit, k.unit)
	}
	k.zero = YMM()
	VPXOR(k.zero, k.zero, k.zero)
	loop("row", a.count, func() {
		sums := make([]reg.VecVirtual, queries)
		for q := range sums {
			if sums[q] = YMM(); k.fused() {
				sums[q] = ZMM()
				VPXORD(sums[q], sums[q], sums[q])
				continue
			}
			VPXOR(sums[q], sums[q], sums[q])
		}
		a.rewind()
		at := GP64()
		MOVQ(a.row, at)
		groups := a.field(argGroups)
		loop("group", groups, func() {
			o := YMM()
			VMOVDQU(Mem{Base: at}, o)
			k.add(o, sums)
			ADDQ(U32(32), at)
			a.advance(k.size())
		})
		tail := a.field(argTail)
		TESTQ(tail, tail)
		JZ(LabelRef("total"))
		o, masks := YMM(), address(c.bytes)
		NEGQ(tail)
		VMOVDQU(Mem{Base: at}, o)
		VPAND(Mem{Base: masks, Index: tail, Scale: 1, Disp: 32}, o, o)
		k.add(o, sums)
		Label("total")
		if queries > 1 && op != "largest" {
			k.totals(sums)
		} else {
			for q, s := range sums {
				k.total(q, s)
			}
		}
		ADDQ(a.step, a.row)
		ADDQ(U32(8), a.dst)
	})
	VZEROUPPER()
	RET()
}

type bytesOf struct {
	*constants
	set, op    string
	a          *arguments
	unit, zero reg.VecVirtual
}

// fused says that products of words are added up by one instruction, of 32 elements.
func (k *bytesOf) fused() bool { return k.set == "VNNI" }

// words says that the elements of queries are 16 bits wide.
func (k *bytesOf) words() bool { return k.op == "squares" || k.op == "dots" }

// size is that of 32 elements of a query.
func (k *bytesOf) size() int {
	if k.words() {
		return 64
	}
	return 32
}

// add adds the terms of 32 elements.
func (k *bytesOf) add(o reg.VecVirtual, sums []reg.VecVirtual) {
	if k.fused() {
		words := ZMM()
		VPMOVZXBW(o, words)
		for q, s := range sums {
			query := k.a.query(q, 0)
			if k.op == "dots" {
				VPDPWSSD(query, words, s)
				continue
			}
			t := ZMM()
			VPSUBW(query, words, t)
			VPDPWSSD(t, t, s)
		}
		return
	}
	if k.words() {
		low, high, x := YMM(), YMM(), XMM()
		VPMOVZXBW(o.AsX(), low)
		VEXTRACTI128(U8(1), o, x)
		VPMOVZXBW(x, high)
		for part, half := range []reg.VecVirtual{low, high} {
			for q, s := range sums {
				t, query := YMM(), k.a.query(q, 32*part)
				if k.op == "squares" {
					VPSUBW(query, half, t)
					VPMADDWD(t, t, t)
				} else {
					VPMADDWD(query, half, t)
				}
				VPADDD(t, s, s)
			}
		}
		return
	}
	for q, s := range sums {
		t, query := YMM(), k.a.query(q, 0)
		switch k.op {
		case "differences":
			VPSADBW(query, o, t)
			VPADDQ(t, s, s)
		case "unequal":
			VPCMPEQB(query, o, t)
			VPANDN(k.unit, t, t)
			VPSADBW(k.zero, t, t)
			VPADDQ(t, s, s)
		default:
			smaller := YMM()
			VPMAXUB(query, o, t)
			VPMINUB(query, o, smaller)
			VPSUBB(smaller, t, t)
			VPMAXUB(t, s, s)
		}
	}
}

// folded is a sum in 32 bytes.
func (k *bytesOf) folded(s reg.VecVirtual) reg.VecVirtual {
	if !k.fused() {
		return s
	}
	half := YMM()
	VEXTRACTI64X4(U8(1), s, half)
	s = s.AsY().(reg.VecVirtual)
	VPADDD(half, s, s)
	return s
}

// totals makes numbers of the sums of many queries and writes them.
func (k *bytesOf) totals(sums []reg.VecVirtual) {
	var order [many]reg.VecVirtual
	for i, q := range [...]int{0, 2, 1, 3} {
		order[i] = k.folded(sums[q])
	}
	all, high := order[0], YMM()
	if k.words() {
		VPHADDD(order[1], order[0], all)
		VPHADDD(order[3], order[2], order[2])
		VPHADDD(order[2], all, all)
		VEXTRACTI128(U8(1), all, high.AsX())
		VPADDD(high.AsX(), all.AsX(), all.AsX())
		VPMOVZXDQ(all.AsX(), all)
	} else {
		for i := 0; i < many; i += 2 {
			VPUNPCKHQDQ(order[i+1], order[i], high)
			VPUNPCKLQDQ(order[i+1], order[i], order[i])
			VPADDQ(high, order[i], order[i])
		}
		VPERM2I128(U8(0x31), order[2], order[0], high)
		VPERM2I128(U8(0x20), order[2], order[0], all)
		VPADDQ(high, all, all)
	}
	// 2^52 + n has n as its last bits.
	VPOR(k.magic, all, all)
	VSUBPD(k.magic, all, all)
	k.a.results(all)
}

// total makes a number of a sum and writes it.
func (k *bytesOf) total(q int, s reg.VecVirtual) {
	s = k.folded(s)
	high, low, n := XMM(), s.AsX(), GP64()
	VEXTRACTI128(U8(1), s, high)
	join := VPADDQ
	steps := []uint8{8}
	switch {
	case k.words():
		join, steps = VPADDD, []uint8{8, 4}
	case k.op == "largest":
		join, steps = VPMAXUB, []uint8{8, 4, 2, 1}
	}
	join(high, low, low)
	for _, by := range steps {
		VPSRLDQ(U8(by), low, high)
		join(high, low, low)
	}
	VMOVD(low, n.As32())
	if k.op == "largest" {
		MOVBLZX(n.As8(), n.As32())
	}
	VXORPD(high, high, high)
	VCVTSI2SDQ(n, high, high)
	dst := Mem{Base: k.a.dst}
	switch q {
	case 1, 2:
		dst.Index, dst.Scale = k.a.next, uint8(q)
	case 3:
		third := GP64()
		LEAQ(Mem{Base: k.a.next, Index: k.a.next, Scale: 2}, third)
		dst.Index, dst.Scale = third, 1
	}
	VMOVSD(high, dst)
}
