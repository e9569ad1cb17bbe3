package pipeline

import (
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/internal/pool"
	"github.com/geniemq/geniemq/service/memory"
	"github.com/geniemq/geniemq/wire"
)

// pools are what the messages of an index are made of on their way through the pipeline, used again for later ones. A
// message of 256 queries with 100 hits each takes some 4 MB from its decoding to its confirmation. Left to the garbage
// collector that is gigabytes a second on a GPU, of which little is alive at a time: marking is cheap, but each large
// allocation and each span that is swept takes the heap's lock, and on 16 cores that lock, not the work, ended the
// throughput (docs/benchmarks/history/2026-11-21-h200-service.md).
//
// Each piece has one owner at a time, as its request has. What is not given back, because a message failed, is garbage
// like any other. What is given back is bounded, piece by piece: messages may be of any size.
type pools struct {
	decoders pool.Of[wire.Decoder]
	requests pool.Of[requestMemory]
	bodies   memory.Bodies
}

// The bounds of what is kept.
const (
	maxKeptTasks = 1 << 14 // of a request, some 6 MB
	maxKeptItems = 1 << 17 // of a request, 3 MB with their spans
)

// requestMemory is the memory of a request: its tasks, and the items and spans of their plans.
type requestMemory struct {
	tasks []task
	items []postings.Item
	spans []postings.Span
}

// request gives a request n tasks, and memory for plans of so many conditions.
func (m *pools) request(r *Request, n, conditions int) {
	own := m.requests.Get()
	if cap(own.tasks) < n {
		own.tasks = make([]task, n)
	}
	if cap(own.items) < conditions {
		own.items, own.spans = make([]postings.Item, conditions), make([]postings.Span, conditions)
	}
	r.memory, r.tasks, r.conditions = own, own.tasks[:n], conditions
}

// query is an empty one for the n conditions that follow the first ones: with room for an item and a span each, since most have no more.
func (own *requestMemory) query(first, n int) postings.MatchQuery {
	return postings.MatchQuery{
		Items: own.items[:cap(own.items)][first : first : first+n], Spans: own.spans[:cap(own.spans)][first : first : first+n],
	}
}

// release takes back the memory of a request that is answered. It has no tasks any longer.
func (m *pools) release(r *Request) {
	own := r.memory
	if own == nil {
		return
	}
	clear(r.tasks)
	r.memory, r.tasks = nil, nil
	if cap(own.tasks) <= maxKeptTasks && cap(own.items) <= maxKeptItems {
		m.requests.Put(own)
	}
}

// forget takes back one of the decoders.
func (m *pools) forget(d *wire.Decoder) {
	d.Forget()
	m.decoders.Put(d)
}
