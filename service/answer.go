package service

import (
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/wire"
)

// answer makes the answer of a request that is done. Its hits are in the request's memory.
func (e *encoder) answer(r *request, now time.Time) *wire.Answer {
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

// refused is the answer of a message that is wrong as a whole, of which there may be an id.
func (e *encoder) refused(id string, reason *wire.Error) *wire.Answer {
	return &wire.Answer{Results: []wire.Result{{ID: id, Index: e.name, Version: e.index.Version(), Err: reason}}}
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
