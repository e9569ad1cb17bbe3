// Package suspects runs messages alone that may have brought workers down.
package suspects

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/internal/bell"
	"github.com/geniemq/geniemq/service/exclusion"
	"github.com/geniemq/geniemq/service/pipeline"
)

const (
	// lostRuns is how many lone runs of a message must have been begun and not ended for it to be given up.
	lostRuns = 2
	// minRecordPause and maxRecordPause are between attempts at writing a record, which double.
	minRecordPause = 50 * time.Millisecond
	maxRecordPause = 2 * time.Second
	// unrecordedWait is how long others are waited for to choose from when no records can be kept.
	unrecordedWait = 200 * time.Millisecond
	// settleWait is how long the next one waits for a message to be settled when no records can be kept.
	settleWait = time.Second
	// maxUnended bounds the records that are to be taken away later; others go by their age.
	maxUnended = 1024
	// bucketWait is how long making the bucket may take, for which a cluster has to elect a leader.
	bucketWait = 10 * time.Second
)

// Runner runs the messages of all indexes that may have brought workers down, one after the other and alone (see Run), and gives up those that did it twice while they ran alone.
//
// They wait here, not decoded, since decoding may be what does it; and not in a pipeline, where others would wait behind
// them. The consumer keeps them alive, so waiting costs nothing.
//
// After a worker was lost everything that it had pulled is delivered again, and soon thousands of innocent messages are
// suspects. Two rules keep them from being blamed for what others do, other than that nothing runs beside them. A message
// whose lone run did not end waits until no suspect is left of which that is not known: else the message that was running when a
// worker was killed would be the first to run after each start, which is when a process that is killed again and again
// dies. And it is given up only when the record is confirmed, before anything is done with it.
//
// When nothing can be written, because of a connection or a server that is down, suspects are held. When the server forbids
// it, they run alone without a record, and nothing is given up. Then they run in any order: the one that kills the worker would
// be the first of every worker otherwise.
type Runner struct {
	exclusion *exclusion.Lock
	records   *consumer.Suspects
	log       *slog.Logger

	// Of the goroutine of run:
	warned     map[string]bool    // kinds of UnrecordedError
	held       bool               // the log says that records cannot be written
	unrecorded bool               // no records can be kept at present
	unended    []*consumer.Record // that could not be taken away

	mu    sync.Mutex
	fresh []*suspect
	again []*suspect // a lone run of these did not end
	wake  bell.Bell
}

// Message is a message that is to run alone. One of the last three is called for each, once.
type Message interface {
	Index() string
	Delivery() *consumer.Message
	// Aborted ends when the pipeline of the message's index does.
	Aborted() context.Context
	// RunAlone answers the message. It says whether the engine was lost by it, and had answered before.
	RunAlone(*Run) (lost bool)
	// Lost gives the message up: so many runs of it were begun, and no worker lived to end one. It is not to be looked into.
	Lost(run *Run, runs int)
	// GiveUp gives the message back.
	GiveUp()
}

// suspect is a message with its record.
type suspect struct {
	Message
	record *consumer.Record
	again  bool
}

// New makes a Runner of what shares the process and of the records of runs.
func New(exclusion *exclusion.Lock, records *consumer.Suspects, log *slog.Logger) *Runner {
	return &Runner{exclusion: exclusion, records: records, log: log, warned: make(map[string]bool), wake: bell.New()}
}

// Ensure makes the bucket of records. That it cannot be is no reason not to serve.
func (s *Runner) Ensure(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, bucketWait)
	defer cancel()
	err := s.records.Ensure(ctx)
	if unrecorded, ok := errors.AsType[*consumer.UnrecordedError](err); ok {
		s.unrecorded = true
		s.warn(unrecorded)
	} else if err != nil {
		s.log.Warn("the bucket of messages that run alone could not be made, trying again when a message does", "error", err)
	}
}

// warn tells once of each kind.
func (s *Runner) warn(e *consumer.UnrecordedError) {
	if !s.warned[e.Kind] {
		s.warned[e.Kind] = true
		s.log.Warn("messages that run alone cannot be put on record: one that kills its worker again and again will not be given up",
			"error", e.Err, "advice", e.Advice)
	}
}

// Add takes a message in. It does not block.
func (s *Runner) Add(m Message) {
	s.mu.Lock()
	s.fresh = append(s.fresh, &suspect{Message: m, record: s.records.Of(m.Delivery())})
	s.mu.Unlock()
	s.wake.Ring()
}

// next takes the message whose turn it is, or nil.
func (s *Runner) next() *suspect {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue := &s.fresh
	if len(*queue) == 0 {
		queue = &s.again
	}
	if len(*queue) == 0 {
		return nil
	}
	if s.unrecorded {
		i := rand.IntN(len(*queue))
		(*queue)[0], (*queue)[i] = (*queue)[i], (*queue)[0]
	}
	x := (*queue)[0]
	(*queue)[0] = nil
	if *queue = (*queue)[1:]; len(*queue) == 0 {
		*queue = nil
	}
	return x
}

// Run runs suspects until ctx ends, and gives the rest back.
func (s *Runner) Run(ctx context.Context) {
	for {
		x := s.next()
		switch {
		case x == nil && ctx.Err() != nil:
			return
		case x == nil:
			s.idle(ctx)
		case ctx.Err() != nil, x.Aborted().Err() != nil:
			x.GiveUp()
		default:
			s.runOne(ctx, x)
		}
	}
}

// idle waits for a message, and takes away records that could not be when their runs ended.
func (s *Runner) idle(ctx context.Context) {
	var again <-chan time.Time
	if len(s.unended) > 0 {
		again = time.After(maxRecordPause)
	}
	select {
	case <-s.wake:
		if s.unrecorded { // the one that kills may be the first to come
			bell.Sleep(ctx, unrecordedWait)
		}
	case <-again:
		if s.unended[0].End(ctx) == nil {
			s.unended = s.unended[1:]
		}
	case <-ctx.Done():
	}
}

// runOne runs a message to its answer, puts it off, or gives it up.
func (s *Runner) runOne(ctx context.Context, x *suspect) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(x.Aborted(), cancel)()
	l := &Run{exclusion: s.exclusion, record: x.record, log: s.log.With("index", x.Index(), "sequence", x.Delivery().Sequence)}
	l.enter = func() bool { return s.enter(ctx, l) }

	// Nearly all suspects have no record: that is for the first attempt to find out.
	err := s.begin(ctx, l)
	for err != nil {
		if err = s.read(ctx, l, err); err != nil {
			x.GiveUp()
			return
		}
		switch lost := x.record.Lost(); {
		case lost >= lostRuns:
			if err = s.confirm(ctx, l); err == nil {
				l.log.Error("workers were lost that ran a message alone, giving it up", "runs", lost)
				l.end()
				x.Lost(l, lost)
				return
			}
		case lost > 0 && !x.again:
			l.log.Warn("a worker was lost that ran a message alone, running it once more, after all others")
			x.again = true
			s.mu.Lock()
			s.again = append(s.again, x)
			s.mu.Unlock()
			return
		default:
			err = s.begin(ctx, l)
		}
	}
	l.keep = x.RunAlone(l)
	if !l.end() && len(s.unended) < maxUnended {
		s.unended = append(s.unended, x.record)
	}
	if s.unrecorded { // the next one may end the process, and nobody would know what was done before
		settling, cancel := context.WithTimeout(ctx, settleWait)
		_ = x.Delivery().AwaitSettled(settling) // it comes again if not
		cancel()
	}
	bell.Sleep(ctx, l.rest())
}

// enter is begin until that succeeds. It is false when ctx ends.
func (s *Runner) enter(ctx context.Context, l *Run) bool {
	for {
		err := s.begin(ctx, l)
		if err == nil {
			return true
		}
		if s.read(ctx, l, err) != nil {
			return false
		}
	}
}

// begin takes the turn and writes that a lone run begins. Without the record there is no turn, unless there can be none.
func (s *Runner) begin(ctx context.Context, l *Run) error {
	since := time.Now()
	s.exclusion.TakeAll()
	err := l.record.Begin(ctx)
	var unrecorded *consumer.UnrecordedError
	if err != nil && !errors.As(err, &unrecorded) {
		s.exclusion.Release()
		return err
	}
	if s.unrecorded = unrecorded != nil; s.unrecorded {
		s.warn(unrecorded)
	}
	s.holding(nil)
	l.begun(since, err == nil)
	return nil
}

// confirm makes sure of a record that says that the message is to be given up. What can be read and not be written is enough.
func (s *Runner) confirm(ctx context.Context, l *Run) error {
	err := l.record.Confirm(ctx)
	if _, ok := errors.AsType[*consumer.UnrecordedError](err); ok {
		return nil
	}
	return err
}

// read reads the record again after an attempt failed, as often as it takes and while others go on. The error is that of ctx.
func (s *Runner) read(ctx context.Context, l *Run, err error) error {
	for pause := minRecordPause; ; pause = min(2*pause, maxRecordPause) {
		if !errors.Is(err, consumer.ErrRecordChanged) {
			if ctx.Err() == nil {
				s.holding(err)
			}
			bell.Sleep(ctx, pause)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var unrecorded *consumer.UnrecordedError
		if err = l.record.Read(ctx); err == nil || errors.As(err, &unrecorded) {
			return nil
		}
	}
}

// holding takes note of why suspects wait, or with nil that they do not.
func (s *Runner) holding(err error) {
	switch {
	case err != nil && !s.held:
		s.log.Warn("messages that run alone cannot be put on record and wait until they can", "error", err)
	case err == nil && s.held:
		s.log.Info("messages that run alone can be put on record again")
	}
	s.held = err != nil
}

// endWait bounds how long a message is kept from being settled by a record that cannot be taken away.
const endWait = 2 * time.Second

// Run is one suspect being worked on. While it is, nothing else is, and the bucket says so: the two go together, always, so
// that a record without a worker tells which message was worked on, alone, when the worker was lost. A run that takes
// long, or waits for the result stream, is interrupted: the record is put back, the others go on, and then it has its turn again.
//
// A run ends when its answer is on its way to the producer. Nothing is left then that could bring a worker down, and the
// confirmation may take as long as a result stream is full. Whatever settles the message waits for that end, so that
// the record is gone before the message is; killed in between, the worker leaves a message that runs again, not a record.
type Run struct {
	exclusion *exclusion.Lock
	record    *consumer.Record
	log       *slog.Logger
	enter     func() bool // takes a turn and begins the record; false when the process ends

	keep bool // the run has brought the engine down: the record stays

	turn     sync.Mutex // guards:
	active   bool       // it has the turn
	recorded bool       // and is on record
	since    time.Time
	busy     time.Duration // how long others had to wait for it

	mu       sync.Mutex // guards:
	ended    bool
	settling []func() // what waits for the end
}

// begun says that the run has the turn, which it asked for at that time.
func (l *Run) begun(since time.Time, recorded bool) {
	l.turn.Lock()
	l.active, l.recorded, l.since = true, recorded, since
	l.turn.Unlock()
}

// Held is for how long it has the turn.
func (l *Run) Held() time.Duration {
	l.turn.Lock()
	defer l.turn.Unlock()
	return time.Since(l.since)
}

// leave writes what the record is to say and lets others go on. It is false when that could not be written.
func (l *Run) leave(write func(context.Context) error) (ok bool) {
	l.turn.Lock()
	defer l.turn.Unlock()
	if ok = true; !l.active {
		return ok
	}
	if l.recorded {
		ctx, cancel := context.WithTimeout(context.Background(), endWait)
		defer cancel()
		if err := write(ctx); err != nil && !errors.Is(err, consumer.ErrRecordChanged) {
			l.log.Warn("the record of a lone run stays although it has ended", "error", err)
			ok = false
		}
	}
	l.active = false
	took := time.Since(l.since)
	if l.exclusion.Release() {
		l.busy += took
	}
	return ok
}

// rest is how long others are to have their turn for that they waited.
func (l *Run) rest() time.Duration {
	l.turn.Lock()
	defer l.turn.Unlock()
	rest := min(l.busy, 10*pipeline.LoneHold)
	l.busy = 0
	return rest
}

// Yield lets others go on for as long as they waited. It is false when the process ends.
func (l *Run) Yield() bool {
	l.leave(l.record.Pause)
	time.Sleep(l.rest())
	return l.enter()
}

// Wait waits for something that others do, and lets them do it. A nil run is that of a message that is no suspect.
func (l *Run) Wait(wait func()) {
	if !l.Running() {
		wait()
		return
	}
	paused := make(chan struct{})
	timer := time.AfterFunc(pipeline.LoneHold, func() {
		l.leave(l.record.Pause)
		close(paused)
	})
	wait()
	if timer.Stop() {
		return
	}
	<-paused
	l.enter()
}

// end ends the run. It is false when the record could not be taken away.
func (l *Run) end() bool {
	write := l.record.End
	if l.keep {
		write = func(context.Context) error { return nil }
	}
	ok := l.leave(write)
	l.mu.Lock()
	settling := l.settling
	l.ended, l.settling = true, nil
	l.mu.Unlock()
	for _, settle := range settling {
		settle()
	}
	return ok
}

// Running says whether there is a run that has not ended.
func (l *Run) Running() bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.ended
}

// Forget takes away the record of a message that was given up.
func (l *Run) Forget() {
	ctx, cancel := context.WithTimeout(context.Background(), endWait)
	defer cancel()
	if err := l.record.End(ctx); err != nil {
		l.log.Warn("the record of a message that was given up stays", "error", err)
	}
}

// Then settles the message, when the run has ended. It does not block on that.
func (l *Run) Then(settle func()) {
	if l != nil {
		l.mu.Lock()
		if !l.ended {
			l.settling = append(l.settling, settle)
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
	}
	settle()
}
