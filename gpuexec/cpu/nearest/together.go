package nearest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/internal/processor"
)

const (
	// mostTogether is the most queries that a core answers together: of more, each leaves less to save.
	mostTogether = 256
	// A set is a part of what is left for a core, so that the last ones are small and cores end together, but of leastOfSet queries if there are as many for each.
	partOfSet, leastOfSet = 2, 8
)

// set is some jobs that one core answers together, by one access path of one column.
type set struct {
	column   *distance.Column
	method   string
	own      *bound
	searcher distance.Together // nil: nobody answers several at once
	jobs     []int
	asks     []distance.Ask // of each: memory
}

// sets are the jobs that are answered together, cut for the cores, and those that are not, in the memory of both.
func (b *Batch) sets(chosen []int) (sets []set, alone []int) {
	alone = chosen[:0]
	var all []set // of each path
	for _, n := range chosen {
		q := b.jobs[n].Query.(*distance.Query)
		at := slices.IndexFunc(all, func(s set) bool { return s.column == q.Column && s.method == b.Method(n) })
		if at < 0 {
			s := set{column: q.Column, method: b.Method(n), own: b.scanned[b.position(q.Column)].bound}
			if s.own != nil {
				s.searcher, _ = s.own.searchers[s.method].(distance.Together)
			}
			if s.searcher != nil {
				s.jobs = make([]int, 0, len(chosen))
			}
			all, at = append(all, s), len(all)
		}
		s := &all[at]
		if s.searcher == nil || b.begun(n) != nil || !s.searcher.Joins(q) {
			alone = append(alone, n)
			continue
		}
		s.jobs = append(s.jobs, n)
	}
	b.asks = run.Resize(b.asks, len(chosen)-len(alone))
	asks := b.asks
	for _, s := range all {
		jobs, cores := s.jobs, b.crew.Size()
		most := mostTogether
		if work := b.work(jobs); work > chunkWork {
			most = min(most, max(1, int(int64(len(jobs))*int64(chunkWork)/int64(work))))
		}
		least := min(leastOfSet, (len(jobs)+cores-1)/cores)
		for len(jobs) > 0 {
			n := len(jobs)
			if cores > 1 {
				n = max(least, n/(partOfSet*cores))
			}
			n = min(n, most, len(jobs))
			s.jobs, jobs = jobs[:n], jobs[n:]
			s.asks, asks = asks[:n], asks[n:]
			sets = append(sets, s)
		}
	}
	return sets, alone
}

// searchTogether answers jobs that may be answered together, and returns those that are left, in the memory of all.
func (b *Batch) searchTogether(ctx context.Context, chosen []int) (left []int, err error) {
	sets, left := b.sets(chosen)
	more := make([][]int, len(sets))
	err = b.crew.Run(ctx, len(sets), func(shift *run.Shift, unit int) {
		s := &sets[unit]
		if unit > 0 && b.exhausted() {
			for _, n := range s.jobs {
				b.jobs[n].Postponed = true
			}
			return
		}
		more[unit] = b.searchSet(ctx, s, shift)
	})
	for _, jobs := range more {
		left = append(left, jobs...)
	}
	return left, err
}

// searchSet answers the jobs of a set, each of which takes its part of the time, and returns those that are left.
func (b *Batch) searchSet(ctx context.Context, s *set, shift *run.Shift) (left []int) {
	start, n, memory := time.Now(), time.Duration(len(s.jobs)), answers{jobs: len(s.jobs)}
	for i, at := range s.jobs {
		job := b.jobs[at]
		did := memory.of(job)
		did.Method = b.Method(at)
		s.asks[i] = distance.Ask{Query: job.Query.(*distance.Query), Passing: b.passingOf(at), Pass: b.passes(at, s.own.ids), Did: did}
	}
	stop := func(ask int) error {
		now := time.Now()
		return over(b.jobs[s.jobs[ask]], now, now.Sub(start)/n)
	}
	done := func(ask int) {
		at, a := s.jobs[ask], &s.asks[ask]
		switch job := b.jobs[at]; {
		case a.Err != nil:
			job.Err = a.Err
		case a.Left:
			left = append(left, at)
		default:
			job.Approximate = !a.Did.Exact
			s.own.name(a.Hits)
			b.Answer(at, a.Hits, a.Did)
		}
	}
	var failed error
	var err error
	worked := processor.Time(func() { err = run.Catch(func() { failed = s.searcher.SearchAll(ctx, s.asks, stop, done) }) })
	if err != nil {
		failed = err
	}
	took := time.Since(start)
	b.spent.Add(int64(took))
	expected, ended := time.Duration(0), time.Duration(0)
	for i, at := range s.jobs {
		job := b.jobs[at]
		job.Spent = took / n
		if failed != nil {
			job.Err = failed
			if cause := context.Cause(ctx); errors.Is(cause, gpuexec.ErrDeadline) || errors.Is(cause, gpuexec.ErrWork) {
				job.Err = cause
			}
		}
		if job.Err == nil && !s.asks[i].Left {
			expected, ended = expected+b.choices[at].Predicted, ended+1
			b.ended(ctx, shift, at)
		}
	}
	if failed != nil {
		return nil
	}
	b.saw(b.position(s.column), work{s.method, worked * ended / n, expected})
	return left
}
