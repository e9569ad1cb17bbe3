package index

import (
	"math"
	"unsafe"

	"github.com/cespare/xxhash/v2"
)

// stringTable is an array of strings: string i is data[offsets[i]:offsets[i+1]]. It is the form of keywords, keys,
// payloads and texts, in the file and while building. A table of n strings has n+1 offsets; nil has none.
type stringTable struct {
	offsets []uint32
	data    []byte
	longest uint32 // bytes of the longest string, in a table from a file
}

func (t *stringTable) len() int {
	return max(len(t.offsets)-1, 0)
}

func (t *stringTable) bytes(i uint32) []byte {
	return t.data[t.offsets[i]:t.offsets[i+1]:t.offsets[i+1]]
}

// at returns string i in place: it lives as long as the table's memory.
func (t *stringTable) at(i uint32) string {
	b := t.bytes(i)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// fits is true when a string of n bytes can be added.
func (t *stringTable) fits(n int) bool {
	return uint64(len(t.data))+uint64(n) <= math.MaxUint32
}

func (t *stringTable) add(s string) {
	if len(t.offsets) == 0 {
		t.offsets = append(t.offsets, 0)
	}
	t.data = append(t.data, s...)
	t.offsets = append(t.offsets, uint32(len(t.data)))
}

// clone returns a copy without spare capacity.
func (t *stringTable) clone() stringTable {
	c := stringTable{offsets: make([]uint32, len(t.offsets)), data: make([]byte, len(t.data))}
	copy(c.offsets, t.offsets)
	copy(c.data, t.data)
	return c
}

// decodeStrings reads a table of n strings from a section and checks what at relies on.
func decodeStrings(section []byte, n uint32) (stringTable, error) {
	head := (uint64(n) + 1) * 4
	if uint64(len(section)) < head {
		return stringTable{}, corrupt("%d bytes cannot hold the offsets of %d strings", len(section), n)
	}
	t := stringTable{offsets: view[uint32](section[:head]), data: section[head:]}
	previous := uint32(0)
	for i, offset := range t.offsets {
		if offset < previous {
			return stringTable{}, corrupt("offset of string %d is below its predecessor", i)
		}
		t.longest = max(t.longest, offset-previous)
		previous = offset
	}
	if t.offsets[0] != 0 || uint64(previous) != uint64(len(t.data)) {
		return stringTable{}, corrupt("offsets of strings end at %d, the strings have %d bytes", previous, len(t.data))
	}
	return t, nil
}

// hashTable finds strings of a stringTable: open addressing with linear probing over a power of two of slots.
// A slot is 0 when empty, else the upper half of the string's xxhash64 in its upper half and 1 + the string's
// number in the lower; the slot tried first is the lower bits of the hash. The upper half as a tag means that a
// probe reads a foreign string once in 2^32. At most three quarters of the slots are taken.
type hashTable []uint64

// hashSlots returns the number of slots for n strings.
func hashSlots(n int) int {
	if n == 0 {
		return 0
	}
	slots := 2
	for slots*3 < n*4 {
		slots *= 2
	}
	return slots
}

// insert adds string number id; there must be an empty slot.
func (h hashTable) insert(hash uint64, id uint32) {
	mask := uint64(len(h) - 1)
	i := hash & mask
	for h[i] != 0 {
		i = (i + 1) & mask
	}
	h[i] = hash&^math.MaxUint32 | uint64(id) + 1
}

// probe begins to look for a hash; the strings that match come from next.
func (h hashTable) probe(hash uint64) probe {
	return probe{slots: h, at: hash, left: len(h), tag: uint32(hash >> 32)}
}

// probe walks the slots of one hash. It visits each slot at most once, so that a damaged table without an empty
// slot ends too.
type probe struct {
	slots []uint64
	at    uint64
	left  int
	tag   uint32
}

// next returns the number of the next string whose tag agrees; ok is false when there is none.
func (p *probe) next() (id uint32, ok bool) {
	mask := uint64(len(p.slots) - 1)
	for ; p.left > 0; p.left-- {
		slot := p.slots[p.at&mask]
		p.at++
		if slot == 0 {
			return 0, false
		}
		if uint32(slot>>32) == p.tag {
			p.left--
			return uint32(slot) - 1, true
		}
	}
	return 0, false
}

// find returns the number of value among the strings of t. Numbers out of range, which only a damaged table
// has, match nothing.
func (h hashTable) find(t *stringTable, value string) (uint32, bool) {
	n := uint32(t.len())
	for p := h.probe(xxhash.Sum64String(value)); ; {
		id, ok := p.next()
		if !ok {
			return 0, false
		}
		if id < n && t.at(id) == value {
			return id, true
		}
	}
}

// buildTable returns a table of the strings of t, inserted in their order.
func buildTable(t *stringTable, slots int) hashTable {
	h := make(hashTable, slots)
	for i := range uint32(t.len()) {
		h.insert(xxhash.Sum64String(t.at(i)), i)
	}
	return h
}

// decodeHashTable reads a hash table from a section and checks what probing relies on: a power of two of slots, or none.
func decodeHashTable(section []byte) (hashTable, error) {
	if slots := len(section) / 8; len(section)%8 != 0 || slots&(slots-1) != 0 {
		return nil, corrupt("%d bytes are no hash table", len(section))
	}
	return view[uint64](section), nil
}
