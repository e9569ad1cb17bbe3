package store

import (
	"math"
	"slices"
	"unsafe"

	"github.com/cespare/xxhash/v2"
)

// StringTable is an array of strings: string i is data[offsets[i]:offsets[i+1]]. It is the form of keywords, keys,
// payloads and texts, in the file and while building. A table of n strings has n+1 offsets; nil has none.
type StringTable struct {
	offsets []uint32
	data    []byte
	most    uint32 // bytes of the longest string, in a table from a file
}

func (t *StringTable) Len() int { return max(len(t.offsets)-1, 0) }

func (t *StringTable) Bytes(i uint32) []byte {
	return t.data[t.offsets[i]:t.offsets[i+1]:t.offsets[i+1]]
}

// At returns string i in place: it lives as long as the table's memory.
func (t *StringTable) At(i uint32) string {
	b := t.Bytes(i)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// Fits is true when a string of n bytes can be added.
func (t *StringTable) Fits(n int) bool { return uint64(len(t.data))+uint64(n) <= math.MaxUint32 }

func (t *StringTable) Add(s string) {
	if len(t.offsets) == 0 {
		t.offsets = append(t.offsets, 0)
	}
	t.data = append(t.data, s...)
	t.offsets = append(t.offsets, uint32(len(t.data)))
}

// NewStringTable returns an empty table with room for n strings of so many bytes together.
func NewStringTable(n, bytes int) StringTable {
	t := StringTable{offsets: make([]uint32, 0, n+1), data: make([]byte, 0, bytes)}
	t.offsets = append(t.offsets, 0)
	return t
}

// Reset empties the table and keeps its memory.
func (t *StringTable) Reset() { t.offsets, t.data = t.offsets[:0], t.data[:0] }

// Parts is the table as it lies in a section.
func (t *StringTable) Parts() [][]byte { return [][]byte{Raw(t.offsets), t.data} }

// Size returns the bytes of all strings.
func (t *StringTable) Size() int { return len(t.data) }

// Longest returns the bytes of the longest string, of a table from a file.
func (t *StringTable) Longest() int { return int(t.most) }

// Clone returns a copy without spare capacity.
func (t *StringTable) Clone() StringTable {
	c := StringTable{offsets: make([]uint32, len(t.offsets)), data: make([]byte, len(t.data))}
	copy(c.offsets, t.offsets)
	copy(c.data, t.data)
	return c
}

// DecodeStrings reads a table of n strings from a section and checks what At relies on.
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

// HashTable finds strings of a StringTable: open addressing with linear probing over a power of two of slots.
// A slot is 0 when empty, else the upper half of the string's xxhash64 in its upper half and 1 + the string's
// number in the lower; the slot tried first is the lower bits of the hash. The upper half as a tag means that a
// probe reads a foreign string once in 2^32. At most three quarters of the slots are taken.
type HashTable []uint64

// HashSlots returns the number of slots for n strings.
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

// Insert adds string number id; there must be an empty slot.
func (h HashTable) Insert(hash uint64, id uint32) {
	mask := uint64(len(h) - 1)
	i := hash & mask
	for h[i] != 0 {
		i = (i + 1) & mask
	}
	h[i] = hash&^math.MaxUint32 | uint64(id) + 1
}

// Match returns the number of the string that has a hash and that is says is the one that is sought. It visits each
// slot at most once, so that a damaged table without an empty slot ends too.
func (h HashTable) Match(hash uint64, is func(id uint32) bool) (id uint32, ok bool) {
	mask := uint64(len(h) - 1)
	for i := range uint64(len(h)) {
		slot := h[(hash+i)&mask]
		if slot == 0 {
			break
		}
		if id := uint32(slot) - 1; slot>>32 == hash>>32 && is(id) {
			return id, true
		}
	}
	return 0, false
}

// Find returns the number of value among the strings of t. Numbers out of range, which only a damaged table
// has, match nothing.
func (h HashTable) Find(t *StringTable, value string) (uint32, bool) {
	n := uint32(t.Len())
	return h.Match(xxhash.Sum64String(value), func(id uint32) bool { return id < n && t.At(id) == value })
}

// NoString is the number of a string that a table has not.
const NoString = math.MaxUint32

// together is how many strings are looked for at a time.
const together = 16

// FindAll is Find for many values: it appends the number of each, or NoString. A table of a million strings is in no near cache, and a search waits for three
// places of memory, each found by the one before: a slot, the offsets, the string. So all slots are read first, then all offsets, then all
// strings: those of one kind are waited for at once.
func (h HashTable) FindAll(dst []uint32, t *StringTable, values []string) []uint32 {
	for len(values) > together {
		dst = h.FindAll(dst, t, values[:together])
		values = values[together:]
	}
	n, mask := uint32(t.Len()), uint64(len(h)-1)
	dst = slices.Grow(dst, len(values))[:len(dst)+len(values)]
	ids := dst[len(dst)-len(values):]
	if len(h) == 0 {
		for i := range ids {
			ids[i] = NoString
		}
		return dst
	}
	var hashes, slots [together]uint64
	for i, value := range values {
		hashes[i] = xxhash.Sum64String(value)
	}
	for i := range values {
		slots[i] = h[hashes[i]&mask]
	}
	for i := range values { // the next slots are beside the first
		slot, hash := slots[i], hashes[i]
		for next := hash + 1; slot != 0 && slot>>32 != hash>>32 && next-hash < uint64(len(h)); next++ {
			slot = h[next&mask]
		}
		ids[i] = uint32(slot) - 1 // of an empty one, NoString
		if slot != 0 && (ids[i] >= n || slot>>32 != hash>>32) {
			ids[i] = h.number(t, values[i]) // the table is damaged
		}
	}
	var starts, ends [together]uint32
	for i, id := range ids {
		if id != NoString {
			starts[i], ends[i] = t.offsets[id], t.offsets[id+1]
		}
	}
	for i, value := range values {
		if ids[i] == NoString || string(t.data[starts[i]:ends[i]]) == value {
			continue
		}
		ids[i] = h.number(t, value) // another one has its tag
	}
	return dst
}

// number is Find's, or NoString.
func (h HashTable) number(t *StringTable, value string) uint32 {
	if id, ok := h.Find(t, value); ok {
		return id
	}
	return NoString
}

// NewHashTable returns a table of the strings of t, inserted in their order.
func NewHashTable(t *StringTable, slots int) HashTable {
	h := make(HashTable, slots)
	for i := range uint32(t.Len()) {
		h.Insert(xxhash.Sum64String(t.At(i)), i)
	}
	return h
}

// DecodeHashTable reads a hash table from a section and checks what probing relies on: a power of two of slots, or none.
func DecodeHashTable(section []byte) (HashTable, error) {
	if slots := len(section) / 8; len(section)%8 != 0 || slots&(slots-1) != 0 {
		return nil, Corrupt("%d bytes are no hash table", len(section))
	}
	return View[uint64](section), nil
}

// Verify checks what opening leaves: that the strings of t, which h is a table of, ascend, and that h is what finds them.
func (h HashTable) Verify(t *StringTable) error {
	n := uint32(t.Len())
	for i := range n {
		if i > 0 && t.At(i) <= t.At(i-1) {
			return Corrupt("keyword %d is not above its predecessor", i)
		}
		if found, ok := h.Find(t, t.At(i)); !ok || found != i {
			return Corrupt("the hash table does not find keyword %d", i)
		}
	}
	if len(h) != HashSlots(int(n)) {
		return Corrupt("the hash table has %d slots for %d keywords", len(h), n)
	}
	taken := uint32(0)
	for _, slot := range h {
		if slot != 0 {
			taken++
		}
	}
	if taken != n {
		return Corrupt("the hash table has %d entries for %d keywords", taken, n)
	}
	return nil
}
