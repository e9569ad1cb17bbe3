package sorting

import (
	"math"
	"slices"
	"sync"
)

// Places are the coordinates of objects, those of one after those of another.
//
// What objects are cut by are keys: a coordinate, as bits in the order of numbers, above the object's own number. So no two are alike, and they are compared as integers that lie one after the
// other.
type Places struct {
	Dims int
	Of   []float32
}

// Spread does work for all of n things, some at a time.
type Spread func(n int, work func(lo, hi int))

// At are the coordinates of the object of a key.
func (p Places) At(key uint64) []float32 {
	at := int(uint32(key)) * p.Dims
	return p.Of[at : at+p.Dims]
}

// By makes keys of a coordinate.
func (p Places) By(keys []uint64, axis int, spread Spread) {
	spread(len(keys), func(lo, hi int) {
		for i, key := range keys[lo:hi] {
			x := math.Float32bits(p.Of[int(uint32(key))*p.Dims+axis])
			x ^= uint32(int32(x)>>31) | 1<<31
			keys[lo+i] = uint64(x)<<32 | uint64(uint32(key))
		}
	})
}

// Widest is the coordinate along which objects are farthest apart, the first of equal ones.
func (p Places) Widest(keys []uint64, spread Spread) int {
	lo, hi := slices.Clone(p.At(keys[0])), slices.Clone(p.At(keys[0]))
	var mu sync.Mutex
	spread(len(keys), func(from, to int) {
		least, most := slices.Clone(p.At(keys[from])), slices.Clone(p.At(keys[from]))
		for _, key := range keys[from:to] {
			for j, v := range p.At(key) {
				if v < least[j] {
					least[j] = v
				}
				if v > most[j] {
					most[j] = v
				}
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for j := range lo {
			lo[j], hi[j] = min(lo[j], least[j]), max(hi[j], most[j])
		}
	})
	axis, width := 0, float32(-1)
	for j := range lo {
		if w := hi[j] - lo[j]; w > width {
			axis, width = j, w
		}
	}
	return axis
}
