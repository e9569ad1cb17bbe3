package service

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/service/generation"
	"github.com/geniemq/geniemq/service/pipeline"
	"github.com/geniemq/geniemq/wire"
)

// metrics are the service's Prometheus metrics, on a registry of their own. All times are in seconds and
// all sizes in bytes, as the convention has it.
type metrics struct {
	registry *prometheus.Registry

	queries     *prometheus.CounterVec   // index, outcome: ok or an error code
	seconds     *prometheus.HistogramVec // index, stage
	batchSize   *prometheus.HistogramVec // index
	batches     *prometheus.CounterVec   // index, reason
	postings    *prometheus.CounterVec   // index
	candidates  *prometheus.CounterVec   // index
	dead        *prometheus.CounterVec   // reason
	dropped     *prometheus.CounterVec   // index
	swaps       *prometheus.CounterVec // index, outcome
	info        *prometheus.GaugeVec
	indexBytes  *prometheus.GaugeVec // index
	deviceBytes prometheus.Gauge
	busy        *busyClock
}

// Stages of a query's way, for geniemq_query_seconds. They follow each other: queue until the query is
// decoded and its batch cut (for stored queries from the moment the stream took them), batch until the
// engine has it, engine, of which verify is a part, and publish until the answer is confirmed. total is
// all of it.
const (
	stageQueue   = "queue"
	stageBatch   = "batch"
	stageEngine  = "engine"
	stageVerify  = "verify"
	stagePublish = "publish"
	stageTotal   = "total"
)

// Outcomes of swaps, for geniemq_swaps_total.
const (
	swapDone    = "done"
	swapRefused = "refused" // the file does not fit, or the last swap has not ended
	swapFailed  = "failed"  // the file could not be opened, loaded or asked
)

func newMetrics() *metrics {
	m := &metrics{registry: prometheus.NewRegistry(), busy: &busyClock{}}
	// The classic buckets double from 50 us to about 105 s: from one query on an idle GPU to a backlog.
	seconds := prometheus.ExponentialBuckets(50e-6, 2, 22)
	m.queries = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "geniemq_queries_total",
		Help: "Queries that were answered, by index and outcome: ok or the error code.",
	}, []string{"index", "outcome"})
	m.seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "geniemq_query_seconds",
		Help: "Time of queries by stage: queue, batch, engine, verify, publish, and total.",

		Buckets:                         seconds,
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  160,
		NativeHistogramMinResetDuration: time.Hour,
	}, []string{"index", "stage"})
	m.batchSize = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "geniemq_batch_size",
		Help:    "Queries per batch.",
		Buckets: prometheus.ExponentialBuckets(1, 2, 15),
	}, []string{"index"})
	m.batches = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "geniemq_batches_total",
		Help: "Batches by the reason why they were cut: full, idle (an executor was free), deadline, drain, or turn (of messages that are much work).",
	}, []string{"index", "reason"})
	m.postings = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "geniemq_postings_scanned_total",
		Help: "Postings that were read while matches were counted.",
	}, []string{"index"})
	m.candidates = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "geniemq_candidates_total",
		Help: "Objects whose counts were large enough to become candidates for an answer.",
	}, []string{"index"})
	m.dead = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "geniemq_dead_total",
		Help: "Messages that became dead letters, by reason.",
	}, []string{"reason"})
	m.dropped = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "geniemq_direct_dropped_total",
		Help: "Direct requests that are not answered because their reply subject is not allowed.",
	}, []string{"index"})
	m.swaps = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "geniemq_swaps_total",
		Help: "Files that were to take the place of an index's, by outcome: done, refused or failed.",
	}, []string{"index", "outcome"})
	m.info = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "geniemq_index_info",
		Help: "1 for each index that is served, with what it is in the labels.",
	}, []string{"index", "version", "kind", "engine", "device"})
	m.indexBytes = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "geniemq_index_bytes",
		Help: "Size of the index file.",
	}, []string{"index"})
	m.deviceBytes = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "geniemq_device_memory_bytes",
		Help: "Memory of devices that the engine's indexes and buffers take.",
	})
	busy := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "geniemq_engine_busy_seconds_total",
		Help: "Time during which the engine had at least one batch: its rate is the engine's utilisation.",
	}, m.busy.Seconds)

	m.registry.MustRegister(m.queries, m.seconds, m.batchSize, m.batches, m.postings, m.candidates, m.dead, m.dropped, m.swaps,
		m.info, m.indexBytes, m.deviceBytes, busy,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// watchClock adds the difference of the clocks.
func (m *metrics) watchClock(c *clock) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "geniemq_clock_skew_seconds",
		Help: "By how much the clock of the NATS server is ahead of this host's.",
	}, func() float64 { return c.skewNow().Seconds() }))
}

// describe says what is served of an index, in place of what was served before.
func (m *metrics) describe(name string, facts generation.Facts, engine gpuexec.Info) {
	m.info.DeletePartialMatch(prometheus.Labels{"index": name})
	m.info.WithLabelValues(name, facts.Version, facts.Kind, engine.Kind, engine.Device).Set(1)
	m.indexBytes.WithLabelValues(name).Set(float64(facts.Bytes))
}

// watchConsumer adds the figures of an index that its consumer keeps.
func (m *metrics) watchConsumer(name string, pending, redelivered func() float64) {
	label := prometheus.Labels{"index": name}
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "geniemq_pending_messages",
			Help:        "Messages of the query stream that are not answered yet: those not delivered, and those delivered and not settled.",
			ConstLabels: label,
		}, pending),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name:        "geniemq_redelivered_total",
			Help:        "Deliveries to this worker that were not the first of their message.",
			ConstLabels: label,
		}, redelivered))
}

// indexMetrics are the children of one index, resolved once so that a query does not look labels up. It outlives the index's
// pipelines.
type indexMetrics struct {
	ok                                           prometheus.Counter
	errors                                       *prometheus.CounterVec // by outcome
	queue, batch, engine, verify, publish, total prometheus.Observer
	batchSize                                    prometheus.Observer
	batches                                      *prometheus.CounterVec // by reason
	postings, candidates, directDropped          prometheus.Counter
	dead                                         *prometheus.CounterVec // by reason
	busy                                         *busyClock

	// totals are the same figures for the admin page: Prometheus metrics are not made to be read.
	totals struct {
		ok, errors, batches, batched atomic.Int64
	}
}

func (m *metrics) forIndex(name string) *indexMetrics {
	label := prometheus.Labels{"index": name}
	stage := func(s string) prometheus.Observer { return m.seconds.WithLabelValues(name, s) }
	return &indexMetrics{
		ok:         m.queries.WithLabelValues(name, "ok"),
		errors:     m.queries.MustCurryWith(label),
		queue:      stage(stageQueue),
		batch:      stage(stageBatch),
		engine:     stage(stageEngine),
		verify:     stage(stageVerify),
		publish:    stage(stagePublish),
		total:      stage(stageTotal),
		batchSize:  m.batchSize.WithLabelValues(name),
		batches:    m.batches.MustCurryWith(label),
		postings:   m.postings.WithLabelValues(name),
		candidates: m.candidates.WithLabelValues(name),
		dead:       m.dead,
		busy:       m.busy,

		directDropped: m.dropped.WithLabelValues(name),
	}
}

// Worked counts what the engine did for a batch.
func (m *indexMetrics) Worked(postings, candidates uint64) {
	m.postings.Add(float64(postings))
	m.candidates.Add(float64(candidates))
}

// Batch counts a batch.
func (m *indexMetrics) Batch(queries int, reason string) {
	m.batchSize.Observe(float64(queries))
	m.batches.WithLabelValues(reason).Inc()
	m.totals.batches.Add(1)
	m.totals.batched.Add(int64(queries))
}

// Begun and Ended are around what the engine is asked for.
func (m *indexMetrics) Begun() { m.busy.Start() }
func (m *indexMetrics) Ended() { m.busy.Stop() }

// observe counts the queries of a request whose answer is out, or the reason why the request was refused. tooLarge good results
// were replaced by errors; publishing the answer took published, all of it total.
func (m *indexMetrics) observe(r *pipeline.Request, reason *wire.Error, tooLarge int, published, total time.Duration) {
	ok, failed := 0, 0
	count := func(err *wire.Error) {
		if err != nil {
			m.errors.WithLabelValues(string(err.Code)).Inc()
			failed++
		} else {
			ok++
		}
	}
	if reason != nil {
		count(reason)
	} else {
		for i := range r.Len() {
			count(r.Outcome(i).Err)
		}
	}
	if tooLarge > 0 {
		m.errors.WithLabelValues(string(wire.TooLarge)).Add(float64(tooLarge))
		ok, failed = ok-tooLarge, failed+tooLarge
	}
	m.ok.Add(float64(ok))
	m.totals.ok.Add(int64(ok))
	m.totals.errors.Add(int64(failed))
	for i := range r.Len() {
		o := r.Outcome(i)
		m.total.Observe(total.Seconds())
		m.publish.Observe(published.Seconds())
		if !o.Ran {
			continue
		}
		m.queue.Observe(o.Queue.Seconds())
		m.batch.Observe(o.Batch.Seconds())
		if o.Engine > 0 {
			m.engine.Observe(o.Engine.Seconds())
			m.verify.Observe(o.Verify.Seconds())
		}
	}
}

// busyClock sums the time during which at least one of possibly overlapping spans is open.
type busyClock struct {
	mu    sync.Mutex
	open  int
	since time.Time
	total time.Duration
}

func (c *busyClock) Start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == 0 {
		c.since = time.Now()
	}
	c.open++
}

func (c *busyClock) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open--; c.open == 0 {
		c.total += time.Since(c.since)
	}
}

// Seconds is the sum so far, the span that is open included.
func (c *busyClock) Seconds() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	total := c.total
	if c.open > 0 {
		total += time.Since(c.since)
	}
	return math.Max(0, total.Seconds())
}
