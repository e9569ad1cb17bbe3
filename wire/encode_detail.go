package wire

import (
	"bytes"
	"encoding/binary"
	"strconv"

	"github.com/geniemq/geniemq/internal/msgpack"
	"github.com/go-json-experiment/json/jsontext"
)

func (e *encoder) strings(texts []string) {
	e.list(len(texts))
	for i, text := range texts {
		e.next(i)
		e.str(text)
	}
	e.endList()
}

// detail writes the members of a hit that few have. It is for the object whose head is at a place.
func (e *encoder) detail(at int, d *HitDetail) {
	if d.Matched != nil {
		e.name(at, "matched")
		e.strings(d.Matched)
	}
	if d.Columns != nil {
		e.name(at, "columns")
		e.estimates(d.Columns)
	}
}

func (e *encoder) estimates(columns []ColumnEstimate) {
	e.members(len(columns))
	for i := range columns {
		c := &columns[i]
		e.next(i)
		e.key(c.Column)
		at := e.object()
		e.name(at, "similarity")
		e.number(c.Similarity)
		e.name(at, "bound")
		e.number(c.Bound)
		e.end()
	}
	e.end()
}

// payloadReader is what reading payloads needs and can be used again.
type payloadReader struct {
	buf bytes.Buffer
	dec *jsontext.Decoder
}

// transcode appends JSON as MessagePack; what is not JSON, which the index has stored all the same, as nil.
func (e *encoder) transcode(payload []byte) {
	if e.payload == nil {
		e.payload = &payloadReader{dec: jsontext.NewDecoder(&bytes.Buffer{})}
	}
	p := e.payload
	p.buf = *bytes.NewBuffer(payload) // which is parsed in place
	p.dec.Reset(&p.buf, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	start := len(e.dst)
	if err := e.transcodeValue(); err != nil {
		e.dst = append(e.dst[:start], msgpack.Nil)
	}
}

// transcodeValue writes the next value. It stops at the limit: nothing of it is kept then. It counts the members of a container as it goes, in a head of the
// longest form, because JSON does not say how many there are; small containers, which nearly all are, get the short form and move up.
func (e *encoder) transcodeValue() error {
	tok, err := e.payload.dec.ReadToken()
	if err != nil {
		return err
	}
	switch k := tok.Kind(); k {
	case 'n':
		e.dst = append(e.dst, msgpack.Nil)
	case 't', 'f':
		e.bool(k == 't')
	case '"':
		e.str(tok.String())
	case '0':
		e.transcodeNumber(tok)
	case '{', '[':
		at := len(e.dst)
		e.dst = append(e.dst, msgpack.Map32, 0, 0, 0, 0)
		items := uint32(0)
		for ; e.fits(len(e.dst), 0) && !ends(e.payload.dec.PeekKind()); items++ {
			if err := e.transcodeValue(); err != nil {
				return err
			}
		}
		if e.full {
			return nil
		}
		e.closeHead(at, items, k == '{')
		_, err = e.payload.dec.ReadToken()
	}
	return err
}

func ends(k jsontext.Kind) bool { return k == '}' || k == ']' }

// closeHead writes the final head of a container, of names and values or of elements.
func (e *encoder) closeHead(at int, n uint32, object bool) {
	short, long := byte(msgpack.FixArray), byte(msgpack.Array32)
	if object {
		short, long, n = msgpack.FixMap, msgpack.Map32, n/2
	}
	if n >= 16 {
		e.dst[at] = long
		binary.BigEndian.PutUint32(e.dst[at+1:], n)
		return
	}
	e.dst[at] = short | byte(n)
	e.dst = append(e.dst[:at+1], e.dst[at+5:]...)
}

// transcodeNumber keeps 64-bit integers whole.
func (e *encoder) transcodeNumber(tok jsontext.Token) {
	raw := tok.String()
	if v, err := strconv.ParseInt(raw, 10, 64); err == nil && raw != "-0" {
		e.dst = msgpack.AppendInt(e.dst, v)
	} else if v, err := strconv.ParseUint(raw, 10, 64); err == nil {
		e.dst = msgpack.AppendUint(e.dst, v)
	} else {
		v, _ := strconv.ParseFloat(raw, 64)
		e.dst = msgpack.AppendNumber(e.dst, v)
	}
}
