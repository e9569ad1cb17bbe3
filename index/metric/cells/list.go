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
		if h.Value > l.bound {
			l.bound = h.Value
		}
	}
}

// guess lowers the bound, after so many of all hits, to the value beyond which none of the first is expected to be: of a sample about as many are among the first as their share of all, more or less
// by the root of that. Of a hundred guesses about one is too low, and then there are fewer hits than are wanted in the end.
func (l *list) guess(seen, all uint32) {
	expected := float64(l.most) * float64(seen) / float64(all)
	n := int(math.Ceil(expected + 2*math.Sqrt(expected) + 2))
	if n >= min(l.most, len(l.hits)) {
		return
	}
	firsts(l.hits, n)
	bound := math.Inf(-1)
	for _, h := range l.hits[:n] {
		bound = max(bound, h.Value)
	}
	l.hits, l.bound = l.hits[:fore(l.hits, func(v float64) bool { return v <= bound })], bound
}

// sorted are the first hits in order. They are the list's own.
func (l *list) sorted() []metric.Hit {
	l.cut()
	slices.SortFunc(l.hits, metric.Hit.Compare)
	return l.hits
}

// rounds puts the first hits into an order in which those of each round come before those of the next; within a round they come in any.
func (l *list) rounds(ends []int) {
	l.cut()
	hits := l.hits
	for i := len(ends) - 1; i >= 0; i-- {
		if n := ends[i]; n < len(hits) {
			firsts(hits, n)
			hits = hits[:n]
		}
	}
}

// few hits are put in order rather than parted.
const few = 12

// firsts moves the first n of some hits to the front. Hits that part badly, again and again, are sorted.
func firsts(hits []metric.Hit, n int) {
	lo, hi := 0, len(hits) // the n-th is among these
	for left := 2 * bits.Len(uint(len(hits))); hi-lo > few && left > 0; left-- {
		pivot := middle(hits[lo].Value, hits[lo+(hi-lo)/2].Value, hits[hi-1].Value)
		below := lo + fore(hits[lo:hi], func(v float64) bool { return v < pivot })
		switch {
		case n <= below:
			hi = below
			continue
		case below > lo:
			lo = below
			continue
		}
		at := below + fore(hits[below:hi], func(v float64) bool { return v == pivot })
		if n <= at { // ids decide
			hi = at
			break
		}
		lo = at
	}
	slices.SortFunc(hits[lo:hi], metric.Hit.Compare)
}

// fore moves those whose values are in to the front, and says how many they are. It has no branch that depends on a value, since nobody can foresee it.
func fore(hits []metric.Hit, in func(v float64) bool) (n int) {
	for i, h := range hits {
		hits[i] = hits[n]
		hits[n] = h
		one := 0
		if in(h.Value) {
			one = 1
		}
		n += one
	}
	return n
}

func middle(a, b, c float64) float64 { return max(min(a, b), min(max(a, b), c)) }
