// Package topk says what "the k largest" means, for all engines: the order of entries (a count and an object), and the Gate,
// which keeps the best k of all that are offered to it.
package topk

import (
	"math/bits"
	"slices"
)

// Entry is a count and an object id in one word, count << 32 | ^id, so that a greater entry precedes in the
// total order (count descending, id ascending). No two entries of a query are equal. Engines exchange entries and
// keep the order; everything that is "top k" is "the k largest" of these.
type Entry uint64

const EntryBytes = 8

// NewEntry is the entry of an object with a count.
func NewEntry(count, id uint32) Entry { return Entry(count)<<32 | Entry(^id) }

func (e Entry) Count() uint32 { return uint32(e >> 32) }
func (e Entry) ID() uint32    { return ^uint32(e) }

// few entries are put in order faster than they are divided further.
const few = 16

// Keep moves the k largest entries to the front and returns the smallest of these, in no other order. It takes
// linear time: quickselect, or sorting should the pivots fail. 1 <= k <= len(entries).
func Keep(entries []Entry, k int) Entry {
	lo, hi := 0, len(entries) // the boundary lies within [lo, hi]
	for rounds := 2 * bits.Len(uint(hi)); hi-lo > few && rounds > 0; rounds-- {
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
	if hi-lo <= few {
		order(entries[lo:hi])
		return entries[k-1]
	}
	slices.SortFunc(entries[lo:hi], func(a, b Entry) int {
		if a > b {
			return -1
		}
		return 1
	})
	return entries[k-1]
}

// order puts a few entries in order, the best one first.
func order(entries []Entry) {
	for i, e := range entries {
		place(entries, i, e)
	}
}

// place puts an entry among the first i, which are in order. What is at i is lost.
func place(entries []Entry, i int, e Entry) {
	for ; i > 0 && entries[i-1] < e; i-- {
		entries[i] = entries[i-1]
	}
	entries[i] = e
}

func median(a, b, c Entry) Entry {
	return max(min(a, b), min(max(a, b), c))
}
