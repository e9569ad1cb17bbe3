// Package bits transposes matrices of bits.
package bits

// Transpose8 transposes a matrix of 8 x 8 bits, a byte per row (Warren, Hacker's Delight, section 7-3): bit j of byte i
// becomes bit i of byte j.
func Transpose8(x uint64) uint64 {
	x = x&0xAA55AA55AA55AA55 | x&0x00AA00AA00AA00AA<<7 | x>>7&0x00AA00AA00AA00AA
	x = x&0xCCCC3333CCCC3333 | x&0x0000CCCC0000CCCC<<14 | x>>14&0x0000CCCC0000CCCC
	return x&0xF0F0F0F00F0F0F0F | x&0x00000000F0F0F0F0<<28 | x>>28&0x00000000F0F0F0F0
}
