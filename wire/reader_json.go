package wire

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/geniemq/geniemq/wire/value"
	"github.com/go-json-experiment/json/jsontext"
)

// jsonReader reads tokens of JSON. Repeated names and bad UTF-8 are let through by the tokenizer, where they would
// fail the message, and refused by the decoder, where they fail one query.
type jsonReader struct {
	dec      *jsontext.Decoder
	body     []byte
	buf      bytes.Buffer // of the body, which is parsed in place
	text     string       // a copy of the body; strings are cut from it
	inner    *jsonReader  // made when first needed
	last     string       // the number that was read last, where it may be an integer that a float64 is only near
	maxDepth int
	fatal    *Error
}

// reset begins with another body, of which text is a copy.
func (r *jsonReader) reset(body []byte, text string, maxDepth int) {
	if r.dec == nil {
		r.dec = new(jsontext.Decoder)
	}
	r.body, r.buf, r.text, r.last, r.maxDepth, r.fatal = body, *bytes.NewBuffer(body), text, "", maxDepth, nil
	r.dec.Reset(&r.buf, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

func (r *jsonReader) failed() *Error { return r.fatal }

func (r *jsonReader) fail(err error) *Error {
	if r.fatal == nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			r.fatal = badRequest("the body ends inside the JSON message")
		} else {
			r.fatal = badRequest("the body is not valid JSON: %s", clipTo(strings.TrimPrefix(err.Error(), "jsontext: "), 200))
		}
	}
	return r.fatal
}

func (r *jsonReader) peek() kind {
	if r.fatal != nil {
		return noKind
	}
	switch r.dec.PeekKind() {
	case 'n':
		return nullKind
	case 't', 'f':
		return boolKind
	case '0':
		return numberKind
	case '"':
		return stringKind
	case '[':
		return arrayKind
	case '{':
		return objectKind
	}
	return noKind
}

// want checks the type of the next value. Where there is none, it fails with the tokenizer's reason.
func (r *jsonReader) want(k kind, name string) *Error {
	got := r.peek()
	if got == k {
		return nil
	}
	if got == noKind {
		return r.invalid()
	}
	return expected(name, got)
}

// invalid fails where peek has seen no value.
func (r *jsonReader) invalid() *Error {
	r.skipScalar()                     // fails with the tokenizer's reason
	return r.fail(io.ErrUnexpectedEOF) // or with this, were there none
}

func (r *jsonReader) enter() *Error {
	if r.skipScalar(); r.fatal != nil { // its beginning is a token like any other
		return r.fatal
	}
	l := Limits{Depth: r.maxDepth}
	r.fatal = l.checkDepth(r.dec.StackDepth())
	return r.fatal
}

func (r *jsonReader) more() bool {
	if r.fatal != nil {
		return false
	}
	switch r.dec.PeekKind() {
	case ']', '}':
		return false
	case jsontext.KindInvalid:
		r.invalid()
		return false
	}
	return true
}

func (r *jsonReader) leave() { r.skipScalar() } // and so is its end

// scalar reads a scalar's text, aliasing r.text.
func (r *jsonReader) scalar() (string, *Error) {
	v, err := r.dec.ReadValue()
	if err != nil {
		return "", r.fail(err)
	}
	end := int(r.dec.InputOffset())
	return r.text[end-len(v) : end], nil
}

func (r *jsonReader) str() (string, *Error) {
	if err := r.want(stringKind, "a string"); err != nil {
		return "", err
	}
	raw, err := r.scalar()
	if err != nil {
		return "", err
	}
	s := raw[1 : len(raw)-1]
	if strings.IndexByte(s, '\\') < 0 {
		if !utf8.ValidString(s) {
			return "", errUTF8()
		}
		return s, nil
	}
	unquoted, bad := jsontext.AppendUnquote(nil, raw)
	if bad != nil {
		return "", errUTF8()
	}
	return string(unquoted), nil
}

func errUTF8() *Error { return badRequest("is not valid UTF-8") }

func (r *jsonReader) number() (float64, *Error) {
	if err := r.want(numberKind, "a number"); err != nil {
		return 0, err
	}
	raw, err := r.scalar()
	if err != nil {
		return 0, err
	}
	v, bad := strconv.ParseFloat(raw, 64)
	if bad != nil { // the syntax is right: it is out of range
		return 0, badRequest("%s is too large for a 64-bit float", clip(raw))
	}
	r.last = raw
	return v, nil
}

func (r *jsonReader) digits() string {
	if len(r.last) < exactDigits || strings.ContainsAny(r.last, ".eE") {
		return ""
	}
	return r.last
}

func (r *jsonReader) integer() (string, *Error) {
	if err := r.want(numberKind, "an integer"); err != nil {
		return "", err
	}
	raw, err := r.scalar()
	if err == nil && strings.ContainsAny(raw, ".eE") {
		err = badRequest("must be an integer, not %s", clip(raw))
	}
	return raw, err
}

func (r *jsonReader) boolean() (bool, *Error) {
	if err := r.want(boolKind, "a bool"); err != nil {
		return false, err
	}
	raw, err := r.scalar()
	return raw == "true", err
}

func (r *jsonReader) binary() (string, *Error) { return "", r.want(binaryKind, "binary") }

// packed reads what JSON has as base64.
func (r *jsonReader) packed() (string, *Error) {
	text, err := r.str()
	if err != nil {
		return "", err
	}
	raw, bad := base64.StdEncoding.DecodeString(text)
	if bad != nil {
		return "", badRequest("is not base64: %v", bad)
	}
	return string(raw), nil
}

func (r *jsonReader) extension(*value.Builder) *Error { return r.invalid() } // JSON has none

func (r *jsonReader) exactly(b *value.Builder) *Error {
	raw, err := r.scalar()
	if err == nil {
		b.Number(raw)
	}
	return err
}

func (r *jsonReader) floats(dst []float32, limit int) ([]float32, *Error) {
	if err := r.want(arrayKind, "an array of numbers"); err != nil {
		return dst, err
	}
	if err := r.enter(); err != nil {
		return dst, err
	}
	for r.more() && len(dst) <= limit {
		if err := r.want(numberKind, "a number"); err != nil {
			return dst, err.in("[%d]", len(dst))
		}
		raw, err := r.scalar()
		if err != nil {
			return dst, err
		}
		v, bad := strconv.ParseFloat(raw, 32)
		if bad != nil {
			return dst, badRequest("[%d]: %s is too large for a 32-bit float", len(dst), clip(raw))
		}
		dst = append(dst, float32(v))
	}
	if len(dst) <= limit {
		r.leave()
	}
	return dst, r.fatal
}

func (r *jsonReader) json(dst []byte) ([]byte, *Error) {
	if r.peek() == noKind {
		return dst, r.invalid()
	}
	v, err := r.dec.ReadValue()
	if err != nil {
		return dst, r.fail(err)
	}
	return append(dst, v...), nil
}

func (r *jsonReader) skipScalar() {
	if r.fatal != nil {
		return
	}
	if _, err := r.dec.ReadToken(); err != nil {
		r.fail(err)
	}
}

func (r *jsonReader) depth() int { return r.dec.StackDepth() }

func (r *jsonReader) atName() bool {
	k, n := r.dec.StackIndex(r.dec.StackDepth())
	return k == '{' && n%2 == 0
}

func (r *jsonReader) offset() int { return int(r.dec.InputOffset()) }

func (r *jsonReader) again(offset int) reader {
	end := r.offset()
	for offset < end && strings.IndexByte(" \t\r\n:,", r.text[offset]) >= 0 { // what separates it from the value before
		offset++
	}
	if r.inner == nil {
		r.inner = new(jsonReader)
	}
	r.inner.reset(r.body[offset:end], r.text[offset:end], r.maxDepth-r.depth())
	return r.inner
}

func (r *jsonReader) finish() {
	if r.fatal != nil {
		return
	}
	if _, err := r.dec.ReadToken(); err == nil {
		r.fatal = badRequest("the body goes on after the JSON message, at byte %d", r.dec.InputOffset())
	} else if !errors.Is(err, io.EOF) {
		r.fail(err)
	}
}
