package wire

import "encoding/binary"

// Part is one message of a split answer.
type Part struct {
	First int // the position of its first result among the queries of the message
	Count int // how many results it holds
	// TooLarge is how many of these are an error in place of the result, which does not fit a message.
	TooLarge int
	Body     []byte
}

// SplitAnswer encodes an answer as messages of at most maxBody bytes each, every one of them complete, with its own
// "first". maxBody is the server's max_payload less [HeaderSize] of the headers and [PartHeaderSize]. An answer that
// fits, as nearly all do, is one part. A result that does not fit a message alone is replaced by an error `too_large`.
//
// The cuts depend on the results but not on the time they took. A query message that is delivered a second time, to
// another worker, must give parts with the same boundaries: its parts have the same message ids as the first time's,
// and the result stream keeps whichever it saw first.
func SplitAnswer(ct ContentType, a *Answer, maxBody int) []Part {
	return SplitAnswerInto(ct, a, maxBody, func(size int) []byte { return make([]byte, 0, size) })
}

// SplitAnswerInto is SplitAnswer with bodies in memory that take gives: an empty slice with room for about size bytes. A
// body that needs more is moved.
func SplitAnswerInto(ct ContentType, a *Answer, maxBody int, take func(size int) []byte) []Part {
	if !a.Batch && len(a.Results) == 1 {
		r := &a.Results[0]
		body := AppendResult(take(RoughSize(ct, a)), ct, r)
		if len(body)+tookSlack(ct, r) > maxBody {
			body = AppendResult(body[:0], ct, tooLarge(r, len(body), maxBody))
			return []Part{{Count: 1, TooLarge: 1, Body: body}}
		}
		return []Part{{Count: 1, Body: body}}
	}
	var parts []Part
	part := Part{First: a.First}
	rough := 0 // of what is left
	for i := range a.Results {
		rough += roughSize(ct, &a.Results[i])
	}
	e := encoder{msgpack: ct == MessagePack, dst: take(max(0, min(rough, maxBody, maxRough)))}
	slack := e.beginPart(part.First)
	for i := range a.Results {
		r := &a.Results[i]
		mark := len(e.dst)
		e.next(part.Count)
		e.result(r)
		slack += tookSlack(ct, r)
		if len(e.dst)+slack > maxBody && part.Count > 0 {
			body := e.dst[:mark]
			e.dst = take(max(0, min(rough, maxBody, maxRough)))
			parts = append(parts, e.endPart(part, body))
			part = Part{First: a.First + i}
			slack = e.beginPart(part.First)
			mark = len(e.dst)
			e.result(r)
			slack += tookSlack(ct, r)
		}
		if len(e.dst)+slack > maxBody { // alone
			size := len(e.dst) - mark
			e.dst = e.dst[:mark]
			e.result(tooLarge(r, size, maxBody))
			slack -= tookSlack(ct, r)
			part.TooLarge++
		}
		part.Count++
		rough -= roughSize(ct, r)
	}
	return append(parts, e.endPart(part, e.dst))
}

func tooLarge(r *Result, size, most int) *Result {
	id := r.ID
	if len(id) > most/2 { // better without its id than no answer
		id = ""
	}
	return &Result{ID: id, Index: r.Index, Version: r.Version,
		Err: Errorf(TooLarge, "the result has %d bytes, a message holds %d: lower k or leave with_payload out", size, most)}
}

// maxRough bounds the memory that is taken on an estimate; more comes as it is needed.
const maxRough = 16 << 20

// RoughSize is about how many bytes an answer takes, to allocate once; of a large one, what to begin with.
func RoughSize(ct ContentType, a *Answer) int {
	rough := 0
	for i := range a.Results {
		rough += roughSize(ct, &a.Results[i])
	}
	return min(rough, maxRough)
}

// roughSize is the same for a result.
func roughSize(ct ContentType, r *Result) int {
	size, hit := 160, 28
	if ct == JSON {
		size, hit = 240, 44
	}
	size += len(r.ID) + len(r.Hits)*hit
	for i := range r.Hits {
		size += len(r.Hits[i].Key) + len(r.Hits[i].Payload)
	}
	return size
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
	e.dst = binary.BigEndian.AppendUint32(append(e.dst, mpUint32), uint32(first))
	e.name(at, "results")
	e.dst = append(e.dst, mpArray32, 0, 0, 0, 0)
	return 0
}

func (e *encoder) endPart(p Part, body []byte) Part {
	if e.msgpack {
		binary.BigEndian.PutUint32(body[mpPartHead-4:], uint32(p.Count))
	} else {
		body = append(body, "]}"...)
	}
	p.Body = body
	return p
}

// tookSlack is how much longer a result would be if all its times took the widest form.
func tookSlack(ct ContentType, r *Result) int {
	if r.Err != nil {
		return 0
	}
	const widest = 16 // digits: 300 years of microseconds
	slack := 0
	for _, p := range r.Took.parts() {
		us := uint64(max(0, p.d.Microseconds()))
		if ct == MessagePack {
			var buf [9]byte
			slack += 9 - len(appendUint(buf[:0], us))
			continue
		}
		digits := 1
		for ; us >= 10; us /= 10 {
			digits++
		}
		slack += max(0, widest-digits)
	}
	return slack
}
