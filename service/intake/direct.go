package intake

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/geniemq/geniemq/internal/pool"
	"github.com/geniemq/geniemq/service/generation"
	"github.com/geniemq/geniemq/service/metrics"
	"github.com/geniemq/geniemq/service/observe"
	"github.com/geniemq/geniemq/service/pipeline"
	"github.com/geniemq/geniemq/wire"
)

// Direct takes in the requests on one index's search subject. A request is never made to wait for room:
// whoever asks directly wants an answer now, so with too many queries in front of it, it is answered `overloaded`.
//
// Answers are sent on the plain connection: nobody confirms what is sent to an inbox, and the asker retries. They are
// not sent through micro.Request, whose statistics, taken when the handler returns, would not only be wrong for a
// handler that answers later but also race with it; stats keeps our own.
type Direct struct {
	Index   *generation.Index
	Metrics *metrics.Index
	Observe *observe.Index
	NC      *nats.Conn
	Limit   int64    // queries between intake and engine
	Allow   []string // reply subjects
	// Users begins the subjects of users' requests, which may be answered on what AllowUser says
	Users     string
	AllowUser func(user string) []string
	Admission *Admissions
	Log       *slog.Logger
	stats     directStats

	waiting atomic.Int64 // queries, or messages not decoded yet, between intake and engine
	headers pool.Of[headers]

	mu     sync.RWMutex // held for reading while something is put into the pipeline
	closed bool
}

// MaxUnread bounds what the client library holds of requests that Handle has not taken. It takes them at once.
const MaxUnread = 32 << 20

// directStats are the timings that the micro service's STATS show.
type directStats struct {
	requests, errors, dropped, nanoseconds atomic.Int64
}

// DirectStats is the data of an endpoint in the STATS of the NATS micro service. The library's own times are those
// of taking a request in; these are from there to the answer.
type DirectStats struct {
	Requests       int64   `json:"requests"`
	Errors         int64   `json:"errors"` // requests that were answered by an error as a whole
	AverageSeconds float64 `json:"average_seconds"`
	Waiting        int64   `json:"waiting"` // queries
	Version        string  `json:"version"` // of the index that answers now
	Dropped        int64   `json:"dropped"` // requests with a reply subject that is not allowed
}

func (d *Direct) Stats() DirectStats {
	s := DirectStats{Requests: d.stats.requests.Load(), Errors: d.stats.errors.Load(), Waiting: d.waiting.Load(), Dropped: d.stats.dropped.Load(),
		Version: d.Index.Facts().Version}
	if s.Requests > 0 {
		s.AverageSeconds = time.Duration(d.stats.nanoseconds.Load() / s.Requests).Seconds()
	}
	return s
}

// Waiting is how many queries, or messages not decoded yet, are between intake and engine.
func (d *Direct) Waiting() int64 { return d.waiting.Load() }

// Handle takes a request in. It does not block.
func (d *Direct) Handle(m micro.Request) {
	if m.Reply() == "" {
		return // a publish by mistake: nobody would get the answer
	}
	allow := d.Allow
	user, known := strings.CutPrefix(m.Subject(), d.Users)
	if known {
		allow = d.AllowUser(user)
	} else {
		user = ""
	}
	if err := wire.ValidateReplySubject(m.Reply(), allow); err != nil {
		d.drop(m.Reply(), err)
		return
	}
	header := nats.Header(m.Headers())
	o := &directRequest{intake: d, reply: m.Reply(), header: header, user: d.Admission.user(user, header)}
	message := messageOf(header, m.Data(), time.Now())
	message.Class, message.User = wire.ClassDirect, o.user
	message.Accept.Parts = false // an answer is one message
	d.take(o, message)
}

// Try answers a message of the admin page as it answers those that come by NATS.
func (d *Direct) Try(ctx context.Context, body []byte) ([]byte, error) {
	answer := make(chan []byte, 1)
	o := &directRequest{intake: d, reply: "the admin page", answer: answer}
	d.take(o, pipeline.Message{Arrived: time.Now(), Body: body})
	select {
	case text := <-answer:
		return text, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// drop leaves a request unanswered whose answer would be published where its sender may have no right to: on the subject of
// another's stored answers, or as a query.
func (d *Direct) drop(reply string, reason error) {
	d.stats.dropped.Add(1)
	d.Metrics.Dropped()
	d.Log.Warn("a direct request is dropped because of its reply subject: see direct-reply-allow", "reply", reply, "error", reason)
}

// take puts a request into the pipeline or refuses it. One that comes after Close touches neither pipeline nor file, which may be gone.
func (d *Direct) take(o *directRequest, message pipeline.Message) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		o.turnAway(&message)
		return
	}
	pipe, r := d.Index.Request(o, message)
	if o.header.Get(wire.HeaderQueryObject) != "" {
		o.Refuse(r, refuseObject())
		return
	}
	if o.queue(1) <= d.Limit && pipe.Offer(r) {
		return
	}
	o.Refuse(r, d.overloaded())
}

func (d *Direct) overloaded() *wire.Error {
	return wire.Errorf(wire.Overloaded, "this worker has as much to do as it may take on (%d queries wait already): try again later, or send the query through the stream",
		d.waiting.Load())
}

// Close turns requests away from now on, and returns when none is being put into the pipeline.
func (d *Direct) Close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
}

// directRequest is the origin of a request by NATS request and reply.
type directRequest struct {
	intake *Direct
	reply  string
	header nats.Header
	user   string        // of whom account is kept
	taken  int           // queries that are in flight for the user
	queued atomic.Int64  // its part of those that wait
	answer chan<- []byte // where its answer goes instead, if it came by no connection
}

// Admit asks whether the user may ask so much, and puts the queries into the queue.
func (d *directRequest) Admit(queries int) *wire.Error {
	if err := d.join(queries); err != nil || queries == 0 {
		return err
	}
	err := d.intake.Admission.enter(d.user, queries)
	if err == nil {
		d.taken = queries
		err = d.intake.Admission.spend(d.user, queries)
	}
	if err != nil {
		d.Leave(queries)
	}
	return err
}

// join replaces the message's place in the queue by those of its queries. One query is admitted already.
func (d *directRequest) join(queries int) *wire.Error {
	waiting := d.queue(int64(queries) - 1)
	if queries <= 1 || waiting <= d.intake.Limit {
		return nil
	}
	d.Leave(queries)
	if int64(queries) > d.intake.Limit { // trying again would not help
		return wire.Errorf(wire.TooLarge, "the message has %d queries, direct search takes at most %d at a time: send fewer, or send them "+
			"through the stream", queries, d.intake.Limit)
	}
	return d.intake.overloaded()
}

// queue counts queries among those that wait, and returns how many do.
func (d *directRequest) queue(queries int64) (waiting int64) {
	d.queued.Add(queries)
	return d.intake.waiting.Add(queries)
}

// Leave takes queries of those that wait, of which there may be fewer: who was answered has none.
func (d *directRequest) Leave(queries int) {
	for {
		queued := d.queued.Load()
		n := min(int64(queries), queued)
		if n <= 0 {
			return
		}
		if d.queued.CompareAndSwap(queued, queued-n) {
			d.intake.waiting.Add(-n)
			return
		}
	}
}

func (d *directRequest) Refuse(r *pipeline.Request, reason *wire.Error) { d.send(r, reason) }

func (d *directRequest) Respond(r *pipeline.Request) { d.send(r, nil) }

func (d *directRequest) Abandon(r *pipeline.Request) {
	if r.Aborted().Err() == nil {
		d.Refuse(r, wire.Errorf(wire.Overloaded, "this worker does not answer from index %s now, whose file was changed in place: try again", r.Index()))
		return
	}
	d.Refuse(r, wire.Errorf(wire.Overloaded, "this worker is shutting down, or serves index %s no longer: try again", r.Index()))
}

// turnAway tells the asker to try again, where another worker may answer, or the server will say that nobody does.
func (d *directRequest) turnAway(message *pipeline.Message) {
	codec, _, _ := wire.ParseBodyType(message.ContentType) // JSON when that is wrong, too
	facts := d.intake.Index.Facts()
	reason := wire.Errorf(wire.Overloaded, "this worker does not answer from its index any longer: try again")
	var h headers
	h.begin(codec)
	h.answering(d.header, message.ID)
	setServiceError(h.Header, reason)
	result := wire.Result{ID: message.ID, Index: d.intake.Index.Name(), Version: facts.Version, Err: reason}
	body := wire.AppendAnswer(nil, codec, &wire.Answer{Results: []wire.Result{result}})
	if err := d.out(&nats.Msg{Subject: d.reply, Header: h.Header, Data: body}); err != nil {
		d.intake.Log.Warn("a direct answer could not be sent", "reply", d.reply, "error", err)
	}
	d.intake.stats.requests.Add(1)
	d.intake.stats.errors.Add(1)
}

// leave says that the queries are in flight no longer, nor do those wait that the engine never saw: of a message that was refused after it had joined the queue, or given up in it.
func (d *directRequest) leave() {
	d.Leave(math.MaxInt)
	d.intake.Admission.Quotas.Leave(d.user, d.taken)
	d.taken = 0
}

// out sends a message, whose body stays the caller's.
func (d *directRequest) out(m *nats.Msg) error {
	if d.answer != nil {
		d.answer <- bytes.Clone(m.Data) // which has room for one
		return nil
	}
	return d.intake.NC.PublishMsg(m)
}

// send encodes and publishes the answer to a request, or the reason why it has none. It is one message or an error: an asker
// waits for one.
func (d *directRequest) send(r *pipeline.Request, reason *wire.Error) {
	h := d.intake.headers.Get()
	defer func() { // the connection has its own copy
		h.forget()
		d.intake.headers.Put(h)
	}()
	h.begin(r.Codec())
	h.answering(d.header, r.OnlyID(reason))
	out := &nats.Msg{Subject: d.reply, Header: h.Header}
	if whole := r.OnlyErr(reason); whole != nil {
		setServiceError(out.Header, whole)
	}
	room := int(d.intake.NC.MaxPayload()) - wire.HeaderSize(out.Header)
	answer := r.Answer(reason, room)
	body, size, ok := wire.AppendWhole(r.Memory(answer.RoughSize(wire.Position{}, room)), r.Codec(), answer.Results, room)
	if answer.TooLarge > 0 {
		size, ok = answer.Payloads, false
	}
	answer.Encoded()
	if !ok {
		reason = wire.Errorf(wire.TooLarge, "the answer has at least %d bytes, a message holds %d, and direct search sends "+
			"one: ask for less at a time, or through the stream", size, room)
		setServiceError(out.Header, reason)
		answer = r.Answer(reason, room)
		body, _, _ = wire.AppendWhole(body, r.Codec(), answer.Results, room)
		answer.Encoded()
	}
	out.Data = body
	packed := r.Compressed(body)
	if packed != nil {
		out.Data = packed
		out.Header[wire.HeaderContentType] = []string{r.Codec().Compressed()}
	}
	if !r.Sound() {
		r.Sent(body)
		r.Sent(packed)
		d.Abandon(r)
		return
	}
	encoded := time.Now()
	if err := d.out(out); err != nil {
		d.intake.Log.Warn("a direct answer could not be sent", "reply", d.reply, "error", err)
	}
	r.Sent(body) // the connection has its own copy
	r.Sent(packed)

	d.leave()
	took := time.Since(r.Arrived)
	d.intake.stats.requests.Add(1)
	d.intake.stats.nanoseconds.Add(int64(took))
	if out.Header.Get(wire.HeaderServiceErrorCode) != "" {
		d.intake.stats.errors.Add(1)
	}
	d.intake.Observe.Answered(observe.Answered{Way: metrics.Direct, Request: r, Reason: reason, Encoded: encoded,
		TraceParent: d.header.Get(wire.HeaderTraceParent)})
	r.Done()
}
