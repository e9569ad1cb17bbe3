package verify

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/geniemq/geniemq/index/similarity"
)

// ranked is an object with what it is ordered by.
type ranked struct {
	key       float64 // the less, the better; infinite: there is nothing to compare; never NaN
	id, count uint32
	set       similarity.Score // of measures of sets: of cosines with the same key it says which is better
}

// better compares two objects' scores: negative when a's is the better one.
func better(a, b *ranked) int {
	switch {
	case a.key < b.key:
		return -1
	case a.key > b.key:
		return 1
	}
	return a.set.Compare(b.set)
}

// compare is the total order: negative when a comes before b.
func compare(a, b *ranked) int {
	switch {
	case a.key < b.key:
		return -1
	case a.key > b.key:
		return 1
	}
	return cmp.Or(a.set.Compare(b.set), cmp.Compare(b.count, a.count), cmp.Compare(a.id, b.id))
}

// ranking is the best objects of a measure so far, at most k. They are as they came until one more than k has come, and from then on a heap with
// the worst on top: where all candidates are hits, as often, nothing is done but to put them in order once. (container/heap would allocate
// for each.)
type ranking struct {
	k       int
	entries []ranked
	form    form
	spare   []ranked
	ends    [buckets + 1]uint32 // of buckets, in deal
}

// form is how the entries of a ranking lie.
type form uint8

const (
	asTheyCame form = iota
	inOrder         // the best one first
	heaped          // the worst one first, and each before those of which it is the worse one
)

func (h *ranking) reset(k int) { h.k, h.entries, h.form = k, h.entries[:0], asTheyCame }

// room is how many objects more are among the best, whatever they are.
func (h *ranking) room() int { return h.k - len(h.entries) }

// worst is the last of k objects, nil before there are so many. It changes nothing, and takes as long as there are objects where they are as they
// came.
func (h *ranking) worst() *ranked {
	switch {
	case len(h.entries) < h.k:
		return nil
	case h.form == heaped:
		return &h.entries[0]
	case h.form == inOrder:
		return &h.entries[h.k-1]
	}
	worst := &h.entries[0]
	for i := range h.entries {
		if compare(&h.entries[i], worst) > 0 {
			worst = &h.entries[i]
		}
	}
	return worst
}

// keep puts an object among the best unless k others precede it.
func (h *ranking) keep(o *ranked) {
	if len(h.entries) < h.k {
		h.entries, h.form = append(h.entries, *o), asTheyCame
		return
	}
	if h.form != heaped {
		slices.Reverse(h.sorted())
		h.form = heaped
	}
	if compare(o, &h.entries[0]) < 0 {
		h.entries[0] = *o
		sink(h.entries, 0)
	}
}

// sink brings the object at i to its place, those below it being heaps.
func sink(e []ranked, i int) {
	for {
		worst := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(e); child++ {
			if compare(&e[child], &e[worst]) > 0 {
				worst = child
			}
		}
		if worst == i {
			return
		}
		e[i], e[worst] = e[worst], e[i]
		i = worst
	}
}

// join adds objects, of which some may be there already.
func (h *ranking) join(others []ranked) {
	all := append(h.entries, others...)
	slices.SortFunc(all, func(a, b ranked) int { return compare(&a, &b) })
	all = slices.CompactFunc(all, func(a, b ranked) bool { return a.id == b.id })
	h.entries, h.form = all[:min(len(all), h.k)], inOrder
}

// sorted returns the best in the total order. Objects are dealt to buckets of keys first, which leaves them nearly in order, since those with the
// same key have come in the order of counts: for a hundred hits that takes a quarter of the time of comparing alone, which no processor
// foresees.
func (h *ranking) sorted() []ranked {
	if h.form == inOrder {
		return h.entries
	}
	h.spare = slices.Grow(h.spare[:0], len(h.entries))[:len(h.entries)]
	if h.deal(h.spare) {
		h.entries, h.spare = h.spare, h.entries
	}
	if !insert(h.entries) {
		slices.SortFunc(h.entries, func(a, b ranked) int { return compare(&a, &b) })
	}
	h.form = inOrder
	return h.entries
}

// cut leaves the k best.
func (h *ranking) cut() {
	if len(h.entries) > h.k {
		h.entries = h.sorted()[:h.k]
	}
}

const buckets = 256

// scaleOf takes keys between two to one of so many buckets, and is 0 where there is one key, or keys that differ by more than floats hold.
func scaleOf(least, most float64, used int) float64 {
	if scale := float64(used-1) / (most - least); scale > 0 && scale <= math.MaxFloat64 {
		return scale
	}
	return 0
}

// deal deals the entries to buckets. It is false where that is of no use: they are few, have one key, or keys that differ by more than floats hold.
func (h *ranking) deal(dst []ranked) bool {
	const few = 12
	if len(dst) <= few {
		return false
	}
	least, most := h.entries[0].key, math.Inf(-1)
	for i := range h.entries {
		key := h.entries[i].key
		if least = min(least, key); key != nowhere {
			most = max(most, key)
		}
	}
	used := min(buckets, 2<<bits.Len(uint(len(dst))))
	last := float64(used - 1)
	scale := scaleOf(least, most, used)
	if scale == 0 {
		return false
	}
	ends := h.ends[:used+1]
	clear(ends)
	for i := range h.entries {
		ends[int(min((h.entries[i].key-least)*scale, last))+1]++
	}
	for i := range used {
		ends[i+1] += ends[i]
	}
	for i := range h.entries {
		// Rounding keeps the order: a key that is not less has no lower bucket.
		at := &ends[int(min((h.entries[i].key-least)*scale, last))]
		dst[*at] = h.entries[i]
		*at++
	}
	return true
}

// insert brings objects that are few, or nearly in the total order, into that. It gives up, and is false, where they are not.
func insert(e []ranked) bool {
	moves := 64 + 4*len(e)
	for i := 1; i < len(e); i++ {
		if e[i-1].key < e[i].key || compare(&e[i-1], &e[i]) <= 0 {
			continue
		}
		if moves < 0 {
			return false
		}
		o, j := e[i], i
		for ; j > 0 && compare(&o, &e[j-1]) < 0; j-- {
			e[j] = e[j-1]
		}
		e[j] = o
		moves -= i - j
	}
	return true
}
