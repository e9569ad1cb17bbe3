package wire

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/geniemq/geniemq/internal/msgpack"
)

// columns writes hits as columns.
func (e *encoder) columns(hits []Hit, keys bool) {
	at := e.object()
	var has columnHas
	for i := range hits {
		has.see(&hits[i])
	}
	if start, ok := e.beginPacked(at, "ids", 4*len(hits)); ok {
		dst := e.dst
		for i := range hits {
			dst = binary.LittleEndian.AppendUint32(dst, hits[i].ID)
		}
		e.dst = dst
		e.endPacked(start)
	}
	if has.counts > 0 {
		e.counts(at, hits, has.counts)
	}
	if has.similarity {
		e.floats(at, "similarities", hits, 4, func(h *Hit) float64 { return valueOr(float64(h.Similarity), h.HasSimilarity) })
	}
	distance := func(h *Hit) float64 { return valueOr(h.Distance, h.HasDistance) }
	if has.distance {
		e.floats(at, "distances", hits, widthOf(hits, distance), distance)
	}
	score := func(h *Hit) float64 { return valueOr(h.Score, h.HasScore) }
	if has.score {
		e.floats(at, "scores", hits, widthOf(hits, score), score)
	}
	if keys {
		e.eachHit(at, "keys", hits, (*encoder).hitKey)
	}
	if has.matched {
		e.eachHit(at, "matched", hits, (*encoder).hitMatched)
	}
	if has.columns {
		e.eachHit(at, "columns", hits, (*encoder).hitColumns)
	}
	if has.payload {
		e.eachHit(at, "payloads", hits, (*encoder).hitPayload)
	}
	e.end()
}

// columnHas says which columns some hit has a value for; of counts, which bits.
type columnHas struct {
	counts                                                 uint32
	similarity, distance, score, matched, columns, payload bool
}

func (c *columnHas) see(h *Hit) {
	c.counts |= h.Count
	c.similarity = c.similarity || h.HasSimilarity
	c.distance = c.distance || h.HasDistance
	c.score = c.score || h.HasScore
	c.payload = c.payload || h.Payload != nil
	if d := h.Detail; d != nil {
		c.matched = c.matched || d.Matched != nil
		c.columns = c.columns || d.Columns != nil
	}
}

// valueOr is a value, or what stands for none in a column: no hit has it, because JSON could not say it.
func valueOr(v float64, has bool) float64 {
	if !has {
		return math.NaN()
	}
	return v
}

// widthOf is how many bytes floats need so that none is rounded.
func widthOf(hits []Hit, of func(*Hit) float64) int {
	for i := range hits {
		if v := of(&hits[i]); v == v && float64(float32(v)) != v {
			return 8
		}
	}
	return 4
}

// beginPacked starts a member of packed elements, of so many bytes, if it fits.
func (e *encoder) beginPacked(at int, name string, size int) (start int, ok bool) {
	if !e.fits(len(e.dst), size) {
		return 0, false
	}
	e.name(at, name)
	if e.msgpack {
		e.dst = slices.Grow(msgpack.AppendBinHead(e.dst, size), size)
	} else {
		e.dst = slices.Grow(append(e.dst, '"'), size+base64.StdEncoding.EncodedLen(size)+1)
	}
	return len(e.dst), true
}

// endPacked ends it: what was appended since becomes base64 in JSON, which is made behind it and moves up.
func (e *encoder) endPacked(start int) {
	if e.msgpack {
		return
	}
	raw := e.dst[start:]
	e.dst = base64.StdEncoding.AppendEncode(e.dst, raw)
	n := copy(e.dst[start:], e.dst[start+len(raw):])
	e.dst = append(e.dst[:start+n], '"')
}

// counts writes the counts, in as many bytes as the largest takes. Of bits there are those of all of them.
func (e *encoder) counts(at int, hits []Hit, bits uint32) {
	width := 4
	switch {
	case bits < 1<<8:
		width = 1
	case bits < 1<<16:
		width = 2
	}
	start, ok := e.beginPacked(at, "counts", width*len(hits))
	if !ok {
		return
	}
	dst := e.dst
	switch width {
	case 1:
		for i := range hits {
			dst = append(dst, byte(hits[i].Count))
		}
	case 2:
		for i := range hits {
			dst = binary.LittleEndian.AppendUint16(dst, uint16(hits[i].Count))
		}
	default:
		for i := range hits {
			dst = binary.LittleEndian.AppendUint32(dst, hits[i].Count)
		}
	}
	e.dst = dst
	e.endPacked(start)
}

// floats writes floats of 4 or 8 bytes.
func (e *encoder) floats(at int, name string, hits []Hit, width int, of func(*Hit) float64) {
	start, ok := e.beginPacked(at, name, width*len(hits))
	if !ok {
		return
	}
	dst := e.dst
	for i := range hits {
		v := of(&hits[i])
		if width == 4 {
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(v)))
		} else {
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
		}
	}
	e.dst = dst
	e.endPacked(start)
}

// eachHit writes a list of what each hit has of one thing, up to the limit: beyond, nothing of it is kept.
func (e *encoder) eachHit(at int, name string, hits []Hit, write func(*encoder, *Hit)) {
	e.name(at, name)
	e.list(len(hits))
	for i := range hits {
		if !e.fits(len(e.dst), 0) {
			break
		}
		e.next(i)
		write(e, &hits[i])
	}
	e.endList()
}

func (e *encoder) null() {
	if e.msgpack {
		e.dst = append(e.dst, msgpack.Nil)
	} else {
		e.dst = append(e.dst, "null"...)
	}
}

func (e *encoder) hitKey(h *Hit) {
	switch {
	case !e.fits(len(e.dst), len(h.Key)):
	case h.Key != "":
		e.str(h.Key)
	default:
		var digits [10]byte
		id := strconv.AppendUint(digits[:0], uint64(h.ID), 10)
		if e.msgpack {
			e.dst = append(append(e.dst, msgpack.FixStr|byte(len(id))), id...)
		} else {
			e.dst = append(append(append(e.dst, '"'), id...), '"')
		}
	}
}

func (e *encoder) hitMatched(h *Hit) {
	if h.Detail == nil || h.Detail.Matched == nil {
		e.null()
		return
	}
	e.strings(h.Detail.Matched)
}

func (e *encoder) hitColumns(h *Hit) {
	if h.Detail == nil || h.Detail.Columns == nil {
		e.null()
		return
	}
	e.estimates(h.Detail.Columns)
}

func (e *encoder) hitPayload(h *Hit) {
	switch {
	case h.Payload == nil || !e.fits(len(e.dst), len(h.Payload)) && !e.msgpack:
		e.null()
	case e.msgpack:
		e.transcode(h.Payload)
	default:
		e.dst = append(e.dst, h.Payload...)
	}
}
