package cpu

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/pool"
)

// matcher counts in the postings of an index, or of some of its tiles: it splits a batch into units, each a chunk of jobs in a range of
// tiles, and puts the parts of a job together again.
type matcher struct {
	index     *postings.Lists
	stored    filter.Stored     // what the index keeps beside its lists; may be nil
	tiles     run.Tiles         // that it counts in
	sliced    []slicedAttribute // by attribute
	listBytes int64             // of sliced attributes
	release   func()            // of these
	crew      *run.Crew
	scratch   []*scratch // by seat of the crew

	parts      pool.Of[[]matchPart]
	filters    pool.Of[filtered]
	evaluators pool.Of[passers]
}

// matchPart is one job in one range of tiles: what one worker writes.
type matchPart struct {
	query    resolved
	gate     topk.Gate
	postings uint64
	total    uint64       // objects that pass the job's filter
	first    []topk.Entry // the first of them, for a job that is nothing but a filter
	err      error
}

// Scan leaves the jobs to the host, whose cores they would be done on.
func (m *matcher) Scan(context.Context, []*run.ScanJob, *gpuexec.Trace) error { return nil }

// chunkJobs is the most jobs of a unit. While a tile is at hand its postings come from a near cache for all of them but
// the first, and more would change little; the gates of all of them must stay near, too.
const chunkJobs = 64

func (m *matcher) Match(ctx context.Context, jobs []*run.Job, _ *gpuexec.Trace) error {
	if len(jobs) == 0 {
		return nil
	}
	tiles, workers := m.tiles.Len(), m.crew.Size()
	ranges := run.Splits(len(jobs), tiles, workers)
	chunks := (len(jobs) + chunkJobs - 1) / chunkJobs
	if least := min(len(jobs), 4*workers); workers > 1 && chunks*ranges < least {
		chunks = (least + ranges - 1) / ranges
	}

	filters := m.filter(jobs)
	defer m.releaseFilters(filters)
	parts := m.takeParts(len(jobs) * ranges)
	defer m.parts.Put(parts)
	left := make([]atomic.Int32, chunks) // ranges that are not done
	for i := range left {
		left[i].Store(int32(ranges))
	}
	timed := slices.ContainsFunc(jobs, func(job *run.Job) bool { return !job.Deadline.IsZero() })
	epoch := m.index.Epoch()
	return m.crew.Run(ctx, chunks*ranges, func(s *run.Shift, number int) {
		defer m.leave(s, epoch)
		chunk, r := number%chunks, number/chunks
		u := unit{
			m: m, shift: s, epoch: epoch, filters: filters, timed: timed,
			jobsOf: jobsOf{jobs, (*parts)[r*len(jobs):][:len(jobs)], filters.order[len(jobs)*chunk/chunks : len(jobs)*(chunk+1)/chunks]},
			from:   tiles * r / ranges, to: tiles * (r + 1) / ranges,
		}
		u.run(ctx)
		// Who finishes the last range of a chunk joins all. The order in which the ranges ended does not matter.
		if left[chunk].Add(-1) == 0 {
			for _, i := range u.order {
				m.finish(jobs[i], (*parts)[i:], len(jobs), ranges)
			}
		}
	})
}

// unit is some jobs of a batch in a range of tiles: what one worker does.
type unit struct {
	m        *matcher
	jobsOf   // with the parts of all jobs in the range
	shift    *run.Shift
	epoch    store.Epoch
	filters  *filtered
	passers  *passers // nil where no job has a filter
	timed    bool     // jobs have deadlines
	from, to int      // tiles, of the matcher's
}

func (u *unit) run(ctx context.Context) {
	if len(u.filters.distinct.Filters) > 0 {
		u.passers = u.m.beginPassers(ctx, u)
		defer u.m.endPassers(u.passers)
	}
	tiles := run.Tiles{First: u.m.tiles.First + u.from, End: u.m.tiles.First + u.to}
	for _, i := range u.order {
		job, part := u.jobs[i], &u.parts[i]
		part.gate.Reset(job.K, job.MinCount)
		part.postings, part.total, part.first = 0, 0, part.first[:0]
		part.err = run.Catch(func() { part.query.resolve(u.m.index, job.Query.(*postings.MatchQuery), tiles) })
		u.m.spend(u.shift, u.epoch, len(part.query.rare))
	}
	u.eachFilter(func(_, number int, jobs jobsOf) {
		if number >= 0 {
			u.passers.resolve(u.filters.distinct.Filters[number], tiles, jobs)
		}
	})
	for tile := u.from; tile < u.to && ctx.Err() == nil; tile++ {
		u.expire()
		if u.passers == nil {
			for _, i := range u.order {
				u.matchTile(tile, u.jobs[i], &u.parts[i], tilePass{})
			}
			continue
		}
		u.eachFilter(func(turn, number int, jobs jobsOf) {
			pass := tilePass{}
			if number >= 0 {
				pass = u.passers.pass(turn, u.m.tiles.First+tile, jobs)
			}
			for _, i := range jobs.order {
				u.matchTile(tile, u.jobs[i], &u.parts[i], pass)
			}
		})
	}
	for _, i := range u.order {
		u.parts[i].query.release()
	}
}

// eachFilter calls do for jobs with the same filter, whose number is negative where they have none; turn is that among the filters of the
// unit.
func (u *unit) eachFilter(do func(turn, number int, jobs jobsOf)) {
	turn := 0
	for first, end := 0, 0; first < len(u.order); first = end {
		number := u.filters.of(u.order[first])
		for end < len(u.order) && u.filters.of(u.order[end]) == number {
			end++
		}
		do(turn, number, jobsOf{u.jobs, u.parts, u.order[first:end]})
		if number >= 0 {
			turn++
		}
	}
}

// expire ends the jobs whose deadlines have passed.
func (u *unit) expire() {
	if !u.timed {
		return
	}
	now := time.Now()
	for _, i := range u.order {
		if deadline := u.jobs[i].Deadline; u.parts[i].err == nil && !deadline.IsZero() && !now.Before(deadline) {
			u.parts[i].err = gpuexec.ErrDeadline
		}
	}
}

// matchTile counts one job in one of the matcher's tiles. A panic ends this job only.
func (u *unit) matchTile(tile int, job *run.Job, part *matchPart, pass tilePass) {
	if part.err != nil {
		return
	}
	base := uint32(u.m.tiles.First+tile) * store.TileObjects
	if pass.words != nil {
		if part.total += uint64(pass.count); pass.count == 0 {
			u.m.spend(u.shift, u.epoch, tileCost)
			return
		}
		if _, only, _ := job.Query.(*postings.MatchQuery).Filtering(); only {
			part.takeFirst(pass, base, job.K)
			return
		}
	}
	postings, units, own := 0, 0, u.m.scratch[u.shift.Seat]
	part.err = run.Catch(func() {
		postings, units = own.ways.gather(u.m.index, u.m.sliced, u.m.tiles.First+tile, tile, tile-u.from, &part.query, pass)
		if postings > 0 {
			own.ways.count(&own.counters, &own.sums, &part.gate, pass, counterWidth(job.Bound), postings, base, u.m.index.TileLen(u.m.tiles.First+tile))
		}
	})
	if part.err != nil {
		own.counters = counters{} // in an unknown state
	}
	part.postings += uint64(units)
	u.m.spend(u.shift, u.epoch, postings+tileCost)
}

// spend is shift.spend for who has counted in an index.
func (m *matcher) spend(s *run.Shift, epoch store.Epoch, work int) {
	if s.Due(work) {
		m.leave(s, epoch)
	}
	s.Spend(work)
}

// leave makes sure that the seat's counters are zero for whoever has it next, which may be another index: postings that changed
// between counting and harvesting leave what was not cleared. epoch is from before the first posting was read.
func (m *matcher) leave(s *run.Shift, epoch store.Epoch) {
	if m.index.Unchanged(epoch) != nil {
		m.scratch[s.Seat].counters = counters{}
	}
}

// tileCost is what a query costs in a tile whatever its postings, in postings.
const tileCost = 500

// finish joins the parts of a job, which are stride apart.
func (m *matcher) finish(job *run.Job, parts []matchPart, stride, ranges int) {
	all := &parts[0]
	for r := range ranges {
		part := &parts[r*stride]
		job.Units += part.postings
		if part.err != nil {
			job.Err = part.err
			return
		}
		if r > 0 {
			all.gate.Add(&part.gate)
		}
	}
	job.Candidates += all.gate.Passed
	job.Entries = all.gate.Finish(job.Entries[:0])
	m.answer(job, parts, stride, ranges)
}

// takeParts returns n parts, with the memory of earlier ones.
func (m *matcher) takeParts(n int) *[]matchPart {
	parts := m.parts.Get()
	*parts = run.Resize(*parts, n)
	return parts
}
