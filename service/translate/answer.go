package translate

import (
	"slices"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/shown"
	"github.com/geniemq/geniemq/wire"
)

// Query is a query of a message: what is asked, and what became of it.
type Query struct {
	ID      string
	Payload bool // the hits want their payload
	Form    wire.HitsForm
	// Prepared is what Translator.Prepare has made of the query, for Plan.
	Prepared Prepared
	Plan     gpuexec.Plan
	Match    postings.MatchQuery // what the plan asks, unless that is a structure of another family
	More     *More               // what few queries have; nil: none of it

	Err     *wire.Error // it was not run, or its answer is an error
	Answer  gpuexec.Answer
	Queued  time.Time     // when it was put in front of the batcher
	Started time.Time     // when its batch was handed to an executor
	Engine  time.Duration // of its batches
}

// Message is what an answer is to.
type Message struct {
	ID      string // of its only query, or with a Reason
	Codec   wire.ContentType
	Batch   bool // it is answered by {"results":[...]}
	Parts   bool // its sender takes a result in parts
	Arrived time.Time
	Len     int // queries
	Query   func(i int) *Query
	Reason  *wire.Error // it is refused as a whole: the only result is this error
	Engine  string      // that searched, for people
}

// Answer makes the results of a message that is done, one at a time: the memory of one result's hits is used for the
// next one's. The hits of a message that asks for a million of them would take 80 MB at once, their payloads gigabytes.
type Answer struct {
	// Results are those of the message, or one that tells the reason why there are none.
	Results wire.Results

	translator *Translator
	message    Message
	now        time.Time
	most       int // bytes of payload that a result may have: more fit no message

	result   wire.Result
	hits     []wire.Hit
	details  []wire.HitDetail
	reader   *shown.Reader                  // of payloads
	bound    func(i, from int) *wire.Result // at
	held     bool                           // hits hold keys, payloads or details
	TooLarge int                            // results that are an error because their payloads exceed most,
	Payloads int                            // like these of the largest
}

const (
	// packs is how much shorter JSON may become as MessagePack: an escaped control character is one byte of six.
	packs = 6
	// maxKeptHits and maxSpares bound what is kept to be used again: hits of a result, some 1.3 MB, and answers whose hits are kept at a time.
	maxKeptHits = 1 << 14
	maxSpares   = 1 << 12
)

// Answer begins the answer to a message. most is how many bytes a message of it may have. The caller calls Encoded then.
func (e *Translator) Answer(m Message, most int) *Answer {
	a := e.answers.Get()
	a.translator, a.message, a.now, a.most = e, m, time.Now(), most
	if m.Codec == wire.MessagePack {
		a.most *= packs
	}
	if a.bound == nil {
		a.bound = a.at
	}
	a.Results = wire.Results{Batch: m.Batch, Parts: m.Parts, Total: m.Len, At: a.bound}
	if m.Reason != nil {
		a.Results.Batch, a.Results.Total = false, 1
	}
	return a
}

// Encoded gives the answer's memory back, and the engine's hits, which are bytes now.
func (a *Answer) Encoded() {
	e := a.translator
	spares := e.spares.Get()
	for i := range a.message.Len {
		own := &a.message.Query(i).Answer
		if cap(own.Hits) > 0 && len(*spares) < maxSpares {
			*spares = append(*spares, own.Hits[:0])
		}
		own.Hits = nil
	}
	e.spares.Put(spares)
	if a.held {
		clear(a.hits[:cap(a.hits)])
	}
	hits := a.hits[:0]
	if cap(hits) > maxKeptHits {
		hits = nil
	}
	*a = Answer{hits: hits, reader: a.reader, bound: a.bound}
	e.answers.Put(a)
}

// Room puts memory that was used before where answers have none of their own for their hits.
func (e *Translator) Room(answers []gpuexec.Answer) {
	spares := e.spares.Get()
	for i := range answers {
		if last := len(*spares) - 1; last >= 0 && answers[i].Hits == nil {
			answers[i].Hits, (*spares)[last] = (*spares)[last], nil
			*spares = (*spares)[:last]
		}
	}
	e.spares.Put(spares)
}

// spareHits is memory for the hits of many answers.
type spareHits [][]gpuexec.Hit

// at makes the i-th result, from a hit on. It is valid until the next one is made. Where a result may come in parts it has no more hits than those
// whose payloads a message could hold.
func (a *Answer) at(i, from int) *wire.Result {
	e, m := a.translator, &a.message
	a.result = wire.Result{Index: e.Name, Version: e.Version}
	if m.Reason != nil {
		a.result.ID, a.result.Err = m.ID, m.Reason
		return &a.result
	}
	q := m.Query(i)
	a.result.ID = q.ID
	if a.result.Err = q.Err; a.result.Err != nil {
		return &a.result
	}
	all := len(q.Answer.Hits)
	hits := q.Answer.Hits[min(from, all):]
	if q.Payload {
		n, size := e.payloadsWithin(hits, a.most)
		if n < len(hits) && (n == 0 || !m.Parts) {
			return a.tooLarge(size)
		}
		hits = hits[:n]
	}
	made, size := a.makeHits(q, hits)
	if made < len(hits) && (made == 0 || !m.Parts) {
		return a.tooLarge(size)
	}
	if made < all {
		a.result.FirstHit, a.result.AllHits = from, all
	}
	a.result.Hits, a.result.HitsForm = a.hits, q.Form
	a.result.MCK, a.result.Exact = q.Answer.MCK, q.Answer.Exact
	if more := q.More; more != nil {
		a.result.Total, a.result.HasTotal, a.result.Warnings = q.Answer.Total, more.Total, more.warnings(&q.Answer)
		a.result.ExpectedRecall, a.result.HasExpectedRecall = more.recall, more.hasRecall
		if more.near != nil {
			more.found(&a.result, &q.Answer)
		}
		if more.explained {
			a.result.Explain = e.explain(q, m.Engine)
		}
	}
	a.result.Took = wire.Took{
		Queue:  q.Queued.Sub(m.Arrived),
		Batch:  q.Started.Sub(q.Queued),
		Engine: q.Engine,
		Verify: q.Answer.Rescoring,
		Total:  a.now.Sub(m.Arrived),
	}
	return &a.result
}

// tooLarge is the result of a query whose payloads, of that size, fit no message.
func (a *Answer) tooLarge(size int) *wire.Result {
	a.TooLarge, a.Payloads = a.TooLarge+1, max(a.Payloads, size)
	a.result = *wire.TooLargeResult(&a.result, size, a.most)
	return &a.result
}

// makeHits makes what is shown of some hits of a query. It stops where payloads that it puts together take more than a message may have, and
// returns how many it made and how many bytes these payloads take.
func (a *Answer) makeHits(q *Query, hits []gpuexec.Hit) (made, size int) {
	if n := len(hits); cap(a.hits) < n {
		a.hits = make([]wire.Hit, n)
	} else {
		if a.held {
			clear(a.hits)
		}
		a.hits = a.hits[:n]
	}
	if q.Payload && a.reader == nil {
		a.reader = a.translator.shown.Reader()
	}
	a.held, made, size = a.translator.show(a.hits, hits, q, a.reader, a.most)
	if made < len(a.hits) {
		clear(a.hits[made:])
		a.hits = a.hits[:made]
	}
	if q.More == nil {
		return made, size
	}
	if q.More.detailed() {
		a.details = slices.Grow(a.details[:0], len(a.hits))[:len(a.hits)]
		a.held = true
	}
	a.translator.tell(a.hits, a.details, q)
	return made, size
}

// RoughSize is about how many bytes the results from a position on take, but at most most.
func (a *Answer) RoughSize(from wire.Position, most int) int {
	if a.message.Reason != nil {
		return min(512, most)
	}
	const fixed = 240
	hit := [...]int{wire.HitsList: 44, wire.HitsColumns: 9, wire.HitsKeyedColumns: 21} // JSON's
	size := 0
	for i := from.Query; i < a.message.Len && size < most; i++ {
		q := a.message.Query(i)
		hits := q.Answer.Hits
		if i == from.Query {
			hits = hits[min(from.Hit, len(hits)):]
		}
		size += fixed + len(q.ID) + hit[q.Form]*len(hits)
		if q.More != nil {
			size += int(q.More.bytes())
		}
		if q.Payload {
			_, payloads := a.translator.payloadsWithin(hits, most)
			size += payloads
		}
	}
	if a.message.Codec == wire.MessagePack {
		size = size * 2 / 3
	}
	return min(size, most)
}
