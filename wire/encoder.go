package wire

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/geniemq/geniemq/internal/msgpack"
	"github.com/geniemq/geniemq/wire/value"
	"github.com/go-json-experiment/json/jsontext"
)

// encoder appends tokens of either codec. Objects need no count beforehand: in MessagePack their head is one byte that counts up to 15
// members, and becomes three with the 16th.
type encoder struct {
	dst     []byte
	msgpack bool
	payload *payloadReader // made when first needed

	// Hits are not written beyond limit bytes of dst, unless it is 0: what would not fit is left out, and full says so.
	limit int
	full  bool
}

// object starts an object and returns its place, which names and end need.
func (e *encoder) object() int {
	at := len(e.dst)
	if e.msgpack {
		e.dst = append(e.dst, msgpack.FixMap)
	} else {
		e.dst = append(e.dst, '{')
	}
	return at
}

// name starts a member of the object at a place. Names are ours: they need no escapes.
func (e *encoder) name(at int, name string) {
	if e.msgpack {
		switch e.dst[at] {
		case msgpack.FixMap | 15:
			e.dst = slices.Insert(e.dst, at+1, 0, 16)
			e.dst[at] = msgpack.Map16
		case msgpack.Map16:
			binary.BigEndian.PutUint16(e.dst[at+1:], binary.BigEndian.Uint16(e.dst[at+1:])+1)
		default:
			e.dst[at]++
		}
		e.dst = append(append(e.dst, msgpack.FixStr|byte(len(name))), name...)
		return
	}
	if e.dst[len(e.dst)-1] != '{' {
		e.dst = append(e.dst, ',')
	}
	e.dst = append(e.dst, '"')
	e.dst = append(e.dst, name...)
	e.dst = append(e.dst, '"', ':')
}

// text writes a member that is a string, unless that is empty.
func (e *encoder) text(at int, name, s string) {
	if s != "" {
		e.name(at, name)
		e.str(s)
	}
}

// whole writes a member that is a whole number.
func (e *encoder) whole(at int, name string, v uint64) {
	e.name(at, name)
	e.uint(v)
}

// flag writes a member that is true, or nothing.
func (e *encoder) flag(at int, name string, set bool) {
	if set {
		e.name(at, name)
		e.bool(true)
	}
}

// members starts an object of n members of any names; next goes before each, and key begins it.
func (e *encoder) members(n int) {
	if e.msgpack {
		e.dst = msgpack.AppendMapHead(e.dst, n)
	} else {
		e.dst = append(e.dst, '{')
	}
}

func (e *encoder) key(name string) {
	e.str(name)
	if !e.msgpack {
		e.dst = append(e.dst, ':')
	}
}

// fits says whether so many bytes more are within the limit.
func (e *encoder) fits(written, more int) bool {
	if e.limit > 0 && written+more > e.limit {
		e.full = true
	}
	return !e.full
}

func (e *encoder) end() {
	if !e.msgpack {
		e.dst = append(e.dst, '}')
	}
}

// list starts an array of n elements; next goes before each.
func (e *encoder) list(n int) {
	if e.msgpack {
		e.dst = msgpack.AppendArrayHead(e.dst, n)
	} else {
		e.dst = append(e.dst, '[')
	}
}

func (e *encoder) next(i int) {
	if !e.msgpack && i > 0 {
		e.dst = append(e.dst, ',')
	}
}

func (e *encoder) endList() {
	if !e.msgpack {
		e.dst = append(e.dst, ']')
	}
}

// str appends a string. Bad UTF-8 becomes U+FFFD in JSON, and is refused by the reader in MessagePack.
func (e *encoder) str(s string) {
	if e.msgpack {
		e.dst = msgpack.AppendString(e.dst, s)
	} else {
		e.dst, _ = jsontext.AppendQuote(e.dst, s)
	}
}

func (e *encoder) uint(v uint64) {
	if e.msgpack {
		e.dst = msgpack.AppendUint(e.dst, v)
	} else {
		e.dst = strconv.AppendUint(e.dst, v, 10)
	}
}

func (e *encoder) bool(v bool) {
	switch {
	case !e.msgpack:
		e.dst = strconv.AppendBool(e.dst, v)
	case v:
		e.dst = append(e.dst, msgpack.True)
	default:
		e.dst = append(e.dst, msgpack.False)
	}
}

func (e *encoder) number(v float64) {
	if e.msgpack {
		e.dst = msgpack.AppendNumber(e.dst, v)
	} else {
		e.dst = appendJSONFloat(e.dst, v, 64)
	}
}

// digits writes an integer that no float64 holds. MessagePack has none of more than 64 bits, but for an extension.
func (e *encoder) digits(v string) {
	if e.msgpack {
		t, err := new(value.Builder).Number(v).Tree()
		if err != nil { // refused by the reader, as it should be
			e.number(math.NaN())
			return
		}
		e.dst = t.AppendMessagePack(e.dst)
	} else {
		e.dst = append(e.dst, v...)
	}
}

func (e *encoder) float32(v float32) {
	if e.msgpack {
		e.dst = msgpack.AppendFloat32(e.dst, v)
	} else {
		e.dst = appendJSONFloat(e.dst, float64(v), 32)
	}
}

// appendJSONFloat writes a number as ECMAScript and encoding/json do: the shortest digits that read back the same,
// with an exponent only for the very small and large. What JSON has no number for becomes null.
func appendJSONFloat(dst []byte, v float64, bits int) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(dst, "null"...)
	}
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 && !(v == 0 && math.Signbit(v)) {
		return strconv.AppendInt(dst, int64(v), 10)
	}
	format := byte('f')
	if abs := math.Abs(v); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, v, format, -1, bits)
}
