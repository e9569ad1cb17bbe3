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

// mostTogether is the most queries that a core answers together: of more, each leaves less to save.
const mostTogether = 256

// set is some jobs that one core answers together, by one access path of one column.
type set struct {
	column   *distance.Column
	method   string
	own      *bound
	searcher distance.Together // nil: nobody answers several at once
	jobs     []int
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
	for _, s := range all {
		jobs := s.jobs
		parts := max((len(jobs)+mostTogether-1)/mostTogether, min(len(jobs), b.crew.Size()), min(len(jobs), int(b.work(jobs)/chunkWork)))
		for i := range parts {
			s.jobs = jobs[len(jobs)*i/parts : len(jobs)*(i+1)/parts]
			sets = append(sets, s)
		}
	}
	return sets, alone
}

// searchTogether answers jobs that may be answered together, and returns those that are left, in the memory of all.
func (b *Batch) searchTogether(ctx context.Context, chosen []int) (left []int, err error) {
	sets, left := b.sets(chosen)
	more := make([][]int, len(sets))
	err = b.crew.Run(ctx, len(sets), func(_ *run.Shift, unit int) {
		s := &sets[unit]
		if unit > 0 && b.exhausted() {
			for _, n := range s.jobs {
				b.jobs[n].Postponed = true
			}
			return
		}
		more[unit] = b.searchSet(ctx, s)
	})
	for _, jobs := range more {
		left = append(left, jobs...)
	}
	return left, err
}

// searchSet answers the jobs of a set, each of which takes its part of the time, and returns those that are left.
func (b *Batch) searchSet(ctx context.Context, s *set) (left []int) {
	start, n := time.Now(), time.Duration(len(s.jobs))
	asks, answers := make([]distance.Ask, len(s.jobs)), make([]distance.Answer, len(s.jobs))
	for i, at := range s.jobs {
		job := b.jobs[at]
		answers[i].Method = b.Method(at)
		asks[i] = distance.Ask{
			Query: job.Query.(*distance.Query), Passing: b.passingOf(at), Pass: b.passes(at, s.own.ids), Did: &answers[i],
			Stop: func() error { now := time.Now(); return over(job, now, now.Sub(start)/n) },
		}
	}
	var failed error
	var err error
	worked := processor.Time(func() { err = run.Catch(func() { failed = s.searcher.SearchAll(ctx, asks) }) })
	if err != nil {
		failed = err
	}
	took := time.Since(start)
	b.spent.Add(int64(took))
	for i, at := range s.jobs {
		job, a := b.jobs[at], &asks[i]
		job.Spent = took / n
		b.worked[at].Add(int64(worked) / int64(n))
		switch {
		case failed != nil:
			job.Err = failed
			if cause := context.Cause(ctx); errors.Is(cause, gpuexec.ErrDeadline) || errors.Is(cause, gpuexec.ErrWork) {
				job.Err = cause
			}
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
	return left
}
