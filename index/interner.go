package index

import (
	"math"

	"github.com/cespare/xxhash/v2"
)

// interner numbers distinct strings in the order they are first seen.
type interner struct {
	strings StringTable
	table   HashTable
}

// intern returns the number of value, adding it when it is new. ok is false when the strings are full: 4 GiB, or
// one short of 2^32 strings.
func (n *interner) intern(value string) (id uint32, ok bool) {
	hash := xxhash.Sum64String(value)
	for p := n.table.Probe(hash); ; {
		id, found := p.Next()
		if !found {
			break
		}
		if n.strings.At(id) == value {
			return id, true
		}
	}
	count := n.strings.Len()
	if !n.strings.Fits(len(value)) || uint64(count) >= math.MaxUint32-1 {
		return 0, false
	}
	if (count+1)*4 > len(n.table)*3 {
		n.table = NewHashTable(&n.strings, HashSlots(count+1))
	}
	n.strings.Add(value)
	n.table.Insert(hash, uint32(count))
	return uint32(count), true
}
