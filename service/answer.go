package service

import (
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/wire"
)

// answer makes the answer of a request that is done.
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
			result.Hits = e.hits(t)
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

func (e *encoder) hits(t *task) []wire.Hit {
	hits := make([]wire.Hit, len(t.answer.Hits))
	keyed := e.index.Schema().Key != ""
	kind := e.index.Schema().Kind
	for i, from := range t.answer.Hits {
		to := &hits[i]
		to.ID, to.Count = from.ID, from.Count
		if keyed { // else the key is the id, which wire writes
			to.Key = e.index.Key(from.ID)
		}
		if from.Distance != gpuexec.NoDistance {
			to.Distance, to.HasDistance = float64(from.Distance), true
		}
		if kind == index.Vectors || kind == index.Sets {
			to.Similarity, to.HasSimilarity = from.Similarity, true
		}
		if t.payload {
			to.Payload = e.payloadOf(from.ID)
		}
	}
	return hits
}
