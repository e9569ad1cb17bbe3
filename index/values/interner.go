package values

import (
	"math"

	"github.com/cespare/xxhash/v2"

	"github.com/geniemq/geniemq/index/store"
)

// interner numbers distinct strings in the order they are first seen.
type interner struct {
	strings store.StringTable
	table   store.HashTable
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
		n.table = store.NewHashTable(&n.strings, store.HashSlots(count+1))
	}
	n.strings.Add(value)
	n.table.Insert(hash, uint32(count))
	return uint32(count), true
}
