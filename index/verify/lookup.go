package verify

import "slices"

// lookup finds the terms of a query among those of an object with one multiplication each and without a branch that is hard to foresee: a hash
// table without collisions, for which a multiplier is sought once a query. Merging two sorted lists takes four times as long for titles,
// since which of both comes next is anybody's guess. Queries of many terms have none.
type lookup struct {
	slots []lookupSlot // a power of two; empty: there is none
	by    uint32
	shift uint8
}

// lookupSlot has a term of the query, in its low half, and what is looked up: its weight, or its place among the terms. noTerm is none.
type lookupSlot uint64

func (s lookupSlot) term() uint32  { return uint32(s) }
func (s lookupSlot) value() uint32 { return uint32(s >> 32) }

const (
	noTerm = 1<<32 - 1
	// lookupTerms is up to how many terms of a query a table stays within a core's first cache.
	lookupTerms = 64
	// lookupLonger: an object with so many times the terms of the query is searched for each of these.
	lookupLonger = 32
)

// reset makes the table of what is looked up of each term; nil: 1.
func (l *lookup) reset(terms, values []uint32) {
	l.slots = l.slots[:0]
	if len(terms) == 0 || len(terms) > lookupTerms {
		return
	}
	const first, last = 3, 13 // bits
	bits := first
	for 1<<bits < 2*len(terms) {
		bits++
	}
	by := uint32(0x9E3779B1)
	for ; bits <= last; bits++ {
		for range 4 {
			if l.fill(terms, values, by, bits) {
				return
			}
			by = by*0x915F77F5 | 1
		}
	}
	l.slots = l.slots[:0]
}

// fill tries a multiplier.
func (l *lookup) fill(terms, values []uint32, by uint32, bits int) bool {
	if cap(l.slots) < 1<<bits {
		l.slots = make([]lookupSlot, 1<<bits)
	}
	l.slots, l.by, l.shift = l.slots[:1<<bits], by, uint8(32-bits)
	for i := range l.slots {
		l.slots[i] = noTerm
	}
	for i, term := range terms {
		s := &l.slots[term*by>>l.shift]
		if s.term() != noTerm {
			return false
		}
		value := uint32(1)
		if values != nil {
			value = values[i]
		}
		*s = lookupSlot(value)<<32 | lookupSlot(term)
	}
	return true
}

// fits says whether the table is the way to find the terms of an object with so many, of a query with so many.
func (l *lookup) fits(query, object int) bool { return len(l.slots) > 0 && object < lookupLonger*query }

// sum adds up what is looked up of the query's terms that an object has.
func (l *lookup) sum(object []uint32) uint64 {
	slots, by, shift := l.slots, l.by, l.shift&31
	sum := uint64(0)
	for _, term := range object {
		s := slots[term*by>>shift]
		value := uint64(s.value())
		if s.term() != term {
			value = 0
		}
		sum += value
	}
	return sum
}

// find returns what is looked up of an object's terms that the query has, in memory that is used again, in the order of terms.
func (l *lookup) find(dst, object []uint32) []uint32 {
	slots, by, shift := l.slots, l.by, l.shift&31
	dst = slices.Grow(dst[:0], len(object))[:len(object)]
	n := 0
	for _, term := range object {
		s := slots[term*by>>shift]
		dst[n] = s.value() // whether it stays, the next step decides
		if s.term() == term {
			n++
		}
	}
	return dst[:n]
}

// findPlaces is find, and returns the places of those terms in the object too.
func (l *lookup) findPlaces(dst []match, object []uint32) []match {
	slots, by, shift := l.slots, l.by, l.shift&31
	dst = slices.Grow(dst[:0], len(object))[:len(object)]
	n := 0
	for i, term := range object {
		s := slots[term*by>>shift]
		dst[n] = match{s.value(), uint32(i)}
		if s.term() == term {
			n++
		}
	}
	return dst[:n]
}

// match is what is looked up of a term, and its place in an object.
type match struct{ value, place uint32 }
