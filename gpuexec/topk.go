package gpuexec

import (
	"math/bits"
	"slices"
)

// An entry is a count and an object id in one word, count << 32 | ^id, so that a greater entry precedes in the
// total order (count descending, id ascending). No two entries of a query are equal. Engines exchange entries and
// keep the order; everything that is "top k" is "the k largest" of these.
type entry uint64

const entryBytes = 8

func newEntry(count, id uint32) entry { return entry(count)<<32 | entry(^id) }

func (e entry) count() uint32 { return uint32(e >> 32) }
func (e entry) id() uint32    { return ^uint32(e) }

// keepTop moves the k largest entries to the front and returns the smallest of these, in no other order. It takes
// linear time: quickselect, or sorting should the pivots fail. 1 <= k <= len(entries).
func keepTop(entries []entry, k int) entry {
	lo, hi := 0, len(entries) // the boundary lies within [lo, hi]
	for rounds := 2 * bits.Len(uint(hi)); hi-lo > 16 && rounds > 0; rounds-- {
		pivot := median(entries[lo], entries[lo+(hi-lo)/2], entries[hi-1])
		i, j := lo, hi-1
		for i <= j {
			for entries[i] > pivot {
				i++
			}
			for entries[j] < pivot {
				j--
			}
			if i <= j {
				entries[i], entries[j] = entries[j], entries[i]
				i++
				j--
			}
		}
		// entries[lo:j+1] >= pivot, entries[i:hi] <= pivot, and what is between equals it.
		switch {
		case k <= j:
			hi = j + 1
		case k > i:
			lo = i
		default:
			return slices.Min(entries[:k])
		}
	}
	slices.SortFunc(entries[lo:hi], func(a, b entry) int {
		if a > b {
			return -1
		}
		return 1
	})
	return entries[k-1]
}

func median(a, b, c entry) entry {
	return max(min(a, b), min(max(a, b), c))
}
