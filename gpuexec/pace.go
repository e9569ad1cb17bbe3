package gpuexec

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/geniemq/geniemq/index/verify"
)

// Pace says how a Search call shares the engine with other calls. It travels in the context (WithPace) because all stages of
// all engines are under it; without one a call takes what it needs.
//
// Comparing texts is the part of a query whose work nothing else bounds: a text of 60 KB and 8,000 candidates are minutes. So a
// call has an allowance of it. When that is spent the call ends, and plans that are not answered then have an Unfinished, with
// which they go on in a later call. How often they are interrupted changes nothing in their answers.
type Pace struct {
	// Plan and Call bound the time of a core that a call spends on comparing texts, for one plan and for all of them together. 0
	// is no bound. Whatever they are, a call gets on: it ends with some plan's work done or begun.
	Plan, Call time.Duration
	// Background calls leave at least half of the cores to the others as long as there have been any in the last second. They
	// have all cores else.
	Background bool

	// work is that between two looks at the clock (verify.PaceWork), less in tests.
	work int
}

type paceKey struct{}

// WithPace returns a context under which Search calls have a pace.
func WithPace(ctx context.Context, p Pace) context.Context {
	return context.WithValue(ctx, paceKey{}, &p)
}

func paceOf(ctx context.Context) *Pace {
	if p, ok := ctx.Value(paceKey{}).(*Pace); ok {
		return p
	}
	return &Pace{}
}

// Answer.Err of plans that ran out of what they were given.
var (
	// ErrDeadline: Plan.Deadline has passed.
	ErrDeadline = errors.New("the deadline of the plan has passed")
	// ErrWork: comparing texts has taken more than Plan.Work.
	ErrWork = errors.New("comparing texts takes more time than the plan may take")
)

// Unfinished is what a plan has come to that was interrupted. It is for one further Search call, of any Searcher of the same
// snapshot, with the same plan. A call that returns an error has spoiled it: the plan begins anew then, without one.
type Unfinished struct {
	sequence             *sequenceJob // nil: there was nothing worth keeping
	k                    int
	bound                uint32
	postings, candidates uint64
}

// Left estimates how much more time of a core it takes, by what is done so far; 0 when nothing is known.
func (u *Unfinished) Left() time.Duration {
	if u == nil || u.sequence == nil {
		return 0
	}
	return u.sequence.left()
}

// errPaused is with what the allowance of a call stops work.
var errPaused = errors.New("the allowance is spent")

// callPace is the pace of one call.
type callPace struct {
	*Pace
	spent atomic.Int64 // nanoseconds of cores, on comparing texts
}

// over is true when the call is to end.
func (c *callPace) over() bool {
	return c.Call > 0 && time.Duration(c.spent.Load()) >= c.Call
}

// A stint is a goroutine's work on comparing the texts of one job in one call. It accounts for time, and stops the work when
// that is over or when the job may not go on.
type stint struct {
	ctx   context.Context
	call  *callPace
	shift *shift
	job   *planJob
	since time.Time   // accounted for until then
	pace  verify.Pace // ask, as a value: made once
}

// begin starts a stint in memory that may have been another one's.
func (t *stint) begin(ctx context.Context, call *callPace, s *shift, job *planJob) {
	pace := t.pace
	if pace == nil {
		pace = t.ask
	}
	*t = stint{ctx: ctx, call: call, shift: s, job: job, since: time.Now(), pace: pace}
}

// ask is the pace of the work.
func (t *stint) ask() error {
	now := t.account()
	q := t.job.sequence
	switch {
	case t.ctx.Err() != nil:
		return context.Cause(t.ctx)
	case t.job.expired(now):
		return ErrDeadline
	case t.job.plan.Work > 0 && time.Duration(q.spent.Load()) >= t.job.plan.Work:
		return ErrWork
	case t.call.over() || t.call.Plan > 0 && time.Duration(q.spent.Load())-q.before >= t.call.Plan:
		return errPaused
	}
	t.since = time.Now() // waiting for a seat, and for others, is no work
	return nil
}

// account adds the time since the last account to what call and job have spent, and offers the seat.
func (t *stint) account() (now time.Time) {
	now = time.Now()
	took := now.Sub(t.since)
	t.since = now
	t.call.spent.Add(int64(took))
	t.job.sequence.spent.Add(int64(took))
	t.shift.spend(int(took) * 2)
	return now
}

// end accounts for the last of it and drops what the stint points to.
func (t *stint) end() {
	t.account()
	t.ctx, t.call, t.shift, t.job = nil, nil, nil, nil
}
