// Package columns holds what a query is compared with in columns, one coordinate of all of them after the other, so that a machine compares several at once: the boxes of a tree's nodes, and the
// objects of its leaves.
package columns

import (
	"math"
	"slices"

	"github.com/geniemq/geniemq/index/metric/sums"
)

// Most is how many coordinates objects may have.
const Most = sums.MostColumns

// kernels are this machine's. All give the same bits.
var kernels = &sums.All()[0]

// four rounds up to what the kernels take.
func four(n uint32) uint32 { return (n + 3) &^ 3 }

// A Block is some consecutive members, of which there are count. Where it has none nothing is kept.
type Block struct{ First, Count uint32 }

// Boxes are those of some blocks: by block, of each coordinate the least of all its boxes and then the largest. They are immutable.
type Boxes struct {
	at   []uint32 // [block]
	data []float32
}

// NewBoxes makes columns of boxes that are given one after the other, of each its least coordinates and then its largest; nil: there are too many.
func NewBoxes(blocks []Block, boxes []float32, dims int) *Boxes {
	at, size := places(blocks, 2*dims)
	if size > math.MaxUint32 {
		return nil
	}
	b, d := &Boxes{at, make([]float32, size)}, uint32(dims)
	for i, block := range blocks {
		own, n := b.data[at[i]:], four(block.Count)
		for j := range block.Count {
			box := boxes[(block.First+j)*2*d : (block.First+j+1)*2*d]
			for c := range d {
				own[2*c*n+j], own[(2*c+1)*n+j] = box[c], box[d+c]
			}
		}
	}
	return b
}

// Missed are the sums of squares by which a query is outside of the n boxes of a block, in dst, which is made long enough. What is behind them means nothing.
func (b *Boxes) Missed(dst []float64, block, n uint32, q []float64) []float64 {
	size, at := four(n), b.at[block]
	dst = slices.Grow(dst[:0], int(size))[:size]
	kernels.Boxes(dst, b.data[at:at+2*uint32(len(q))*size], q)
	return dst[:n]
}

// Bytes is what they take in memory; of nil 0.
func (b *Boxes) Bytes() int64 {
	if b == nil {
		return 0
	}
	return 4 * int64(len(b.at)+len(b.data))
}

// Objects are those of some blocks, by block and in it by coordinate, of Most coordinates at most. They are immutable.
type Objects struct {
	at   []uint32 // [block]
	data []float32
	dims int
}

// NewObjects makes columns of objects, whose coordinates are float32s; nil: there are too many.
func NewObjects(blocks []Block, dims int, coordinates func(object uint32, dst []float64)) *Objects {
	at, size := places(blocks, dims)
	if size > math.MaxUint32 || dims > Most {
		return nil
	}
	o, x := &Objects{at, make([]float32, size), dims}, make([]float64, dims)
	for i, block := range blocks {
		own, n := o.data[at[i]:], four(block.Count)
		for j := range block.Count {
			coordinates(block.First+j, x)
			for c, v := range x {
				own[uint32(c)*n+j] = float32(v)
			}
		}
	}
	return o
}

// Squares are the values under l2 of the n objects of a block, in dst, which is made long enough. Of q the coordinates of objects count.
func (o *Objects) Squares(dst []float64, block, n uint32, q *[Most]float64) []float64 {
	size, at := four(n), o.at[block]
	dst = slices.Grow(dst[:0], int(size))[:size]
	kernels.Columns(dst, o.data[at:at+uint32(o.dims)*size], o.dims, q)
	return dst[:n]
}

// Bytes is what they take in memory.
func (o *Objects) Bytes() int64 {
	return 4 * int64(len(o.at)+len(o.data))
}

// places are where blocks of so many columns begin, and where the last one ends.
func places(blocks []Block, columns int) (at []uint32, size uint64) {
	at = make([]uint32, len(blocks))
	for i, block := range blocks {
		at[i] = uint32(size)
		size += uint64(columns) * uint64(four(block.Count))
	}
	return at, size
}
