package service

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
	"github.com/geniemq/geniemq/producer"
	"github.com/geniemq/geniemq/service/clock"
	"github.com/geniemq/geniemq/service/generation"
	"github.com/geniemq/geniemq/service/identity"
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

// storedIntake takes in the messages that the consumer pulls from the query stream, answers them through the
// producer, and settles them.
//
// A message is settled when its fate is on record, never before: acked when the answer is confirmed; termed when it
// can never be answered otherwise, after the error is confirmed and, for dead letters, after the copy is; and given
// back for another delivery when there is no answer. What is not settled when the process ends is delivered
// again, and then answered with the same message ids, which the result stream stores once.
type storedIntake struct {
	index      string
	class      wire.Class
	stream     string // that it pulls from
	admission  *admissions
	replies    *replies
	served     *generation.Index
	metrics    *metrics.Index
	observe    *observe.Index
	consumer   *consumer.Consumer
	suspects   *suspects.Runner
	publishers *publishers
	maxResult  func() int64 // headers included; another server of a cluster may have another limit
	answers    *storedanswers.Reader
	clock      *clock.Clock
	aborted    context.Context
	log        *slog.Logger

	returned atomic.Bool    // messages were given back unanswered
	settling sync.WaitGroup // settlements that wait for a dead letter
	ended    chan error     // the consumer's Run
}

// stop pulls no more and returns when everything that was pulled is settled, or given back because ctx ended.
func (s *storedIntake) stop(ctx context.Context) error {
	err := s.consumer.Stop(ctx)
	if fault := <-s.ended; err == nil {
		err = fault
	}
	// When ctx ends the pipeline may give up what it has before the consumer counts it. Why a service that failed gave
	// messages back is known already.
	if err == nil && ctx.Err() != nil && s.returned.Load() {
		err = fmt.Errorf("messages were given back unanswered: %w", context.Cause(ctx))
	}
	return err
}

// pending is how many messages of the stream are not answered: not delivered yet, or delivered and not settled.
func (s *storedIntake) pending() int64 {
	stats := s.consumer.Stats()
	return int64(stats.Pending) + int64(stats.AckPending)
}

// fault says why no messages come in, or nil.
func (s *storedIntake) fault(now time.Time) error {
	p := s.consumer.Progress()
	switch {
	case p.Err != nil:
		return fmt.Errorf("no queries can be pulled: %w", p.Err)
	case p.Outstanding == 0 && now.Sub(p.LastPull) > staleAfter:
		return fmt.Errorf("the server has not answered a pull for more than %v", staleAfter)
	}
	return nil
}

// take is called by the consumer for each message. It blocks while the pipeline has no room.
func (s *storedIntake) take(ctx context.Context, m *consumer.Message) {
	o := &stored{intake: s, message: m, user: s.admission.user(m.User, m.Header)}
	o.reply, o.badReply = s.replies.of(&m.Stored)
	if o.suspect() {
		s.suspects.Add(o)
		return
	}
	pipe, r := o.request()
	pipe.Give(ctx, r) // else the consumer gives it back
}

// stored is the origin of a request from the query stream.
type stored struct {
	intake   *storedIntake
	message  *consumer.Message
	reply    string
	badReply *wire.Error
	user     string // of whom account is kept
	refused  bool
	alone    *suspects.Run // of a suspect, while it is run and afterwards
}

// request makes the request that a pipeline answers.
func (o *stored) request() (*pipeline.Pipeline, *pipeline.Request) {
	m := messageOf(o.message.Header, o.message.Body, o.intake.clock.Local(o.message.Timestamp))
	m.Class, m.User = o.intake.class, o.user
	return o.intake.served.Request(o, m)
}

// resultID identifies the answer.
func (o *stored) resultID() string {
	return identity.Result(o.intake.stream, &o.message.Stored)
}

// suspect says that the message may have brought workers down and is to run alone.
func (o *stored) suspect() bool { return o.message.Delivered > suspectAfter }

// Admit refuses what cannot be answered, and what is more than its user may ask now: in a stream it would keep others waiting. Bulk waits for its rate, see
// pipeline.
func (o *stored) Admit(queries int) *wire.Error {
	if o.badReply != nil || o.intake.class == wire.ClassBulk {
		return o.badReply
	}
	return o.intake.admission.spend(o.user, queries)
}

func (o *stored) Leave(int) {}

// Refuse answers a message that will never be anything else than wrong, and removes it.
func (o *stored) Refuse(r *pipeline.Request, reason *wire.Error) {
	o.refused = true
	if o.badReply != nil {
		o.deliver(r, reason, func() { o.bury(metrics.DeadReply, o.badReply.Message) })
		return
	}
	o.deliver(r, reason, func() { o.settled(o.message.Term(reason.Error())) })
}

// Respond answers a message, unless the engine failed on it: then it is given back, until it has been delivered often
// enough to be sure that it is to blame. It ran alone in any case.
func (o *stored) Respond(r *pipeline.Request) {
	failure, excused := r.Failure()
	if failure != nil {
		log := o.intake.log.With("sequence", o.message.Sequence, "delivered", o.message.Delivered, "error", failure)
		if !o.suspect() || excused {
			log.Error("the engine failed on a message, trying it again")
			r.Done()
			o.giveBack(min(time.Duration(o.message.Delivered), maxFailureDelays) * failureDelay)
			return
		}
		log.Error("the engine failed on a message again, giving it up")
	}
	if failure != nil {
		o.deliver(r, nil, func() { o.bury(metrics.DeadFailed, failure.Error()) })
		return
	}
	o.deliver(r, nil, func() { o.settled(o.message.Ack()) })
}

func (o *stored) Abandon(r *pipeline.Request) {
	delay := r.GiveBackDelay()
	r.Done()
	o.giveUp(delay)
}

// giveUp gives back a message that is not answered.
func (o *stored) giveUp(delay time.Duration) {
	o.intake.returned.Store(true)
	o.giveBack(delay)
}

// giveBack has the message delivered again after a delay.
func (o *stored) giveBack(delay time.Duration) {
	o.alone.Then(func() { o.settled(o.message.Nak(delay)) })
}

func (o *stored) Index() string { return o.intake.index }

func (o *stored) Delivery() *consumer.Message { return o.message }

func (o *stored) Aborted() context.Context { return o.intake.aborted }

func (o *stored) RunAlone(run *suspects.Run) (lost bool) {
	o.alone = run
	pipe, r := o.request()
	return pipe.RunAlone(r, run)
}

func (o *stored) GiveUp() { o.giveUp(0) }

// Lost gives up a message of which workers were lost that ran it alone.
func (o *stored) Lost(run *suspects.Run, runs int) {
	o.alone, o.refused = run, true
	_, r := o.request()
	reason := wire.Errorf(wire.Internal, "workers were lost that ran this message; it is with the dead letters")
	detail := fmt.Sprintf("%d runs were begun, alone, and no worker lived to end one", runs)
	o.deliver(r, reason, func() { o.bury(metrics.DeadLost, detail) })
}

// bury copies the message to the dead letters and terms it, which takes the server's word and so is not done on the
// producer's time.
func (o *stored) bury(reason, detail string) {
	o.intake.settling.Go(func() {
		err := o.message.Dead(o.intake.aborted, reason, detail)
		if err == nil {
			o.intake.metrics.Dead(reason)
		}
		o.settled(err)
		if err == nil && o.alone != nil {
			o.alone.Forget() // only now: it is what keeps the message from being run
		}
	})
}

// settled takes note of how a settlement went. One that failed is no loss: the message comes again.
func (o *stored) settled(err error) {
	if err != nil && !errors.Is(err, consumer.ErrSettled) && !errors.Is(err, consumer.ErrGone) {
		o.intake.log.Warn("a message could not be settled and will come again", "sequence", o.message.Sequence, "error", err)
	}
}

// unpublished deals with an answer that will never be out.
func (o *stored) unpublished(r *pipeline.Request, err error) {
	s := o.intake
	if r.Aborted().Err() != nil || errors.Is(err, producer.ErrClosed) || errors.Is(err, nats.ErrConnectionClosed) {
		o.Abandon(r) // it is this process that ends, not the message
		return
	}
	log := s.log.With("sequence", o.message.Sequence, "reply", o.reply, "error", err)
	var size *producer.TooLargeError
	var reason *wire.Error
	switch tooLarge := errors.As(err, &size); {
	case tooLarge && !o.refused:
		reason = wire.Errorf(wire.TooLarge, "the answer cannot be stored: %v", err)
	case !tooLarge && o.reply != s.replies.standard(&o.message.Stored):
		// The sender asked for a subject that does not work. That is told where results go that name none.
		o.badReply = wire.Errorf(wire.BadRequest, "the answer cannot be sent to the reply subject %q: %v", o.reply, err)
		o.reply, reason = s.replies.standard(&o.message.Stored), o.badReply
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
