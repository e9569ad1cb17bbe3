package run

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/verify"
)

// errPaused is with what the allowance of a call stops work.
var errPaused = errors.New("the allowance is spent")

// callPace is the pace of one call.
type callPace struct {
	*gpuexec.Pace
	spent atomic.Int64 // nanoseconds of cores, on rescoring; of a call that has an allowance
}

// over is true when the call is to end.
func (c *callPace) over() bool {
	return c.Call > 0 && time.Duration(c.spent.Load()) >= c.Call
}

// A stint is a goroutine's work on rescoring one job in one call. It accounts for time, and stops the work when
// that is over or when the job may not go on.
type stint struct {
	ctx   context.Context
	call  *callPace
	shift *Shift
	job   *planJob
	since time.Time   // accounted for until then
	pace  verify.Pace // ask, as a value: made once
}

// begin starts a stint in memory that may have been another one's.
func (t *stint) begin(ctx context.Context, call *callPace, s *Shift, job *planJob) {
	pace := t.pace
	if pace == nil {
		pace = t.ask
	}
	*t = stint{ctx: ctx, call: call, shift: s, job: job, since: time.Now(), pace: pace}
}

// ask is the pace of the work.
func (t *stint) ask() error {
	now := t.account()
	q := t.job.rescoring
	switch {
	case t.ctx.Err() != nil:
		return context.Cause(t.ctx)
	case t.job.expired(now):
		return gpuexec.ErrDeadline
	case t.job.plan.Work > 0 && time.Duration(q.spent.Load()) >= t.job.plan.Work:
		return gpuexec.ErrWork
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
	if t.call.Call > 0 { // else no core writes where all of them read
		t.call.spent.Add(int64(took))
	}
	t.job.rescoring.spent.Add(int64(took))
	if t.shift != nil {
		t.shift.Spend(int(took) * 2)
	}
	return now
}

// end accounts for the last of it and drops what the stint points to.
func (t *stint) end() {
	t.account()
	t.ctx, t.call, t.shift, t.job = nil, nil, nil, nil
}
