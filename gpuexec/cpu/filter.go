package cpu

import (
	"context"
	"slices"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/passing"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/postings"
)

// tilePass says which objects of a tile pass a query's filter.
type tilePass struct {
	words *passing.Words // zero beyond the tile's objects; nil: all pass
	count int            // how many pass, where words says it
}

// allQuads has a bit for each quad of a group.
const allQuads = 1<<(groupWords/quadWords) - 1

// everybody is a group whose objects all pass. It is not changed.
var everybody = func() (all [groupWords]uint64) {
	for i := range all {
		all[i] = ^uint64(0)
	}
	return all
}()

// group is the words of a group, and a bit for each of its quads in which an object passes. Without a filter they have places without an
// object too.
func (p tilePass) group(group int) (words *[groupWords]uint64, quads uint) {
	if p.words == nil {
		return &everybody, allQuads
	}
	words = (*[groupWords]uint64)(p.words[group*groupWords:])
	for quad := range groupWords / quadWords {
		if q := (*[quadWords]uint64)(words[quad*quadWords:]); q[0]|q[1]|q[2]|q[3] != 0 {
			quads |= 1 << quad
		}
	}
	return words, quads
}

// has tells whether an object passes.
func (p tilePass) has(id uint16) bool {
	return p.words == nil || p.words[id/64]>>(id%64)&1 != 0
}

// filtered is the jobs of a batch by their filters, each of which is found once.
type filtered struct {
	distinct passing.Distinct
	order    []int32 // the numbers of the jobs: those with one filter follow each other
}

// filter puts the jobs of a batch in order.
func (m *matcher) filter(jobs []*run.Job) *filtered {
	f := m.filters.Get()
	f.distinct.Find(jobs)
	f.order = f.order[:0]
	for i := range jobs {
		f.order = append(f.order, int32(i))
	}
	if n := len(f.distinct.Filters); n > 0 && n < len(jobs) {
		slices.SortStableFunc(f.order, func(a, b int32) int { return f.of(a) - f.of(b) })
	}
	return f
}

// of is the number of a job's filter.
func (f *filtered) of(job int32) int {
	n, ok := f.distinct.Of(int(job))
	if !ok {
		return -1
	}
	return n
}

func (m *matcher) releaseFilters(f *filtered) {
	f.distinct.Release()
	m.filters.Put(f)
}

// Run implements passing.Runs: lists that Load has made.
func (m *matcher) Run(tile, attr int, lo, hi uint32) ([]uint16, bool) {
	return m.sliced[attr].tiles[tile-m.tiles.First].run(lo, hi)
}

// passers evaluates the filters of a unit: a filter is resolved for the unit's tiles, and evaluated where its jobs are about to be counted,
// once for all of the unit that have it. So what passes is in the nearest cache when the Gate meets it, and no more than a tile of it is kept.
// A unit has at most so many filters as jobs; one that several units ask for is evaluated by each, which is little beside their jobs.
type passers struct {
	evaluator passing.Evaluator
	resolved  []passing.Resolved // by turn: of a job with another filter than the one before
	deadline  time.Time          // of the last of the jobs that wait for the filter at hand; zero: never
}

// passers begins a unit.
func (m *matcher) beginPassers(ctx context.Context, u *unit) *passers {
	p := m.evaluators.Get()
	p.evaluator.Begin(passing.Index{Lists: m.index, Stored: m.stored, Runs: m}, func(work int) error {
		m.spend(u.shift, u.epoch, work)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !p.deadline.IsZero() && !time.Now().Before(p.deadline):
			return gpuexec.ErrDeadline
		}
		return nil
	})
	p.resolved = p.resolved[:0]
	return p
}

func (m *matcher) endPassers(p *passers) {
	p.evaluator.End()
	for i := range p.resolved {
		p.resolved[i].Release()
	}
	m.evaluators.Put(p)
}

// resolve resolves a filter for jobs of a unit.
func (p *passers) resolve(f *filter.Filter, tiles run.Tiles, jobs jobsOf) {
	if len(p.resolved) < cap(p.resolved) {
		p.resolved = p.resolved[:len(p.resolved)+1]
	} else {
		p.resolved = append(p.resolved, passing.Resolved{})
	}
	r := &p.resolved[len(p.resolved)-1]
	p.guard(jobs, func() error { return p.evaluator.Resolve(r, f, tiles) })
}

// pass evaluates a filter in a tile for jobs of a unit, some of which are still to be answered.
func (p *passers) pass(turn, tile int, jobs jobsOf) (pass tilePass) {
	p.guard(jobs, func() (err error) {
		pass.words, pass.count, err = p.evaluator.Pass(&p.resolved[turn], tile)
		return err
	})
	return pass
}

// guard does what jobs need, until the last of them has no time left. It fails or panics for all of them.
func (p *passers) guard(jobs jobsOf, do func() error) {
	waiting := false
	p.deadline = time.Time{}
	for _, i := range jobs.order {
		switch job := jobs.jobs[i]; {
		case jobs.parts[i].err != nil:
		case job.Deadline.IsZero():
			waiting, p.deadline = true, time.Time{}
		case !waiting || !p.deadline.IsZero() && job.Deadline.After(p.deadline):
			waiting, p.deadline = true, job.Deadline
		}
	}
	if !waiting {
		return
	}
	var err error
	if failed := run.Catch(func() { err = do() }); failed != nil {
		err = failed
	}
	if err == nil {
		return
	}
	p.evaluator.Resume()
	for _, i := range jobs.order {
		if part := &jobs.parts[i]; part.err == nil {
			part.err = err
		}
	}
}

// jobsOf are some of a batch's jobs, by number.
type jobsOf struct {
	jobs  []*run.Job
	parts []matchPart
	order []int32
}

// answer fills in what of a job's answer depends on its filter alone: the total, and the hits of a query that is nothing but a filter. parts
// are those of the job, which are stride apart.
func (m *matcher) answer(job *run.Job, parts []matchPart, stride, ranges int) {
	q := job.Query.(*postings.MatchQuery)
	isFiltered, only, total := q.Filtering()
	if total {
		job.Total = uint64(m.tiles.Objects(m.index.Objects()))
		if isFiltered {
			job.Total = 0
			for r := range ranges {
				job.Total += parts[r*stride].total
			}
		}
	}
	if !only {
		return
	}
	job.Entries = job.Entries[:0]
	for r := range ranges {
		first := parts[r*stride].first
		job.Entries = append(job.Entries, first[:min(len(first), job.K-len(job.Entries))]...)
	}
	job.Candidates += uint64(len(job.Entries))
	slices.Reverse(job.Entries) // the best one last
}

// takeFirst takes what passes in a tile whose first object is base, until there are k.
func (part *matchPart) takeFirst(pass tilePass, base uint32, k int) {
	if len(part.first) >= k {
		return
	}
	pass.words.Each(func(id int) bool {
		part.first = append(part.first, topk.NewEntry(0, base+uint32(id)))
		return len(part.first) < k
	})
}

// Passing implements run.Passer.
func (m *matcher) Passing(ctx context.Context, query run.Filtering) (filter.Set, error) {
	x := passing.Index{Lists: m.index, Stored: m.stored, Runs: m}
	return passing.Objects(ctx, m.crew, x, query.(*postings.MatchQuery).Filter, m.tiles)
}
