package pipeline

import (
	"errors"
	"unsafe"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/internal/human"
	"github.com/geniemq/geniemq/service/memory"
	"github.com/geniemq/geniemq/wire"
)

// What things take in memory, at most. Lengths of keys and payloads come from the index.
const (
	taskBytes  = int64(unsafe.Sizeof(task{}))
	itemBytes  = int64(unsafe.Sizeof(postings.Item{}))
	spanBytes  = int64(unsafe.Sizeof(postings.Span{}))
	hitBytes   = int64(unsafe.Sizeof(gpuexec.Hit{}))
	shownBytes = int64(unsafe.Sizeof(wire.Hit{}))
	// requestBytes is a request with its message's headers, its delivery, and their like.
	requestBytes = 2 << 10
	// candidateBytes is a candidate with its distance, of a query whose texts are compared in turns.
	candidateBytes = 16
	// refusalBytes is an error without its message.
	refusalBytes = 64
	// resultBytes and encodedBytes are a result without its hits, and a hit without key and payload, in the wider codec.
	resultBytes  = 320
	encodedBytes = 80
	// wholeFactor is how many times its length a body takes while it is decoded as a whole, beside wholeBytes, which as many queries
	// or conditions as a message or query may have take however short they are written. smallFactor is the same for a body
	// of less than minShared bytes. TestDecodingKeepsToItsBound has the worst that we could think of.
	wholeFactor = 32
	wholeBytes  = 64 << 20
	smallFactor = 320
	// scanFactor and partsBytes are the same where its queries are decoded one by one: a copy, where they begin, and some
	// queries at a time.
	scanFactor = 4
	partsBytes = 2 << 20
)

// need is what a decoded request takes until it is answered: its plans, its hits, the hits of its largest result as they are
// shown, and one message of its answer.
func (p *Pipeline) need(r *Request) int64 {
	e := p.translator
	objects := int64(p.index.Objects())
	n, largest, answer := requestBytes+int64(len(r.tasks))*taskBytes+int64(r.conditions)*(itemBytes+spanBytes), int64(0), int64(0)
	shown := e.LongestKey + encodedBytes
	candidates := int64(0)
	for i := range r.tasks {
		t := &r.tasks[i]
		answer += resultBytes + int64(len(t.id))
		if t.refusal != nil {
			n += refusalBytes + int64(len(t.refusal.Message))
			answer += int64(len(t.refusal.Message))
			continue
		}
		if q, ok := t.plan.Query.(*postings.MatchQuery); ok {
			n += int64(cap(q.Items))*itemBytes + int64(cap(q.Spans))*spanBytes // beyond what the request has for it
		}
		hits := min(int64(t.plan.Wanted()), objects)
		if t.plan.Rescore != nil {
			n += t.plan.Rescore.Bytes()
			candidates = max(candidates, min(int64(t.plan.K), objects))
		}
		n += hits * hitBytes
		each := shown
		if t.payload {
			each += e.LongestPayload
		}
		answer += hits * each
		largest = max(largest, hits*shownBytes)
		if t.payload && e.Assembled() { // payloads that are put together, until they are encoded
			largest = max(largest, hits*shownBytes+min(hits*e.LongestPayload, packs*int64(p.options.MaxMessage)))
		}
	}
	n += candidates * candidateBytes * int64(min(len(r.tasks), p.options.BatchSize)) // what is begun is ended first
	return n + largest + min(answer, int64(p.options.MaxMessage))*5/4
}

// reserve takes the memory that a decoded request needs until it is answered. A stored one waits for it, which holds back the
// stream; a direct one is refused when there is too little.
func (p *Pipeline) reserve(r *Request) error {
	need := p.need(r)
	if r.lane == &p.direct {
		if r.lane.memory.Try(need) {
			r.reserved = need
			return nil
		}
		if limit := r.lane.memory.Limit(); need > limit {
			return tooLargeMessage(&memory.TooMuch{Need: need, Limit: limit})
		}
		return wire.Errorf(wire.Overloaded, "too much is in flight for a message that may need %s: try again later, ask for less at a time, "+
			"or send it through the stream", human.Bytes(need))
	}
	err := r.lane.memory.Wait(p.aborted, need)
	if err == nil {
		r.reserved = need
	}
	var much *memory.TooMuch
	if errors.As(err, &much) {
		return tooLargeMessage(much)
	}
	return err
}

func tooLargeMessage(e *memory.TooMuch) *wire.Error {
	return wire.Errorf(wire.TooLarge, "the message asks for too much at a time: %v: split it, or lower k (or give the worker more by --memory)", e)
}
