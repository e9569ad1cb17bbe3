package tree

import (
	"encoding/binary"
	"math"
)

// A path byte says where in an interval a distance lies: in one of 256 cells of equal width. So objects of a leaf are told apart by their distances to the pivots of all nodes
// above it, at a byte each (the paper keeps the distance to the last one only). The interval is that of the child in which the object is, so the byte adds eight bits to what the
// child's interval says. Cells are found, and held against a query, by the same two functions, which round alike everywhere; hence a byte is never outside of what it says.

// cellLeast and cellMost are the ends of a cell. They ascend with b.
func cellLeast(lo, hi float32, b int) float64 {
	if b == 0 {
		return float64(lo)
	}
	return float64(lo) + float64(float64(b)*((float64(hi)-float64(lo))/256))
}

func cellMost(lo, hi float32, b int) float64 {
	if b == 255 {
		return float64(hi)
	}
	return float64(lo) + float64(float64(b+1)*((float64(hi)-float64(lo))/256))
}

// cellOf is a cell with d in it, which lies in the interval.
func cellOf(lo, hi float32, d float64) byte {
	b := 0
	if width := (float64(hi) - float64(lo)) / 256; width > 0 && !math.IsInf(width, 1) {
		b = int(min(max((d-float64(lo))/width, 0), 255))
	}
	for b > 0 && cellLeast(lo, hi, b) > d {
		b--
	}
	for b < 255 && cellMost(lo, hi, b) < d {
		b++
	}
	return byte(b)
}

// cells are the first and the last cell that may hold a distance between from and to; first > last: none does. A cell too many
// costs a distance and loses nothing, so the quotients are widened by one.
func cells(lo, hi float32, from, to float64) (first, last int) {
	if to < float64(lo) || from > float64(hi) {
		return 1, 0
	}
	first, last = 0, 255
	width := (float64(hi) - float64(lo)) / 256
	if !(width > 0) {
		return
	}
	if x := (from - float64(lo)) / width; x > 1 {
		first = int(min(x-1, 255))
	}
	if x := (to - float64(lo)) / width; x < 254 {
		last = int(max(x, 0)) + 1
	}
	// What the quotients round away.
	for first < 255 && cellMost(lo, hi, first) < from {
		first++
	}
	for last > 0 && cellLeast(lo, hi, last) > to {
		last--
	}
	return
}

// ones and tops are the lowest and the highest bit of each byte of a word.
const ones, tops = 0x0101010101010101, 0x8080808080808080

// minus subtracts the bytes of y from those of x, each by itself.
func minus(x, y uint64) uint64 { return ((x | tops) - (y &^ tops)) ^ ((x ^ ^y) & tops) }

// keep strikes out what is not in the cells first to last, eight objects at once and without a branch: which ones these are cannot be foreseen.
func keep(alive, column []byte, first, last int) {
	if first > last {
		clear(alive)
		return
	}
	from, span := uint64(first)*ones, uint64(last-first)*ones
	for ; len(column) >= 8; alive, column = alive[8:], column[8:] {
		z := minus(binary.LittleEndian.Uint64(column), from)
		over := (^span&z | ^(span^z)&minus(span, z)) & tops // span - z borrows
		binary.LittleEndian.PutUint64(alive, binary.LittleEndian.Uint64(alive)&^(over>>7))
	}
	for i, b := range column {
		if b-byte(first) > byte(last-first) {
			alive[i] = 0
		}
	}
}
