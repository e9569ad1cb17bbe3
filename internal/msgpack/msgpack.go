// Package msgpack is MessagePack's heads and scalars: what package wire reads and writes messages with. Nothing here believes a
// length that it reads, and nothing takes memory for one; package wire says why that is not left to a library.
package msgpack

import (
	"encoding/binary"
	"math"
)

// Kind is the type of a value, in MessagePack and in JSON.
type Kind uint8

// The kinds. JSON has neither Binary nor Extension.
const (
	None Kind = iota // nothing is there, or it cannot be read
	Null
	Bool
	Number
	String
	Binary
	Array
	Map
	Extension
)

// String names a kind for an error text.
func (k Kind) String() string {
	return [...]string{"nothing", "null", "a bool", "a number", "a string", "binary", "an array", "an object", "an extension type"}[k]
}

// The first bytes of MessagePack's formats, github.com/msgpack/msgpack/blob/master/spec.md.
const (
	FixMap   = 0x80
	FixArray = 0x90
	FixStr   = 0xa0
	Nil      = 0xc0
	False    = 0xc2
	True     = 0xc3
	Bin8     = 0xc4
	Bin16    = 0xc5
	Bin32    = 0xc6
	Ext8     = 0xc7
	Float32  = 0xca
	Float64  = 0xcb
	Uint8    = 0xcc
	Uint16   = 0xcd
	Uint32   = 0xce
	Uint64   = 0xcf
	Int8     = 0xd0
	Int16    = 0xd1
	Int32    = 0xd2
	Int64    = 0xd3
	Str8     = 0xd9
	Str16    = 0xda
	Str32    = 0xdb
	Array16  = 0xdc
	Array32  = 0xdd
	Map16    = 0xde
	Map32    = 0xdf
	Negative = 0xe0
)

// Head is the head of a value: its type, the length of the head, and how many bytes (or, for containers, how many
// items; two for a member of a map) follow it. What follows has been claimed, not seen.
type Head struct {
	Kind Kind
	Size int
	N    uint64
}

// ParseHead reads the head at the start of s. It is false when s ends inside the head or no value starts so.
func ParseHead(s string) (Head, bool) {
	if s == "" {
		return Head{}, false
	}
	c := s[0]
	switch {
	case c < FixMap || c >= Negative:
		return Head{Number, 1, 0}, true
	case c < FixArray:
		return Head{Map, 1, 2 * uint64(c-FixMap)}, true
	case c < FixStr:
		return Head{Array, 1, uint64(c - FixArray)}, true
	case c < Nil:
		return Head{String, 1, uint64(c - FixStr)}, true
	}
	switch c {
	case Nil:
		return Head{Null, 1, 0}, true
	case False, True:
		return Head{Bool, 1, 0}, true
	case Bin8, Bin16, Bin32:
		return sizedHead(s, Binary, 1<<(c-Bin8), 0)
	case 0xc7, 0xc8, 0xc9: // ext 8, 16, 32: a byte of type before the data
		return sizedHead(s, Extension, 1<<(c-0xc7), 1)
	case Float32:
		return Head{Number, 1, 4}, true
	case Float64:
		return Head{Number, 1, 8}, true
	case Uint8, Uint16, Uint32, Uint64:
		return Head{Number, 1, 1 << (c - Uint8)}, true
	case Int8, Int16, Int32, Int64:
		return Head{Number, 1, 1 << (c - Int8)}, true
	case 0xd4, 0xd5, 0xd6, 0xd7, 0xd8: // fixext 1, 2, 4, 8, 16
		return Head{Extension, 1, 1 + 1<<(c-0xd4)}, true
	case Str8, Str16, Str32:
		return sizedHead(s, String, 1<<(c-Str8), 0)
	case Array16, Array32:
		return sizedHead(s, Array, 2<<(c-Array16), 0)
	case Map16, Map32:
		h, ok := sizedHead(s, Map, 2<<(c-Map16), 0)
		h.N *= 2
		return h, ok
	}
	return Head{}, false // 0xc1, which is never used
}

// sizedHead reads a head whose length or count is a big-endian integer of width bytes, plus extra.
func sizedHead(s string, k Kind, width int, extra uint64) (Head, bool) {
	if len(s) < 1+width {
		return Head{}, false
	}
	return Head{k, 1 + width, BigEndian(s[1:1+width]) + extra}, true
}

// BigEndian reads an unsigned integer of up to 8 bytes.
func BigEndian(s string) (v uint64) {
	for i := range len(s) {
		v = v<<8 | uint64(s[i])
	}
	return v
}

// ParseNumber reads the number that starts s, whose head and length have been checked.
func ParseNumber(s string) float64 {
	switch c := s[0]; {
	case c < FixMap:
		return float64(c)
	case c >= Negative:
		return float64(int8(c))
	case c == Float32:
		return float64(math.Float32frombits(uint32(BigEndian(s[1:5]))))
	case c == Float64:
		return math.Float64frombits(BigEndian(s[1:9]))
	case c <= Uint64:
		return float64(BigEndian(s[1 : 1+1<<(c-Uint8)]))
	case c == Int8:
		return float64(int8(s[1]))
	case c == Int16:
		return float64(int16(BigEndian(s[1:3])))
	case c == Int32:
		return float64(int32(BigEndian(s[1:5])))
	default:
		return float64(int64(BigEndian(s[1:9])))
	}
}

// AppendInt appends an integer in its shortest format.
func AppendInt(dst []byte, v int64) []byte {
	switch {
	case v >= 0:
		return AppendUint(dst, uint64(v))
	case v >= -32:
		return append(dst, byte(v))
	case v >= math.MinInt8:
		return append(dst, Int8, byte(v))
	case v >= math.MinInt16:
		return append(dst, Int16, byte(v>>8), byte(v))
	case v >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(dst, Int32), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, Int64), uint64(v))
}

// AppendUint appends an unsigned integer in its shortest format.
func AppendUint(dst []byte, v uint64) []byte {
	switch {
	case v < FixMap:
		return append(dst, byte(v))
	case v <= math.MaxUint8:
		return append(dst, Uint8, byte(v))
	case v <= math.MaxUint16:
		return append(dst, Uint16, byte(v>>8), byte(v))
	case v <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, Uint32), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, Uint64), v)
}

// AppendNumber appends a float64: as an integer when it is one, as float32 when that holds it exactly.
func AppendNumber(dst []byte, v float64) []byte {
	const exact = 1 << 53
	switch {
	case v == math.Trunc(v) && v > -exact && v < exact && !(v == 0 && math.Signbit(v)):
		return AppendInt(dst, int64(v))
	case float64(float32(v)) == v:
		return AppendFloat32(dst, float32(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, Float64), math.Float64bits(v))
}

// AppendFloat32 appends a float32.
func AppendFloat32(dst []byte, v float32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, Float32), math.Float32bits(v))
}

// AppendString appends a string, whose UTF-8 is not checked.
func AppendString(dst []byte, s string) []byte {
	if n := len(s); n < 32 {
		dst = append(dst, FixStr|byte(n))
	} else {
		dst = AppendHead8(dst, Str8, n)
	}
	return append(dst, s...)
}

// AppendBinHead appends the head of n bytes of binary.
func AppendBinHead(dst []byte, n int) []byte { return AppendHead8(dst, Bin8, n) }

// AppendArrayHead appends the head of an array of n elements.
func AppendArrayHead(dst []byte, n int) []byte { return appendFix(dst, FixArray, Array16, n) }

// AppendMapHead appends the head of a map of n members.
func AppendMapHead(dst []byte, n int) []byte { return appendFix(dst, FixMap, Map16, n) }

func appendFix(dst []byte, fix, first byte, n int) []byte {
	if n < 16 {
		return append(dst, fix|byte(n))
	}
	return appendHead16(dst, first, n)
}

// AppendHead8 appends a head with a length of 8, 16 or 32 bits, of formats that follow each other: first is that of 8 bits.
func AppendHead8(dst []byte, first byte, n int) []byte {
	if n <= math.MaxUint8 {
		return append(dst, first, byte(n))
	}
	return appendHead16(dst, first+1, n)
}

func appendHead16(dst []byte, first byte, n int) []byte {
	if n <= math.MaxUint16 {
		return append(dst, first, byte(n>>8), byte(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, first+1), uint32(n))
}
