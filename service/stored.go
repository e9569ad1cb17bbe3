package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/producer"
	"github.com/geniemq/geniemq/wire"
)

const (
	// suspectAfter is how many deliveries a message may have had before it is run alone.
	suspectAfter = 3
	// failureDelay is after how long a message is delivered again on which the engine failed, times its deliveries,
	// up to maxFailureDelays.
	failureDelay     = time.Second
	maxFailureDelays = 10
	// brokenDelay is the same for an answer that cannot be published at all.
	brokenDelay = 10 * time.Second
)

// Reasons of dead letters.
const (
	deadReply  = "bad_reply"     // the reply subject is malformed or forbidden
	deadFailed = "engine_failed" // the engine fails on it although it runs alone
)

// storedIntake takes in the messages that the consumer pulls from the query stream, answers them through the
// producer, and settles them.
//
// A message is settled when its fate is on record, never before: acked when the answer is confirmed; termed when it
// can never be answered otherwise, after the error is confirmed and, for dead letters, after the copy is; and given
// back for another delivery when there is no answer. What is not settled when the process ends is delivered
// again, and then answered with the same message ids, which the result stream stores once.
type storedIntake struct {
	pipe       *pipeline
	consumer   *consumer.Consumer
	publishers *publishers
	subjects   wire.Subjects
	allow      []string     // reply subjects
	maxResult  func() int64 // headers included; another server of a cluster may have another limit
	clock      *clock
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
	o := &stored{intake: s, message: m, reply: s.subjects.Result(s.pipe.name)}
	if reply := m.Header.Get(wire.HeaderReply); reply != "" {
		if err := wire.ValidateReplySubject(reply, s.allow); err != nil {
			o.badReply = asWireError(err)
		} else {
			o.reply = reply
		}
	}
	r := &request{origin: o, arrived: s.clock.local(m.Timestamp), header: m.Header, body: m.Body}
	s.pipe.enter()
	select {
	case s.pipe.stored.in <- r:
	case <-ctx.Done(): // the consumer gives it back
		s.pipe.pass()
	}
}

// stored is the origin of a request from the query stream.
type stored struct {
	intake   *storedIntake
	message  *consumer.Message
	reply    string
	badReply *wire.Error
	refused  bool
}

func (o *stored) suspect() bool { return o.message.Delivered > suspectAfter }

func (o *stored) admit(int) *wire.Error { return o.badReply }

func (o *stored) leave(int) {}

// refuse answers a message that will never be anything else than wrong, and removes it.
func (o *stored) refuse(r *request, reason *wire.Error) {
	o.refused = true
	answer := o.intake.pipe.encoder.refused(reason)
	if o.badReply != nil {
		o.publish(r, answer, func() { o.bury(deadReply, o.badReply.Message) })
		return
	}
	o.publish(r, answer, func() { o.settled(o.message.Term(reason.Error())) })
}

// respond answers a message, unless the engine failed on it: then it is given back, until it has been delivered often
// enough to be sure that it is to blame. It ran alone in any case.
func (o *stored) respond(r *request) {
	failure, excused := r.failure()
	if failure != nil {
		log := o.intake.log.With("sequence", o.message.Sequence, "delivered", o.message.Delivered, "error", failure)
		if !o.suspect() || excused {
			log.Error("the engine failed on a message, trying it again")
			o.settled(o.message.Nak(min(time.Duration(o.message.Delivered), maxFailureDelays) * failureDelay))
			return
		}
		log.Error("the engine failed on a message again, giving it up")
	}
	o.intake.pipe.memory.answer(r)
	answer := o.intake.pipe.encoder.answer(r, time.Now())
	if failure != nil {
		o.publish(r, answer, func() { o.bury(deadFailed, failure.Error()) })
		return
	}
	o.publish(r, answer, func() { o.settled(o.message.Ack()) })
}

func (o *stored) abandon(*request) {
	o.intake.returned.Store(true)
	o.settled(o.message.Nak(0))
}

// bury copies the message to the dead letters and terms it, which takes the server's word and so is not done on the
// producer's time.
func (o *stored) bury(reason, detail string) {
	o.intake.settling.Go(func() {
		err := o.message.Dead(o.intake.pipe.aborted, reason, detail)
		if err == nil {
			o.intake.pipe.metrics.dead.WithLabelValues(reason).Inc()
		}
		o.settled(err)
	})
}

// settled takes note of how a settlement went. One that failed is no loss: the message comes again.
func (o *stored) settled(err error) {
	if err != nil && !errors.Is(err, consumer.ErrSettled) && !errors.Is(err, consumer.ErrGone) {
		o.intake.log.Warn("a message could not be settled and will come again", "sequence", o.message.Sequence, "error", err)
	}
}

// publish sends an answer, in as many messages as it needs, and calls then when all of them are confirmed. It blocks
// while the producer has no room.
func (o *stored) publish(r *request, answer *wire.Answer, then func()) {
	s := o.intake
	header := func() nats.Header {
		return resultHeader(o.message.Header, o.message.Sequence, r.codec, answer)
	}
	id := resultID(s.pipe.name, o.message.Header, o.message.StreamCreated, o.message.Sequence)
	sample := header()
	sample[wire.HeaderMsgID] = []string{partID(id, len(answer.Results))}
	room := int(s.maxResult()) - wire.HeaderSize(sample) - wire.PartHeaderSize
	parts := wire.SplitAnswerInto(r.codec, answer, room, s.pipe.memory.body)
	s.pipe.memory.encoded(r, answer)

	c := &confirmation{origin: o, request: r, answer: answer, parts: parts, then: then, encoded: time.Now()}
	c.open.Store(int64(len(parts)))
	for i := range parts {
		c.tooLarge += parts[i].TooLarge
	}
	out := s.publishers.next()
	for i, part := range parts {
		h := header()
		if len(parts) > 1 {
			h[wire.HeaderPart] = []string{strconv.Itoa(i + 1)}
			h[wire.HeaderParts] = []string{strconv.Itoa(len(parts))}
		}
		out.Publish(s.pipe.aborted, producer.Outgoing{
			Subject: o.reply,
			MsgID:   partID(id, i+1),
			Header:  h,
			Body:    part.Body,
		}, c.done)
	}
}

// confirmation waits for the parts of an answer.
type confirmation struct {
	origin   *stored
	request  *request
	answer   *wire.Answer
	parts    []wire.Part
	tooLarge int // results that did not fit and went out as errors
	then     func()
	encoded  time.Time
	open     atomic.Int64
	failed   atomic.Pointer[error]
}

// done is called by the producer for each part.
func (c *confirmation) done(err error) {
	if err != nil {
		c.failed.Store(&err)
	}
	if c.open.Add(-1) > 0 {
		return
	}
	memory := &c.origin.intake.pipe.memory
	for i := range c.parts {
		memory.sent(c.parts[i].Body)
	}
	if err := c.failed.Load(); err != nil {
		c.origin.unpublished(c.request, *err)
		return
	}
	now := time.Now()
	c.origin.intake.pipe.metrics.observe(c.request, c.answer, c.tooLarge, now.Sub(c.encoded), now.Sub(c.request.arrived))
	memory.release(c.request)
	c.then()
}

// unpublished deals with an answer that will never be out.
func (o *stored) unpublished(r *request, err error) {
	s := o.intake
	if s.pipe.aborted.Err() != nil || errors.Is(err, producer.ErrClosed) || errors.Is(err, nats.ErrConnectionClosed) {
		o.abandon(r) // it is this process that ends, not the message
		return
	}
	log := s.log.With("sequence", o.message.Sequence, "reply", o.reply, "error", err)
	var size *producer.TooLargeError
	standard := s.subjects.Result(s.pipe.name)
	var reason *wire.Error
	switch tooLarge := errors.As(err, &size); {
	case tooLarge && !o.refused:
		reason = wire.Errorf(wire.TooLarge, "the answer cannot be stored: %v", err)
	case !tooLarge && o.reply != standard:
		// The sender asked for a subject that does not work. That is told where results go that name none.
		o.badReply = wire.Errorf(wire.BadRequest, "the answer cannot be sent to the reply subject %q: %v", o.reply, err)
		o.reply, reason = standard, o.badReply
	default:
		log.Error("an answer cannot be published, the query will come again")
		o.settled(o.message.Nak(brokenDelay))
		return
	}
	log.Warn("an answer cannot be published, an error is sent instead")
	s.settling.Go(func() { o.refuse(r, reason) }) // publishing may block
}
