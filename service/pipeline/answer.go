package pipeline

import (
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/wire"
)

// Answer makes the results of a request that is done, one at a time: the memory of one result's hits is used for the
// next one's. The hits of a message that asks for a million of them would take 80 MB at once, their payloads gigabytes.
type Answer struct {
	// Results are those of the request, or one that tells the reason why there are none.
	Results wire.Results

	pipeline *Pipeline
	encoder  *Encoder
	request  *Request
	now      time.Time
	reason   *wire.Error // the message is refused as a whole: every result is this error
	most     int         // bytes of payload that a result may have: more fit no message

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
	a.pipeline, a.encoder, a.request, a.reason, a.now, a.most = p, p.encoder, r, reason, time.Now(), most
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
	e, r := a.encoder, a.request
	a.result = wire.Result{Index: e.name, Version: e.version}
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
		if size := e.payloadSizes(t.answer.Hits); size > a.most {
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
		Verify: t.answer.Verify,
		Total:  a.now.Sub(r.arrived),
	}
	return &a.result
}

// err is the error that a task is answered with, or nil.
func (t *task) err() *wire.Error {
	if t.failure != nil {
		return errEngineFailed
	}
	return t.refusal
}

var errEngineFailed = wire.Errorf(wire.Internal, "the engine failed on this query; the log of the service says how")

// makeHits makes the hits of a task.
func (a *Answer) makeHits(t *task) {
	e := a.encoder
	schema := e.index.Schema()
	keyed := schema.Key != ""
	similar := schema.Kind == index.Vectors || schema.Kind == index.Sets
	if n := len(t.answer.Hits); cap(a.hits) < n {
		a.hits, a.held = make([]wire.Hit, n), false
	} else {
		if a.held {
			clear(a.hits)
		}
		a.hits, a.held = a.hits[:n], false
	}
	a.held = keyed || t.payload
	for i := range a.hits {
		// Fields with pointers are empty and stay so where there is nothing to put: no write barriers, one per hit.
		from, to := &t.answer.Hits[i], &a.hits[i]
		to.ID, to.Count = from.ID, from.Count
		if keyed { // else the key is the id, which wire writes
			to.Key = e.index.Key(from.ID)
		}
		if to.HasDistance = from.Distance != gpuexec.NoDistance; to.HasDistance {
			to.Distance = float64(from.Distance)
		}
		if to.HasSimilarity = similar; similar {
			to.Similarity = from.Similarity
		}
		if t.payload {
			to.Payload = e.payloadOf(from.ID)
		}
	}
}

// payloadSizes is how many bytes the payloads of hits have together, at least.
func (e *Encoder) payloadSizes(hits []gpuexec.Hit) int {
	size := 0
	for i := range hits {
		size += len(e.index.Payload(hits[i].ID))
		if e.textColumn != "" {
			size += len(e.index.Text(hits[i].ID))
		}
	}
	return size
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
			size += a.encoder.payloadSizes(t.answer.Hits)
		}
	}
	if a.request.codec == wire.MessagePack {
		size = size * 2 / 3
	}
	return min(size, most)
}
