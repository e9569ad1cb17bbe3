package pipeline

import (
	"sync"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/postings"
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
	decoders sync.Pool // of *wire.Decoder
	requests sync.Pool // of *requestMemory
	answers  sync.Pool // of *Answer
	bodies   memory.Bodies
	hits     hitMemory
}

// The bounds of what is kept.
const (
	maxKeptTasks   = 1 << 14 // of a request, some 6 MB
	maxKeptItems   = 1 << 17 // of a request, 3 MB with their spans
	maxKeptHits    = 1 << 14 // of a result, some 1.3 MB
	maxKeptAnswers = 1 << 20 // hits of all answers, 24 MB
)

// requestMemory is the memory of a request: its tasks, and the items and spans of their plans.
type requestMemory struct {
	tasks []task
	items []postings.Item
	spans []postings.Span
}

// request gives a request n tasks, and memory for plans of so many conditions.
func (m *pools) request(r *Request, n, conditions int) {
	own, _ := m.requests.Get().(*requestMemory)
	if own == nil {
		own = new(requestMemory)
	}
	if cap(own.tasks) < n {
		own.tasks = make([]task, n)
	}
	if cap(own.items) < conditions {
		own.items, own.spans = make([]postings.Item, conditions), make([]postings.Span, conditions)
	}
	r.memory, r.tasks, r.conditions = own, own.tasks[:n], conditions
}

// query gives memory for the n conditions that follow the first ones: an item and a span each, since most have no more.
func (own *requestMemory) query(first, n int) (items []postings.Item, spans []postings.Span) {
	return own.items[:cap(own.items)][first : first : first+n], own.spans[:cap(own.spans)][first : first : first+n]
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

// decoder gives a decoder, which forget takes back.
func (m *pools) decoder() *wire.Decoder {
	d, _ := m.decoders.Get().(*wire.Decoder)
	if d == nil {
		d = new(wire.Decoder)
	}
	return d
}

func (m *pools) forget(d *wire.Decoder) {
	d.Forget()
	m.decoders.Put(d)
}

// hitMemory is memory for the engine's hits.
type hitMemory struct {
	mu     sync.Mutex
	spares [][]gpuexec.Hit
	hits   int // that they have room for
}

// give puts spares where answers have no memory of their own.
func (m *hitMemory) give(answers []gpuexec.Answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range answers {
		last := len(m.spares) - 1
		if last < 0 {
			return
		}
		if answers[i].Hits == nil {
			answers[i].Hits, m.spares[last] = m.spares[last], nil
			m.spares = m.spares[:last]
			m.hits -= cap(answers[i].Hits)
		}
	}
}

// put takes the hits of tasks.
func (m *hitMemory) put(tasks []task) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range tasks {
		hits := tasks[i].answer.Hits
		tasks[i].answer.Hits = nil
		if n := cap(hits); n > 0 && m.hits+n <= maxKeptAnswers {
			m.spares, m.hits = append(m.spares, hits[:0]), m.hits+n
		}
	}
}

// drop forgets all of it.
func (m *hitMemory) drop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spares, m.hits = nil, 0
}
