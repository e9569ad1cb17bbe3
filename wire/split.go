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
	// TooLarge is how many of these are an error in place of the result, which does not fit a message.
	TooLarge int
	Body     []byte
}

// Results are the results of an answer, made one at a time: those of a large answer would take many times the memory
// of its messages.
type Results struct {
	// Batch says that the message was a batch; otherwise there is one result.
	Batch bool
	// Total is how many results there are, one for each query of the message.
	Total int
	// At makes the i-th result. It is valid until the next call, and may be asked for again.
	At func(i int) *Result
}

// AppendPart encodes results from first on, as many as fit a message of at most maxBody bytes and at least one; the part is
// a complete message, with its own "first". maxBody is the server's max_payload less [HeaderSize] of the headers and
// [PartHeaderSize]. A result that does not fit a message alone is replaced by an error `too_large`. dst is empty memory for
// the body. Whatever the results have, no more than about maxBody bytes are written, one key or payload at a time.
//
// The cuts depend on the results but not on the time they took, so that a message that is delivered a second time gives, as
// a rule, parts with the same boundaries. Nothing depends on that: see [Range].
func AppendPart(dst []byte, ct ContentType, r Results, first, maxBody int) Part {
	e := encoder{msgpack: ct == MessagePack, dst: dst[:0]}
	part := Part{First: first}
	slack := 0
	if r.Batch {
		slack = e.beginPart(first)
	}
	for i := first; i < r.Total; i++ {
		result := r.At(i)
		mark, took := len(e.dst), tookSlack(ct, result)
		e.limit = max(1, maxBody-slack-took)
		if !e.add(result, r.Batch, part.Count) {
			size := len(e.dst) - mark
			e.dst = e.dst[:mark]
			if part.Count > 0 {
				break
			}
			e.limit, took = 0, 0
			e.add(tooLarge(result, size, maxBody), r.Batch, part.Count)
			part.TooLarge++
		}
		slack += took
		part.Count++
	}
	part.Body = e.endPart(r.Batch, part.Count)
	return part
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
		if !e.add(r.At(i), r.Batch, i) {
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

// Range says which queries of a message an answer, or a part of one, is to: [HeaderQueries].
type Range struct {
	First, Last int // positions, from 0
	Total       int // queries of the message
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
func TooLargeResult(r *Result, size, most int) *Result { return tooLarge(r, size, most) }

func tooLarge(r *Result, size, most int) *Result {
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
	const widest = 16 // digits: 300 years of microseconds
	slack := 0
	for _, p := range r.Took.parts() {
		us := uint64(max(0, p.d.Microseconds()))
		if ct == MessagePack {
			var buf [9]byte
			slack += 9 - len(msgpack.AppendUint(buf[:0], us))
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
