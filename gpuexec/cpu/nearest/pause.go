package nearest

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/verify"
)

// begun is what a job has come to that was interrupted. Of a scan that is the best hits so far, and which objects are left. It says nothing of how the work was dealt out, so any
// matcher that holds the same objects goes on with it, and what it answers is the same: the order of hits is total, and what was counted is added up.
//
// Memory: at most K hits, a span for each that the work was cut into, and, of a text that is in the middle of a comparison, its pattern. A search by another way is what that has in memory anyway.
type begun struct {
	lo, hi     uint32 // the objects of the matcher
	left       []rest
	best       []metric.Hit // in order
	within     uint64
	distances  uint64
	blocks     uint64
	candidates uint64
	spent      time.Duration

	// Of a search by another way than a scan: what it has come to, by its method, and what it was expected to take.
	search    distance.Searching
	method    string
	predicted time.Duration
}

// rest is a span that is left. asker is in the middle of comparing its first object, up to bound; nil: it is not.
type rest struct {
	span
	asker metric.Asker
	bound float64
}

// begunAll is run.Job.Begun: a begun for each matcher that holds a part of the index.
type begunAll []*begun

// Left implements run.Begun: as much time per object as until now.
func (all begunAll) Left() (sum time.Duration) {
	for _, s := range all {
		if s.search != nil {
			sum += max(0, s.predicted-s.spent)
			continue
		}
		left := uint64(0)
		for _, r := range s.left {
			left += uint64(r.hi - r.lo)
		}
		done := max(1, uint64(s.hi-s.lo)-left)
		sum += time.Duration(float64(s.spent) * float64(left) / float64(done))
	}
	return sum
}

// begun is what an earlier call has left of a job, of the matcher's objects; nil: nothing.
func (b *Batch) begun(n int) *begun {
	all, _ := b.jobs[n].Begun.(begunAll)
	for _, s := range all {
		if s.lo == b.lo && s.hi == b.hi {
			return s
		}
	}
	return nil
}

// resume forgets what others have begun.
func (b *Batch) resume() {
	for n, job := range b.jobs {
		if own := b.begun(n); own != nil {
			job.Begun = begunAll{own}
		} else {
			job.Begun = nil
		}
	}
}

// most is the largest value that can still be a hit's.
func (s *begun) most(q *distance.Query) float64 {
	if len(s.best) < q.K || q.K == 0 {
		return math.Inf(1)
	}
	return s.best[q.K-1].Value
}

// exhausted says that the allowance of the call is spent.
func (b *Batch) exhausted() bool {
	return b.pace.Call > 0 && time.Duration(b.spent.Load()) >= b.pace.Call
}

// pause says that a job on which the call has spent so much is to be interrupted. A query may take its allowance and twice what it was expected to: what takes as long as was
// foreseen is not cut up.
func (b *Batch) pause(n int, spent time.Duration) bool {
	return b.exhausted() || b.pace.Plan > 0 && spent >= b.pace.Plan+2*b.choices[n].Predicted
}

// over is why a job ends on which so much was spent, in all calls.
func over(job *run.Job, now time.Time, spent time.Duration) error {
	switch {
	case !job.Deadline.IsZero() && !now.Before(job.Deadline):
		return gpuexec.ErrDeadline
	case job.Work > 0 && spent >= job.Work:
		return gpuexec.ErrWork
	}
	return nil
}

// spentOn is what a job of the chunk has taken so far, in all calls.
func (u *scanUnit) spentOn(i int) time.Duration {
	spent := time.Duration(u.took[i].Load())
	if begun := u.begun(u.members[i]); begun != nil {
		spent += begun.spent
	}
	return spent
}

// meter stops long comparisons, and accounts for them. The unit is a step of a block of 64 rows, some 5 ns.
type meter struct {
	u     *scanUnit
	ctx   context.Context
	part  *part
	job   int // of the chunk
	left  int
	since time.Time
}

// Most implements levenshtein.Meter.
func (m *meter) Most() int {
	if grain := m.u.pace.Grain; grain > 0 {
		return grain
	}
	return verify.PaceWork
}

// Did implements levenshtein.Meter.
func (m *meter) Did(work int) { m.left -= work }

// Stop implements levenshtein.Meter.
func (m *meter) Stop() bool {
	if m.left > 0 {
		return false
	}
	m.left = m.Most()
	now := m.account()
	n := m.u.members[m.job]
	switch err := over(m.u.jobs[n], now, m.u.spentOn(m.job)); {
	case err != nil:
		m.part.err = err
	case m.ctx.Err() != nil:
		m.part.err = context.Cause(m.ctx)
	case !m.u.pause(n, time.Duration(m.u.took[m.job].Load())):
		m.since = time.Now() // waiting for a seat is no work
		return false
	}
	return true
}

// account adds the time since the last account to what is spent, and offers the seat.
func (m *meter) account() time.Time {
	now := time.Now()
	took := now.Sub(m.since)
	m.since = now
	m.u.spent.Add(int64(took))
	m.u.took[m.job].Add(int64(took))
	m.u.shift.Spend(int(took) * 2)
	return now
}

// postpone leaves a chunk to another call.
func (b *Batch) postpone(c *chunk) {
	for _, n := range c.members {
		b.jobs[n].Postponed = true
		if before := b.begun(n); before != nil {
			b.jobs[n].Spent = before.spent
		}
	}
}

// end makes of the parts of a chunk answers, or what is left of those that were stopped.
func (b *Batch) end(ctx context.Context, c *chunk, column int, shift *run.Shift) {
	seen := work{method: distance.Scan}
	for i, n := range c.members {
		job := b.jobs[n]
		all := begun{lo: b.lo, hi: b.hi}
		if before := b.begun(n); before != nil {
			all = *before
			all.left = nil
		}
		all.spent += time.Duration(c.took[i].Load())
		best := all.best[:len(all.best):len(all.best)] // which others may have
		most := c.known[i].value()
		for r := range c.spans {
			p := &c.parts[r*len(c.members)+i]
			if p.err != nil {
				job.Err = p.err
				break
			}
			for _, h := range p.best.hits {
				if h.Value <= most {
					best = append(best, h)
				}
			}
			all.within += p.within
			all.distances += p.distances
			all.blocks += p.blocks
			all.candidates += p.candidates
			if p.next < c.spans[r].hi {
				all.left = append(all.left, rest{span{p.next, c.spans[r].hi}, p.paused, p.bound})
			}
		}
		if job.Err != nil {
			continue
		}
		slices.SortFunc(best, metric.Hit.Compare)
		all.best = best[:min(len(best), job.Query.(*distance.Query).K)]
		job.Spent = all.spent
		if len(all.left) > 0 {
			job.Postponed, job.Begun = true, begunAll{&all}
			continue
		}
		b.finish(n, &all)
		seen.took += time.Duration(c.worked.Load()) / time.Duration(len(c.members))
		seen.predicted += b.choices[n].Predicted
		b.ended(ctx, shift, n)
	}
	b.saw(column, seen)
}

// finish makes an answer of what a job has come to.
func (b *Batch) finish(n int, all *begun) {
	job := b.jobs[n]
	q := job.Query.(*distance.Query)
	answer := &distance.Answer{
		Method: distance.Scan, Exact: true, Counted: q.Total || q.K == 0, Distances: all.distances, Blocks: all.blocks,
	}
	if answer.Counted { // else those that a full heap has turned away were not counted
		answer.Within = all.within
	}
	job.Candidates += all.candidates
	b.Answer(n, all.best, answer)
	if b.hi-b.lo < q.Column.Objects { // other parts may have to go on
		job.Begun = begunAll{all}
	}
}

var _ run.Begun = begunAll(nil)
