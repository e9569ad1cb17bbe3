package store

import (
	"math"
	"unsafe"

	"github.com/cespare/xxhash/v2"
)

// stringTable is an array of strings: string i is data[offsets[i]:offsets[i+1]]. It is the form of keywords, keys,
// payloads and texts, in the file and while building. A table of n strings has n+1 offsets; nil has none.
type StringTable struct {
	offsets []uint32
	data    []byte
	most    uint32 // bytes of the longest string, in a table from a file
}

func (t *StringTable) Len() int {
	return max(len(t.offsets)-1, 0)
}

func (t *StringTable) Bytes(i uint32) []byte {
	return t.data[t.offsets[i]:t.offsets[i+1]:t.offsets[i+1]]
}

// at returns string i in place: it lives as long as the table's memory.
func (t *StringTable) At(i uint32) string {
	b := t.Bytes(i)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// fits is true when a string of n bytes can be added.
func (t *StringTable) Fits(n int) bool {
	return uint64(len(t.data))+uint64(n) <= math.MaxUint32
}

func (t *StringTable) Add(s string) {
	if len(t.offsets) == 0 {
		t.offsets = append(t.offsets, 0)
	}
	t.data = append(t.data, s...)
	t.offsets = append(t.offsets, uint32(len(t.data)))
}

// newStringTable returns an empty table with room for n strings of so many bytes together.
func NewStringTable(n, bytes int) StringTable {
	t := StringTable{offsets: make([]uint32, 0, n+1), data: make([]byte, 0, bytes)}
	t.offsets = append(t.offsets, 0)
	return t
}

// reset empties the table and keeps its memory.
func (t *StringTable) Reset() { t.offsets, t.data = t.offsets[:0], t.data[:0] }

// parts is the table as it lies in a section.
func (t *StringTable) Parts() [][]byte { return [][]byte{Raw(t.offsets), t.data} }

// size returns the bytes of all strings.
func (t *StringTable) Size() int { return len(t.data) }

// longest returns the bytes of the longest string, of a table from a file.
func (t *StringTable) Longest() int { return int(t.most) }

// clone returns a copy without spare capacity.
func (t *StringTable) Clone() StringTable {
	c := StringTable{offsets: make([]uint32, len(t.offsets)), data: make([]byte, len(t.data))}
	copy(c.offsets, t.offsets)
	copy(c.data, t.data)
	return c
}

// decodeStrings reads a table of n strings from a section and checks what at relies on.
func DecodeStrings(section []byte, n uint32) (StringTable, error) {
	head := (uint64(n) + 1) * 4
	if uint64(len(section)) < head {
		return StringTable{}, Corrupt("%d bytes cannot hold the offsets of %d strings", len(section), n)
	}
	t := StringTable{offsets: View[uint32](section[:head]), data: section[head:]}
	previous := uint32(0)
	for i, offset := range t.offsets {
		if offset < previous {
			return StringTable{}, Corrupt("offset of string %d is below its predecessor", i)
		}
		t.most = max(t.most, offset-previous)
		previous = offset
	}
	if t.offsets[0] != 0 || uint64(previous) != uint64(len(t.data)) {
		return StringTable{}, Corrupt("offsets of strings end at %d, the strings have %d bytes", previous, len(t.data))
	}
	return t, nil
}

// hashTable finds strings of a stringTable: open addressing with linear probing over a power of two of slots.
// A slot is 0 when empty, else the upper half of the string's xxhash64 in its upper half and 1 + the string's
// number in the lower; the slot tried first is the lower bits of the hash. The upper half as a tag means that a
// probe reads a foreign string once in 2^32. At most three quarters of the slots are taken.
type HashTable []uint64

// hashSlots returns the number of slots for n strings.
func HashSlots(n int) int {
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
func (h HashTable) Insert(hash uint64, id uint32) {
	mask := uint64(len(h) - 1)
	i := hash & mask
	for h[i] != 0 {
		i = (i + 1) & mask
	}
	h[i] = hash&^math.MaxUint32 | uint64(id) + 1
}

// probe begins to look for a hash; the strings that match come from next.
func (h HashTable) Probe(hash uint64) probe {
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
func (p *probe) Next() (id uint32, ok bool) {
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
func (h HashTable) Find(t *StringTable, value string) (uint32, bool) {
	n := uint32(t.Len())
	for p := h.Probe(xxhash.Sum64String(value)); ; {
		id, ok := p.Next()
		if !ok {
			return 0, false
		}
		if id < n && t.At(id) == value {
			return id, true
		}
	}
}

// buildTable returns a table of the strings of t, inserted in their order.
func NewHashTable(t *StringTable, slots int) HashTable {
	h := make(HashTable, slots)
	for i := range uint32(t.Len()) {
		h.Insert(xxhash.Sum64String(t.At(i)), i)
	}
	return h
}

// decodeHashTable reads a hash table from a section and checks what probing relies on: a power of two of slots, or none.
func DecodeHashTable(section []byte) (HashTable, error) {
	if slots := len(section) / 8; len(section)%8 != 0 || slots&(slots-1) != 0 {
		return nil, Corrupt("%d bytes are no hash table", len(section))
	}
	return View[uint64](section), nil
}
