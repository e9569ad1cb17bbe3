// Asm writes the assembly of package permutation: go generate ./index/metric/permutation.
package main

import (
	. "github.com/mmcloughlin/avo/build" // avo's programs are written so
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// chunk is how many ranks a register has, as in rank.go.
const chunk = 32

func main() {
	ConstraintExpr("amd64")
	loop("footruleAVX2", "plainFootrule", footrule)
	loop("rhoAVX2", "plainRho", rho)
	Generate()
}

// loop writes the loop over objects and over chunks of their ranks. term adds what a chunk of ranks and one of the query give to partial sums of 32 bits.
func loop(name, plain string, term func(ranks reg.VecVirtual, query Mem, zero, sums reg.VecVirtual)) {
	TEXT(name, NOSPLIT, "func(dst []uint32, ranks, packed []byte, m int)")
	Doc(name + " is " + plain + " with AVX2, of a chunk of ranks at least.")
	dst := Load(Param("dst").Base(), GP64())
	left := Load(Param("dst").Len(), GP64())
	own := Load(Param("ranks").Base(), GP64())
	packed := Load(Param("packed").Base(), GP64())
	m := Load(Param("m"), GP64())
	whole, tail := GP64(), GP64()
	MOVQ(m, whole)
	ANDQ(I32(-chunk), whole) // ranks of whole chunks
	MOVQ(m, tail)
	SUBQ(whole, tail) // and behind them
	zero := YMM()
	VPXOR(zero, zero, zero)

	Label("object")
	CMPQ(left, U32(0))
	JE(LabelRef("done"))
	sums, at := YMM(), GP64()
	VPXOR(sums, sums, sums)
	XORQ(at, at)
	Label("chunk")
	loaded := YMM()
	VMOVDQU(Mem{Base: own, Index: at, Scale: 1}, loaded)
	term(loaded, Mem{Base: packed, Index: at, Scale: 1}, zero, sums)
	ADDQ(U32(chunk), at)
	CMPQ(at, whole)
	JB(LabelRef("chunk"))
	ADDQ(m, own) // the next object
	CMPQ(tail, U32(0))
	JE(LabelRef("sum"))
	last := YMM()
	VMOVDQU(Mem{Base: own, Disp: -chunk}, last)
	VPAND(Mem{Base: packed, Index: at, Scale: 1, Disp: chunk}, last, last)
	term(last, Mem{Base: packed, Index: at, Scale: 1}, zero, sums)

	Label("sum")
	half := XMM()
	VEXTRACTI128(U8(1), sums, half)
	VPADDD(half, sums.AsX(), sums.AsX())
	VPSHUFD(U8(0b01_00_11_10), sums.AsX(), half)
	VPADDD(half, sums.AsX(), sums.AsX())
	VPSHUFD(U8(0b10_11_00_01), sums.AsX(), half)
	VPADDD(half, sums.AsX(), sums.AsX())
	VMOVD(sums.AsX(), Mem{Base: dst})
	ADDQ(U32(4), dst)
	DECQ(left)
	JMP(LabelRef("object"))

	Label("done")
	VZEROUPPER()
	RET()
}

// footrule adds differences of eight bytes at a time, which leave the upper halves of 64 bits zero.
func footrule(ranks reg.VecVirtual, query Mem, _, sums reg.VecVirtual) {
	VPSADBW(query, ranks, ranks)
	VPADDD(ranks, sums, sums)
}

// rho widens differences to 16 bits, of which it adds pairs of squares: 2 x 254^2 needs 17.
func rho(ranks reg.VecVirtual, query Mem, zero, sums reg.VecVirtual) {
	least, high := YMM(), YMM()
	VPMINUB(query, ranks, least)
	VPMAXUB(query, ranks, ranks)
	VPSUBB(least, ranks, ranks)
	VPUNPCKHBW(zero, ranks, high)
	VPUNPCKLBW(zero, ranks, ranks)
	VPMADDWD(high, high, high)
	VPMADDWD(ranks, ranks, ranks)
	VPADDD(high, sums, sums)
	VPADDD(ranks, sums, sums)
}
