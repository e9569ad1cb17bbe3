package wire

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"time"

	"github.com/geniemq/geniemq/internal/msgpack"
	"github.com/go-json-experiment/json/jsontext"
)

func (e *encoder) result(r *Result) {
	at := e.object()
	if r.ID != "" {
		e.name(at, "id")
		e.str(r.ID)
	}
	if r.Index != "" {
		e.name(at, "index")
		e.str(r.Index)
	}
	if r.Version != "" {
		e.name(at, "version")
		e.str(r.Version)
	}
	if r.Err != nil {
		e.name(at, "error")
		e.error(r.Err)
		e.end()
		return
	}
	e.name(at, "hits")
	if e.msgpack {
		e.msgpackHits(r.Hits)
	} else {
		e.jsonHits(r.Hits)
	}
	e.name(at, "mc_k")
	e.uint(uint64(r.MCK))
	e.name(at, "exact")
	e.bool(r.Exact)
	e.name(at, "took_us")
	e.took(&r.Took)
	e.end()
}

func (e *encoder) error(err *Error) {
	at := e.object()
	e.name(at, "code")
	e.str(string(err.Code))
	e.name(at, "message")
	e.str(err.Message)
	e.end()
}

// tookParts is how many durations a Took has.
const tookParts = 5

func (t *Took) parts() [tookParts]struct {
	name string
	d    *time.Duration
} {
	return [tookParts]struct {
		name string
		d    *time.Duration
	}{{"queue", &t.Queue}, {"batch", &t.Batch}, {"engine", &t.Engine}, {"verify", &t.Verify}, {"total", &t.Total}}
}

func (e *encoder) took(t *Took) {
	at := e.object()
	for _, p := range t.parts() {
		e.name(at, p.name)
		e.uint(uint64(max(0, p.d.Microseconds())))
	}
	e.end()
}

// jsonHits and msgpackHits are written out, token by token: they are nearly all of an answer.
func (e *encoder) jsonHits(hits []Hit) {
	dst := append(e.dst, '[')
	for i := range hits {
		h := &hits[i]
		if !e.fits(len(dst), len(h.Key)+len(h.Payload)) {
			break
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"id":`...)
		dst = strconv.AppendUint(dst, uint64(h.ID), 10)
		dst = append(dst, `,"key":`...)
		if h.Key == "" {
			dst = append(dst, '"')
			dst = strconv.AppendUint(dst, uint64(h.ID), 10)
			dst = append(dst, '"')
		} else {
			dst, _ = jsontext.AppendQuote(dst, h.Key)
		}
		dst = append(dst, `,"count":`...)
		dst = strconv.AppendUint(dst, uint64(h.Count), 10)
		if h.HasSimilarity {
			dst = append(dst, `,"similarity":`...)
			dst = appendJSONFloat(dst, float64(h.Similarity), 32)
		}
		if h.HasDistance {
			dst = append(dst, `,"distance":`...)
			dst = appendJSONFloat(dst, h.Distance, 64)
		}
		if h.Payload != nil {
			dst = append(dst, `,"payload":`...)
			dst = append(dst, h.Payload...)
		}
		dst = append(dst, '}')
	}
	e.dst = append(dst, ']')
}

func (e *encoder) msgpackHits(hits []Hit) {
	dst := msgpack.AppendArrayHead(e.dst, len(hits)) // e.dst would be a write barrier per hit
	for i := range hits {
		h := &hits[i]
		if !e.fits(len(dst), len(h.Key)) {
			break
		}
		members := byte(3)
		if h.HasSimilarity {
			members++
		}
		if h.HasDistance {
			members++
		}
		if h.Payload != nil {
			members++
		}
		dst = append(dst, msgpack.FixMap|members, msgpack.FixStr|2, 'i', 'd')
		dst = msgpack.AppendUint(dst, uint64(h.ID))
		dst = append(dst, msgpack.FixStr|3, 'k', 'e', 'y')
		if h.Key == "" {
			dst = append(dst, msgpack.FixStr)
			at := len(dst)
			dst = strconv.AppendUint(dst, uint64(h.ID), 10)
			dst[at-1] |= byte(len(dst) - at)
		} else {
			dst = msgpack.AppendString(dst, h.Key)
		}
		dst = append(dst, msgpack.FixStr|5, 'c', 'o', 'u', 'n', 't')
		dst = msgpack.AppendUint(dst, uint64(h.Count))
		if h.HasSimilarity {
			dst = msgpack.AppendFloat32(append(append(dst, msgpack.FixStr|10), "similarity"...), h.Similarity)
		}
		if h.HasDistance {
			dst = msgpack.AppendNumber(append(append(dst, msgpack.FixStr|8), "distance"...), h.Distance)
		}
		if h.Payload != nil {
			e.dst = append(append(dst, msgpack.FixStr|7), "payload"...)
			e.transcode(h.Payload)
			dst = e.dst
		}
	}
	e.dst = dst
}

// payloadReader is what reading payloads needs and can be used again.
type payloadReader struct {
	buf  bytes.Buffer
	dec  *jsontext.Decoder
	open []int // where the heads of the open containers are
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

// transcodeValue stops at the limit. It counts the members of a container as it goes, in a head of the longest form, because JSON does not
// say how many there are; small containers, which nearly all are, get the short form and move up.
func (e *encoder) transcodeValue() error {
	open := e.payload.open[:0]
	defer func() { e.payload.open = open }()
	for {
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
			open = append(open, len(e.dst))
			e.dst = append(e.dst, msgpack.Map32, 0, 0, 0, 0)
			continue
		case '}', ']':
			e.closeHead(open[len(open)-1], k == '}')
			open = open[:len(open)-1]
		}
		if len(open) == 0 {
			return nil
		}
		if !e.fits(len(e.dst), 0) {
			return nil // nothing of this is kept
		}
		at := open[len(open)-1] + 1
		binary.BigEndian.PutUint32(e.dst[at:], binary.BigEndian.Uint32(e.dst[at:])+1)
	}
}

// closeHead turns the count at a container's head, of names and values or of elements, into its final head.
func (e *encoder) closeHead(at int, object bool) {
	n := binary.BigEndian.Uint32(e.dst[at+1:])
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
