package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Worker is what a worker and its server are like now, asked for whenever metrics are collected.
type Worker struct {
	Connected, Ready bool
	Streams          []Stream
	Indexes          []Watched
}

// Results is what the stream of results is for.
const Results = "results"

// Stream is how full a stream is, as it was last looked at.
type Stream struct {
	Name        string // what it is for, not its name: queries, users, bulk or results
	Messages    uint64
	Bytes       uint64
	MaxMessages int64 // 0 or less: no bound
	MaxBytes    int64
	Oldest      time.Duration // the age of its first message; 0: it has none
}

// Fill is the share of the stream's room that is taken, by bytes or by messages, whichever is more: 1 is full. It is 0 without bounds.
func (s Stream) Fill() (share float64) {
	if s.MaxBytes > 0 {
		share = float64(s.Bytes) / float64(s.MaxBytes)
	}
	if s.MaxMessages > 0 {
		share = max(share, float64(s.Messages)/float64(s.MaxMessages))
	}
	return share
}

// Watched is an index whose queries come.
type Watched struct {
	Name string
	// Pending is how many messages of the stream no worker has answered, Redelivered how many deliveries to this worker were not
	// the first.
	Pending, Redelivered float64
	// Oldest is for how long the oldest of them has waited.
	Oldest time.Duration
	// PerMessage is how many queries messages have lately.
	PerMessage float64
	// Limit is how many messages of the index the stream takes; 0 or less: no bound.
	Limit int64
	// Direct is how many direct queries wait for the engine.
	Direct float64
}

// worker collects what a Worker says.
type worker struct {
	now                                                 func() Worker
	connected, ready                                    *prometheus.Desc
	messages, bytes, maxMessages, maxBytes, fill, first *prometheus.Desc
	pending, limit, redelivered, oldest, queries        *prometheus.Desc
}

// Watch adds the figures that somebody else keeps. now is called from any goroutine, at any time.
func (m *Metrics) Watch(now func() Worker) {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("geniemq_"+name, help, labels, nil)
	}
	m.MustRegister(&worker{
		now:         now,
		connected:   desc("connected", "1 while all connections of the worker to its NATS server are there."),
		ready:       desc("ready", "1 while queries are answered, as /readyz says, with the reasons when they are not."),
		messages:    desc("stream_messages", "Messages in a stream: queries or results.", "stream"),
		bytes:       desc("stream_bytes", "Bytes in a stream: queries or results.", "stream"),
		maxMessages: desc("stream_limit_messages", "Most messages that a stream may have. There is no sample where there is no limit.", "stream"),
		maxBytes:    desc("stream_limit_bytes", "Most bytes that a stream may have. There is no sample where there is no limit.", "stream"),
		fill:        desc("stream_fill_ratio", "The share of a stream's room that is taken, by bytes or messages. At 1 the stream of queries refuses them, and answers wait.", "stream"),
		first:       desc("stream_oldest_seconds", "Age of the first message of a stream, whatever its index. 0: it has none.", "stream"),
		pending: desc("pending_messages",
			"Messages of the query stream that are not answered yet: those not delivered, and those delivered and not settled. All workers of an index say the same.", "index"),
		limit:       desc("pending_limit_messages", "Most messages of an index that the query stream takes. There is no sample where there is no limit.", "index"),
		redelivered: desc("redelivered_total", "Deliveries to this worker that were not the first of their message.", "index"),
		oldest: desc("oldest_pending_seconds",
			"Age of the oldest message that this worker has not answered; where it has none, of the first in the stream while some of the index wait. The largest of all workers counts.", "index"),
		queries: desc("queries_pending",
			"Queries that wait, by way. stored: messages that are not answered, times the queries that messages have lately; all workers of an index say about the same. direct: those in front of this worker's engine.",
			"index", "way"),
	})
}

func (w *worker) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{w.connected, w.ready, w.messages, w.bytes, w.maxMessages, w.maxBytes, w.fill, w.first, w.pending, w.limit, w.redelivered, w.oldest, w.queries} {
		to <- d
	}
}

func (w *worker) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	now := w.now()
	gauge(w.connected, truth(now.Connected))
	gauge(w.ready, truth(now.Ready))
	for _, s := range now.Streams {
		gauge(w.messages, float64(s.Messages), s.Name)
		gauge(w.bytes, float64(s.Bytes), s.Name)
		if s.MaxMessages > 0 {
			gauge(w.maxMessages, float64(s.MaxMessages), s.Name)
		}
		if s.MaxBytes > 0 {
			gauge(w.maxBytes, float64(s.MaxBytes), s.Name)
		}
		gauge(w.fill, s.Fill(), s.Name)
		gauge(w.first, s.Oldest.Seconds(), s.Name)
	}
	for _, x := range now.Indexes {
		gauge(w.pending, x.Pending, x.Name)
		if x.Limit > 0 {
			gauge(w.limit, float64(x.Limit), x.Name)
		}
		to <- prometheus.MustNewConstMetric(w.redelivered, prometheus.CounterValue, x.Redelivered, x.Name)
		gauge(w.oldest, x.Oldest.Seconds(), x.Name)
		gauge(w.queries, x.Pending*x.PerMessage, x.Name, Stored.String())
		gauge(w.queries, x.Direct, x.Name, Direct.String())
	}
}

func truth(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// Build says which program this is.
func (m *Metrics) Build(version, revision, goVersion string) {
	build := gauge("build_info", "1, with which build of geniemq this is in the labels.", "version", "revision", "goversion")
	build.WithLabelValues(version, revision, goVersion).Set(1)
	m.MustRegister(build)
}
