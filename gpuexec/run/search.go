package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
)

// A Searcher is a source on an engine: it checks plans, lets matchers count, and rescores. It owns its matchers. What a call
// needs is kept for the next one, so that a call allocates little, however many plans it has.
type Searcher struct {
	source   gpuexec.Source
	crew     *Crew // for rescoring
	families []string
	matchers []Matcher // by family
	capacity gpuexec.Capacity

	batches    sync.Pool // of *batch
	rescorings sync.Pool // of *rescoring
	parts      sync.Pool // of *scanPart
}

// NewSearcher makes a searcher of matchers, by family. capacity is the engine's: the matchers add how they lie on it.
func NewSearcher(x gpuexec.Source, crew *Crew, matchers map[string]Matcher, capacity gpuexec.Capacity) *Searcher {
	s := &Searcher{source: x, crew: crew, capacity: capacity, families: slices.Sorted(maps.Keys(matchers))}
	s.capacity.DeviceBytes += capacity.SharedBytes
	for _, family := range s.families {
		m := matchers[family]
		s.matchers = append(s.matchers, m)
		r := m.Residence()
		s.capacity.IndexBytes += r.IndexBytes
		s.capacity.DeviceBytes += r.DeviceBytes
		s.capacity.Parts = max(s.capacity.Parts, r.Parts)
		if s.capacity.Form != "" {
			s.capacity.Form += "; "
		}
		s.capacity.Form += r.Form
	}
	return s
}

// Matcher is that of a family; nil where there is none.
func (s *Searcher) Matcher(family string) Matcher {
	if i := s.family(family); i >= 0 {
		return s.matchers[i]
	}
	return nil
}

func (s *Searcher) family(name string) int { return slices.Index(s.families, name) }

// Families are those of the matchers.
func (s *Searcher) Families() []string { return s.families }

// Capacity implements gpuexec.Searcher.
func (s *Searcher) Capacity() gpuexec.Capacity { return s.capacity }

// Cost implements gpuexec.Searcher.
func (s *Searcher) Cost(p *gpuexec.Plan) int64 {
	if m := s.Matcher(p.Family); m != nil {
		return m.Cost(p)
	}
	return 0
}

// Close implements gpuexec.Searcher.
func (s *Searcher) Close() error {
	matchers := make(map[string]Matcher)
	for i, m := range s.matchers {
		matchers[s.families[i]] = m
	}
	return closeAll(matchers)
}

func closeAll(matchers map[string]Matcher) error {
	var errs []error
	for _, m := range matchers {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

// A batch is the memory of one Search call.
type batch struct {
	plans   []planJob
	checked []checked
	round   []*planJob // what the matchers get next
	jobs    []*Job     // of one matcher
	pending []*planJob // rescorings that are not done
	pace    callPace
}

// checked is what check said of a plan.
type checked struct {
	matcher int
	bound   uint32
	err     error
}

// A planJob is one plan on its way through a searcher.
type planJob struct {
	match     Job
	matcher   int
	plan      *gpuexec.Plan
	answer    *gpuexec.Answer
	rescoring *rescoring // with Plan.Rescore
}

// expired is true when the plan's deadline has passed.
func (j *planJob) expired(now time.Time) bool {
	return !j.plan.Deadline.IsZero() && !now.Before(j.plan.Deadline)
}

// Search implements gpuexec.Searcher.
func (s *Searcher) Search(ctx context.Context, plans []gpuexec.Plan, answers []gpuexec.Answer, t *gpuexec.Trace) error {
	if len(plans) != len(answers) {
		return fmt.Errorf("searching: %d answers for %d plans", len(answers), len(plans))
	}
	b, _ := s.batches.Get().(*batch)
	if b == nil {
		b = new(batch)
	}
	defer s.release(b)
	b.pace.Pace = gpuexec.PaceOf(ctx)
	b.pace.spent.Store(0)
	if !b.pace.Background {
		s.crew.enter()
		defer s.crew.leave()
	}
	if err := s.begin(ctx, b, plans, answers); err != nil {
		return fmt.Errorf("checking a batch of %d: %w", len(plans), err)
	}
	if err := s.match(ctx, b, t); err != nil {
		return fmt.Errorf("matching a batch of %d: %w", len(b.round), err)
	}
	hits := 0
	for _, job := range b.round {
		hits += len(job.match.Entries)
	}
	const hit = 3 // nanoseconds
	err := s.crew.Each(ctx, len(b.plans), hits*hit, func(i int) {
		if job := &b.plans[i]; job.rescoring == nil {
			job.answerMatch()
		}
	})
	if err != nil {
		return fmt.Errorf("answering a batch of %d: %w", len(b.round), err)
	}
	if err := s.rescore(ctx, b, t); err != nil {
		return fmt.Errorf("rescoring a batch of %d: %w", len(b.round), err)
	}
	return nil
}

// check says whether the plan can be executed.
func (s *Searcher) check(p *gpuexec.Plan) (c checked) {
	if p.K < 1 || p.K > gpuexec.MaxK {
		c.err = planErrorf("k is %d, it must be 1 to %d", p.K, gpuexec.MaxK)
		return c
	}
	if k := p.Wanted(); k < 1 || k > gpuexec.MaxK {
		c.err = planErrorf("k is %d, it must be 1 to %d", k, gpuexec.MaxK)
		return c
	}
	if c.matcher = s.family(p.Family); c.matcher < 0 {
		c.err = planErrorf("index %s has no structure %q that its engine can search: it has %q", s.source.Name(), p.Family, s.families)
		return c
	}
	if c.bound, c.err = s.matchers[c.matcher].Check(p); c.err != nil {
		c.err = &gpuexec.PlanError{Reason: c.err.Error()}
	}
	return c
}

func planErrorf(format string, args ...any) error {
	return &gpuexec.PlanError{Reason: fmt.Sprintf(format, args...)}
}

// resumes is what a plan goes on with, nil when it begins.
func resumes(p *gpuexec.Plan) *unfinished {
	if u, _ := p.Unfinished.(*unfinished); u != nil && u.rescoring != nil {
		return u
	}
	return nil
}

// checkAll checks the plans of a batch. How long that takes, some of the first ones tell.
func (s *Searcher) checkAll(ctx context.Context, b *batch, plans []gpuexec.Plan) error {
	b.checked = slices.Grow(b.checked[:0], len(plans))[:len(plans)]
	check := func(i int) {
		if u := resumes(&plans[i]); u != nil { // was checked when it began
			b.checked[i] = checked{matcher: s.family(plans[i].Family), bound: u.bound}
			return
		}
		b.checked[i] = s.check(&plans[i])
	}
	const (
		step = 8
		most = 8 * step              // plans that are checked to learn how long it takes
		long = 50 * time.Microsecond // it is clear then
	)
	done := 0
	few := func(n int) error { // the first of those that are left
		n = min(n, len(plans)-done)
		err := s.crew.Each(ctx, n, 0, func(i int) { check(done + i) })
		done += n
		return err
	}
	if err := few(step); err != nil { // into caches that do not have them yet
		return err
	}
	start, took := time.Now(), time.Duration(0)
	for warm := done; done < len(plans) && done < warm+most && took < long; took = time.Since(start) {
		if err := few(step); err != nil {
			return err
		}
	}
	first, rest := done, len(plans)-done
	each := int(took) / max(1, done-step)
	return s.crew.Each(ctx, rest, each*rest, func(i int) { check(first + i) })
}

// begin checks the plans and makes jobs of the sound ones. A plan that matches nothing by its query alone, or in
// an index without objects, gets its answer from an empty list of entries.
func (s *Searcher) begin(ctx context.Context, b *batch, plans []gpuexec.Plan, answers []gpuexec.Answer) error {
	if cap(b.plans) < len(plans) {
		b.plans = append(b.plans[:cap(b.plans)], make([]planJob, len(plans)-cap(b.plans))...)
	}
	b.plans = b.plans[:0]
	if err := s.checkAll(ctx, b, plans); err != nil {
		return err
	}
	for i := range plans {
		plan, answer := &plans[i], &answers[i]
		*answer = gpuexec.Answer{Hits: answer.Hits[:0]}
		c := b.checked[i]
		if c.err != nil {
			answer.Err = c.err
			continue
		}
		if !plan.Deadline.IsZero() && !time.Now().Before(plan.Deadline) {
			answer.Err = gpuexec.ErrDeadline
			continue
		}
		b.plans = b.plans[:len(b.plans)+1]
		job := &b.plans[len(b.plans)-1]
		*job = planJob{
			plan: plan, answer: answer, matcher: c.matcher,
			match: Job{Query: plan.Query, K: plan.Candidates(), MinCount: max(1, plan.MinCount), Bound: c.bound, Rescore: plan.Rescore,
				Deadline: plan.Deadline, Entries: job.match.Entries[:0], Known: job.match.Known[:0]},
		}
		if u := resumes(plan); u != nil {
			job.resume(u)
			b.pending = append(b.pending, job)
			continue
		}
		if plan.Rescore != nil {
			job.rescoring = s.rescoring()
			b.pending = append(b.pending, job)
		}
		if objects := s.source.Objects(); uint64(job.match.K) > uint64(objects) {
			job.match.K = int(objects)
		}
		if job.match.K > 0 && job.match.MinCount <= c.bound {
			b.round = append(b.round, job)
		}
	}
	return nil
}

// match hands the round to the matchers.
func (s *Searcher) match(ctx context.Context, b *batch, t *gpuexec.Trace) error {
	for i, m := range s.matchers {
		b.jobs = b.jobs[:0]
		for _, job := range b.round {
			if job.matcher == i {
				b.jobs = append(b.jobs, &job.match)
			}
		}
		if len(b.jobs) == 0 {
			continue
		}
		if err := m.Match(ctx, b.jobs, t); err != nil {
			return err
		}
	}
	return nil
}

// rescore brings the rescorings of a batch from candidates to answers, as far as the call's allowance goes.
func (p *Searcher) rescore(ctx context.Context, b *batch, t *gpuexec.Trace) error {
	for len(b.pending) > 0 {
		err := p.crew.Run(ctx, len(b.pending), func(s *Shift, unit int) {
			job := b.pending[unit]
			if err := Protect(func() { job.score(ctx, p, b, s) }); err != nil {
				job.fail(err)
			}
		})
		if err != nil {
			return err
		}
		if err := p.scan(ctx, b, t); err != nil {
			return err
		}
		b.round = b.round[:0]
		left := b.pending[:0]
		over := b.pace.over()
		for _, job := range b.pending {
			s := job.rescoring
			switch {
			case s.state == rescoringDone:
				job.answerScores()
				continue
			case over || s.state != rescoringWiden || b.pace.Plan > 0 && time.Duration(s.spent.Load())-s.before >= b.pace.Plan:
				job.interrupt()
				continue
			}
			s.state = rescoringMatched
			job.match.K = min(2*job.match.K, int(p.source.Objects()))
			job.match.Rescore, job.match.Known = nil, job.match.Known[:0] // the first ones have been scored
			b.round = append(b.round, job)
			left = append(left, job)
		}
		clear(b.pending[len(left):])
		b.pending = left
		if err := p.match(ctx, b, t); err != nil {
			return err
		}
	}
	return nil
}

// release keeps a batch's memory for the next call, without what it points to.
func (s *Searcher) release(b *batch) {
	for i := range b.plans {
		job := &b.plans[i]
		if job.rescoring != nil {
			job.rescoring.parts = nil
			s.rescorings.Put(job.rescoring)
		}
		*job = planJob{match: Job{Entries: job.match.Entries[:0], Known: job.match.Known[:0]}}
	}
	b.pace.Pace = nil
	clear(b.checked)
	clear(b.round)
	clear(b.jobs)
	clear(b.pending)
	b.round, b.jobs, b.pending = b.round[:0], b.jobs[:0], b.pending[:0]
	s.batches.Put(b)
}

// answerMatch fills the answer of a plan whose hits are in the order of counts.
func (j *planJob) answerMatch() {
	a, entries := j.answer, j.match.Entries
	a.Units, a.Candidates = j.match.Units, j.match.Candidates
	if a.Err = j.match.Err; a.Err != nil {
		return
	}
	if cap(a.Hits) < len(entries) {
		a.Hits = make([]gpuexec.Hit, 0, len(entries))
	}
	for i := len(entries) - 1; i >= 0; i-- {
		a.Hits = append(a.Hits, gpuexec.Hit{ID: entries[i].ID(), Count: entries[i].Count()})
	}
	a.Exact, a.Value = true, j.match.Value
	setMCK(a, j.plan.K)
}

// setMCK gives an answer for k its MC_k.
func setMCK(a *gpuexec.Answer, k int) {
	if len(a.Hits) >= k {
		a.MCK = a.Hits[k-1].Count
	}
}
