package cells

import (
	"math"
	"math/bits"
	"slices"

	"github.com/geniemq/geniemq/index/metric"
)

// list keeps the first hits in the order of (value, id) of those that it is told of, in any order. It gathers up to twice as many and then cuts by a selection, so that a hit takes a few steps however many
// are kept, where a heap takes as many as it has levels, and no more are put in order than are kept.
type list struct {
	most  int
	hits  []metric.Hit
	bound float64 // what is beyond is none of them
}

func (l *list) reset(most int) { l.most, l.hits, l.bound = most, l.hits[:0], math.Inf(1) }

// add tells it of a hit that is not beyond the bound.
func (l *list) add(h metric.Hit) {
	if l.hits = append(l.hits, h); len(l.hits) >= 2*l.most {
		l.cut()
	}
}

// cut drops what is not among the first.
func (l *list) cut() {
	if len(l.hits) < l.most {
		return
	}
	if len(l.hits) > l.most {
		firsts(l.hits, l.most)
	}
	l.hits, l.bound = l.hits[:l.most], math.Inf(-1)
	for _, h := range l.hits {
		l.bound = max(l.bound, h.Value)
	}
}

// sorted are the first hits in order. They are the list's own.
func (l *list) sorted() []metric.Hit {
	l.cut()
	slices.SortFunc(l.hits, metric.Hit.Compare)
	return l.hits
}

// few hits are put in order rather than parted.
const few = 12

// firsts moves the first n of some hits to the front. Hits that part badly, again and again, are sorted.
func firsts(hits []metric.Hit, n int) {
	lo, hi := 0, len(hits) // the n-th is among these
	for left := 2 * bits.Len(uint(len(hits))); hi-lo > few && left > 0; left-- {
		pivot := middle(hits[lo], hits[lo+(hi-lo)/2], hits[hi-1])
		i, j := lo, hi-1
		for i <= j {
			for hits[i].Less(pivot) {
				i++
			}
			for pivot.Less(hits[j]) {
				j--
			}
			if i <= j {
				hits[i], hits[j] = hits[j], hits[i]
				i, j = i+1, j-1
			}
		}
		switch { // up to j none is after the pivot, and from i on none before it
		case n <= j:
			hi = j + 1
		case n > i:
			lo = i
		default:
			return
		}
	}
	slices.SortFunc(hits[lo:hi], metric.Hit.Compare)
}

func middle(a, b, c metric.Hit) metric.Hit {
	if b.Less(a) {
		a, b = b, a
	}
	if c.Less(a) {
		return a
	}
	if c.Less(b) {
		return c
	}
	return b
}
