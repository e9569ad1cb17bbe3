// Asm writes the assembly of package block: go generate ./index/lsh/block.
package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build" // avo's programs are written so
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// As in block.go, which says what they mean.
const (
	lanes    = 8
	rows     = 4
	vectors  = 3
	binned   = 4
	floor    = 9 // of VROUNDPS: towards minus infinity, without exceptions
	register = 4 * lanes
)

func main() {
	ConstraintExpr("amd64")
	buckets()
	bins()
	within()
	Generate()
}

// constant is 32 bytes of one number, for an operand in memory.
func constant(name string, bits uint32) Mem {
	m := GLOBL(name, 8|16) // RODATA, NOPTR
	for i := range lanes {
		DATA(4*i, U32(bits))
	}
	return m
}

// buckets is plainBuckets: a register per row and vector has the eight partial sums, which two horizontal additions and that of the halves add in
// the order of the definition.
func buckets() {
	least := constant("least", math.Float32bits(-1<<31))
	most := constant("most", math.Float32bits(1<<31-128))
	TEXT("bucketsAVX2", NOSPLIT, "func(out *[12]int32, panel []float32, offsets *[4]float32, x0, x1, x2 []float32)")
	Doc("bucketsAVX2 is plainBuckets with AVX2. There are as many elements of x0, x1 and x2 as a row of the panel has.")
	out := Load(Param("out"), GP64())
	panel := Load(Param("panel").Base(), GP64())
	left := Load(Param("panel").Len(), GP64())
	var x [vectors]reg.Register
	for v, name := range []string{"x0", "x1", "x2"} {
		x[v] = Load(Param(name).Base(), GP64())
	}
	var sums [vectors][rows]reg.VecVirtual
	for v := range sums {
		for f := range sums[v] {
			sums[v][f] = YMM()
			VXORPS(sums[v][f], sums[v][f], sums[v][f])
		}
	}
	Label("group")
	CMPQ(left, U32(0))
	JE(LabelRef("done"))
	var loaded [vectors]reg.VecVirtual
	for v := range loaded {
		loaded[v] = YMM()
		VMOVUPS(Mem{Base: x[v]}, loaded[v])
	}
	product := YMM()
	for f := range rows {
		for v := range vectors {
			VMULPS(Mem{Base: panel, Disp: f * register}, loaded[v], product)
			VADDPS(product, sums[v][f], sums[v][f])
		}
	}
	for v := range x {
		ADDQ(U32(register), x[v])
	}
	ADDQ(U32(rows*register), panel)
	SUBQ(U32(rows*lanes), left)
	JMP(LabelRef("group"))

	Label("done")
	offsets := Load(Param("offsets"), GP64())
	for v := range sums {
		s := sums[v]
		VHADDPS(s[1], s[0], s[0])
		VHADDPS(s[3], s[2], s[2])
		VHADDPS(s[2], s[0], s[0])
		VEXTRACTF128(U8(1), s[0], s[1].AsX())
		VADDPS(s[1].AsX(), s[0].AsX(), s[0].AsX())
		VADDPS(Mem{Base: offsets}, s[0].AsX(), s[0].AsX())
		whole(s[0].AsX(), least, most)
		VMOVDQU(s[0].AsX(), Mem{Base: out, Disp: v * rows * 4})
	}
	VZEROUPPER()
	RET()
}

// whole rounds down to whole numbers of 32 bits, the nearest where there is none.
func whole(v reg.Register, least, most Mem) {
	VROUNDPS(U8(floor), v, v)
	VMAXPS(least, v, v)
	VMINPS(most, v, v)
	VCVTTPS2DQ(v, v)
}

// bins is plainBins: a lane per function, a register of hashes per vector.
func bins() {
	c1 := constant("c1", 0xcc9e2d51)
	c2 := constant("c2", 0x1b873593)
	c3 := constant("c3", 0xe6546b64)
	least, most := NewDataAddr(NewStaticSymbol("least"), 0), NewDataAddr(NewStaticSymbol("most"), 0)
	TEXT("binsAVX2", NOSPLIT, "func(out *[32]uint32, panel []float32, seeds *[8]uint32, x0, x1, x2, x3 []float32)")
	Doc("binsAVX2 is plainBins with AVX2. There are as many elements of x0 to x3 as a row of the panel has.")
	panel := Load(Param("panel").Base(), GP64())
	left := Load(Param("panel").Len(), GP64())
	seeds := Load(Param("seeds"), GP64())
	var x [binned]reg.Register
	var hash [binned]reg.VecVirtual
	for v, name := range []string{"x0", "x1", "x2", "x3"} {
		x[v] = Load(Param(name).Base(), GP64())
		hash[v] = YMM()
		VMOVDQU(Mem{Base: seeds}, hash[v])
	}
	Label("element")
	CMPQ(left, U32(0))
	JE(LabelRef("end"))
	rates, offsets := YMM(), YMM()
	VMOVUPS(Mem{Base: panel}, rates)
	VMOVUPS(Mem{Base: panel, Disp: register}, offsets)
	for v := range x {
		k, t := YMM(), YMM()
		VBROADCASTSS(Mem{Base: x[v]}, k)
		VMULPS(rates, k, k)
		VADDPS(offsets, k, k)
		whole(k, least, most)
		VPMULLD(c1, k, k)
		rotate(k, t, 15)
		VPMULLD(c2, k, k)
		VPXOR(k, hash[v], hash[v])
		rotate(hash[v], t, 13)
		VPSLLD(U8(2), hash[v], t)
		VPADDD(t, hash[v], hash[v])
		VPADDD(c3, hash[v], hash[v])
	}
	for v := range x {
		ADDQ(U32(4), x[v])
	}
	ADDQ(U32(2*register), panel)
	SUBQ(U32(2*lanes), left)
	JMP(LabelRef("element"))

	Label("end")
	out := Load(Param("out"), GP64())
	for v := range hash {
		VMOVDQU(hash[v], Mem{Base: out, Disp: v * register})
	}
	VZEROUPPER()
	RET()
}

func rotate(v, t reg.VecVirtual, by uint8) {
	VPSRLD(U8(32-by), v, t)
	VPSLLD(U8(by), v, v)
	VPOR(t, v, v)
}

// within is plainWithin for lengths that are multiples of 8: each lane counts what is further apart.
func within() {
	TEXT("withinAVX2", NOSPLIT, "func(a, b []uint32, reach uint32) uint32")
	Doc("withinAVX2 is plainWithin with AVX2, of slices of one length, a multiple of 8.")
	a := Load(Param("a").Base(), GP64())
	b := Load(Param("b").Base(), GP64())
	n := Load(Param("a").Len(), GP64())
	near := GP32()
	MOVL(n.(reg.GPVirtual).As32(), near)
	limit, far := YMM(), YMM()
	reach := Load(Param("reach"), GP32())
	VMOVD(reach, limit.AsX())
	VPBROADCASTD(limit.AsX(), limit)
	VPXOR(far, far, far)
	Label("next")
	CMPQ(n, U32(0))
	JE(LabelRef("sum"))
	d := YMM()
	VMOVDQU(Mem{Base: a}, d)
	VPSUBD(Mem{Base: b}, d, d)
	VPABSD(d, d)
	VPCMPGTD(limit, d, d)
	VPADDD(d, far, far) // -1 for each
	ADDQ(U32(register), a)
	ADDQ(U32(register), b)
	SUBQ(U32(lanes), n)
	JMP(LabelRef("next"))

	Label("sum")
	half := XMM()
	VEXTRACTI128(U8(1), far, half)
	VPADDD(half, far.AsX(), half)
	VPHADDD(half, half, half)
	VPHADDD(half, half, half)
	beyond := GP32()
	VMOVD(half, beyond)
	ADDL(beyond, near)
	Store(near, ReturnIndex(0))
	VZEROUPPER()
	RET()
}
