package index

import (
	"encoding/binary"
	"math/bits"
)

// LayoutSliced stores what object has which keyword as a number an object instead of a list a keyword, bit by bit in
// planes. It is for attributes with at most one keyword an object: an object then takes P = bits.Len(V) bits for V
// keywords, whatever their frequencies, where a posting takes 16. An engine that asks the same objects for many keywords
// decodes 32 of them at a time, and needs no list at all.
//
// Only keywords that occur are numbered, densely and in order: the codes 0 to V-1. Code V says that an object has no
// keyword, as do the objects that fill up the last group. Codes finds the code of a keyword as Postings finds a list,
// so that a span of keywords is a range of codes.

const (
	// GroupObjects is the number of consecutive objects whose planes lie together: 32 words of 32 bits a plane.
	GroupObjects = 1024
	// MaxSlicedKeywords bounds the keywords of a sliced attribute that occur, V.
	MaxSlicedKeywords = 1 << 14

	planeBytes = GroupObjects / 8
)

// Planes are the codes of the objects of one tile in one attribute, in LayoutSliced. For each group of 1,024
// consecutive objects they hold P planes of 32 words: bit b of word w of plane p is bit p of the code of object
// 1024 group + 32 w + b. The zero value has no planes: every code is 0, which is V. Open has checked that no code is above V.
type Planes struct {
	words  []uint32
	planes int
}

// Words returns the words of all planes, [group][plane][32], as they lie in the file. They must not be changed.
func (p Planes) Words() []uint32 { return p.words }

// Planes returns P, the number of planes; 0 where no object has a keyword.
func (p Planes) Planes() int { return p.planes }

// Codes turn the keywords of one attribute in LayoutSliced into codes, and tell how many objects have them. They are
// the directory of Postings over the whole index, without ids.
type Codes struct {
	directory
}

// Len returns V, the number of keywords that occur, which is the code of objects without a keyword.
func (c Codes) Len() int { return c.lists() }

// Of returns how many keywords that occur come before keyword, at most Attribute.Keywords: its code if it occurs.
// The keywords [lo, hi) are the codes [Of(lo), Of(hi)).
func (c Codes) Of(keyword uint32) uint32 { return rank(c.words, keyword) }

// Before returns how many objects have a code below code, at most V: Before(hi) - Before(lo) have one of [lo, hi).
func (c Codes) Before(code uint32) uint64 { return uint64(c.starts[code]) }

// Arrays returns the directory words and the starts as they lie in the file, for a device to copy. They must not be
// changed.
func (c Codes) Arrays() (words []uint64, starts []uint32) { return c.words, c.starts }

func groupsOf(objects int) int { return (objects + GroupObjects - 1) / GroupObjects }

// codeTable is what encoding an attribute in LayoutSliced needs.
type codeTable struct {
	of     []uint16 // by keyword; of the keywords that occur
	absent uint16   // V
}

// newCodeTable numbers the keywords that occur, which are at most MaxSlicedKeywords.
func newCodeTable(frequencies []frequency) codeTable {
	t := codeTable{of: make([]uint16, len(frequencies))}
	for keyword, f := range frequencies {
		if f.postings > 0 {
			t.of[keyword] = t.absent
			t.absent++
		}
	}
	return t
}

// encodePlanes is LayoutSliced of a tile of so many objects.
func (e *tileEncoder) encodePlanes(codes codeTable, objects int) int {
	planes := bits.Len16(codes.absent)
	size := groupsOf(objects) * planes * planeBytes
	e.grow(size)
	out := raw(e.out)[:size]
	var low, high [GroupObjects]byte // of the codes of a group
	next := 0
	for group := 0; len(out) > 0; group++ {
		for i := range low {
			low[i], high[i] = byte(codes.absent), byte(codes.absent>>8)
		}
		first := group * GroupObjects
		for ; next < len(e.ids) && int(e.ids[next]) < first+GroupObjects; next++ {
			code := codes.of[e.keywords[next]]
			at := int(e.ids[next]) - first
			low[at], high[at] = byte(code), byte(code>>8)
		}
		slicePlanes(out[:min(planes, 8)*planeBytes], &low)
		if planes > 8 {
			slicePlanes(out[8*planeBytes:planes*planeBytes], &high)
		}
		out = out[planes*planeBytes:]
	}
	return size
}

// slicePlanes writes the lowest bits of the bytes of a group as planes, up to 8.
func slicePlanes(planes []byte, of *[GroupObjects]byte) {
	for eight := range planeBytes { // objects, a byte of each plane
		x := transpose(binary.LittleEndian.Uint64(of[8*eight:]))
		for at := eight; at < len(planes); at += planeBytes {
			planes[at] = byte(x)
			x >>= 8
		}
	}
}

// joinPlanes is the inverse of slicePlanes; bits without a plane become 0.
func joinPlanes(of *[GroupObjects]byte, planes []byte) {
	for eight := range planeBytes {
		var x uint64
		for at, shift := eight, 0; at < len(planes); at, shift = at+planeBytes, shift+8 {
			x |= uint64(planes[at]) << (shift & 63)
		}
		binary.LittleEndian.PutUint64(of[8*eight:], transpose(x))
	}
}

// transpose transposes a matrix of 8 x 8 bits, a byte a row (Warren, Hacker's Delight, section 7-3): bit j of byte i
// becomes bit i of byte j.
func transpose(x uint64) uint64 {
	x = x&0xAA55AA55AA55AA55 | x&0x00AA00AA00AA00AA<<7 | x>>7&0x00AA00AA00AA00AA
	x = x&0xCCCC3333CCCC3333 | x&0x0000CCCC0000CCCC<<14 | x>>14&0x0000CCCC0000CCCC
	return x&0xF0F0F0F00F0F0F0F | x&0x00000000F0F0F0F0<<28 | x>>28&0x00000000F0F0F0F0
}

// decodePlanes reads a section of planes of a tile with so many objects. Any bits are codes: those are left to checkCodes.
func decodePlanes(section []byte, codes Codes, objects int) (Planes, error) {
	planes := bits.Len(uint(codes.Len()))
	if want := groupsOf(objects) * planes * planeBytes; len(section) != want {
		return Planes{}, corrupt("%d bytes; %d planes of %d objects need %d", len(section), planes, objects, want)
	}
	return Planes{words: view[uint32](section), planes: planes}, nil
}

// decodeCodes reads a codes section and checks everything that Codes and Planes rely on.
func decodeCodes(section []byte, keywords uint32) (Codes, error) {
	d, rest, err := decodeDirectory(section, keywords)
	switch {
	case err != nil:
		return Codes{}, err
	case len(rest) != 0:
		return Codes{}, corrupt("%d bytes follow the directory", len(rest))
	case d.lists() > MaxSlicedKeywords:
		return Codes{}, corrupt("%d keywords occur, in this layout at most %d", d.lists(), MaxSlicedKeywords)
	}
	return Codes{d}, nil
}
