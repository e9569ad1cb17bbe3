package forward

import (
	"sort"

	"github.com/geniemq/geniemq/index/similarity"
)

// weigher is the weights of terms at a scale by how many objects have them, as a table of where the weight falls: package similarity
// compares products of more than 128 bits for each, and queries ask for many.
type weigher struct {
	most []uint32 // most[j] is the most objects that may have a term of weight j+2 or more; it falls, and ends where none has
}

// newWeigher returns the weights of a scale, and nil without one.
func newWeigher(scale int, objects uint32) *weigher {
	idf, err := similarity.NewIDF(scale, uint64(objects))
	if err != nil {
		return nil
	}
	w := new(weigher)
	for weight := uint32(2); weight <= idf.Weight(0); weight++ {
		// The first number of objects, from 0, at which it is less.
		n := sort.Search(int(objects)+1, func(n int) bool { return idf.Weight(uint64(n)) < weight })
		w.most = append(w.most, uint32(n-1))
	}
	return w
}

// of returns the weight of a term that so many objects have.
func (w *weigher) of(objects uint32) uint32 {
	lo, n := 0, len(w.most)
	for n > 0 {
		half := n / 2
		if w.most[lo+half] >= objects {
			lo += half + 1
			n -= half + 1
		} else {
			n = half
		}
	}
	return uint32(lo) + 1
}

// Weight returns the weight of a term at the column's scale, 1 without one. One that no object has is the heaviest.
func (c *Column) Weight(term uint32) uint32 {
	if c.weigher == nil {
		return 1
	}
	return c.weigher.of(c.Frequency(term))
}

// Unknown returns the weight of a term that no object has.
func (c *Column) Unknown() uint32 {
	if c.weigher == nil {
		return 1
	}
	return c.weigher.of(0)
}
