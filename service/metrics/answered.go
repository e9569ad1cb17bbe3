package metrics

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/geniemq/geniemq/service/pipeline"
	"github.com/geniemq/geniemq/wire"
)

// Way is how a query came.
type Way uint8

const (
	Stored Way = iota // through the stream
	Direct            // by request and reply
)

// String is the value of the label way.
func (w Way) String() string {
	if w == Direct {
		return "direct"
	}
	return "stored"
}

// Stages of a query, the values of the label stage. They follow each other: queue until the query is decoded and its batch cut
// (for stored queries from the moment the stream took them), batch until the engine has it, engine, of which verify is a part,
// and publish until the answer is confirmed. total is all of it.
const (
	Queue   = "queue"
	Batch   = "batch"
	Engine  = "engine"
	Verify  = "verify"
	Publish = "publish"
	total   = "total"
)

// Turns is what a slow message waited for that is no stage: turns of long queries, and the encoding of its answer.
const Turns = "turns"

// way are the metrics of an index that differ by the way of queries.
type way struct {
	ok, messages prometheus.Counter
	errors       *prometheus.CounterVec // by outcome
	times        *times
}

func (m *Metrics) way(index, name string) way {
	errors := m.queries.MustCurryWith(prometheus.Labels{"index": index, "way": name})
	for _, code := range []wire.Code{wire.BadRequest, wire.UnknownIndex, wire.TooLarge, wire.DeadlineExceeded, wire.Overloaded, wire.Unsupported, wire.Internal} {
		errors.WithLabelValues(string(code))
	}
	return way{
		ok:       m.queries.WithLabelValues(index, name, "ok"),
		messages: m.messages.WithLabelValues(index, name),
		errors:   errors,
		times:    m.seconds.at(source{index, name}),
	}
}

// Answered is a message whose answer is out.
type Answered struct {
	Way     Way
	Request *pipeline.Request
	Reason  *wire.Error // why the message was refused as a whole, or nil
	// TooLarge good results were replaced by errors.
	TooLarge int
	// Publish is what publishing the answer took, Total all of it.
	Publish, Total time.Duration
	// TraceID is that of the message's trace, "" where it has none that is recorded: an exemplar of the times.
	TraceID string
}

// Answered counts the queries of a message and their times.
func (m *Index) Answered(a Answered) { m.answered(a, a.Request.Len(), a.Request.Outcome) }

func (m *Index) answered(a Answered, queries int, outcome func(i int) pipeline.Outcome) {
	w := &m.ways[a.Way]
	ok, failed := queries, 0
	fail := func(code wire.Code, n int) {
		if n > 0 {
			w.errors.WithLabelValues(string(code)).Add(float64(n))
			ok, failed = ok-n, failed+n
		}
	}
	if a.Reason != nil {
		fail(a.Reason.Code, 1)
		ok = 0
	} else {
		var code wire.Code
		n := 0 // queries in a row that failed of it
		for i := range queries {
			if err := outcome(i).Err; err != nil {
				if err.Code != code {
					fail(code, n)
					code, n = err.Code, 0
				}
				n++
			}
		}
		fail(code, n)
	}
	fail(wire.TooLarge, a.TooLarge)
	w.ok.Add(float64(ok))
	m.totals.ok.Add(int64(ok))
	m.totals.errors.Add(int64(failed))
	m.perMessage.add(float64(queries))
	w.times.message(a, queries, outcome)
	w.messages.Inc() // the last, so that all else of a message that is counted is there
}

// PerMessage is how many queries messages have had lately, 1 before there was one.
func (m *Index) PerMessage() float64 { return m.perMessage.now() }

// average follows what is added to it: the last some dozens count.
type average struct {
	sum, weight atomic.Uint64 // bits of float64; both fade
}

// fade is what is left of what was known when something is added.
const fade = 1 - 1.0/64

// add may be called from many goroutines. Where two meet one may be lost, which an average can bear.
func (a *average) add(x float64) {
	a.sum.Store(math.Float64bits(math.Float64frombits(a.sum.Load())*fade + x))
	a.weight.Store(math.Float64bits(math.Float64frombits(a.weight.Load())*fade + 1))
}

func (a *average) now() float64 {
	sum, weight := math.Float64frombits(a.sum.Load()), math.Float64frombits(a.weight.Load())
	if weight == 0 {
		return 1
	}
	return max(1, sum/weight)
}
