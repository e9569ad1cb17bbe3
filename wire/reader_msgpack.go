package wire

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/geniemq/geniemq/internal/msgpack"
	"github.com/geniemq/geniemq/wire/value"
	"github.com/go-json-experiment/json/jsontext"
)

// msgpackReader reads tokens of MessagePack. It is the scan that untrusted MessagePack needs and its decoder in one:
// a head is looked at once, its claim is held against the bytes that are left (every item takes at least one), and
// nothing is allocated for it.
type msgpackReader struct {
	text     string // a copy of the body; strings are cut from it
	off      int
	open     []container
	maxDepth int
	fatal    *Error
	last     string // the number that was read last
}

// container is an open array or object.
type container struct {
	left   uint64 // items not read yet; two for a member
	object bool
}

func (r *msgpackReader) failed() *Error { return r.fatal }

func (r *msgpackReader) fail(format string, args ...any) *Error {
	if r.fatal == nil {
		r.fatal = badRequest(format, args...)
	}
	return r.fatal
}

// head reads the next head without consuming it, and checks its claim.
func (r *msgpackReader) head() (msgpack.Head, *Error) {
	if r.fatal != nil {
		return msgpack.Head{}, r.fatal
	}
	rest := r.text[r.off:]
	h, ok := msgpack.ParseHead(rest)
	switch {
	case !ok && rest != "" && rest[0] == 0xc1:
		return h, r.fail("the body is not valid MessagePack: byte %d is 0xc1", r.off)
	case !ok, h.N > uint64(len(rest)-h.Size):
		return h, r.fail("the body ends inside the MessagePack message")
	}
	return h, nil
}

func (r *msgpackReader) peek() kind {
	h, err := r.head()
	if err != nil {
		return noKind
	}
	return h.Kind
}

// take consumes a scalar and returns its bytes after the head.
func (r *msgpackReader) take(h msgpack.Head) string {
	start := r.off + h.Size
	r.off = start + int(h.N)
	r.count()
	return r.text[start:r.off]
}

// count notes that an item of the innermost container has been read.
func (r *msgpackReader) count() {
	if n := len(r.open); n > 0 {
		r.open[n-1].left--
	}
}

func (r *msgpackReader) enter() *Error {
	h, err := r.head()
	if err != nil {
		return err
	}
	l := Limits{Depth: r.maxDepth}
	if r.fatal = l.checkDepth(len(r.open) + 1); r.fatal != nil {
		return r.fatal
	}
	r.off += h.Size
	r.count()
	r.open = append(r.open, container{left: h.N, object: h.Kind == objectKind})
	return nil
}

func (r *msgpackReader) more() bool {
	return r.fatal == nil && r.open[len(r.open)-1].left > 0
}

func (r *msgpackReader) leave() { r.open = r.open[:len(r.open)-1] }

func (r *msgpackReader) want(k kind, name string) (msgpack.Head, *Error) {
	h, err := r.head()
	if err == nil && h.Kind != k {
		err = expected(name, h.Kind)
	}
	return h, err
}

func (r *msgpackReader) str() (string, *Error) {
	h, err := r.want(stringKind, "a string")
	if err != nil {
		return "", err
	}
	s := r.take(h)
	if !utf8.ValidString(s) {
		return "", errUTF8()
	}
	return s, nil
}

func (r *msgpackReader) number() (float64, *Error) {
	h, err := r.want(numberKind, "a number")
	if err != nil {
		return 0, err
	}
	start := r.off
	r.take(h)
	r.last = r.text[start:r.off]
	return msgpack.ParseNumber(r.last), nil
}

func (r *msgpackReader) digits() string {
	switch v := msgpack.BigEndian(r.last[1:]); {
	case r.last[0] == msgpack.Uint64 && v >= exactBelow:
		return strconv.FormatUint(v, 10)
	case r.last[0] == msgpack.Int64 && (int64(v) >= exactBelow || int64(v) <= -exactBelow):
		return strconv.FormatInt(int64(v), 10)
	}
	return ""
}

func (r *msgpackReader) integer() (string, *Error) {
	h, err := r.want(numberKind, "an integer")
	if err != nil {
		return "", err
	}
	if c := r.text[r.off]; c == msgpack.Float32 || c == msgpack.Float64 {
		r.take(h)
		return "", badRequest("must be an integer, not a float")
	}
	return string(r.appendJSONNumber(nil, h)), nil
}

func (r *msgpackReader) boolean() (bool, *Error) {
	h, err := r.want(boolKind, "a bool")
	if err != nil {
		return false, err
	}
	v := r.text[r.off] == msgpack.True
	r.take(h)
	return v, nil
}

func (r *msgpackReader) binary() (string, *Error) {
	h, err := r.want(binaryKind, "binary")
	if err != nil {
		return "", err
	}
	return r.take(h), nil
}

func (r *msgpackReader) packed() (string, *Error) { return r.binary() }

func (r *msgpackReader) exactly(b *value.Builder) *Error {
	h, err := r.want(numberKind, "a number")
	if err != nil {
		return err
	}
	start := r.off
	bits := r.take(h)
	switch r.text[start] {
	case msgpack.Uint64:
		b.Uint(msgpack.BigEndian(bits))
	case msgpack.Int64:
		b.Int(int64(msgpack.BigEndian(bits)))
	default:
		v := msgpack.ParseNumber(r.text[start:r.off])
		if !finite(v) {
			return badRequest("%v is not a number to compare with", v)
		}
		b.Float(v)
	}
	return nil
}

func (r *msgpackReader) extension(b *value.Builder) *Error {
	h, err := r.head()
	if err != nil {
		return err
	}
	text, ok := value.Decimal(r.text[r.off+h.Size : r.off+h.Size+int(h.N)])
	if !ok {
		return expected("a number, a string or a bool", h.Kind)
	}
	r.take(h)
	b.Number(text)
	return nil
}

func (r *msgpackReader) floats(dst []float32, limit int) ([]float32, *Error) {
	h, err := r.head()
	switch {
	case err != nil:
		return dst, err
	case h.Kind == binaryKind && h.N%4 != 0:
		return dst, badRequest("has %d bytes: binary vectors are little-endian float32, 4 bytes each", h.N)
	case h.Kind == binaryKind:
		data := r.take(h)
		n := min(len(data)/4, limit+1)
		dst = append(make([]float32, 0, len(dst)+n), dst...)
		for i := range n {
			b := data[4*i : 4*i+4]
			dst = append(dst, math.Float32frombits(uint32(b[0])|uint32(b[1])<<8|uint32(b[2])<<16|uint32(b[3])<<24))
		}
		return dst, nil
	case h.Kind != arrayKind:
		return dst, expected("an array of numbers, or binary", h.Kind)
	}
	if err := r.enter(); err != nil {
		return dst, err
	}
	dst = append(make([]float32, 0, len(dst)+min(int(h.N), limit+1)), dst...) // the claim is at most the body
	for r.more() && len(dst) <= limit {
		v, err := r.number()
		if err != nil {
			return dst, err.in("[%d]", len(dst))
		}
		dst = append(dst, float32(v))
	}
	if len(dst) <= limit {
		r.leave()
	}
	return dst, r.fatal
}

func (r *msgpackReader) skipScalar() {
	if h, err := r.head(); err == nil {
		r.take(h)
	}
}

func (r *msgpackReader) depth() int { return len(r.open) }

func (r *msgpackReader) atName() bool {
	n := len(r.open)
	return n > 0 && r.open[n-1].object && r.open[n-1].left%2 == 0
}

func (r *msgpackReader) offset() int { return r.off }

func (r *msgpackReader) again(offset int) reader {
	return &msgpackReader{text: r.text[offset:r.off], maxDepth: r.maxDepth - r.depth()}
}

func (r *msgpackReader) finish() {
	if r.fatal == nil && r.off < len(r.text) {
		r.fail("the body goes on after the MessagePack message, at byte %d", r.off)
	}
}

// json transcodes the next value: what our encoder made of a JSON payload comes back as it was, up to the spelling of
// numbers. Binary becomes base64, and what JSON cannot say (NaN, extensions) null.
func (r *msgpackReader) json(dst []byte) ([]byte, *Error) {
	h, err := r.head()
	if err != nil {
		return dst, err
	}
	switch h.Kind {
	case arrayKind, objectKind:
		return r.jsonItems(dst, h.Kind == objectKind)
	case stringKind:
		var bad error
		if dst, bad = jsontext.AppendQuote(dst, r.take(h)); bad != nil {
			return dst, errUTF8()
		}
	case binaryKind:
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, []byte(r.take(h)))
		dst = append(dst, '"')
	case boolKind:
		v, _ := r.boolean()
		dst = strconv.AppendBool(dst, v)
	case numberKind:
		dst = r.appendJSONNumber(dst, h)
	default:
		r.take(h)
		dst = append(dst, "null"...)
	}
	return dst, nil
}

// jsonItems transcodes an array or an object.
func (r *msgpackReader) jsonItems(dst []byte, object bool) ([]byte, *Error) {
	begin, end := byte('['), byte(']')
	if object {
		begin, end = '{', '}'
	}
	dst = append(dst, begin)
	err := r.enter()
	for i := 0; err == nil && r.more(); i++ {
		if i > 0 {
			dst = append(dst, ',')
		}
		if object {
			if k := r.peek(); k != stringKind && k != noKind {
				return dst, expected("a string as name", k)
			}
			if dst, err = r.json(dst); err != nil {
				break
			}
			dst = append(dst, ':')
		}
		dst, err = r.json(dst)
	}
	if err != nil {
		return dst, err
	}
	r.leave()
	return append(dst, end), nil
}

// appendJSONNumber keeps the digits of 64-bit integers, which a float64 would round.
func (r *msgpackReader) appendJSONNumber(dst []byte, h msgpack.Head) []byte {
	start := r.off
	bits := r.take(h)
	switch r.text[start] {
	case msgpack.Uint64:
		return strconv.AppendUint(dst, msgpack.BigEndian(bits), 10)
	case msgpack.Int64:
		return strconv.AppendInt(dst, int64(msgpack.BigEndian(bits)), 10)
	case msgpack.Float32:
		return appendJSONFloat(dst, float64(math.Float32frombits(uint32(msgpack.BigEndian(bits)))), 32)
	}
	return appendJSONFloat(dst, msgpack.ParseNumber(r.text[start:r.off]), 64)
}

// appendVector appends a vector as binary.
func appendVector(dst []byte, v []float32) []byte {
	dst = msgpack.AppendBinHead(dst, 4*len(v))
	for _, x := range v {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(x))
	}
	return dst
}

func newReader(ct ContentType, body []byte, maxDepth int) reader {
	if ct == MessagePack {
		return &msgpackReader{text: string(body), maxDepth: maxDepth}
	}
	r := new(jsonReader)
	r.reset(body, string(body), maxDepth)
	return r
}
