package service

import (
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/wire"
)

// maxKeptHits bounds the memory that is kept for the next answer's hits, some 10 MB.
const maxKeptHits = 1 << 17

// hitMemory is memory for the hits of one answer. They are nearly all of it and are only needed until they are encoded.
type hitMemory struct {
	hits []wire.Hit // what lies behind them holds no key and no payload
	held bool       // these do
}

// answer makes the answer of a request that is done. Its hits are in memory of the request's, until encoded.
func (e *encoder) answer(r *request, now time.Time) *wire.Answer {
	total := 0
	for i := range r.tasks {
		total += len(r.tasks[i].answer.Hits)
	}
	r.hits = e.hitMemory.Get().(*hitMemory)
	if cap(r.hits.hits) < total {
		r.hits.hits = make([]wire.Hit, 0, total)
	}
	a := &wire.Answer{Batch: r.batch, Results: make([]wire.Result, len(r.tasks))}
	for i := range r.tasks {
		t := &r.tasks[i]
		result := &a.Results[i]
		*result = wire.Result{ID: t.id, Index: e.name, Version: e.index.Version()}
		switch {
		case t.failure != nil:
			result.Err = wire.Errorf(wire.Internal, "the engine failed on this query; the log of the service says how")
		case t.refusal != nil:
			result.Err = t.refusal
		default:
			result.Hits = e.hits(r.hits, t)
			result.MCK, result.Exact = t.answer.MCK, t.answer.Exact
			result.Took = wire.Took{
				Queue:  t.queued.Sub(r.arrived),
				Batch:  t.started.Sub(t.queued),
				Engine: t.engine,
				Verify: t.answer.Verify,
				Total:  now.Sub(r.arrived),
			}
		}
	}
	return a
}

// refused is the answer of a message that is wrong as a whole.
func (e *encoder) refused(reason *wire.Error) *wire.Answer {
	return &wire.Answer{Results: []wire.Result{{Index: e.name, Version: e.index.Version(), Err: reason}}}
}

// encoded takes back the memory of an answer's hits, which is bytes now.
func (e *encoder) encoded(r *request, a *wire.Answer) {
	m := r.hits
	if m == nil {
		return
	}
	r.hits = nil
	for i := range a.Results {
		a.Results[i].Hits = nil
	}
	for i := range r.tasks {
		r.tasks[i].answer.Hits = nil
	}
	if cap(m.hits) > maxKeptHits {
		return
	}
	if m.held {
		clear(m.hits)
	}
	m.hits, m.held = m.hits[:0], false
	e.hitMemory.Put(m)
}

// hits appends the hits of a task to m, which has room for them.
func (e *encoder) hits(m *hitMemory, t *task) []wire.Hit {
	schema := e.index.Schema()
	keyed := schema.Key != ""
	similar := schema.Kind == index.Vectors || schema.Kind == index.Sets
	m.held = m.held || keyed || t.payload
	first := len(m.hits)
	m.hits = m.hits[:first+len(t.answer.Hits)]
	hits := m.hits[first:len(m.hits):len(m.hits)]
	for i := range hits {
		// Fields with pointers are empty and stay so where there is nothing to put: no write barriers, a hit each.
		from, to := &t.answer.Hits[i], &hits[i]
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
	return hits
}
