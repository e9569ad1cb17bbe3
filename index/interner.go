package index

import (
	"math"

	"github.com/cespare/xxhash/v2"
)

// interner numbers distinct strings in the order they are first seen.
type interner struct {
	strings stringTable
	table   hashTable
}

// intern returns the number of value, adding it when it is new. ok is false when the strings are full: 4 GiB, or
// one short of 2^32 strings.
func (n *interner) intern(value string) (id uint32, ok bool) {
	hash := xxhash.Sum64String(value)
	for p := n.table.probe(hash); ; {
		id, found := p.next()
		if !found {
			break
		}
		if n.strings.at(id) == value {
			return id, true
		}
	}
	count := n.strings.len()
	if !n.strings.fits(len(value)) || uint64(count) >= math.MaxUint32-1 {
		return 0, false
	}
	if (count+1)*4 > len(n.table)*3 {
		n.table = buildTable(&n.strings, hashSlots(count+1))
	}
	n.strings.add(value)
	n.table.insert(hash, uint32(count))
	return uint32(count), true
}
