package wire

import (
	"strconv"
	"time"

	"github.com/geniemq/geniemq/internal/msgpack"
	"github.com/go-json-experiment/json/jsontext"
)

func (e *encoder) result(r *Result) {
	at := e.object()
	e.text(at, "id", r.ID)
	e.text(at, "index", r.Index)
	e.text(at, "version", r.Version)
	if r.Err != nil {
		e.name(at, "error")
		e.error(r.Err)
		e.end()
		return
	}
	if r.AllHits > 0 {
		e.whole(at, "first_hit", uint64(r.FirstHit))
		e.whole(at, "all_hits", uint64(r.AllHits))
	}
	e.name(at, "hits")
	switch {
	case r.HitsForm != HitsList:
		e.columns(r.Hits, r.HitsForm == HitsKeyedColumns)
	case e.msgpack:
		e.msgpackHits(r.Hits)
	default:
		e.jsonHits(r.Hits)
	}
	e.whole(at, "mc_k", uint64(r.MCK))
	e.name(at, "exact")
	e.bool(r.Exact)
	e.about(at, r)
	e.name(at, "took_us")
	e.took(&r.Took)
	e.end()
}

// about writes what is only there if it was asked for, or concerns few.
func (e *encoder) about(at int, r *Result) {
	if r.HasTotal {
		e.whole(at, "total", r.Total)
	}
	e.found(at, &r.Found)
	if r.HasExpectedRecall {
		e.name(at, "expected_recall")
		e.number(r.ExpectedRecall)
	}
	if r.Warnings != nil {
		e.name(at, "warnings")
		e.strings(r.Warnings)
	}
	if r.Explain != nil && e.fits(len(e.dst), len(r.Explain)) {
		e.name(at, "explain")
		if e.msgpack {
			e.transcode(r.Explain)
		} else {
			e.dst = append(e.dst, r.Explain...)
		}
	}
}

func (e *encoder) error(err *Error) {
	at := e.object()
	e.name(at, "code")
	e.str(string(err.Code))
	e.name(at, "message")
	e.str(err.Message)
	e.end()
}

type tookPart struct {
	name string
	d    *time.Duration
}

func (t *Took) parts() [5]tookPart {
	return [...]tookPart{{"queue", &t.Queue}, {"batch", &t.Batch}, {"engine", &t.Engine}, {"verify", &t.Verify}, {"total", &t.Total}}
}

func (e *encoder) took(t *Took) {
	at := e.object()
	for _, p := range t.parts() {
		e.whole(at, p.name, uint64(max(0, p.d.Microseconds())))
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
		if h.HasScore {
			dst = append(dst, `,"score":`...)
			dst = appendJSONFloat(dst, h.Score, 64)
		}
		if h.Detail != nil {
			e.dst = dst
			e.detail(0, h.Detail)
			dst = e.dst
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
		if h.HasScore {
			members++
		}
		if h.Payload != nil {
			members++
		}
		head := len(dst)
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
		if h.HasScore {
			dst = msgpack.AppendNumber(append(append(dst, msgpack.FixStr|5), "score"...), h.Score)
		}
		if h.Detail != nil {
			e.dst = dst
			e.detail(head, h.Detail)
			dst = e.dst
		}
		if h.Payload != nil {
			e.dst = append(append(dst, msgpack.FixStr|7), "payload"...)
			e.transcode(h.Payload)
			dst = e.dst
		}
	}
	e.dst = dst
}
