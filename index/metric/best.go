package metric

import (
	"math"
	"slices"
)

// Best keeps the first hits that a search wants, of those that it was told of, so that the bound is exact after each hit. Objects come in any order, each once. The zero value wants nothing;
// Reset makes it ready, again and again.
//
// Few hits are kept in order: moving some is less than a heap's comparisons, and in the end they need no sorting. More are in any order until there are enough, which within a radius may never be,
// and then a heap whose root is the last of them.
type Best struct {
	want  Want
	hits  []Hit
	spare []Hit // of Sort
}

// ordered is how many hits are few.
const ordered = 128

// Reset forgets all hits and begins a search.
func (b *Best) Reset(want Want) { b.want, b.hits = want, b.hits[:0] }

// Bound is the largest value that can still be a hit's: no object beyond it is wanted, one at it may be, if its id is small enough. It never rises.
// Of a search that wants no hits it is -Inf.
func (b *Best) Bound() float64 {
	switch {
	case b.want.K < 1:
		return math.Inf(-1)
	case len(b.hits) < b.want.K:
		return b.want.Most
	case b.want.K <= ordered:
		return b.hits[len(b.hits)-1].Value // at most want.Most, since it was let in
	default:
		return b.hits[0].Value
	}
}

// Add tells it of an object.
func (b *Best) Add(h Hit) {
	if b.want.K <= ordered {
		b.insert(h)
		return
	}
	if len(b.hits) < b.want.K {
		if h.Value <= b.want.Most {
			if b.hits = append(b.hits, h); len(b.hits) == b.want.K {
				for i := len(b.hits)/2 - 1; i >= 0; i-- {
					b.sink(i)
				}
			}
		}
		return
	}
	if h.Less(b.hits[0]) {
		b.hits[0] = h
		b.sink(0)
	}
}

// insert is Add of few hits.
func (b *Best) insert(h Hit) {
	i := len(b.hits)
	switch {
	case i < b.want.K:
		if !(h.Value <= b.want.Most) {
			return
		}
		b.hits = append(b.hits, h)
	case i == 0 || !h.Less(b.hits[i-1]):
		return
	default:
		i--
	}
	for ; i > 0 && h.Less(b.hits[i-1]); i-- {
		b.hits[i] = b.hits[i-1]
	}
	b.hits[i] = h
}

// Has says whether an object is one of the first hits so far. It looks at all of them.
func (b *Best) Has(id uint32) bool {
	return slices.ContainsFunc(b.hits, func(h Hit) bool { return h.ID == id })
}

// Sorted returns the hits in order. They are its own and hold until Reset, which has to come before the next Add.
func (b *Best) Sorted() []Hit {
	if b.want.K <= ordered {
		return b.hits
	}
	b.spare = Sort(b.hits, b.spare)
	return b.hits
}

// sink puts a hit of a heap where it belongs, if what is below it is in order.
func (b *Best) sink(i int) {
	for h := b.hits; ; {
		last := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[last].Less(h[child]) {
				last = child
			}
		}
		if last == i {
			return
		}
		h[i], h[last] = h[last], h[i]
		i = last
	}
}
