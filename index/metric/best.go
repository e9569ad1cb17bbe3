package metric

import (
	"cmp"
	"math"
	"slices"
)

// Best keeps the first hits that a search wants, of those that it was told of, so that the bound is exact after each hit. Objects come in any order, each once. The zero value wants nothing;
// Reset makes it ready, again and again.
//
// Few hits are kept in order: moving some is less than a heap's comparisons, and in the end they need no sorting. More are a heap whose root is the last of them.
type Best struct {
	want Want
	hits []Hit
}

// ordered is how many hits are few.
const ordered = 24

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
			b.hits = append(b.hits, h)
			b.rise(len(b.hits) - 1)
		}
		return
	}
	if len(b.hits) > 0 && h.Less(b.hits[0]) {
		b.hits[0] = h
		b.sink()
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
	slices.SortFunc(b.hits, func(x, y Hit) int { return cmp.Or(cmp.Compare(x.Value, y.Value), cmp.Compare(x.ID, y.ID)) })
	return b.hits
}

func (b *Best) rise(i int) {
	for h := b.hits; i > 0 && h[(i-1)/2].Less(h[i]); i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
}

func (b *Best) sink() {
	for i, h := 0, b.hits; ; {
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
