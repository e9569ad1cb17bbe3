// Asm writes the assembly of package levenshtein: go generate ./index/levenshtein.
package main

import (
	"strconv"

	. "github.com/mmcloughlin/avo/build" // avo's programs are written so
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// width is what differs between lanes of 16, 32 and 64 bits.
type width struct {
	bits            int
	add, sub, equal func(ops ...Op)
	left, right     func(ops ...Op)
}

func main() {
	ConstraintExpr("amd64")
	for _, w := range []width{
		{16, VPADDW, VPSUBW, VPCMPEQW, VPSLLW, VPSRLW},
		{32, VPADDD, VPSUBD, VPCMPEQD, VPSLLD, VPSRLD},
		{64, VPADDQ, VPSUBQ, VPCMPEQQ, VPSLLQ, VPSRLQ},
	} {
		lanes(w)
	}
	Generate()
}

// lanes writes plainLanes for lanes of some width: the columns of as many matrices as a register has lanes, side by side.
func lanes(w width) {
	name := "lanes" + strconv.Itoa(w.bits) + "AVX2"
	TEXT(name, NOSPLIT, "func(rows *byte, symbols []uint16, bottom, scores *[32]byte)")
	Pragma("noescape")
	Doc(name + " is plainLanes of " + strconv.Itoa(w.bits) + " bits.")
	rows := Load(Param("rows"), GP64())
	symbols, left := Load(Param("symbols").Base(), GP64()), Load(Param("symbols").Len(), GP64())
	at := Load(Param("scores"), GP64())
	bottom, score, plus, minus, ones, one := YMM(), YMM(), YMM(), YMM(), YMM(), YMM()
	VMOVDQU(Mem{Base: Load(Param("bottom"), GP64())}, bottom)
	VMOVDQU(Mem{Base: at}, score)
	VPCMPEQD(ones, ones, ones)
	VMOVDQA(ones, plus)
	VPXOR(minus, minus, minus)
	w.right(U8(uint8(w.bits-1)), ones, one)
	TESTQ(left, left)
	JZ(LabelRef("done"))

	Label("column")
	row := GP64()
	MOVWQZX(Mem{Base: symbols}, row)
	SHLQ(U8(5), row)
	eq, xv, xh, ph, mh := YMM(), YMM(), YMM(), YMM(), YMM()
	VMOVDQU(Mem{Base: rows, Index: row, Scale: 1}, eq)
	VPOR(minus, eq, xv)
	VPAND(plus, eq, xh)
	w.add(plus, xh, xh)
	VPXOR(plus, xh, xh)
	VPOR(eq, xh, xh)
	VPOR(plus, xh, ph)
	VPXOR(ones, ph, ph)
	VPOR(minus, ph, ph)
	VPAND(xh, plus, mh)
	for i, h := range []reg.VecVirtual{ph, mh} {
		t := YMM()
		VPAND(bottom, h, t)
		w.equal(bottom, t, t)
		if i == 0 {
			w.sub(t, score, score) // which is less by -1
		} else {
			w.add(t, score, score)
		}
	}
	w.left(U8(1), ph, ph)
	VPOR(one, ph, ph) // D[0,j] = j
	w.left(U8(1), mh, mh)
	VPAND(ph, xv, minus)
	VPOR(ph, xv, plus)
	VPXOR(ones, plus, plus)
	VPOR(mh, plus, plus)
	ADDQ(U8(2), symbols)
	DECQ(left)
	JNZ(LabelRef("column"))

	Label("done")
	VMOVDQU(score, Mem{Base: at})
	VZEROUPPER()
	RET()
}
