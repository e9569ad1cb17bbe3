// Package observe tells of messages that are answered what people watch: metrics with exemplars, spans of traces, and a log of the slow.
package observe

import (
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/geniemq/geniemq/service/metrics"
	"github.com/geniemq/geniemq/service/pipeline"
	"github.com/geniemq/geniemq/wire"
)

// Index observes the messages of one index. It is called once per message, when the answer is out, from any goroutine: nothing of it
// is on the way of a query. Messages without a trace, and faster than Slow, cost what their metrics cost.
//
// A trace begins elsewhere: a message that has no traceparent, or one that its sender does not record, makes no span and no exemplar. So whoever
// asks decides how much is traced, as the W3C recommendation has it, and an answer has the traceparent of its query whether there are spans or not.
type Index struct {
	// Metrics are the index's. Required.
	Metrics *metrics.Index
	// Name is the index's name.
	Name string
	// Traces take spans. Default: nil, no spans.
	Traces *Traces
	// Slow is how long a message may take until it is logged. Default 0: none is.
	Slow time.Duration
	// Log takes slow messages, limited so that they cannot fill it. Required with Slow.
	Log *slog.Logger
}

// Answered is a message whose answer is out.
type Answered struct {
	Way     metrics.Way
	Request *pipeline.Request
	Reason  *wire.Error // why the message was refused as a whole, or nil
	// TooLarge good results were replaced by errors.
	TooLarge int
	// Encoded is when the answer, or its last part, was ready to be published.
	Encoded time.Time
	// TraceParent is the message's header of that name.
	TraceParent string
	// Sequence is that of a stored message.
	Sequence uint64
}

// Answered takes note of a message that was just answered.
func (x *Index) Answered(a Answered) {
	now := time.Now()
	parent := recorded(a.TraceParent)
	m := metrics.Answered{
		Way: a.Way, Request: a.Request, Reason: a.Reason, TooLarge: a.TooLarge,
		Publish: now.Sub(a.Encoded), Total: now.Sub(a.Request.Arrived),
	}
	if parent.IsValid() {
		m.TraceID = parent.TraceID().String()
	}
	x.Metrics.Answered(m)
	slow := x.Slow > 0 && m.Total >= x.Slow
	if !slow && (x.Traces == nil || !parent.IsValid()) {
		return
	}
	c := courseOf(a, m, now)
	if x.Traces != nil && parent.IsValid() {
		x.Traces.message(x.Name, parent, a, c)
	}
	if slow {
		x.slow(a, m, c)
	}
}

// recorded is the trace that a message belongs to, if its sender records it. What is no traceparent is none.
func recorded(traceparent string) trace.SpanContext {
	if traceparent == "" {
		return trace.SpanContext{}
	}
	ctx := propagation.TraceContext{}.Extract(noParent, propagation.MapCarrier{wire.HeaderTraceParent: traceparent})
	if parent := trace.SpanContextFromContext(ctx); parent.IsSampled() {
		return parent
	}
	return trace.SpanContext{}
}

// course is how a message went: its times, and the stages of that query of it which was answered last.
type course struct {
	arrived, ended time.Time
	stages         []stage
	longest        string // the name of the stage that took most
	failed         *wire.Error
}

// stage is a part of the way of a query.
type stage struct {
	name string
	took time.Duration
}

func courseOf(a Answered, m metrics.Answered, now time.Time) course {
	c := course{arrived: now.Add(-m.Total), ended: now, failed: a.Request.OnlyErr(a.Reason)}
	var last pipeline.Outcome
	for i := range a.Request.Len() {
		o := a.Request.Outcome(i)
		if o.Ran && (!last.Ran || o.Queue+o.Batch+o.Engine > last.Queue+last.Batch+last.Engine) {
			last = o
		}
	}
	if last.Ran {
		c.stages = []stage{{metrics.Queue, last.Queue}, {metrics.Batch, last.Batch}, {metrics.Engine, max(0, last.Engine-last.Verify)}, {metrics.Verify, last.Verify}}
	} else {
		c.stages = []stage{{metrics.Queue, max(0, a.Encoded.Sub(a.Request.Arrived))}}
	}
	c.stages = append(c.stages, stage{metrics.Publish, m.Publish})
	longest := stage{}
	var known time.Duration
	for _, s := range c.stages {
		known += s.took
		if s.took >= longest.took {
			longest = s
		}
	}
	// What is left is between the stages: turns of long queries, and answers that wait for others to be encoded.
	if rest := m.Total - known; rest > longest.took {
		longest.name = metrics.Turns
	}
	c.longest = longest.name
	return c
}

// reasons say for people why a message took long, by what took longest.
var reasons = map[string]string{
	metrics.Queue:   "a query was slow: it waited in the stream, or to be decoded",
	metrics.Batch:   "a query was slow: its batch waited for the engine",
	metrics.Engine:  "a query was slow: the engine searched",
	metrics.Verify:  "a query was slow: texts or objects were compared",
	metrics.Publish: "a query was slow: its answer waited to be published or confirmed",
	metrics.Turns:   "a query was slow: it went on in turns with others, or its answer waited to be encoded",
}

// slow logs a message that took long. The reason is the log's message, so that each is limited on its own.
func (x *Index) slow(a Answered, m metrics.Answered, c course) {
	x.Metrics.Slow(c.longest)
	attributes := []any{"way", a.Way.String(), "seconds", m.Total.Seconds(), "queries", a.Request.Len(), "version", a.Request.Version()}
	if a.Way == metrics.Stored {
		attributes = append(attributes, "sequence", a.Sequence)
	}
	if id := wire.HeaderID(a.Request.OnlyID(a.Reason)); id != "" {
		attributes = append(attributes, "id", id)
	}
	if m.TraceID != "" {
		attributes = append(attributes, "trace_id", m.TraceID)
	}
	if c.failed != nil {
		attributes = append(attributes, "outcome", string(c.failed.Code))
	}
	for _, s := range c.stages {
		attributes = append(attributes, s.name, s.took.Seconds())
	}
	x.Log.Warn(reasons[c.longest], attributes...)
}
