package value

import (
	"encoding/base64"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/geniemq/geniemq/internal/msgpack"
)

// AppendMessagePack appends the value as MessagePack. Numbers that are neither integers of 64 bits nor float64 are of extension
// type 1, which holds their decimal text. The zero Tree becomes nil.
func (t Tree) AppendMessagePack(dst []byte) []byte {
	if t.IsZero() {
		return append(dst, msgpack.Nil)
	}
	return append(dst, t.text...)
}

// AppendJSON appends the value as JSON. Bytes become a string of base64, so that they are read as a String: JSON has nothing else
// for them. The zero Tree becomes null.
func (t Tree) AppendJSON(dst []byte) []byte {
	if t.IsZero() {
		return append(dst, "null"...)
	}
	var open walk
	for s := t.text; s != ""; {
		name := open.next()
		h, _ := msgpack.ParseHead(s)
		size := h.Size
		switch h.Kind {
		case msgpack.Array:
			dst = append(dst, '[')
			open = append(open, container{h.N, false})
		case msgpack.Map:
			dst = append(dst, '{')
			open = append(open, container{h.N, true})
		default:
			size += int(h.N)
			dst = Tree{s[:size]}.appendScalar(dst)
		}
		s = s[size:]
		if name {
			dst = append(dst, ':')
			continue
		}
		n := len(open)
		for ; n > 0 && open[n-1].left == 0; n-- {
			dst = append(dst, closing(open[n-1].object))
		}
		if open = open[:n]; n > 0 && dst[len(dst)-1] != '[' && dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
	}
	return dst
}

func closing(object bool) byte {
	if object {
		return '}'
	}
	return ']'
}

func (t Tree) appendScalar(dst []byte) []byte {
	switch t.Kind() {
	case Bool:
		return strconv.AppendBool(dst, t.Bool())
	case Number:
		return append(dst, t.Number()...)
	case String:
		dst, _ = jsontext.AppendQuote(dst, t.Text()) // which is UTF-8
		return dst
	case Bytes:
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, []byte(t.Text()))
		return append(dst, '"')
	}
	return append(dst, "null"...)
}

// appendNumber appends a number that is an integer or a float. Floats that are whole have an exponent, which tells them from the
// integers that they are near to.
func (t Tree) appendNumber(dst []byte) []byte {
	if v, ok := t.Int(); ok {
		return strconv.AppendInt(dst, v, 10)
	}
	if t.text[0] == msgpack.Uint64 {
		return strconv.AppendUint(dst, msgpack.BigEndian(t.text[1:9]), 10)
	}
	v := msgpack.ParseNumber(t.text)
	format := byte('f')
	if abs := math.Abs(v); abs != 0 && (abs < 1e-6 || abs > exact) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, v, format, -1, 64)
}
