// Package metrics are the figures of a worker, as Prometheus and the admin page show them.
package metrics

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/geniemq/geniemq/wire"
)

// Metrics are the service's Prometheus metrics, on a registry of their own. All times are in seconds and
// all sizes in bytes, as the convention has it.
type Metrics struct {
	*prometheus.Registry

	queries    *prometheus.CounterVec   // index, way, outcome: ok or an error code
	messages   *prometheus.CounterVec   // index, way
	seconds    *allTimes                // index, way, stage
	batchSize  *prometheus.HistogramVec // index
	batches    *prometheus.CounterVec   // index, reason
	postings   *prometheus.CounterVec   // index
	candidates *prometheus.CounterVec   // index
	distances  *prometheus.CounterVec   // index
	blocks     *prometheus.CounterVec   // index
	methods    *prometheus.CounterVec   // index, method
	planned    *prometheus.HistogramVec // index, method
	dead       *prometheus.CounterVec   // index, reason
	slow       *prometheus.CounterVec   // index, reason
	dropped    *prometheus.CounterVec   // index
	swaps      *prometheus.CounterVec   // index, outcome
	serving    *serving
	busy       *busyClock
}

// Reasons of dead letters of indexes that are served. Those of others have that of their answer.
const (
	DeadReply  = "bad_reply"     // the reply subject is malformed or forbidden
	DeadFailed = "engine_failed" // the engine fails on it although it runs alone
	DeadLost   = "worker_lost"   // workers do not survive it although it runs alone
	DeadObject = "bad_object"    // its body in the object store is not what the query says
)

// Outcomes of swaps, for geniemq_swaps_total.
const (
	SwapDone    = "done"
	SwapRefused = "refused" // the file does not fit, or the last swap has not ended
	SwapFailed  = "failed"  // the file could not be opened, loaded or asked
)

// New registers what is the same for all indexes, and the figures of the Go runtime and the process.
func New() *Metrics {
	m := &Metrics{Registry: prometheus.NewRegistry(), busy: &busyClock{}, seconds: newAllTimes(), serving: newServing()}
	m.queries = m.counter("queries_total", "Queries that were answered, by index, way (stored or direct) and outcome: ok or the error code.", "index", "way", "outcome")
	m.messages = m.counter("messages_total", "Messages that were answered, by index and way; each has one query or many.", "index", "way")
	m.slow = m.counter("slow_messages_total", "Messages that took longer than slow-query, by index and what took longest.", "index", "reason")
	m.batchSize = m.histogram("batch_size", "Queries per batch.", prometheus.ExponentialBuckets(1, 2, 15), "index")
	m.batches = m.counter("batches_total",
		"Batches by the reason why they were cut: full, idle (an executor was free), deadline, drain, or turn (of messages that are much work).",
		"index", "reason")
	m.postings = m.counter("postings_scanned_total", "Postings that were read while matches were counted.", "index")
	m.distances = m.counter("distances_total", "Distances that were computed for searches by distance.", "index")
	m.blocks = m.counter("distance_blocks_total", "Blocks of objects that searches by distance looked at, each once per query.", "index")
	m.methods = m.counter("distance_queries_total", "Searches by distance that the engine answered, by the way that was taken.", "index", "method")
	m.planned = m.histogram("distance_planner_ratio", "What searches by distance took a core over what was expected before any correction, by the way that was taken: 1 is right.",
		prometheus.ExponentialBuckets(1.0/16, 2, 9), "index", "method")
	m.candidates = m.counter("candidates_total", "Objects whose counts were large enough to become candidates for an answer.", "index")
	m.dead = m.counter("dead_total", "Messages that became dead letters, by index and reason. The index of queries that nobody serves is (unserved).", "index", "reason")
	m.dropped = m.counter("direct_dropped_total", "Direct requests that are not answered because their reply subject is not allowed.", "index")
	m.swaps = m.counter("swaps_total", "Files that were to take the place of an index's, by outcome: done, refused or failed.", "index", "outcome")
	busy := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "geniemq_engine_busy_seconds_total",
		Help: "Time during which the engine had at least one batch: its rate is the engine's utilisation.",
	}, func() float64 { return m.busy.sum().Seconds() })

	m.DeadUnserved(0)
	m.MustRegister(m.seconds, m.serving, busy, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// counter registers counters by their labels.
func (m *Metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "geniemq", Name: name, Help: help}, labels)
	m.MustRegister(c)
	return c
}

// histogram registers histograms by their labels.
func (m *Metrics) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "geniemq", Name: name, Help: help, Buckets: buckets}, labels)
	m.MustRegister(h)
	return h
}

// Busy is for how long the engine had at least one batch, so far.
func (m *Metrics) Busy() time.Duration { return m.busy.sum() }

// unserved is the index of dead letters that name none that is served: senders choose these names, and no label may be as many as they like.
// It is the name of no index.
const unserved = "(unserved)"

// DeadUnserved counts messages for indexes that nobody serves which were moved to the dead letters.
func (m *Metrics) DeadUnserved(messages int) {
	m.dead.WithLabelValues(unserved, string(wire.UnknownIndex)).Add(float64(messages))
}

// WatchClock adds the difference of the clocks: the NATS server's less this host's.
func (m *Metrics) WatchClock(skew func() time.Duration) {
	m.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "geniemq_clock_skew_seconds",
		Help: "By how much the clock of the NATS server is ahead of this host's.",
	}, func() float64 { return skew().Seconds() }))
}

// Index are the metrics of one index, resolved once so that a query does not look labels up. They outlive the index's
// pipelines; what may be counted after Forget (dead letters, swaps) was resolved before, so that no series comes back.
type Index struct {
	ways                                [2]way // by Way
	batchSize                           prometheus.Observer
	batches                             *prometheus.CounterVec // by reason
	postings, candidates, directDropped prometheus.Counter
	distances, blocks                   prometheus.Counter
	methods                             *prometheus.CounterVec        // by method
	planned                             prometheus.ObserverVec        // by method
	slow                                *prometheus.CounterVec        // by reason
	dead                                map[string]prometheus.Counter // by reason
	swaps                               map[string]prometheus.Counter // by outcome
	busy                                *busyClock

	totals     struct{ ok, errors, batches, batched atomic.Int64 }
	perMessage average
}

// Totals are the same figures for the admin page: Prometheus metrics are not made to be read.
type Totals struct {
	OK, Errors       int64 // queries that were answered by hits, and by errors
	Batches, Batched int64 // batches, and the queries in them
}

// Totals are those since the start.
func (m *Index) Totals() Totals {
	t := &m.totals
	return Totals{OK: t.ok.Load(), Errors: t.errors.Load(), Batches: t.batches.Load(), Batched: t.batched.Load()}
}

// Index makes the metrics of an index.
func (m *Metrics) Index(name string) *Index {
	label := prometheus.Labels{"index": name}
	x := &Index{
		batchSize:  m.batchSize.WithLabelValues(name),
		batches:    m.batches.MustCurryWith(label),
		postings:   m.postings.WithLabelValues(name),
		candidates: m.candidates.WithLabelValues(name),
		distances:  m.distances.WithLabelValues(name),
		blocks:     m.blocks.WithLabelValues(name),
		methods:    m.methods.MustCurryWith(label),
		planned:    m.planned.MustCurryWith(label),
		slow:       m.slow.MustCurryWith(label),
		dead:       make(map[string]prometheus.Counter),
		swaps:      make(map[string]prometheus.Counter),
		busy:       m.busy,

		directDropped: m.dropped.WithLabelValues(name),
	}
	for i := range x.ways {
		x.ways[i] = m.way(name, Way(i).String())
	}
	// What has not happened yet is there with 0: Prometheus sees no increase from nothing to 1.
	for _, reason := range []string{DeadReply, DeadFailed, DeadLost, DeadObject} {
		x.dead[reason] = m.dead.WithLabelValues(name, reason)
	}
	for _, outcome := range []string{SwapDone, SwapRefused, SwapFailed} {
		x.swaps[outcome] = m.swaps.WithLabelValues(name, outcome)
	}
	for _, reason := range []string{Queue, Batch, Engine, Verify, Publish, Turns} {
		x.slow.WithLabelValues(reason)
	}
	return x
}

// Forget takes the series of an index away that is not served any longer, whose pipelines have ended.
func (m *Metrics) Forget(name string) {
	m.seconds.forget(name)
	label := prometheus.Labels{"index": name}
	for _, v := range []interface {
		DeletePartialMatch(prometheus.Labels) int
	}{m.queries, m.messages, m.batchSize, m.batches, m.postings, m.candidates, m.distances, m.blocks, m.methods, m.planned, m.dead, m.slow, m.dropped, m.swaps} {
		v.DeletePartialMatch(label)
	}
	m.serving.forget(label)
}

// Worked counts what the engine did for a batch.
func (m *Index) Worked(postings, candidates uint64) {
	m.postings.Add(float64(postings))
	m.candidates.Add(float64(candidates))
}

// Measured counts what the engine did for a search by distance, and by how much the planner was wrong.
func (m *Index) Measured(method string, distances, blocks uint64, took, predicted time.Duration) {
	if took > 0 && predicted > 0 {
		m.planned.WithLabelValues(method).Observe(float64(took) / float64(predicted))
	}
	m.methods.WithLabelValues(method).Inc()
	m.distances.Add(float64(distances))
	m.blocks.Add(float64(blocks))
}

// Batch counts a batch.
func (m *Index) Batch(queries int, reason string) {
	m.batchSize.Observe(float64(queries))
	m.batches.WithLabelValues(reason).Inc()
	m.totals.batches.Add(1)
	m.totals.batched.Add(int64(queries))
}

// Begun and Ended are around what the engine is asked for.
func (m *Index) Begun() { m.busy.start() }
func (m *Index) Ended() { m.busy.stop() }

// Dropped counts a direct request that is not answered.
func (m *Index) Dropped() { m.directDropped.Inc() }

// Dead counts a message that was moved to the dead letters.
func (m *Index) Dead(reason string) { m.dead[reason].Inc() }

// Swapped counts a file that was to take the place of the index's.
func (m *Index) Swapped(outcome string) { m.swaps[outcome].Inc() }

// Slow counts a message that took longer than is usual.
func (m *Index) Slow(reason string) { m.slow.WithLabelValues(reason).Inc() }

// busyClock sums the time during which at least one of possibly overlapping spans is open.
type busyClock struct {
	mu    sync.Mutex
	open  int
	since time.Time
	total time.Duration
}

func (c *busyClock) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == 0 {
		c.since = time.Now()
	}
	c.open++
}

func (c *busyClock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open--; c.open == 0 {
		c.total += time.Since(c.since)
	}
}

// sum is the sum so far, the span that is open included.
func (c *busyClock) sum() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	total := c.total
	if c.open > 0 {
		total += time.Since(c.since)
	}
	return max(0, total)
}
