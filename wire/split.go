package wire

import (
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/geniemq/geniemq/internal/msgpack"
)

// Part is one message of an answer.
type Part struct {
	First int // the position of its first result among the queries of the message
	Count int // how many results it holds
	// Hits says which hits of its only result it holds, where that is too large for a message by itself; a Total of 0: all of them.
	Hits Range
	// TooLarge is how many of these are an error in place of the result, which does not fit a message.
	TooLarge int
	Body     []byte
}

// Position is where a part of an answer begins: at a query's result, or at one of its hits, where the result comes in parts.
type Position struct{ Query, Hit int }

// Next is where the part after this one begins.
func (p *Part) Next() Position {
	if p.Hits.Last+1 < p.Hits.Total {
		return Position{p.First, p.Hits.Last + 1}
	}
	return Position{Query: p.First + p.Count}
}

// Results are the results of an answer, made one at a time: those of a large answer would take many times the memory
// of its messages.
type Results struct {
	// Batch says that the message was a batch; otherwise there is one result.
	Batch bool
	// Parts says that the asker takes a result in parts that is too large for a message.
	Parts bool
	// Total is how many results there are, one for each query of the message.
	Total int
	// At makes the i-th result, without the hits before the from-th, which is 0 but for results that come in parts. Of these it may leave out hits
	// at the end too, and says so as a part does. It is valid until the next call, and may be asked for again.
	At func(i, from int) *Result
}

// AppendPart encodes results from a position on, as many as fit a message of at most maxBody bytes and at least one; the part is
// a complete message, with its own "first". maxBody is the server's max_payload less [HeaderSize] of the headers and
// [PartHeaderSize]. A result that does not fit a message alone comes in parts, in messages of their own, if the asker takes that, or else is
// replaced by an error `too_large`. dst is empty memory for the body. Whatever the results have, no more than about maxBody bytes are
// written, one key or payload at a time.
//
// The cuts depend on the results but not on the time they took, so that a message that is delivered a second time gives, as
// a rule, parts with the same boundaries. Nothing depends on that: see [Range].
func AppendPart(dst []byte, ct ContentType, r Results, first Position, maxBody int) Part {
	e := encoder{msgpack: ct == MessagePack, dst: dst[:0]}
	part := Part{First: first.Query}
	slack, from := 0, first.Hit
	if r.Batch {
		slack = e.beginPart(first.Query)
	}
	for i := first.Query; i < r.Total && part.Hits.Total == 0; i++ {
		result := r.At(i, from)
		from = 0
		mark, took := len(e.dst), tookSlack(ct, result)
		e.limit = max(1, maxBody-slack-took)
		if result.AllHits > 0 || !e.add(result, r.Batch, part.Count) {
			size := len(e.dst) - mark
			e.dst = e.dst[:mark]
			if part.Count > 0 {
				break
			}
			if r.Parts && result.Err == nil {
				part.Hits = e.addSome(result, r.Batch)
			}
			if part.Hits.Total == 0 {
				e.limit, took = 0, 0
				if result.AllHits > 0 {
					size = maxBody
				}
				e.add(TooLargeResult(result, size, maxBody), r.Batch, part.Count)
				part.TooLarge++
			}
		}
		slack += took
		part.Count++
	}
	part.Body = e.endPart(r.Batch, part.Count)
	return part
}

// addSome appends the first result of a part with as many of its hits as fit, and says which; of none where not even one fits.
func (e *encoder) addSome(result *Result, batch bool) Range {
	mark, some := len(e.dst), *result
	if some.AllHits == 0 {
		some.AllHits = len(some.Hits)
	}
	if some.FirstHit > 0 {
		some.Warnings, some.Explain = nil, nil
	}
	some.Hits = nil
	if !e.add(&some, batch, 0) {
		e.dst = e.dst[:mark]
		return Range{}
	}
	room := e.limit - len(e.dst)
	n := e.hitsWithin(result.Hits, result.HitsForm, room)
	for ; n > 0; n /= 2 { // the estimate is right as a rule
		e.dst = e.dst[:mark]
		some.Hits = result.Hits[:n]
		if e.add(&some, batch, 0) {
			return Range{First: some.FirstHit, Last: some.FirstHit + n - 1, Total: some.AllHits}
		}
	}
	e.dst = e.dst[:mark]
	return Range{}
}

// hitsWithin is about how many hits take so many bytes, but at least one.
func (e *encoder) hitsWithin(hits []Hit, form HitsForm, room int) int {
	each := [...]int{HitsList: 48, HitsColumns: 12, HitsKeyedColumns: 12}[form]
	if form != HitsList {
		room -= len(`"similarities":"==","distances":"==","scores":"==","keys":[],"matched":[],"columns":[],"payloads":[],"counts":"==","ids":"=="`)
	}
	for i := range hits {
		h := &hits[i]
		n := each + len(h.Payload)
		if form != HitsColumns {
			n += quotedSize(h.Key)
		}
		for _, value := range [...]struct {
			has          bool
			list, packed int
		}{{h.HasSimilarity, 28, 6}, {h.HasDistance, 37, 11}, {h.HasScore, 34, 11}} {
			switch {
			case !value.has:
			case form == HitsList:
				n += value.list
			default:
				n += value.packed
			}
		}
		if d := h.Detail; d != nil {
			n += 32
			for _, column := range d.Matched {
				n += quotedSize(column) + 1
			}
			for _, c := range d.Columns {
				n += quotedSize(c.Column) + 80
			}
		}
		if room -= n; room < 0 {
			return max(1, i)
		}
	}
	return len(hits)
}

// quotedSize is about how many bytes a text takes in JSON.
func quotedSize(s string) int {
	n := len(s) + 2
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			n += 5
		}
	}
	return n
}

// From is a result without the hits before the from-th of all, which are not before those that it has.
func (r *Result) From(from int) *Result {
	if from <= r.FirstHit {
		return r
	}
	rest := *r
	rest.AllHits = max(r.AllHits, len(r.Hits))
	rest.Hits, rest.FirstHit = r.Hits[min(from-r.FirstHit, len(r.Hits)):], from
	return &rest
}

// AppendWhole encodes all results as one message of at most maxBody bytes. It is false when they do not fit, and has not written
// much more than fits then; size is what was written.
func AppendWhole(dst []byte, ct ContentType, r Results, maxBody int) (body []byte, size int, ok bool) {
	e := encoder{msgpack: ct == MessagePack, dst: dst[:0]}
	slack := 0
	if r.Batch {
		slack = e.beginPart(0)
	}
	e.limit = max(1, maxBody-slack)
	for i := range r.Total {
		if result := r.At(i, 0); result.AllHits > 0 || !e.add(result, r.Batch, i) {
			return e.dst[:0], len(e.dst), false
		}
	}
	body = e.endPart(r.Batch, r.Total)
	return body, len(body), true
}

// add appends the n-th result of a part and says whether it fits the limit.
func (e *encoder) add(r *Result, batch bool, n int) bool {
	if batch {
		e.next(n)
	}
	e.full = false
	e.result(r)
	return !e.full && (e.limit == 0 || len(e.dst) <= e.limit)
}

// Range says which queries of a message an answer, or a part of one, is to: [HeaderQueries]. It also says which hits of a result a
// part has: [HeaderHits].
type Range struct {
	First, Last int // positions, from 0
	Total       int // queries of the message, or hits of the result
}

// String is the form of the header: "36-71/100".
func (r Range) String() string {
	return strconv.Itoa(r.First) + "-" + strconv.Itoa(r.Last) + "/" + strconv.Itoa(r.Total)
}

// ParseRange reads the header.
func ParseRange(s string) (Range, bool) {
	first, rest, ok := strings.Cut(s, "-")
	last, total, ok2 := strings.Cut(rest, "/")
	if !ok || !ok2 {
		return Range{}, false
	}
	var r Range
	for i, text := range []string{first, last, total} {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return Range{}, false
		}
		*[]*int{&r.First, &r.Last, &r.Total}[i] = int(n)
	}
	return r, r.First <= r.Last && r.Last < r.Total
}

// TooLargeResult is what takes the place of a result of at least so many bytes that fits no message of most bytes.
func TooLargeResult(r *Result, size, most int) *Result {
	id := r.ID
	if len(id) > most/2 { // better without its id than no answer
		id = ""
	}
	return &Result{ID: id, Index: r.Index, Version: r.Version,
		Err: Errorf(TooLarge, "the result has at least %d bytes, a message holds %d: lower k or leave with_payload out", size, most)}
}

// The head of a part has a fixed length: the number of its results is not known when it is begun.
const mpPartHead = 1 + 6 + 5 + 8 + 5

// beginPart writes the head of a part and returns how many bytes are still to come at its end.
func (e *encoder) beginPart(first int) int {
	at := e.object()
	e.name(at, "first")
	if !e.msgpack {
		e.uint(uint64(first))
		e.name(at, "results")
		e.dst = append(e.dst, '[')
		return len("]}")
	}
	e.dst = binary.BigEndian.AppendUint32(append(e.dst, msgpack.Uint32), uint32(first))
	e.name(at, "results")
	e.dst = append(e.dst, msgpack.Array32, 0, 0, 0, 0)
	return 0
}

// endPart ends a message of so many results.
func (e *encoder) endPart(batch bool, count int) []byte {
	switch {
	case !batch:
	case e.msgpack:
		binary.BigEndian.PutUint32(e.dst[mpPartHead-4:], uint32(count))
	default:
		e.dst = append(e.dst, "]}"...)
	}
	return e.dst
}

// tookSlack is how much longer a result would be if all its times took the widest form.
func tookSlack(ct ContentType, r *Result) int {
	if r.Err != nil {
		return 0
	}
	slack := 0
	var room [20]byte
	for _, p := range r.Took.parts() {
		us := uint64(max(0, p.d.Microseconds()))
		if ct == MessagePack {
			slack += 9 - len(msgpack.AppendUint(room[:0], us))
		} else { // 16 digits are 300 years
			slack += max(0, 16-len(strconv.AppendUint(room[:0], us, 10)))
		}
	}
	return slack
}
