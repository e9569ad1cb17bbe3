// Package bits transposes matrices of bits.
package bits

import "encoding/binary"

// Transpose8 transposes a matrix of 8 x 8 bits, a byte per row (Warren, Hacker's Delight, section 7-3): bit j of byte i
// becomes bit i of byte j.
func Transpose8(x uint64) uint64 {
	x = x&0xAA55AA55AA55AA55 | x&0x00AA00AA00AA00AA<<7 | x>>7&0x00AA00AA00AA00AA
	x = x&0xCCCC3333CCCC3333 | x&0x0000CCCC0000CCCC<<14 | x>>14&0x0000CCCC0000CCCC
	return x&0xF0F0F0F00F0F0F0F | x&0x00000000F0F0F0F0<<28 | x>>28&0x00000000F0F0F0F0
}

// Group is the number of values whose bits lie together in planes, a bit of each value per plane.
const Group = 1024

// Slice writes the lowest bits of the bytes of a group as planes of Group/8 bytes, up to 8.
func Slice(planes []byte, of *[Group]byte) {
	for eight := range Group / 8 { // values, a byte of each plane
		x := Transpose8(binary.LittleEndian.Uint64(of[8*eight:]))
		for at := eight; at < len(planes); at += Group / 8 {
			planes[at] = byte(x)
			x >>= 8
		}
	}
}

// Join is the inverse of Slice; bits without a plane become 0.
func Join(of *[Group]byte, planes []byte) {
	for eight := range Group / 8 {
		var x uint64
		for at, shift := eight, 0; at < len(planes); at, shift = at+Group/8, shift+8 {
			x |= uint64(planes[at]) << (shift & 63)
		}
		binary.LittleEndian.PutUint64(of[8*eight:], Transpose8(x))
	}
}
