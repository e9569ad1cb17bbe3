package pipeline

import (
	"time"

	"github.com/geniemq/geniemq/service/translate"
	"github.com/geniemq/geniemq/wire"
)

// Answer makes the results of a request that is done, one at a time: the memory of one result's hits is used for the
// next one's. The hits of a message that asks for a million of them would take 80 MB at once, their payloads gigabytes.
type Answer struct {
	// Results are those of the request, or one that tells the reason why there are none.
	Results wire.Results

	pipeline   *Pipeline
	translator *translate.Translator
	request    *Request
	now        time.Time
	reason     *wire.Error // the message is refused as a whole: every result is this error
	most       int         // bytes of payload that a result may have: more fit no message

	result   wire.Result
	hits     []wire.Hit
	held     bool // hits hold keys or payloads
	TooLarge int  // results that are an error because their payloads exceed most,
	Payloads int  // like these of the largest
}

// Answer begins the answer to a request, or the one that tells the reason why there is none. most is how many bytes a message of
// it may have. The caller calls Encoded then.
func (r *Request) Answer(reason *wire.Error, most int) *Answer {
	p := r.pipeline
	a, _ := p.memory.answers.Get().(*Answer)
	if a == nil {
		a = new(Answer)
	}
	a.pipeline, a.translator, a.request, a.reason, a.now, a.most = p, p.translator, r, reason, time.Now(), most
	if r.codec == wire.MessagePack {
		a.most *= packs
	}
	a.Results = wire.Results{Batch: r.batch, Total: len(r.tasks), At: a.at}
	if reason != nil {
		a.Results.Batch, a.Results.Total = false, 1
	}
	return a
}

// packs is how much shorter JSON may become as MessagePack: an escaped control character is one byte of six.
const packs = 6

// Encoded gives the answer's memory back, and the engine's hits, which are bytes now.
func (a *Answer) Encoded() {
	p := a.pipeline
	p.memory.hits.put(a.request.tasks)
	if a.held {
		clear(a.hits[:cap(a.hits)])
	}
	hits := a.hits[:0]
	if cap(hits) > maxKeptHits {
		hits = nil
	}
	*a = Answer{hits: hits}
	p.memory.answers.Put(a)
}

// at makes the i-th result. It is valid until the next one is made.
func (a *Answer) at(i int) *wire.Result {
	e, r := a.translator, a.request
	a.result = wire.Result{Index: a.pipeline.name, Version: a.pipeline.version}
	if a.reason != nil {
		a.result.ID, a.result.Err = r.OnlyID(a.reason), a.reason
		return &a.result
	}
	t := &r.tasks[i]
	a.result.ID = t.id
	if a.result.Err = t.err(); a.result.Err != nil {
		return &a.result
	}
	if t.payload {
		if size := e.PayloadSizes(t.answer.Hits); size > a.most {
			a.TooLarge, a.Payloads = a.TooLarge+1, max(a.Payloads, size)
			a.result = *wire.TooLargeResult(&a.result, size, a.most)
			return &a.result
		}
	}
	a.makeHits(t)
	a.result.Hits = a.hits
	a.result.MCK, a.result.Exact = t.answer.MCK, t.answer.Exact
	a.result.Took = wire.Took{
		Queue:  t.queued.Sub(r.arrived),
		Batch:  t.started.Sub(t.queued),
		Engine: t.engine,
		Verify: t.answer.Rescoring,
		Total:  a.now.Sub(r.arrived),
	}
	return &a.result
}

// makeHits makes the hits of a task.
func (a *Answer) makeHits(t *task) {
	if n := len(t.answer.Hits); cap(a.hits) < n {
		a.hits = make([]wire.Hit, n)
	} else {
		if a.held {
			clear(a.hits)
		}
		a.hits = a.hits[:n]
	}
	a.held = a.translator.Hits(a.hits, &t.answer, t.payload)
}

// RoughSize is about how many bytes the results from first on take, but at most most.
func (a *Answer) RoughSize(first, most int) int {
	tasks := a.request.tasks
	if a.reason != nil {
		return min(512, most)
	}
	const fixed, hit = 240, 44 // JSON's
	size := 0
	for i := first; i < len(tasks) && size < most; i++ {
		t := &tasks[i]
		size += fixed + len(t.id) + hit*len(t.answer.Hits)
		if t.payload {
			size += a.translator.PayloadSizes(t.answer.Hits)
		}
	}
	if a.request.codec == wire.MessagePack {
		size = size * 2 / 3
	}
	return min(size, most)
}
