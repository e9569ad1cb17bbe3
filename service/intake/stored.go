// Package intake is where messages come into a worker and answers go out of it: stored ones, which are settled when their answers are confirmed, and
// requests, which are answered at once.
package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/internal/pool"
	"github.com/geniemq/geniemq/producer"
	"github.com/geniemq/geniemq/service/clock"
	"github.com/geniemq/geniemq/service/fetch"
	"github.com/geniemq/geniemq/service/generation"
	"github.com/geniemq/geniemq/service/identity"
	"github.com/geniemq/geniemq/service/memory"
	"github.com/geniemq/geniemq/service/metrics"
	"github.com/geniemq/geniemq/service/observe"
	"github.com/geniemq/geniemq/service/pipeline"
	"github.com/geniemq/geniemq/service/storedanswers"
	"github.com/geniemq/geniemq/service/suspects"
	"github.com/geniemq/geniemq/wire"
)

const (
	// suspectAfter is how many deliveries a message may have had before it is run alone.
	suspectAfter = 3
	// failureDelay is after how long a message is delivered again on which the engine failed, times its deliveries,
	// up to maxFailureDelays.
	failureDelay     = time.Second
	maxFailureDelays = 10
	// staleAfter is after how long without an answer to a pull the server counts as gone.
	staleAfter = 30 * time.Second
	// brokenDelay is the same for an answer that cannot be published at all.
	brokenDelay = 10 * time.Second
)

// Stored takes in the messages that the consumer pulls from the query stream, answers them through the
// producer, and settles them.
//
// A message is settled when its fate is on record, never before: acked when the answer is confirmed; termed when it
// can never be answered otherwise, after the error is confirmed and, for dead letters, after the copy is; and given
// back for another delivery when there is no answer. What is not settled when the process ends is delivered
// again, and then answered with the same message ids, which the result stream stores once.
type Stored struct {
	Index      string
	Class      wire.Class
	Stream     string // that it pulls from
	Admission  *Admissions
	Replies    *Replies
	Allow      []string // patterns of subjects that answers may go to, but for users'
	Served     *generation.Index
	Metrics    *metrics.Index
	Observe    *observe.Index
	Consumer   *consumer.Consumer
	Suspects   *suspects.Runner
	Publishers *Publishers
	Bodies     *fetch.Fetcher // of queries that are too large for a message
	BodyMemory memory.Holder  // for these
	MaxResult  func() int64   // headers included; another server of a cluster may have another limit
	Answers    *storedanswers.Reader
	Clock      *clock.Clock
	Aborted    context.Context
	Log        *slog.Logger
	// Since is when it began to pull, if it is to count as answered from the start: a worker that serves others stays ready. The zero value: the first
	// answer is waited for.
	Since time.Time

	ended    chan struct{} // closed when the consumer's Run has returned, with failed; nil before Pull
	failed   error
	returned atomic.Bool // messages were given back unanswered
	settling settlements // that wait for a dead letter, or for the producer
	headers  pool.Of[headers]

	gate   sync.RWMutex // held for reading while a suspect is run or given up, and while a fetched message goes into the pipeline
	closed bool         // none of them does any more
}

// Pull begins to pull. It is called once.
func (s *Stored) Pull() {
	s.ended = make(chan struct{})
	go func() {
		defer close(s.ended)
		s.failed = s.Consumer.Run(context.Background())
	}()
}

// Stop pulls no more and returns when everything that was pulled is settled, or given back because ctx ended.
func (s *Stored) Stop(ctx context.Context) error {
	if s.ended == nil {
		return nil
	}
	err := s.Consumer.Stop(ctx)
	<-s.ended
	if err == nil {
		err = s.failed
	}
	// When ctx ends the pipeline may give up what it has before the consumer counts it. Why a service that failed gave
	// messages back is known already.
	if err == nil && ctx.Err() != nil && s.returned.Load() {
		err = fmt.Errorf("messages were given back unanswered: %w", context.Cause(ctx))
	}
	return err
}

// Close has no suspect run and nothing that was fetched go on any more: they are given back when their turn comes. It returns when none is on its way. The
// intake was stopped.
func (s *Stored) Close() {
	s.gate.Lock()
	s.closed = true
	s.gate.Unlock()
}

// Settle returns when no settlement waits for a dead letter.
func (s *Stored) Settle() { s.settling.Wait() }

// Pending is how many messages of the stream are not answered: not delivered yet, or delivered and not settled.
func (s *Stored) Pending() int64 {
	stats := s.Consumer.Stats()
	return int64(stats.Pending) + int64(stats.AckPending)
}

// Fault says why no messages come in, or nil.
func (s *Stored) Fault(now time.Time) error {
	p := s.Consumer.Progress()
	switch {
	case p.Err != nil:
		return fmt.Errorf("no queries can be pulled: %w", p.Err)
	case p.Outstanding == 0 && now.Sub(p.LastPull) > staleAfter && now.Sub(s.Since) > staleAfter:
		return fmt.Errorf("the server has not answered a pull for more than %v", staleAfter)
	}
	return nil
}

// Take is called by the consumer for each message. It blocks while the pipeline has no room.
func (s *Stored) Take(ctx context.Context, m *consumer.Message) {
	o := &storedMessage{intake: s, message: m, user: s.Admission.user(m.User, m.Header)}
	o.reply, o.badReply = s.Replies.of(&m.Stored, s.Allow)
	if fetch.Needed(&m.Stored) {
		s.large(o)
		return
	}
	s.enter(ctx, o) // else the consumer gives it back
}

// enter puts a message into the pipeline, or to those that run alone. It is false when ctx ends before there was room.
func (s *Stored) enter(ctx context.Context, o *storedMessage) bool {
	if o.suspect() {
		s.Suspects.Add(o)
		return true
	}
	pipe, r := o.request()
	return pipe.Give(ctx, r)
}

// storedMessage is the origin of a request from the query stream.
type storedMessage struct {
	intake   *Stored
	message  *consumer.Message
	reply    string
	badReply *wire.Error
	user     string // of whom account is kept
	refused  bool
	body     *fetch.Body   // that was fetched; nil where the message has its own
	wrong    bool          // its object is not what the message says
	alone    *suspects.Run // of a suspect, while it is run and afterwards
}

// request makes the request that a pipeline answers.
func (o *storedMessage) request() (*pipeline.Pipeline, *pipeline.Request) {
	m := messageOf(o.message.Header, o.message.Body, o.intake.Clock.Local(o.message.Timestamp))
	m.Class, m.User = o.intake.Class, o.user
	if o.body != nil {
		m.Body = o.body.Bytes
	}
	return o.intake.Served.Request(o, m)
}

// resultID identifies the answer.
func (o *storedMessage) resultID() string {
	return identity.Result(o.intake.Stream, &o.message.Stored)
}

// suspect says that the message may have brought workers down and is to run alone.
func (o *storedMessage) suspect() bool { return o.message.Delivered > suspectAfter }

// Admit refuses what cannot be answered, and what is more than its user may ask now: in a stream it would keep others waiting. Bulk waits for its rate, see
// pipeline.
func (o *storedMessage) Admit(queries int) *wire.Error {
	if o.badReply != nil || o.intake.Class == wire.ClassBulk {
		return o.badReply
	}
	return o.intake.Admission.spend(o.user, queries)
}

func (o *storedMessage) Leave(int) {}

// Refuse answers a message that will never be anything else than wrong, and removes it.
func (o *storedMessage) Refuse(r *pipeline.Request, reason *wire.Error) {
	o.refused = true
	if o.badReply != nil {
		o.deliver(r, reason, func() { o.bury(metrics.DeadReply, o.badReply.Message) })
		return
	}
	if o.wrong {
		o.deliver(r, reason, func() { o.bury(metrics.DeadObject, reason.Message) })
		return
	}
	o.deliver(r, reason, func() {
		o.gone(func() error { return o.message.Term(reason.Error()) }, func(ctx context.Context) error { return o.message.TermSync(ctx, reason.Error()) })
	})
}

// Respond answers a message, unless the engine failed on it: then it is given back, until it has been delivered often
// enough to be sure that it is to blame. It ran alone in any case.
func (o *storedMessage) Respond(r *pipeline.Request) {
	failure, excused := r.Failure()
	if failure != nil {
		log := o.intake.Log.With("sequence", o.message.Sequence, "delivered", o.message.Delivered, "error", failure)
		if !o.suspect() || excused {
			log.Error("the engine failed on a message, trying it again")
			r.Done()
			o.giveBack(min(time.Duration(o.message.Delivered), maxFailureDelays) * failureDelay)
			return
		}
		log.Error("the engine failed on a message again, giving it up")
		o.deliver(r, nil, func() { o.bury(metrics.DeadFailed, failure.Error()) })
		return
	}
	o.deliver(r, nil, func() { o.gone(o.message.Ack, o.message.AckSync) })
}

func (o *storedMessage) Abandon(r *pipeline.Request) {
	delay := r.GiveBackDelay()
	r.Done()
	o.giveUp(delay)
}

// giveUp gives back a message that is not answered.
func (o *storedMessage) giveUp(delay time.Duration) {
	o.intake.returned.Store(true)
	o.giveBack(delay)
}

// giveBack has the message delivered again after a delay.
func (o *storedMessage) giveBack(delay time.Duration) {
	o.alone.Then(func() { o.settled(o.message.Nak(delay)) })
}

func (o *storedMessage) Index() string { return o.intake.Index }

func (o *storedMessage) Delivery() *consumer.Message { return o.message }

func (o *storedMessage) Aborted() context.Context { return o.intake.Aborted }

func (o *storedMessage) RunAlone(run *suspects.Run) (lost bool) {
	o.intake.gate.RLock()
	defer o.intake.gate.RUnlock()
	if o.intake.closed {
		o.GiveUp()
		return false
	}
	o.alone = run
	pipe, r := o.request()
	return pipe.RunAlone(r, run)
}

func (o *storedMessage) GiveUp() { o.giveUp(0) }

// Lost gives up a message of which workers were lost that ran it alone.
func (o *storedMessage) Lost(run *suspects.Run, runs int) {
	o.intake.gate.RLock()
	defer o.intake.gate.RUnlock()
	if o.intake.closed {
		o.GiveUp()
		return
	}
	o.alone, o.refused = run, true
	_, r := o.request()
	reason := wire.Errorf(wire.Internal, "workers were lost that ran this message; it is with the dead letters")
	detail := fmt.Sprintf("%d runs were begun, alone, and no worker lived to end one", runs)
	o.deliver(r, reason, func() { o.bury(metrics.DeadLost, detail) })
}

// bury copies the message to the dead letters and terms it, which takes the server's word and so is not done on the
// producer's time.
func (o *storedMessage) bury(reason, detail string) {
	o.intake.settling.Go(func() {
		err := o.message.Dead(o.intake.Aborted, reason, detail)
		if err == nil {
			o.intake.Metrics.Dead(reason)
		}
		o.settled(err)
		if err == nil && o.alone != nil {
			o.alone.Forget() // only now: it is what keeps the message from being run
		}
	})
}

// gone settles a message for good. The object with its body, if it has one, is removed when the server has confirmed that, never before: until then the
// message may come again.
func (o *storedMessage) gone(settle func() error, confirmed func(context.Context) error) {
	if o.body == nil {
		o.settled(settle())
		return
	}
	o.intake.settling.Go(func() {
		err := confirmed(o.intake.Aborted)
		o.settled(err)
		if err == nil {
			o.body.Remove()
		}
	})
}

// settled takes note of how a settlement went. One that failed is no loss: the message comes again.
func (o *storedMessage) settled(err error) {
	o.body.Release()
	if err != nil && !errors.Is(err, consumer.ErrSettled) && !errors.Is(err, consumer.ErrGone) {
		o.intake.Log.Warn("a message could not be settled and will come again", "sequence", o.message.Sequence, "error", err)
	}
}

// unpublished deals with an answer that will never be out.
func (o *storedMessage) unpublished(r *pipeline.Request, err error) {
	s := o.intake
	if r.Aborted().Err() != nil || errors.Is(err, producer.ErrClosed) || errors.Is(err, nats.ErrConnectionClosed) {
		o.Abandon(r) // it is this process that ends, not the message
		return
	}
	log := s.Log.With("sequence", o.message.Sequence, "reply", o.reply, "error", err)
	var size *producer.TooLargeError
	var reason *wire.Error
	switch tooLarge := errors.As(err, &size); {
	case tooLarge && !o.refused:
		reason = wire.Errorf(wire.TooLarge, "the answer cannot be stored: %v", err)
	case !tooLarge && o.reply != s.Replies.standard(&o.message.Stored):
		// The sender asked for a subject that does not work. That is told where results go that name none.
		o.badReply = wire.Errorf(wire.BadRequest, "the answer cannot be sent to the reply subject %q: %v", o.reply, err)
		o.reply, reason = s.Replies.standard(&o.message.Stored), o.badReply
	default:
		log.Error("an answer cannot be published, the query will come again")
		r.Done()
		o.giveBack(brokenDelay)
		return
	}
	log.Warn("an answer cannot be published, an error is sent instead")
	o.alone.Then(func() {
		s.settling.Go(func() { o.Refuse(r, reason) }) // publishing may block
	})
}
