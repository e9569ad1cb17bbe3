package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Where the fields of args lie.
const (
	argQueries = 8 * iota // four
	_
	_
	_
	argRows
	argStep
	argCount
	argGroups
	argTail
	argDst
	argNext
	argPower
)

const (
	many     = 4 // queries at once
	notEqual = 4 // of VCMPPD: NEQ_UQ
	equal    = 0
	unorder  = 3
)

// constants are 32 bytes of one number each, and masks.
type constants struct {
	magnitude, ones, infinity, sign, minus, masks, bytes, bit, magic Mem
}

// constant is 64 bytes of one number, for an operand in memory.
func constant(name string, bits uint64) Mem {
	m := GLOBL(name, 8|16) // RODATA, NOPTR
	for i := range 8 {
		DATA(8*i, U64(bits))
	}
	return m
}

// sliding is n elements of ones, and then as many of zeros: what lies k elements before the middle masks the first k.
func sliding(name string, size, n int) Mem {
	m := GLOBL(name, 8|16)
	for i := range n * size / 4 {
		DATA(4*i, U32(math.MaxUint32))
	}
	for i := range n * size / 4 {
		DATA(n*size+4*i, U32(0))
	}
	return m
}

// address is where a constant lies, for what is no operand by itself.
func address(m Mem) reg.Register {
	r := GP64()
	LEAQ(m, r)
	return r
}

// loop counts a register down to 0, which it may be from the start.
func loop(name string, count reg.Register, body func()) {
	TESTQ(count, count)
	JZ(LabelRef(name + "End"))
	Label(name)
	body()
	DECQ(count)
	JNZ(LabelRef(name))
	Label(name + "End")
}

// arguments are those of a kernel in registers.
type arguments struct {
	at                          reg.Register
	queries                     []reg.Register
	row, step, count, dst, next reg.Register
}

func (a *arguments) field(offset int) reg.Register {
	r := GP64()
	MOVQ(Mem{Base: a.at, Disp: offset}, r)
	return r
}

func load(queries int) *arguments {
	a := &arguments{at: Load(Param("a"), GP64()), queries: make([]reg.Register, queries)}
	a.row, a.step, a.count, a.dst = a.field(argRows), a.field(argStep), a.field(argCount), a.field(argDst)
	if queries > 1 {
		a.next = a.field(argNext)
	}
	return a
}

// rewind goes to the beginning of the queries.
func (a *arguments) rewind() {
	for q := range a.queries {
		a.queries[q] = a.field(argQueries + 8*q)
	}
}

// query is an operand of a query, some bytes further.
func (a *arguments) query(q, disp int) Mem { return Mem{Base: a.queries[q], Disp: disp} }

func (a *arguments) advance(bytes int) {
	for _, q := range a.queries {
		ADDQ(U32(uint32(bytes)), q)
	}
}

// results writes four numbers, that of query 0 to 3 in the order 0, 2, 1, 3.
func (a *arguments) results(r reg.VecVirtual) {
	high, third := XMM(), GP64()
	LEAQ(Mem{Base: a.next, Index: a.next, Scale: 2}, third)
	VEXTRACTF128(U8(1), r, high)
	VMOVLPD(r.AsX(), Mem{Base: a.dst})
	VMOVHPD(r.AsX(), Mem{Base: a.dst, Index: a.next, Scale: 2})
	VMOVLPD(high, Mem{Base: a.dst, Index: a.next, Scale: 1})
	VMOVHPD(high, Mem{Base: a.dst, Index: third, Scale: 1})
}
