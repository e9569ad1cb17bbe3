package run

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
)

// A pipeline is the part of a Searcher that all engines share: it checks plans, lets a matcher count, and
// verifies sequences.
type Pipeline struct {
	Index   *index.Index
	Matcher Matcher
	Crew    *Crew // for verification, and for the matcher of the CPU

	batches   sync.Pool // of *batch
	sequences sync.Pool // of *sequenceJob
	parts     sync.Pool // of *scanPart
}

// A batch is the memory of one Search call.
type batch struct {
	plans   []planJob
	checked []checked
	round   []*Job     // what the matcher gets next
	pending []*planJob // sequences that are not done
	pace    callPace
}

// checked is what check said of a plan.
type checked struct {
	bound uint32
	err   error
}

// A planJob is one plan on its way through the pipeline.
type planJob struct {
	match    Job
	plan     *gpuexec.Plan
	answer   *gpuexec.Answer
	sequence *sequenceJob // with MatchPlan.Verify
}

// expired is true when the plan's deadline has passed.
func (j *planJob) expired(now time.Time) bool {
	return !j.plan.Deadline.IsZero() && !now.Before(j.plan.Deadline)
}

// Search is that of gpuexec.Searcher.
func (p *Pipeline) Search(ctx context.Context, plans []gpuexec.Plan, answers []gpuexec.Answer, t *gpuexec.Trace) error {
	if len(plans) != len(answers) {
		return fmt.Errorf("searching: %d answers for %d plans", len(answers), len(plans))
	}
	b, _ := p.batches.Get().(*batch)
	if b == nil {
		b = new(batch)
	}
	defer p.release(b)
	b.pace.Pace = gpuexec.PaceOf(ctx)
	b.pace.spent.Store(0)
	if !b.pace.Background {
		p.Crew.enter()
		defer p.Crew.leave()
	}
	if err := p.begin(ctx, b, plans, answers); err != nil {
		return fmt.Errorf("checking a batch of %d: %w", len(plans), err)
	}
	if err := p.Matcher.Match(ctx, b.round, t); err != nil {
		return fmt.Errorf("matching a batch of %d: %w", len(b.round), err)
	}
	hits := 0
	for _, job := range b.round {
		hits += len(job.Entries)
	}
	const hit = 3 // nanoseconds
	err := p.Crew.Each(ctx, len(b.plans), hits*hit, func(i int) {
		if job := &b.plans[i]; job.sequence == nil {
			job.answerMatch()
		}
	})
	if err != nil {
		return fmt.Errorf("answering a batch of %d: %w", len(b.round), err)
	}
	if err := p.verify(ctx, b, t); err != nil {
		return fmt.Errorf("verifying a batch of %d: %w", len(b.round), err)
	}
	return nil
}

// begin checks the plans and makes jobs of the sound ones. A plan that matches nothing by its query alone, or in
// an index without objects, gets its answer from an empty list of entries.
func (p *Pipeline) begin(ctx context.Context, b *batch, plans []gpuexec.Plan, answers []gpuexec.Answer) error {
	x := p.Index
	if cap(b.plans) < len(plans) {
		b.plans = append(b.plans[:cap(b.plans)], make([]planJob, len(plans)-cap(b.plans))...)
	}
	b.plans = b.plans[:0]
	b.checked = slices.Grow(b.checked[:0], len(plans))[:len(plans)]
	items := 0
	for i := range plans {
		items += len(plans[i].Match.Query.Items)
	}
	const item = 10 // nanoseconds
	err := p.Crew.Each(ctx, len(plans), items*item, func(i int) {
		if u, _ := plans[i].Unfinished.(*unfinished); u != nil && u.sequence != nil { // was checked when it began
			b.checked[i] = checked{bound: u.bound}
			return
		}
		b.checked[i].bound, b.checked[i].err = Check(&plans[i], x)
	})
	if err != nil {
		return err
	}
	for i := range plans {
		plan, answer := &plans[i], &answers[i]
		*answer = gpuexec.Answer{Hits: answer.Hits[:0]}
		bound := b.checked[i].bound
		if err := b.checked[i].err; err != nil {
			answer.Err = err
			continue
		}
		if !plan.Deadline.IsZero() && !time.Now().Before(plan.Deadline) {
			answer.Err = gpuexec.ErrDeadline
			continue
		}
		b.plans = b.plans[:len(b.plans)+1]
		job := &b.plans[len(b.plans)-1]
		m := &plan.Match
		*job = planJob{
			plan: plan, answer: answer,
			match: Job{Query: &m.Query, K: m.K, MinCount: max(1, m.MinCount), Bound: bound, Deadline: plan.Deadline,
				Entries: job.match.Entries[:0], Distances: job.match.Distances[:0]},
		}
		if u, _ := plan.Unfinished.(*unfinished); u != nil && u.sequence != nil {
			job.resume(u)
			b.pending = append(b.pending, job)
			continue
		}
		if m.Verify != nil {
			job.match.K, job.match.Text, job.match.Nearest = max(m.K, m.Verify.K), m.Verify.Text, m.Verify.K
			job.sequence = p.sequence(m.Verify)
			b.pending = append(b.pending, job)
		}
		if objects := x.Objects(); uint64(job.match.K) > uint64(objects) {
			job.match.K = int(objects)
		}
		if job.match.K > 0 && job.match.MinCount <= bound {
			b.round = append(b.round, &job.match)
		}
	}
	return nil
}

// release keeps a batch's memory for the next call, without what it points to.
func (p *Pipeline) release(b *batch) {
	for i := range b.plans {
		job := &b.plans[i]
		if job.sequence != nil {
			job.sequence.plan, job.sequence.parts = nil, nil
			p.sequences.Put(job.sequence)
		}
		*job = planJob{match: Job{Entries: job.match.Entries[:0], Distances: job.match.Distances[:0]}}
	}
	b.pace.Pace = nil
	clear(b.checked)
	clear(b.round)
	clear(b.pending)
	b.round, b.pending = b.round[:0], b.pending[:0]
	p.batches.Put(b)
}

// answerMatch fills the answer of a plan without verification.
func (j *planJob) answerMatch() {
	a, entries := j.answer, j.match.Entries
	a.Postings, a.Candidates = j.match.Postings, j.match.Candidates
	if a.Err = j.match.Err; a.Err != nil {
		return
	}
	if cap(a.Hits) < len(entries) {
		a.Hits = make([]gpuexec.Hit, 0, len(entries))
	}
	for i := len(entries) - 1; i >= 0; i-- {
		a.Hits = append(a.Hits, gpuexec.Hit{ID: entries[i].ID(), Count: entries[i].Count(), Distance: gpuexec.NoDistance})
	}
	a.Exact = true
	setMCK(a, j.plan.Match.K)
}

// setMCK gives an answer for k its MC_k.
func setMCK(a *gpuexec.Answer, k int) {
	if len(a.Hits) >= k {
		a.MCK = a.Hits[k-1].Count
	}
}
