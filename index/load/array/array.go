// Package array says how vectors lie in sources that are vectors and nothing else: one after the other, each of so many bytes.
package array

import (
	"encoding/binary"
	"math"
)

// MaxElements bounds the elements of a vector.
const MaxElements = 1 << 16

// Layout is how a source stores vectors.
type Layout struct {
	// Elements of each vector. 0: the first one's head says it.
	Elements int
	// Headed: before each vector stands its number of elements, an int32 that is the same for all.
	Headed bool
	// Rows is how many vectors there are; -1: as many as the source has.
	Rows int64
	// Bytes is the size of an element, and Read reads one of so many bytes.
	Bytes int
	Read  func(data []byte) float64
}

// Head is how many bytes stand before a vector.
func (l *Layout) Head() int {
	if l.Headed {
		return 4
	}
	return 0
}

// Stride is how many bytes a vector takes with its head; 0 where that is not known.
func (l *Layout) Stride() int {
	if l.Elements == 0 {
		return 0
	}
	return l.Head() + l.Elements*l.Bytes
}

// Count reads a head.
func Count(head []byte) int { return int(int32(binary.LittleEndian.Uint32(head))) }

// FVecs are vectors of float32 as the TEXMEX collections have them, BVecs those of bytes.
func FVecs() Layout {
	return Layout{Headed: true, Rows: -1, Bytes: 4, Read: func(d []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(d))) }}
}

// BVecs are vectors of bytes.
func BVecs() Layout {
	return Layout{Headed: true, Rows: -1, Bytes: 1, Read: func(d []byte) float64 { return float64(d[0]) }}
}
