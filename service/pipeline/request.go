package pipeline

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/service/translate"
	"github.com/geniemq/geniemq/wire"
)

// Request is one message, stored or direct, on its way through a pipeline. It is made by whoever took the message in, and from then on has one owner at a time:
//
//	intake ──► decoder ──► dispatcher ──► executors ──► responder
//
// with two exceptions. Several decoders may decode the queries of one message (see share), each into tasks of its own; the one that was given the request stays
// its owner and waits for all of them. And its tasks may be spread over several batches, so several executors may hold some of them at once. Each executor
// writes only to the tasks it holds and then counts them off; the one whose count reaches zero is the new owner and hands the request on. Nothing else is
// shared, so nothing is locked.
//
// The request never owns the message itself: that is its origin's, which answers and settles it. This way the acknowledgement travels with the payload and no
// stage knows what it looks like.
type Request struct {
	Message  // without its Body, once that is decoded
	pipeline *Pipeline
	origin   Origin

	alone bool        // it is run while nothing else is
	probe bool        // the service asks itself
	epoch store.Epoch // of the index when decoding began; 0: nothing of it was read

	outside atomic.Bool // it is made and not in the pipeline yet
	settled atomic.Bool // it is answered, refused or given back: see Done

	lane    *lane
	codec   wire.ContentType // of the message and so of its answer
	batch   bool             // {"queries":[...]}, answered by {"results":[...]}
	tasks   []task           // one per query, in the message's order
	queries int              // how many of them are to be run
	next    int              // tasks before this one are in batches, or are not to be run

	open      atomic.Int64 // tasks to be run that are not done
	abandoned atomic.Bool  // the engine did not get to run all of them

	turn *turn       // where queries of it wait for turns; of turns
	held atomic.Bool // it is counted with those that wait for turns

	memory     *requestMemory // of the tasks, until it is answered
	conditions int            // that the memory has room for
	reserved   int64          // of the lane's memory
}

// task is one query of a request. With its Err it is not run, or its answer is that.
type task struct {
	translate.Query
	request *Request
	cost    int64         // of the plan, as the engine counts
	formula time.Duration // of comparing texts (workEstimates); 0: none are
	expires time.Time     // zero: never

	spent   time.Duration // on comparing texts, so far
	failure error         // the engine failed on it although it ran alone
	excused bool          // but it fails on other queries too, so that this one may not be to blame
}

// Message is what a pipeline is told of a message. What else there is to it is its origin's.
type Message struct {
	// Arrived is the time from which timeouts and total times count: when the stream stored the message (see clock), or when a
	// direct one came in.
	Arrived time.Time
	// ID is that of its only query when the body gives none, and of the message that is refused as a whole.
	ID string
	// ContentType and Protocol are its headers of these names, "" where it has none.
	ContentType, Protocol string
	// Accept is what its sender can read of an answer.
	Accept wire.Accept
	// Class and User are whose queries they are. Default: wire.ClassQuery, of nobody in particular.
	Class wire.Class
	User  string
	// Body is the pipeline's until it is decoded.
	Body []byte
}

// NewRequest makes a request of a message, which is then given to Give, Offer or RunAlone, or is refused. The pipeline does not end
// before it is Done.
func (p *Pipeline) NewRequest(o Origin, m Message) *Request {
	p.requests.Add(1)
	p.outside.Add(1)
	r := &Request{pipeline: p, origin: o, Message: m}
	r.codec, _, _ = wire.ParseBodyType(m.ContentType) // what is wrong with it is told when it is decoded
	r.outside.Store(true)
	return r
}

// entered says that it needs the pipeline's entries no longer: it is in, or will not be.
func (r *Request) entered() {
	if r.outside.CompareAndSwap(true, false) {
		r.pipeline.outside.Done()
	}
}

// Done gives back what a request holds. It is called once the request is answered, refused or given back, and nothing of the index
// or of the pipeline is used for it afterwards.
func (r *Request) Done() {
	if !r.settled.CompareAndSwap(false, true) {
		return
	}
	r.entered()
	p := r.pipeline
	p.memory.release(r)
	if r.reserved > 0 {
		r.lane.memory.Give(r.reserved)
		r.reserved = 0
	}
	p.requests.Done()
}

// Memory is for an answer of so many bytes, and Sent takes it back.
func (r *Request) Memory(size int) []byte { return r.pipeline.memory.bodies.Make(size) }
func (r *Request) Sent(body []byte)       { r.pipeline.memory.bodies.Keep(body) }

// Index is the index's name, and Version that of what the request is searched in.
func (r *Request) Index() string   { return r.pipeline.translator.Name }
func (r *Request) Version() string { return r.pipeline.translator.Version }

// Codec is that of the message and so of its answer.
func (r *Request) Codec() wire.ContentType { return r.codec }

// Aborted is the context that ends when the pipeline gives up what it has.
func (r *Request) Aborted() context.Context { return r.pipeline.aborted }

// GiveBackDelay is after how long a message should be delivered again that is abandoned.
func (r *Request) GiveBackDelay() time.Duration {
	if r.pipeline.InDoubt() {
		return doubtDelay
	}
	return 0
}

// Sharing calls work, in turn with the others who share the process, unless the request runs alone: see exclusion.
func (r *Request) Sharing(work func()) {
	if lock := r.pipeline.options.Exclusion; !r.alone {
		lock.Share()
		defer lock.Done()
	}
	work()
}

// OnlyID is the id that the answer as a whole has: that of a single query, or of a message that is refused for a reason; "" for
// a batch.
func (r *Request) OnlyID(reason *wire.Error) string {
	switch {
	case len(r.tasks) == 1 && !r.batch:
		return r.tasks[0].ID
	case reason != nil:
		return r.ID
	}
	return ""
}

// Outcome is what became of a query, for those who count.
type Outcome struct {
	Err *wire.Error // it is answered with
	Ran bool        // it came to the engine, else there are no times
	// Queue is until it was decoded and put in front of the batcher, Batch until an executor had its batch. Engine is of its
	// batches, and Verify the part of comparing texts.
	Queue, Batch, Engine, Verify time.Duration
}

// Answer begins the answer to a request, or the one that tells the reason why there is none. most is how many bytes a message of
// it may have. The caller calls its Encoded then.
func (r *Request) Answer(reason *wire.Error, most int) *translate.Answer {
	return r.pipeline.translator.Answer(translate.Message{
		ID: r.OnlyID(reason), Codec: r.codec, Batch: r.batch, Parts: r.Accept.Parts, Arrived: r.Arrived, Reason: reason, Engine: r.pipeline.form,
		Len: len(r.tasks), Query: func(i int) *translate.Query { return &r.tasks[i].Query },
	}, most)
}

// Len is how many queries the message has, 0 when it could not be decoded.
func (r *Request) Len() int { return len(r.tasks) }

// Outcome is what became of the i-th query.
func (r *Request) Outcome(i int) Outcome {
	t := &r.tasks[i]
	o := Outcome{Err: t.Err, Ran: !t.Started.IsZero()}
	if o.Ran {
		o.Queue, o.Batch = max(0, t.Queued.Sub(r.Arrived)), t.Started.Sub(t.Queued)
		o.Engine, o.Verify = t.Engine, t.Answer.Rescoring
	}
	return o
}

// OnlyErr is the error that the answer as a whole is: the reason why the message is refused, or that of its only query.
func (r *Request) OnlyErr(reason *wire.Error) *wire.Error {
	if reason == nil && len(r.tasks) == 1 && !r.batch {
		return r.tasks[0].Err
	}
	return reason
}

// Failure is the failure of a task of a request that is done, one that is to blame if there is any.
func (r *Request) Failure() (err error, excused bool) {
	for i := range r.tasks {
		if t := &r.tasks[i]; t.failure != nil && (err == nil || !t.excused) {
			err, excused = t.failure, t.excused
		}
	}
	return err, excused
}

// respond is the last stage of a request that does not run alone.
func (r *Request) respond() {
	p := r.pipeline
	if r.lane == &p.direct {
		r.Reading(func() { r.Sharing(r.answer) })
		return
	}
	r.Reading(r.answer)
	p.answered(r) // its queries count as answered when the producer has taken the answer
}

// answer lets the origin answer a request of which nothing is left to be run.
func (r *Request) answer() {
	if r.abandoned.Load() {
		r.origin.Abandon(r)
		return
	}
	r.origin.Respond(r)
}

// Origin is where a message came from and where its answer goes. It owns the message. Admit is called once, then
// exactly one of Refuse, Respond and Abandon, once.
type Origin interface {
	// Admit asks whether the queries of the message may join the queue; with 0, none wants to.
	Admit(queries int) *wire.Error
	// Leave tells that some of them left the queue for the engine.
	Leave(queries int)
	// Refuse answers a message that is wrong as a whole.
	Refuse(r *Request, reason *wire.Error)
	// Respond answers with the outcome of the tasks.
	Respond(r *Request)
	// Abandon gives the message back without an answer, for another worker or a later attempt.
	Abandon(r *Request)
}

// begin takes notice that a task is not waiting to be begun any longer.
func (t *task) begin(now time.Time) {
	if t.Started.IsZero() {
		t.Started = now
		t.request.origin.Leave(1)
	}
}

// fail says that the engine failed on a task.
func (t *task) fail(err error) {
	t.failure = err
	t.Err = wire.Errorf(wire.Internal, "the engine failed on this query; the log of the service says how")
}

// complete counts a task off and hands its request on when it was the last.
func (p *Pipeline) complete(t *task) {
	if r := t.request; r.lane.backlog > 0 && r.User != "" {
		p.options.Quotas.Leave(r.User, 1)
	}
	t.Plan, t.Match = gpuexec.Plan{}, postings.MatchQuery{} // their memory is not needed any longer
	if r := t.request; r.open.Add(-1) == 0 && !r.alone {    // whoever runs one alone answers it
		r.lane.responders.Put(r)
	}
}

// abandon gives tasks up, and with them their requests.
func (p *Pipeline) abandon(tasks []*task) {
	for _, t := range tasks {
		t.request.abandoned.Store(true)
		p.complete(t)
	}
}
