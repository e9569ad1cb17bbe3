package nearest

import (
	"context"
	"math"
	"slices"
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
	leastBlock = 256 // of smaller objects
	// chunkWork is what a chunk of several queries takes a core at most, so that calls can end when their allowance is spent.
	chunkWork = 20 * time.Millisecond
	// leastTogether queries are a chunk whatever they take: fewer take longer each. A chunk stops between blocks.
	leastTogether = 32
	// Where cores share jobs each has unitsOfCore units, since they begin one after the other, and a chunk has fewTogether jobs at least, if it can: fewer are sieved one by one (package metric).
	unitsOfCore, fewTogether = 4, 8
	// To read an object, or to read it and lay it out, takes a chunk so many times what it takes to compare it with one job.
	readOnly, readAndLaidOut = .5, 2.
	// So many objects are compared with a job that has no limit, and so many more for each hit.
	unlimited, unlimitedOfHit = 128, 8
	// firstHits of each job have memory that was had for all at once.
	firstHits = 16
	// blockWork is what a block costs a query at most, in nanoseconds about, so that deadlines are seen in time.
	blockWork = 2_000_000
)

// block is how many objects of a column are compared at a time with the queries of a batch.
func (s *scanned) block(b *Batch, chosen []int) uint32 {
	n := min(mostBlock, max(1, blockBytes/s.bytes))
	for _, i := range chosen {
		n = min(n, max(1, int64(blockWork/s.planner.Distance(b.jobs[i].Query.(*distance.Query)).Alone)))
	}
	return s.whole(uint32(n))
}

// whole are about so many objects, in whole panels if there are any.
func (s *scanned) whole(n uint32) uint32 {
	if s.sieved {
		return max(1, n/metric.PanelRows) * metric.PanelRows
	}
	return n
}

// span is the objects lo to hi-1.
type span struct{ lo, hi uint32 }

// chunk is some jobs that are compared with the same objects, of which a span is a unit of work.
type chunk struct {
	members []int // of the batch's jobs
	spans   []span
	parts   []part         // of span r and member i: r*len(members) + i
	took    []atomic.Int64 // by member: nanoseconds of cores in this call
	worked  atomic.Int64   // of all: what they worked, as far as the system tells
	known   []limit        // by member: what a part has found limits the others
	state   atomic.Int32   // notBegun, isBegun or isPostponed
	left    atomic.Int32   // units that have not ended
}

// limit is a value that so many objects have, or less, as a job wants hits.
type limit struct{ bits atomic.Uint64 }

func (l *limit) value() float64 { return math.Float64frombits(l.bits.Load()) }

func (l *limit) lower(v float64) {
	for old := l.bits.Load(); v < math.Float64frombits(old) && !l.bits.CompareAndSwap(old, math.Float64bits(v)); old = l.bits.Load() {
	}
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

// chunks deals jobs of one column out: those that begin in chunks of about equal size, each over the same ranges of blocks; those that go on each alone, where they stopped. It says how many objects a block
// has.
func (b *Batch) chunks(s *scanned, chosen []int) (all []*chunk, size uint32) {
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
	size = s.block(b, chosen)
	if len(fresh) == 0 {
		return all, size
	}
	chunks, ranges, size := b.cut(s, fresh, size)
	blocks := blocksOf(b.hi-b.lo, size)
	for i := range chunks {
		c := newChunk(fresh[share(len(fresh), i, chunks):share(len(fresh), i+1, chunks)], ranges)
		for r := range ranges {
			from, to := uint64(blocks)*uint64(r)/uint64(ranges), uint64(blocks)*uint64(r+1)/uint64(ranges)
			c.spans[r] = span{b.lo + uint32(from)*size, uint32(min(uint64(b.hi), uint64(b.lo)+to*uint64(size)))}
		}
		all = append(all, c)
	}
	return all, size
}

func blocksOf(objects, size uint32) int {
	return int((uint64(objects) + uint64(size) - 1) / uint64(size))
}

// cut says into how many chunks jobs are cut, and into how many ranges the blocks are, so that all cores have some units, for which blocks may have to be smaller. Each chunk reads all objects, and lays them
// out unless that was done, which takes as much as comparing a part of them, or more, with one job. In each range that is begun at once a job without a radius has no limit yet, until some objects and some
// more for each hit that is wanted were compared. So of N objects sqrt(w S / p N) chunks take w cores least, p being that part and S what all jobs compare without a limit.
func (b *Batch) cut(s *scanned, jobs []int, size uint32) (chunks, ranges int, smaller uint32) {
	workers, n := b.crew.Size(), len(jobs)
	chunks = (n + chunkJobs - 1) / chunkJobs
	if heavy := int(b.work(jobs) / chunkWork); heavy > chunks {
		chunks = max(chunks, min(heavy, n/leastTogether))
	}
	if workers == 1 || b.lo == b.hi {
		return chunks, 1, size
	}
	sum, objects, units := 0., float64(b.hi-b.lo), unitsOfCore*workers
	for _, i := range jobs {
		if q := b.jobs[i].Query.(*distance.Query); math.IsInf(q.Most, 1) {
			sum += min(objects, unlimited+unlimitedOfHit*float64(q.K))
		}
	}
	least := math.Sqrt(float64(workers) * sum / (s.reading * objects))
	chunks = max(chunks, int(min(least, float64(n)/fewTogether, float64(units))))
	wanted := (units + chunks - 1) / chunks
	size = min(size, s.whole(max(leastBlock, uint32(math.Ceil(objects/float64(wanted))))))
	ranges = max(1, min(wanted, blocksOf(b.hi-b.lo, size)))
	if all := min(n, units); chunks*ranges < all { // of few objects
		chunks = (all + ranges - 1) / ranges
	}
	return chunks, ranges, size
}

// share is how many of n jobs come before those of chunk i. Chunks are multiples of fewTogether, which are sieved together, where there are so many.
func share(n, i, chunks int) int {
	if groups := (n + fewTogether - 1) / fewTogether; groups >= chunks {
		return min(n, fewTogether*(groups*i/chunks))
	}
	return n * i / chunks
}

func newChunk(jobs []int, spans int) *chunk {
	c := &chunk{members: jobs, spans: make([]span, spans), parts: make([]part, spans*len(jobs)), took: make([]atomic.Int64, len(jobs)), known: make([]limit, len(jobs))}
	c.left.Store(int32(spans))
	for i := range c.known {
		c.known[i].bits.Store(math.Float64bits(math.Inf(1)))
	}
	return c
}

// scan answers jobs of one column by comparing with every object.
func (b *Batch) scan(ctx context.Context, column int, chosen []int) error {
	if len(chosen) == 0 {
		return nil
	}
	s := &b.scanned[column]
	type unit struct {
		*chunk
		r int
	}
	var units []unit
	chunks, size := b.chunks(s, chosen)
	for _, c := range chunks {
		if len(c.spans) == 0 { // other parts of the index went on
			b.end(ctx, c, column, nil)
		}
		for r := range c.spans {
			units = append(units, unit{c, r})
		}
	}
	if b.pace.Call == 0 || 2*b.work(chosen) < b.pace.Call { // else some jobs are to end before the allowance is spent
		slices.SortStableFunc(units, func(x, y unit) int { return x.r - y.r }) // so that the last ranges of each know limits of the first
	}
	if v, ok := s.space.(*metric.Vectors); ok && len(chosen) >= fewTogether { // before, since it is no job's time
		err := v.LayOut(func(units int, work func(unit int)) error {
			return b.crew.Run(context.WithoutCancel(ctx), units, func(_ *run.Shift, unit int) { work(unit) })
		})
		if err != nil {
			return err
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
		u := scanUnit{Batch: b, scanned: s, chunk: c, parts: c.parts[r*len(c.members) : (r+1)*len(c.members)], shift: shift, hand: b.hand(column)}
		worked := processor.Time(func() { u.run(ctx, c.spans[r], size) })
		for i := range u.parts {
			u.parts[i].asker = nil // there are as many as jobs and ranges
		}
		u.hand.release()
		b.hands[column].Put(u.hand)
		c.worked.Add(int64(worked))
		// Who finishes the last range of a chunk joins all.
		if c.left.Add(-1) == 0 && ctx.Err() == nil {
			b.end(ctx, c, column, shift)
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
		if begun, ok := b.jobs[n].Begun.(begunAll); ok { // of which nothing is predicted
			sum += begun.Left()
		}
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
	*hand
}

// hand is what a core has at hand when it scans a column: the jobs that a block is compared with at once, and memory for that.
type hand struct {
	together []int // of the chunk
	askers   []metric.Asker
	limits   []float64
	own      metric.Asker
}

// hand takes one up, release puts it down.
func (b *Batch) hand(column int) *hand {
	h := b.hands[column].Get()
	if h.own == nil {
		h.own = metric.Scratch(b.scanned[column].space)
	}
	return h
}

func (h *hand) release() {
	metric.Release(h.own)
	clear(h.askers[:cap(h.askers)])
}

// run compares the jobs with the objects of a span, or with as many as the allowance is enough for: a block at least, so that every call gets on.
func (u *scanUnit) run(ctx context.Context, own span, size uint32) {
	hits := make([]metric.Hit, firstHits*len(u.members))
	for i, n := range u.members {
		job, p := u.jobs[n], &u.parts[i]
		q := job.Query.(*distance.Query)
		p.best.hits = hits[firstHits*i : firstHits*i : firstHits*(i+1)]
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
		going, now := false, time.Now()
		for i, n := range u.members {
			p, job := &u.parts[i], u.jobs[n]
			if p.err != nil || p.stopped {
				continue
			}
			if p.err = over(job, now, u.spentOn(i)); p.err != nil {
				continue
			}
			if lo > own.lo && u.pause(n, time.Duration(u.took[i].Load())) {
				p.stopped, p.next = true, lo
				continue
			}
			going, p.most = true, min(p.most, u.known[i].value())
			if u.joins(p, i) {
				u.join(p, i, span{lo, min(own.hi, lo+size)})
			} else {
				u.timed(i, func() error { return run.Catch(func() { u.block(ctx, p, i, span{lo, min(own.hi, lo+size)}) }) })
				now = time.Now()
			}
			if metric.Pausable(p.asker) == nil { // else the meter has told of it
				work := int(2 * p.each * float64(min(size, own.hi-lo)))
				waits := u.shift.Due(work)
				if u.shift.Spend(work); waits {
					now = time.Now()
				}
			}
		}
		if !going {
			return
		}
		u.timed(-1, func() error { return run.Catch(func() { u.compare(lo, min(own.hi, lo+size)) }) })
		for i, n := range u.members {
			if p := &u.parts[i]; p.best.full(u.jobs[n].Query.(*distance.Query).K) {
				u.known[i].lower(p.best.hits[0].Value)
			}
		}
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
