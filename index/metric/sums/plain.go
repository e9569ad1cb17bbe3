package sums

import (
	"math"
	"unsafe"
)

// Plain returns the kernels in Go, which every machine has.
func Plain() Kernels {
	k := Kernels{Name: "go", points: plainPoints, cosines: plainCosines, halves: plainHalves, widen: plainWiden, boxes: plainBoxes}
	for dims := range k.columns {
		k.columns[dims] = func(dst []float64, columns []float32, q *[MostColumns]float64) { plainColumns(dst, columns, q[:dims]) }
	}
	for op, f := range [ops]func(p int, q []float64, o []float32) float64{
		OpSquares:     func(_ int, q []float64, o []float32) float64 { return Squares(q, o) },
		OpDifferences: func(_ int, q []float64, o []float32) float64 { return Differences(q, o) },
		OpDots:        func(_ int, q []float64, o []float32) float64 { return Dots(q, o) },
		OpLargest:     func(_ int, q []float64, o []float32) float64 { return Largest(q, o) },
		OpUnequal:     func(_ int, q []float64, o []float32) float64 { return float64(Unequal(q, o)) },
		OpPowers:      Powers[float32],
		OpNorms:       func(_ int, _ []float64, o []float32) float64 { return Norm(o) },
	} {
		k.floats[op] = plainFloats(Op(op), f)
	}
	for queries, into := range map[int]*[ops]kernel{1: &k.bytes, Together: &k.manyBytes} {
		*into = [ops]kernel{
			OpSquares:     plainBytes(byteSquares, queries),
			OpDifferences: plainBytes(byteDifferences, queries),
			OpDots:        plainBytes(byteDots, queries),
			OpLargest:     plainBytes(byteLargest, queries),
			OpUnequal:     plainBytes(byteUnequal, queries),
		}
	}
	return k
}

func plainFloats(op Op, f func(p int, q []float64, o []float32) float64) kernel {
	return func(raw *[12]uintptr) {
		a := (*args)(unsafe.Pointer(raw))
		dims := a.groups*lanes + a.tail
		rows, dst := unsafe.Slice((*float32)(a.rows), a.count*dims), unsafe.Slice(a.dst, a.count)
		var q []float64
		if op != OpNorms {
			q = unsafe.Slice((*float64)(a.queries[0]), dims)
		}
		for i := range dst {
			v := f(a.power, q, rows[i*dims:(i+1)*dims])
			if op != OpDots && op != OpNorms {
				v = tame(v)
			}
			dst[i] = v
		}
	}
}

func plainBytes[Q uint8 | uint16](f func(q []Q, o []uint8) int, queries int) kernel {
	return func(raw *[12]uintptr) {
		a := (*args)(unsafe.Pointer(raw))
		dims := a.groups*bytesGroup + a.tail
		rows := unsafe.Slice((*uint8)(a.rows), a.count*dims)
		for j, at := range a.queries[:queries] {
			q := unsafe.Slice((*Q)(at), dims)
			dst := unsafe.Slice((*float64)(unsafe.Add(unsafe.Pointer(a.dst), j*a.next)), a.count)
			for i := range dst {
				dst[i] = float64(f(q, rows[i*dims:(i+1)*dims]))
			}
		}
	}
}

func byteSquares(q []uint16, o []uint8) (n int) {
	for i, e := range o {
		d := int(e) - int(q[i])
		n += d * d
	}
	return n
}

func byteDifferences(q, o []uint8) (n int) {
	for i, e := range o {
		n += int(max(e, q[i]) - min(e, q[i]))
	}
	return n
}

func byteDots(q []uint16, o []uint8) (n int) {
	for i, e := range o {
		n += int(e) * int(q[i])
	}
	return n
}

func byteLargest(q, o []uint8) (n int) {
	for i, e := range o {
		n = max(n, int(max(e, q[i])-min(e, q[i])))
	}
	return n
}

func byteUnequal(q, o []uint8) (n int) {
	for i, e := range o {
		if e != q[i] {
			n++
		}
	}
	return n
}

// plainPoints finds the squared chords of points.
func plainPoints(dst, units []float64, q *[3]float64) {
	for i := range dst {
		o := units[3*i : 3*i+3]
		dst[i] = tame(square(q[0], o[0]) + square(q[1], o[1]) + square(q[2], o[2]))
	}
}

// plainColumns finds the sums of squares of objects by columns. No more than eight terms are one to a partial sum.
func plainColumns(dst []float64, columns []float32, q []float64) {
	for i := range dst {
		var s partial
		for j, x := range q {
			s[j] = square(x, float64(columns[j*len(dst)+i]))
		}
		dst[i] = tame(s.total())
	}
}

// plainBoxes finds by how much boxes are missed.
func plainBoxes(dst []float64, sides []float32, q []float64) {
	clear(dst)
	for j, x := range q {
		lo, hi := sides[2*j*len(dst):(2*j+1)*len(dst)], sides[(2*j+1)*len(dst):(2*j+2)*len(dst)]
		for i := range dst {
			gap := max(float64(lo[i])-x, x-float64(hi[i]), 0)
			dst[i] += float64(gap * gap)
		}
	}
}

func plainCosines(dst, norms []float64, norm float64) {
	for i, dot := range dst {
		both := float64(norms[i] * norm)
		if both == 0 {
			dst[i] = 0
			continue
		}
		dst[i] = tame(max(-1, min(1, -dot/both)) + 0)
	}
}

func plainHalves(dst []float32, src []uint16) {
	Float32s(dst, unsafe.Slice((*Half)(unsafe.SliceData(src)), len(src)))
}

func plainWiden(dst []float32, src []uint8) {
	for i, e := range src {
		dst[i] = float32(e)
	}
}

// tame makes a number of what damaged vectors lead to.
func tame(v float64) float64 {
	if v != v {
		return math.Inf(1)
	}
	return v
}
