package wire

import (
	"encoding/binary"
	"math"
)

// The first bytes of MessagePack's formats, github.com/msgpack/msgpack/blob/master/spec.md.
const (
	mpFixMap   = 0x80
	mpFixArray = 0x90
	mpFixStr   = 0xa0
	mpNil      = 0xc0
	mpFalse    = 0xc2
	mpTrue     = 0xc3
	mpBin8     = 0xc4
	mpBin16    = 0xc5
	mpBin32    = 0xc6
	mpFloat32  = 0xca
	mpFloat64  = 0xcb
	mpUint8    = 0xcc
	mpUint16   = 0xcd
	mpUint32   = 0xce
	mpUint64   = 0xcf
	mpInt8     = 0xd0
	mpInt16    = 0xd1
	mpInt32    = 0xd2
	mpInt64    = 0xd3
	mpStr8     = 0xd9
	mpStr16    = 0xda
	mpStr32    = 0xdb
	mpArray16  = 0xdc
	mpArray32  = 0xdd
	mpMap16    = 0xde
	mpMap32    = 0xdf
	mpNegative = 0xe0
)

// mpHead is the head of a value: its type, the length of the head, and how many bytes (or, for containers, how many
// items; two for a member of a map) follow it. What follows has been claimed, not seen.
type mpHead struct {
	kind kind
	size int
	n    uint64
}

// parseHead reads the head at the start of s. It is false when s ends inside the head or no value starts so.
func parseHead(s string) (mpHead, bool) {
	if s == "" {
		return mpHead{}, false
	}
	c := s[0]
	switch {
	case c < mpFixMap || c >= mpNegative:
		return mpHead{numberKind, 1, 0}, true
	case c < mpFixArray:
		return mpHead{objectKind, 1, 2 * uint64(c-mpFixMap)}, true
	case c < mpFixStr:
		return mpHead{arrayKind, 1, uint64(c - mpFixArray)}, true
	case c < mpNil:
		return mpHead{stringKind, 1, uint64(c - mpFixStr)}, true
	}
	switch c {
	case mpNil:
		return mpHead{nullKind, 1, 0}, true
	case mpFalse, mpTrue:
		return mpHead{boolKind, 1, 0}, true
	case mpBin8, mpBin16, mpBin32:
		return sizedHead(s, binaryKind, 1<<(c-mpBin8), 0)
	case 0xc7, 0xc8, 0xc9: // ext 8, 16, 32: a byte of type before the data
		return sizedHead(s, otherKind, 1<<(c-0xc7), 1)
	case mpFloat32:
		return mpHead{numberKind, 1, 4}, true
	case mpFloat64:
		return mpHead{numberKind, 1, 8}, true
	case mpUint8, mpUint16, mpUint32, mpUint64:
		return mpHead{numberKind, 1, 1 << (c - mpUint8)}, true
	case mpInt8, mpInt16, mpInt32, mpInt64:
		return mpHead{numberKind, 1, 1 << (c - mpInt8)}, true
	case 0xd4, 0xd5, 0xd6, 0xd7, 0xd8: // fixext 1, 2, 4, 8, 16
		return mpHead{otherKind, 1, 1 + 1<<(c-0xd4)}, true
	case mpStr8, mpStr16, mpStr32:
		return sizedHead(s, stringKind, 1<<(c-mpStr8), 0)
	case mpArray16, mpArray32:
		return sizedHead(s, arrayKind, 2<<(c-mpArray16), 0)
	case mpMap16, mpMap32:
		h, ok := sizedHead(s, objectKind, 2<<(c-mpMap16), 0)
		h.n *= 2
		return h, ok
	}
	return mpHead{}, false // 0xc1, which is never used
}

// sizedHead reads a head whose length or count is a big-endian integer of width bytes, plus extra.
func sizedHead(s string, k kind, width int, extra uint64) (mpHead, bool) {
	if len(s) < 1+width {
		return mpHead{}, false
	}
	return mpHead{k, 1 + width, bigEndian(s[1:1+width]) + extra}, true
}

func bigEndian(s string) (v uint64) {
	for i := range len(s) {
		v = v<<8 | uint64(s[i])
	}
	return v
}

// parseNumber reads the number that starts s, whose head and length have been checked.
func parseNumber(s string) float64 {
	switch c := s[0]; {
	case c < mpFixMap:
		return float64(c)
	case c >= mpNegative:
		return float64(int8(c))
	case c == mpFloat32:
		return float64(math.Float32frombits(uint32(bigEndian(s[1:5]))))
	case c == mpFloat64:
		return math.Float64frombits(bigEndian(s[1:9]))
	case c <= mpUint64:
		return float64(bigEndian(s[1 : 1+1<<(c-mpUint8)]))
	case c == mpInt8:
		return float64(int8(s[1]))
	case c == mpInt16:
		return float64(int16(bigEndian(s[1:3])))
	case c == mpInt32:
		return float64(int32(bigEndian(s[1:5])))
	default:
		return float64(int64(bigEndian(s[1:9])))
	}
}

// appendInt appends an integer in its shortest format.
func appendInt(dst []byte, v int64) []byte {
	switch {
	case v >= 0:
		return appendUint(dst, uint64(v))
	case v >= -32:
		return append(dst, byte(v))
	case v >= math.MinInt8:
		return append(dst, mpInt8, byte(v))
	case v >= math.MinInt16:
		return append(dst, mpInt16, byte(v>>8), byte(v))
	case v >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(dst, mpInt32), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, mpInt64), uint64(v))
}

func appendUint(dst []byte, v uint64) []byte {
	switch {
	case v < mpFixMap:
		return append(dst, byte(v))
	case v <= math.MaxUint8:
		return append(dst, mpUint8, byte(v))
	case v <= math.MaxUint16:
		return append(dst, mpUint16, byte(v>>8), byte(v))
	case v <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, mpUint32), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, mpUint64), v)
}

// appendNumber appends a float64: as an integer when it is one, as float32 when that holds it exactly.
func appendNumber(dst []byte, v float64) []byte {
	const exact = 1 << 53
	switch {
	case v == math.Trunc(v) && v > -exact && v < exact && !(v == 0 && math.Signbit(v)):
		return appendInt(dst, int64(v))
	case float64(float32(v)) == v:
		return appendFloat32(dst, float32(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, mpFloat64), math.Float64bits(v))
}

func appendFloat32(dst []byte, v float32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, mpFloat32), math.Float32bits(v))
}

func appendString(dst []byte, s string) []byte {
	switch n := len(s); {
	case n < 32:
		dst = append(dst, mpFixStr|byte(n))
	case n <= math.MaxUint8:
		dst = append(dst, mpStr8, byte(n))
	case n <= math.MaxUint16:
		dst = append(dst, mpStr16, byte(n>>8), byte(n))
	default:
		dst = binary.BigEndian.AppendUint32(append(dst, mpStr32), uint32(n))
	}
	return append(dst, s...)
}

func appendBinHead(dst []byte, n int) []byte {
	switch {
	case n <= math.MaxUint8:
		return append(dst, mpBin8, byte(n))
	case n <= math.MaxUint16:
		return append(dst, mpBin16, byte(n>>8), byte(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, mpBin32), uint32(n))
}

func appendArrayHead(dst []byte, n int) []byte {
	switch {
	case n < 16:
		return append(dst, mpFixArray|byte(n))
	case n <= math.MaxUint16:
		return append(dst, mpArray16, byte(n>>8), byte(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, mpArray32), uint32(n))
}

func appendMapHead(dst []byte, n int) []byte {
	switch {
	case n < 16:
		return append(dst, mpFixMap|byte(n))
	case n <= math.MaxUint16:
		return append(dst, mpMap16, byte(n>>8), byte(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, mpMap32), uint32(n))
}
