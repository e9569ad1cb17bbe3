package pipeline

import (
	"errors"
	"unsafe"

	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/internal/human"
	"github.com/geniemq/geniemq/service/memory"
	"github.com/geniemq/geniemq/service/translate"
	"github.com/geniemq/geniemq/wire"
)

// What things take in memory, at most. Lengths of keys and payloads come from the index.
const (
	taskBytes = int64(unsafe.Sizeof(task{}))
	itemBytes = int64(unsafe.Sizeof(postings.Item{}))
	spanBytes = int64(unsafe.Sizeof(postings.Span{}))
	// requestBytes is a request with its message's headers, its delivery, and their like.
	requestBytes = 2 << 10
	// candidateBytes is a candidate with its distance, of a query whose texts are compared in turns.
	candidateBytes = 16
	// maxLookups bounds how often lists are searched for what is told of the hits of a message, some 100 ns each, and maxExplained how many of its
	// queries are explained, some ms each.
	maxLookups   = 1 << 22
	maxExplained = 64
	// wholeFactor is how many times its length a body takes while it is decoded as a whole, beside wholeBytes, which as many queries
	// or conditions as a message or query may have take however short they are written. smallFactor is the same for a body
	// of less than minShared bytes. TestDecodingKeepsToItsBound has the worst that we could think of.
	wholeFactor = 32
	wholeBytes  = 64 << 20
	smallFactor = 320
	// scanFactor and partsBytes are the same where its queries are decoded one by one: a copy, where they begin, and some
	// queries at a time. Decoders that help with a short table take partsBytes more, together.
	scanFactor = 4
	partsBytes = 2 << 20
	// conditionBytes is a condition of a query that is being decoded.
	conditionBytes = int(unsafe.Sizeof(wire.Condition{}))
)

// need is what a decoded request takes until it is answered: its plans, its hits, the hits of its largest result as they are
// shown, and one message of its answer.
func (p *Pipeline) need(r *Request) (int64, error) {
	var n translate.Need
	for i := range r.tasks {
		n.Add(p.translator, &r.tasks[i].Query, p.options.MaxMessage)
	}
	own := requestBytes + int64(len(r.tasks))*taskBytes + int64(r.conditions)*(itemBytes+spanBytes)
	candidates := n.Candidates * candidateBytes * int64(min(len(r.tasks), p.options.BatchSize)) // what is begun is ended first
	message := min(n.Answer, p.options.MaxMessage) * 5 / 4
	if r.Accept.S2 { // once more, compressed
		message *= 2
	}
	return own + n.Held + candidates + n.Shown + message, tooMuchTold(&n)
}

// tooMuchTold refuses messages that take long to answer because of what they want to know besides: that is made while nobody else's answers are.
func tooMuchTold(n *translate.Need) error {
	switch {
	case n.Lookups > maxLookups:
		return wire.Errorf(wire.TooLarge, "matched would look for %d values of queries in hits, a message may have %d looked for: ask for fewer hits, or for "+
			"matched with fewer queries at a time", n.Lookups, maxLookups)
	case n.Explained > maxExplained:
		return wire.Errorf(wire.TooLarge, "%d queries are to be explained, a message may have %d: they are for people", n.Explained, maxExplained)
	}
	return nil
}

// reserve takes the memory that a decoded request needs until it is answered. A stored one waits for it, which holds back the
// stream; a direct one is refused when there is too little.
func (p *Pipeline) reserve(r *Request) error {
	need, err := p.need(r)
	if err != nil {
		return err
	}
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
	if err = r.lane.memory.Wait(p.aborted, need); err == nil {
		r.reserved = need
	}
	if much, ok := errors.AsType[*memory.TooMuch](err); ok {
		return tooLargeMessage(much)
	}
	return err
}

func tooLargeMessage(e *memory.TooMuch) *wire.Error {
	return wire.Errorf(wire.TooLarge, "the message asks for too much at a time: %v: split it, or lower k (or give the worker more by --memory)", e)
}
