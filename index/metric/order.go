package metric

import (
	"math"
	"math/bits"
	"slices"
)

// Sort puts hits in order, and returns spare for the next time: memory that it needs, grown if it is too small. Hits are distinct.
//
// Many are dealt by the first bits in which their values differ, as many as three tables hold, the last ones first (a radix sort): what has these alike is next to each other then, and few as a
// rule. Where it is not, as by distances that are whole numbers, ids are dealt the same way.
func Sort(hits, spare []Hit) []Hit {
	if len(hits) <= fewToSort {
		slices.SortFunc(hits, Hit.Compare)
		return spare
	}
	spare = slices.Grow(spare[:0], len(hits))[:len(hits)]
	low := deal(hits, spare, false)
	for first := 0; first < len(hits); {
		end, equal := first+1, true
		for ; end < len(hits) && hits[end].key(false)>>low == hits[first].key(false)>>low; end++ {
			equal = equal && hits[end].Value == hits[first].Value
		}
		if run := hits[first:end]; equal && len(run) > fewToSort {
			deal(run, spare, true) // by all bits: ids have 32
		} else if len(run) > 1 {
			slices.SortFunc(run, Hit.Compare)
		}
		first = end
	}
	return spare
}

// fewToSort hits are sorted by comparing them in less.
const fewToSort = 384

// digit is how many bits a table deals by, and digits how many tables there are.
const digit, digits = 11, 3

// key is the id of a hit, or its value in the order of values, -0 and 0 alike.
func (h *Hit) key(ids bool) uint64 {
	if ids {
		return uint64(h.ID)
	}
	b := math.Float64bits(h.Value + 0)
	return b ^ (uint64(int64(b)>>63) | 1<<63)
}

// deal orders hits by their keys less so many low bits, which it returns. What has these alike keeps its order. spare has room for as many.
func deal(hits, spare []Hit, ids bool) (low int) {
	all, some := ^uint64(0), uint64(0)
	for i := range hits {
		k := hits[i].key(ids)
		all, some = all&k, some|k
	}
	differ := bits.Len64(all ^ some)
	low = max(0, differ-digit*digits)
	from, to := hits, spare[:len(hits)]
	for at := low; at < differ; at += digit {
		var places [1 << digit]uint32
		for i := range from {
			places[from[i].key(ids)>>at&(1<<digit-1)]++
		}
		next := uint32(0)
		for i, n := range places {
			places[i] = next
			next += n
		}
		for i := range from {
			place := &places[from[i].key(ids)>>at&(1<<digit-1)]
			to[*place] = from[i]
			*place++
		}
		from, to = to, from
	}
	if &from[0] != &hits[0] {
		copy(hits, from)
	}
	return low
}
