package sorting

import (
	"math/bits"
	"slices"
)

// Least brings the n least keys to the front, which are all different, the others behind. It puts them on either side of one that is expected to be a little off the n-th, again and again, without
// branches that nobody foresees; spare is memory of as many.
func Least(keys, spare []uint64, n int) {
	for round := 0; len(keys) > few && n > 0 && n < len(keys); round++ {
		pivot := pivotOf(keys, n, round)
		l, r := 0, len(keys)-1
		for _, key := range keys {
			spare[l], spare[r] = key, key // one of which stays
			_, less := bits.Sub64(key, pivot, 0)
			l += int(less)
			r -= 1 - int(less)
		}
		copy(keys, spare)
		if n <= l {
			keys, spare = keys[:l], spare[:l]
		} else {
			keys, spare, n = keys[l:], spare[l:], n-l
		}
	}
	if n > 0 && n < len(keys) {
		slices.Sort(keys)
	}
}

// few keys are sorted.
const few = 24

// pivotOf is the key of a sample that has as large a share of it before it as n is of the keys. Another key is less, so that neither side is without any.
func pivotOf(keys []uint64, n, round int) uint64 {
	var drawn [63]uint64
	sample := drawn[:min(len(drawn), 3+len(keys)/64)]
	each := len(keys) / len(sample)
	for i := range sample {
		sample[i] = keys[i*each+(i+round)*7%each]
	}
	slices.Sort(sample)
	return sample[max(1, n*len(sample)/len(keys))]
}
