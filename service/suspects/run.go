package suspects

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/service/exclusion"
	"github.com/geniemq/geniemq/service/pipeline"
)

const (
	// endWait bounds how long a message is kept from being settled by a record that cannot be taken away.
	endWait = 2 * time.Second
)

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
