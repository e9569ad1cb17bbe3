package nearest

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/internal/processor"
)

const (
	// chunkJobs is the most queries of a unit: while a block is at hand, all of them but the first find it in a near cache.
	chunkJobs = 64
	// blockBytes of a column are a block, of at most mostBlock objects.
	blockBytes = 128 << 10
	mostBlock  = 4096
	// chunkWork is what a chunk of several queries takes a core at most, so that calls can end when their allowance is spent.
	chunkWork = 20 * time.Millisecond
	// leastTogether queries are a chunk whatever they take: fewer take longer each. A chunk stops between blocks.
	leastTogether = 32
	// blockWork is what a block costs a query at most, in nanoseconds about, so that deadlines are seen in time.
	blockWork = 2_000_000
)

// block is how many objects of a column are compared at a time with the queries of a batch.
func (s *scanned) block(b *Batch, chosen []int) uint32 {
	n := min(mostBlock, max(1, blockBytes/s.bytes))
	for _, i := range chosen {
		n = min(n, max(1, int64(blockWork/s.planner.Distance(b.jobs[i].Query.(*distance.Query)).Alone)))
	}
	return uint32(n)
}

// span is the objects lo to hi-1.
type span struct{ lo, hi uint32 }

// chunk is some jobs that are compared with the same objects, of which a span is a unit of work.
type chunk struct {
	members []int // of the batch's jobs
	spans   []span
	parts   []part         // of span r and member i: r*len(members) + i
	took    []atomic.Int64 // by member: nanoseconds of cores in this call
	state   atomic.Int32   // notBegun, isBegun or isPostponed
	left    atomic.Int32   // units that have not ended
}

// part is one job in one span: what one worker writes.
type part struct {
	asker      metric.Asker
	best       heap
	each       float64 // nanoseconds of a distance, about
	most       float64 // the largest value that is of interest, whatever the span holds
	within     uint64
	distances  uint64
	blocks     uint64
	candidates uint64
	err        error

	// A part that was stopped goes on with object next: paused is the asker in the middle of comparing it, up to bound.
	stopped bool
	next    uint32
	paused  metric.Asker
	bound   float64
}

// chunks deals jobs of one column out: those that begin in chunks of about equal size, each over the same ranges of blocks; those that go on each alone, where they stopped.
func (b *Batch) chunks(chosen []int, size uint32) (all []*chunk) {
	var fresh []int
	for _, n := range chosen {
		begun := b.begun(n)
		if begun == nil {
			fresh = append(fresh, n)
			continue
		}
		c := newChunk([]int{n}, len(begun.left))
		for r, rest := range begun.left {
			c.spans[r] = rest.span
			p := &c.parts[r]
			p.asker, p.paused, p.bound = rest.asker, rest.asker, rest.bound
		}
		all = append(all, c)
	}
	if len(fresh) == 0 {
		return all
	}
	workers := b.crew.Size()
	blocks := int((uint64(b.hi-b.lo) + uint64(size) - 1) / uint64(size))
	ranges := max(1, run.Splits(len(fresh), blocks, workers))
	chunks := (len(fresh) + chunkJobs - 1) / chunkJobs
	if heavy := int(b.work(fresh) / chunkWork); heavy > chunks {
		chunks = max(chunks, min(heavy, len(fresh)/leastTogether))
	}
	if least := min(len(fresh), 4*workers); workers > 1 && chunks*ranges < least {
		chunks = (least + ranges - 1) / ranges
	}
	for i := range chunks {
		c := newChunk(fresh[len(fresh)*i/chunks:len(fresh)*(i+1)/chunks], ranges)
		for r := range ranges {
			from, to := uint64(blocks)*uint64(r)/uint64(ranges), uint64(blocks)*uint64(r+1)/uint64(ranges)
			c.spans[r] = span{b.lo + uint32(from)*size, uint32(min(uint64(b.hi), uint64(b.lo)+to*uint64(size)))}
		}
		all = append(all, c)
	}
	return all
}

func newChunk(jobs []int, spans int) *chunk {
	c := &chunk{members: jobs, spans: make([]span, spans), parts: make([]part, spans*len(jobs)), took: make([]atomic.Int64, len(jobs))}
	c.left.Store(int32(spans))
	return c
}

// scan answers jobs of one column by comparing with every object.
func (b *Batch) scan(ctx context.Context, s *scanned, chosen []int) error {
	if len(chosen) == 0 {
		return nil
	}
	size := s.block(b, chosen)
	type unit struct {
		*chunk
		r int
	}
	var units []unit
	for _, c := range b.chunks(chosen, size) {
		if len(c.spans) == 0 { // other parts of the index went on
			b.end(c)
		}
		for r := range c.spans {
			units = append(units, unit{c, r})
		}
	}
	return b.crew.Run(ctx, len(units), func(shift *run.Shift, n int) {
		c, r := units[n].chunk, units[n].r
		if !b.begin(&c.state) {
			if r == 0 {
				b.postpone(c)
			}
			return
		}
		u := scanUnit{Batch: b, scanned: s, chunk: c, parts: c.parts[r*len(c.members) : (r+1)*len(c.members)], shift: shift}
		worked := processor.Time(func() { u.run(ctx, c.spans[r], size) })
		for _, n := range c.members {
			b.worked[n].Add(int64(worked) / int64(len(c.members)))
		}
		// Who finishes the last range of a chunk joins all.
		if c.left.Add(-1) == 0 && ctx.Err() == nil {
			b.end(c)
		}
	})
}

const (
	notBegun = iota
	isBegun
	isPostponed
)

// begin says whether a chunk is to be run: the first unit of it that asks decides, for all. What is left when the allowance of the call is spent, is for
// another call; but a call always runs something.
func (b *Batch) begin(state *atomic.Int32) bool {
	if state.Load() == notBegun {
		decided := int32(isBegun)
		if b.exhausted() {
			decided = isPostponed
		}
		state.CompareAndSwap(notBegun, decided)
	}
	return state.Load() == isBegun
}

// work is about how long jobs take a core.
func (b *Batch) work(chosen []int) (sum time.Duration) {
	for _, n := range chosen {
		sum += b.choices[n].Predicted
	}
	return sum
}

// scanUnit is the jobs of a chunk in one of its spans, for one worker.
type scanUnit struct {
	*Batch
	*scanned
	*chunk
	parts []part // of the span
	shift *run.Shift

	// The jobs that a block is compared with at once.
	together []int // of the chunk
	askers   []metric.Asker
	limits   []float64
}

// run compares the jobs with the objects of a span, or with as many as the allowance is enough for: a block at least, so that every call gets on.
func (u *scanUnit) run(ctx context.Context, own span, size uint32) {
	for i, n := range u.members {
		job, p := u.jobs[n], &u.parts[i]
		q := job.Query.(*distance.Query)
		p.best.k, p.next, p.most, p.each = min(q.K, int(own.hi-own.lo)), own.hi, math.Inf(1), u.planner.Distance(q).Alone
		if begun := u.begun(n); begun != nil {
			p.most = begun.most(q)
		}
		if p.asker == nil {
			if err := run.Catch(func() { p.asker, p.err = q.Asker(u.space) }); err != nil {
				p.err = err
			}
		}
	}
	for lo := own.lo; lo < own.hi; lo += min(size, own.hi-lo) {
		if ctx.Err() != nil {
			return
		}
		u.together, u.askers, u.limits = u.together[:0], u.askers[:0], u.limits[:0]
		going := false
		for i, n := range u.members {
			p, job := &u.parts[i], u.jobs[n]
			if p.err != nil || p.stopped {
				continue
			}
			now := time.Now()
			if p.err = over(job, now, u.spentOn(i)); p.err != nil {
				continue
			}
			if lo > own.lo && u.pause(n, time.Duration(u.took[i].Load())) {
				p.stopped, p.next = true, lo
				continue
			}
			going = true
			u.timed(i, func() error { return run.Catch(func() { u.block(ctx, p, i, span{lo, min(own.hi, lo+size)}) }) })
			if metric.Pausable(p.asker) == nil { // else the meter has told of it
				u.shift.Spend(int(2 * p.each * float64(min(size, own.hi-lo))))
			}
		}
		if !going {
			return
		}
		u.timed(-1, func() error { return run.Catch(func() { u.compare(lo, min(own.hi, lo+size)) }) })
	}
}

// timed does some work for a job, or with -1 for those that are compared together, and adds it to what is spent on them. Its error is theirs.
func (u *scanUnit) timed(job int, f func() error) {
	if job < 0 && len(u.together) == 0 {
		return
	}
	before := time.Now()
	err := f()
	if job >= 0 && metric.Pausable(u.parts[job].asker) != nil {
		before = time.Now() // the meter has told of it
	}
	took := int64(time.Since(before))
	u.spent.Add(took)
	if job >= 0 {
		u.spend(job, took, err)
		return
	}
	for _, i := range u.together {
		u.spend(i, took/int64(len(u.together)), err)
	}
}

func (u *scanUnit) spend(i int, took int64, err error) {
	if err != nil {
		u.parts[i].err = err
	}
	u.took[i].Add(took)
}
