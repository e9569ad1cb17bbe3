package values

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/geniemq/geniemq/index/store"
)

// Interner numbers distinct strings in the order they are first seen.
type Interner struct {
	strings store.StringTable
	table   store.HashTable
}

// Strings returns the strings by their numbers.
func (n *Interner) Strings() *store.StringTable { return &n.strings }

// Intern returns the number of value, adding it when it is new. ok is false when the strings are full: 4 GiB, or
// one short of 2^32 strings.
func (n *Interner) Intern(value string) (id uint32, ok bool) {
	hash := xxhash.Sum64String(value)
	if id, found := n.table.Match(hash, func(id uint32) bool { return n.strings.At(id) == value }); found {
		return id, true
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

// reset forgets all strings and keeps the memory.
func (n *Interner) reset() {
	n.strings.Reset()
	clear(n.table)
}

// Sort returns the strings that are used (nil: all) in the order of their bytes, and the places that strings have among them by their
// numbers.
func (n *Interner) Sort(used []bool) (sorted store.StringTable, place []uint32) {
	from := &n.strings
	type entry struct {
		prefix uint64 // the first 8 bytes decide most comparisons without touching the string
		id     uint32
	}
	order := make([]entry, 0, from.Len())
	size := 0
	for id := range uint32(from.Len()) {
		if used != nil && !used[id] {
			continue
		}
		s := from.Bytes(id)
		var prefix [8]byte
		copy(prefix[:], s)
		order = append(order, entry{binary.BigEndian.Uint64(prefix[:]), id})
		size += len(s)
	}
	slices.SortFunc(order, func(a, b entry) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		return strings.Compare(from.At(a.id), from.At(b.id))
	})
	place = make([]uint32, from.Len())
	sorted = store.NewStringTable(len(order), size)
	for keyword, e := range order {
		place[e.id] = uint32(keyword)
		sorted.Add(from.At(e.id))
	}
	return sorted, place
}
