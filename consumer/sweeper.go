package consumer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/consumer/streams"
	"github.com/geniemq/geniemq/internal/bell"
	"github.com/geniemq/geniemq/wire"
)

// SweeperOptions of a Sweeper. All are required.
type SweeperOptions struct {
	// Subjects name the stream and the durables.
	Subjects wire.Subjects
	// Class says which of the streams is swept.
	Class wire.Class
	// Now is the time by the server's clock, which stamps messages.
	Now func() time.Time
	// Answer tells the sender of a message that no one serves its index, and returns when that is confirmed. An
	// error leaves the message for the next sweep; one that cannot ever be answered should be given up with nil. Several workers may answer the same message at once: the
	// answer needs the message id that any answer to this message would have.
	Answer func(context.Context, *Stored) error
	// Alive says whether a worker serves an index that has no durable at this moment: one whose stream was deleted, and whose servers are too few to
	// make another. Its messages wait.
	Alive func(ctx context.Context, index string) (bool, error)
	// OnSweep is called after each sweep with what was swept and what went wrong.
	OnSweep func(swept int, err error)
}

// Sweeper answers and removes messages that nobody will ever consume. The broker acknowledges a query for an index
// that nobody serves like any other and keeps it for ever, which to its sender looks like a slow answer.
//
// What has a durable is left alone, also while no worker pulls from it: workers that are started anew, or whose index was removed and is to be added again,
// answer what came meanwhile. Whoever wants it swept deletes the durable.
//
// Each worker runs one; they need not know of each other. A message is answered, copied to the dead letters, then
// deleted, in this order, and each step is harmless when done twice: answer and copy have ids, and a message that is
// gone is gone. For the same reason nothing is lost when a worker dies between two steps, or when the index gets its
// worker at this very moment: whichever answer is first is the answer.
type Sweeper struct {
	js   jetstream.JetStream
	opts SweeperOptions
	// age is how old a message must be before it counts as unserved: a worker that makes its durable a moment
	// after the first query should still answer it. interval is how long to wait between sweeps.
	age, interval time.Duration
}

// NewSweeper makes a sweeper. Nothing happens before Run or Sweep.
func NewSweeper(js jetstream.JetStream, opts SweeperOptions) *Sweeper {
	return &Sweeper{js: js, opts: opts, age: 5 * time.Second, interval: 5 * time.Second}
}

// Run sweeps until ctx ends.
func (s *Sweeper) Run(ctx context.Context) {
	for bell.Sleep(ctx, s.interval) {
		if swept, err := s.Sweep(ctx); ctx.Err() == nil {
			s.opts.OnSweep(swept, err)
		}
	}
}

// Sweep goes over the stream once and returns how many messages it removed. It goes on with the next subject after
// an error.
func (s *Sweeper) Sweep(ctx context.Context) (swept int, err error) {
	name := s.opts.Subjects.Stream(s.opts.Class)
	stream, subjects, err := s.unserved(ctx, name)
	if err != nil {
		return 0, fmt.Errorf("sweep stream %s: %w", name, err)
	}
	var errs []error
	for _, subject := range subjects {
		n, err := s.sweepSubject(ctx, stream, subject)
		swept += n
		if err != nil {
			errs = append(errs, fmt.Errorf("sweep %s: %w", subject, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return swept, errors.Join(errs...)
}

// bounded is the context of one request.
func (s *Sweeper) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, requestTimeout)
}

// unserved returns the subjects of a stream that hold messages and that no consumer takes.
func (s *Sweeper) unserved(ctx context.Context, name string) (stream jetstream.Stream, subjects []string, err error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	if stream, err = s.js.Stream(ctx, name); err != nil {
		return nil, nil, err
	}
	held, err := s.held(ctx, stream)
	if err != nil || len(held) == 0 {
		return nil, nil, err
	}
	// The consumers after the subjects: one that was made in between is seen.
	var filters []string
	list := stream.ListConsumers(ctx)
	for cons := range list.Info() {
		takes := streams.Filters(cons.Config)
		if len(takes) == 0 {
			return nil, nil, nil // everything
		}
		filters = append(filters, takes...)
	}
	if err := list.Err(); err != nil {
		return nil, nil, fmt.Errorf("list consumers: %w", err)
	}
	for _, subject := range held {
		taken := func(filter string) bool { return wire.MatchSubject(filter, subject) }
		if !slices.ContainsFunc(filters, taken) {
			subjects = append(subjects, subject)
		}
	}
	slices.Sort(subjects)
	return stream, subjects, nil
}

// held are the subjects of its class of which a stream has messages.
func (s *Sweeper) held(ctx context.Context, stream jetstream.Stream) (subjects []string, err error) {
	for _, pattern := range s.opts.Subjects.StreamSubjects(s.opts.Class) {
		info, err := stream.Info(ctx, jetstream.WithSubjectFilter(pattern))
		if err != nil {
			return nil, err
		}
		subjects = slices.AppendSeq(subjects, maps.Keys(info.State.Subjects))
	}
	return subjects, nil
}

// maxSweepFaults is after how many messages that could not be swept a subject is left for the next time.
const maxSweepFaults = 16

// sweepSubject removes the messages of a subject that are old enough, the oldest first. One that cannot be removed is
// passed over.
func (s *Sweeper) sweepSubject(ctx context.Context, stream jetstream.Stream, subject string) (swept int, err error) {
	class, index, user, ok := s.opts.Subjects.ParseStored(subject)
	if !ok || class != s.opts.Class {
		return 0, nil // somebody else's, in a stream of their making
	}
	created := stream.CachedInfo().Created
	var faults []error
	next := uint64(1)
	for visited := 0; len(faults) < maxSweepFaults && ctx.Err() == nil; visited++ {
		if visited%256 == 0 { // the index may have got its worker
			if served, err := s.served(ctx, stream, index); served || err != nil {
				return swept, errors.Join(append(faults, err)...)
			}
		}
		msg, err := s.message(ctx, stream, next, jetstream.WithGetMsgSubject(subject))
		if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && s.opts.Now().Sub(msg.Time) < s.age {
			break
		} else if err != nil {
			return swept, errors.Join(append(faults, err)...)
		}
		next = msg.Sequence + 1
		u := &Stored{
			Index: index, User: user, Class: class, Subject: msg.Subject, Header: msg.Header, Body: msg.Data,
			Sequence: msg.Sequence, StreamCreated: created, Timestamp: msg.Time,
		}
		if err := s.sweep(ctx, stream, u); err != nil {
			faults = append(faults, fmt.Errorf("message %d: %w", u.Sequence, err))
		} else {
			swept++
		}
	}
	return swept, errors.Join(faults...)
}

func (s *Sweeper) sweep(ctx context.Context, stream jetstream.Stream, u *Stored) error {
	if err := s.opts.Answer(ctx, u); err != nil {
		return fmt.Errorf("answer it: %w", err)
	}
	l := letter{Stored: u, reason: string(wire.UnknownIndex), detail: "no worker serves this index"}
	attempts, cancel := s.bounded(ctx)
	defer cancel()
	if err := l.publish(attempts, s.js, s.opts.Subjects, requestTimeout); err != nil {
		return err
	}
	request, cancel := s.bounded(ctx)
	defer cancel()
	if err := stream.DeleteMsg(request, u.Sequence); err != nil {
		// The library does not tell a message that is gone from other errors.
		if _, gone := s.message(ctx, stream, u.Sequence); !errors.Is(gone, jetstream.ErrMsgNotFound) {
			return fmt.Errorf("delete it: %w", err)
		}
	}
	return nil
}

func (s *Sweeper) message(ctx context.Context, stream jetstream.Stream, seq uint64, opts ...jetstream.GetMsgOpt) (*jetstream.RawStreamMsg, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	return stream.GetMsg(ctx, seq, opts...)
}

func (s *Sweeper) served(ctx context.Context, stream jetstream.Stream, index string) (bool, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	if wire.CheckIndexName(index) != nil {
		return false, nil
	}
	_, err := stream.Consumer(ctx, s.opts.Subjects.Durable(index))
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return s.opts.Alive(ctx, index)
	}
	return err == nil, err
}
