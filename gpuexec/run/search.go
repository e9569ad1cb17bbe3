package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/refusal"
	"github.com/geniemq/geniemq/index/verify"
	"github.com/geniemq/geniemq/internal/pool"
)

// A Searcher is a source on an engine: it checks plans, lets matchers count, and rescores. It owns its matchers. What a call
// needs is kept for the next one, so that a call allocates little, however many plans it has.
type Searcher struct {
	source   gpuexec.Source
	crew     *Crew // for rescoring
	families []string
	matchers []Matcher // by family
	capacity gpuexec.Capacity

	batches    pool.Of[batch]
	rescorings pool.Of[rescoring]
	parts      pool.Of[scanPart]
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

func (s *Searcher) Capacity() gpuexec.Capacity { return s.capacity }

func (s *Searcher) Cost(p *gpuexec.Plan) int64 {
	if m := s.Matcher(p.Family); m != nil {
		return m.Cost(p) * partsOf(p)
	}
	return 0
}

func (s *Searcher) Close() error { return CloseAll(slices.Values(s.matchers)) }

// Resize returns a slice of n elements: those that it had, up to its capacity, each with the memory that it holds, and zero ones.
func Resize[T any](s []T, n int) []T { return slices.Grow(s[:cap(s)], max(0, n-cap(s)))[:n] }

// CloseAll closes all of them, whatever the errors.
func CloseAll[T io.Closer](all iter.Seq[T]) error {
	var errs []error
	for c := range all {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// A batch is the memory of one Search call.
type batch struct {
	plans   []planJob  // by plan
	next    []next     // what comes next for each
	round   []turn     // what the matchers get next
	jobs    []*Job     // of one matcher
	pending []*planJob // rescorings that are not done
	pace    callPace

	searcher *Searcher
}

// checked is what check said of a plan.
type checked struct {
	matcher int
	bound   uint32
	always  bool // matched even where no count can be a hit's
	err     error
}

// A planJob is one plan on its way through a searcher. What it points to is let go by whoever makes its answer, in whose core's caches it is (forget), or else when
// the call ends.
type planJob struct {
	match     Job
	matcher   int32
	plan      *gpuexec.Plan
	answer    *gpuexec.Answer
	rescoring *rescoring // with Plan.Rescore, while it is under way
	answered  bool
	batch     *batch
}

// expired is true when the plan's deadline has passed.
func (j *planJob) expired(now time.Time) bool {
	return !j.plan.Deadline.IsZero() && !now.Before(j.plan.Deadline)
}

func (s *Searcher) Search(ctx context.Context, plans []gpuexec.Plan, answers []gpuexec.Answer, t *gpuexec.Trace) error {
	if len(plans) != len(answers) {
		return fmt.Errorf("searching: %d answers for %d plans", len(answers), len(plans))
	}
	b := s.batches.Get()
	defer s.release(b)
	b.pace.Pace = gpuexec.PaceOf(ctx)
	b.pace.spent.Store(0)
	b.searcher = s
	if !b.pace.Background {
		s.crew.enter()
		defer s.crew.leave()
	}
	clock := stopwatch{on: t != nil}
	clock.start()
	if err := s.begin(ctx, b, plans, answers); err != nil {
		return fmt.Errorf("checking a batch of %d: %w", len(plans), err)
	}
	clock.lap(&clock.host.Check)
	if err := s.match(ctx, b, t); err != nil {
		return fmt.Errorf("matching a batch of %d: %w", len(b.round), err)
	}
	clock.lap(&clock.host.Match)
	if err := s.answer(ctx, b); err != nil {
		return fmt.Errorf("answering a batch of %d: %w", len(b.round), err)
	}
	clock.lap(&clock.host.Answer)
	if err := s.rescore(ctx, b, t); err != nil {
		return fmt.Errorf("rescoring a batch of %d: %w", len(b.round), err)
	}
	if clock.lap(&clock.host.Rescore); t != nil {
		t.Host.Add(clock.host)
	}
	return nil
}

// A stopwatch times the steps of a call, where somebody wants to know.
type stopwatch struct {
	on   bool
	last time.Time
	host gpuexec.HostTrace
}

func (w *stopwatch) start() {
	if w.on {
		w.last = time.Now()
	}
}

// lap adds the time since the last lap.
func (w *stopwatch) lap(to *time.Duration) {
	if w.on {
		now := time.Now()
		*to += now.Sub(w.last)
		w.last = now
	}
}

// check says whether the plan can be executed. One that goes on was checked when it began.
func (s *Searcher) check(p *gpuexec.Plan) (c checked) {
	if u := resumes(p); u != nil {
		return checked{matcher: s.family(p.Family), bound: u.bound}
	}
	if p.K < 1 || p.K > gpuexec.MaxK {
		c.err = refusal.New("k is %d, it must be 1 to %d", p.K, gpuexec.MaxK)
		return c
	}
	if k := p.Wanted(); k < 1 || k > gpuexec.MaxK {
		c.err = refusal.New("k is %d, it must be 1 to %d", k, gpuexec.MaxK)
		return c
	}
	if c.matcher = s.family(p.Family); c.matcher < 0 {
		c.err = refusal.New("index %s has no structure %q that its engine can search: it has %q", s.source.Name(), p.Family, s.families)
		return c
	}
	if c.bound, c.err = s.matchers[c.matcher].Check(p); c.err != nil {
		c.err = &refusal.Error{Reason: c.err.Error()}
		return c
	}
	if f, ok := p.Query.(Filtering); ok {
		_, only, total := f.Filtering()
		c.always = only || total
		if only && (p.MinCount > 0 || p.Rescore != nil || p.Certify) {
			c.err = refusal.New("a query that is a filter alone has no counts: it takes no min_count, rescoring or certificate")
		}
	}
	return c
}

// resumes is what a plan goes on with, nil when it begins.
func resumes(p *gpuexec.Plan) *unfinished {
	if u, _ := p.Unfinished.(*unfinished); u != nil && u.rescoring != nil {
		return u
	}
	return nil
}

// begin makes jobs of the plans, and says which are matched and which are rescored. What plans ask, and the answers' memory, lies anywhere, so that each plan is
// read by one core alone: the first ones by this one, and the others by as many as these show to be worth it.
func (s *Searcher) begin(ctx context.Context, b *batch, plans []gpuexec.Plan, answers []gpuexec.Answer) error {
	const (
		some   = 16 // of which the time is taken,
		rounds = 3  // so often: the first ones find nothing in the core's caches
	)
	b.plans, b.next = Resize(b.plans, len(plans)), slices.Grow(b.next[:0], len(plans))[:len(plans)]
	done, took := 0, time.Duration(math.MaxInt64)
	prepare := func(i int) { b.next[done+i] = s.prepare(b, done+i, &plans[done+i], &answers[done+i]) }
	for ; done+some < len(plans) && done < rounds*some; done += some {
		start := time.Now()
		if err := s.crew.Each(ctx, some, 0, prepare); err != nil {
			return err
		}
		took = min(took, time.Since(start))
	}
	rest := len(plans) - done
	if done < rounds*some {
		took = 0 // so few stay here
	}
	if err := s.crew.Each(ctx, rest, int(took)*rest/some, prepare); err != nil {
		return err
	}
	for i, next := range b.next {
		if next.rescored {
			b.pending = append(b.pending, &b.plans[i])
		}
		if next.matched {
			b.round = append(b.round, turn{&b.plans[i], next.matcher, next.divided})
		}
	}
	return nil
}

// next is what comes next for a plan: a matcher gets it, which executes it as several, and it is rescored, once it was matched. It is all that one core looks at for
// all plans.
type next struct {
	matcher                    int32
	matched, divided, rescored bool
}

// A turn is a job that a matcher gets next.
type turn struct {
	job     *planJob
	matcher int32
	divided bool
}

// prepare makes a job of a plan, if it is sound, and says what comes next. A plan that matches nothing by its query alone, or in an index without
// objects, gets its answer from an empty list of entries.
func (s *Searcher) prepare(b *batch, i int, plan *gpuexec.Plan, answer *gpuexec.Answer) (n next) {
	spare := answer.Value
	*answer = gpuexec.Answer{Hits: answer.Hits[:0]}
	job := &b.plans[i] // forget has left the rest empty
	job.plan, job.answer, job.batch, job.answered = plan, answer, b, false
	c := s.check(plan)
	switch {
	case c.err != nil:
		answer.Err = c.err
	case !plan.Deadline.IsZero() && !time.Now().Before(plan.Deadline):
		answer.Err = gpuexec.ErrDeadline
	}
	job.matcher, n.matcher = int32(c.matcher), int32(c.matcher)
	if answer.Err != nil {
		job.answered = true
		return n
	}
	m := &job.match
	m.Query, m.K, m.MinCount, m.Bound = plan.Query, plan.Candidates(), max(1, plan.MinCount), c.bound
	m.Rescore, m.Deadline, m.Work, m.Orderable = plan.Rescore, plan.Deadline, plan.Work, plan.Rescore != nil
	m.Spare, m.Best = spare, answer.Hits
	if u := resumes(plan); u != nil {
		job.resume(u)
		n.rescored = true
		return n
	}
	if u, _ := plan.Unfinished.(*unfinished); u != nil {
		m.Begun = u.begun
	}
	n.rescored = plan.Rescore != nil
	if m.K = min(m.K, int(s.source.Objects())); m.K > 0 && (m.MinCount <= c.bound || c.always) {
		m.Then = job
		n.matched, n.divided = true, divides(m)
	}
	return n
}

// match hands the round to the matchers.
func (s *Searcher) match(ctx context.Context, b *batch, t *gpuexec.Trace) error {
	for i, m := range s.matchers {
		b.jobs = b.jobs[:0]
		var divisions []division
		for _, t := range b.round {
			switch {
			case int(t.matcher) != i:
			case t.divided:
				d := divide(&t.job.match)
				divisions, b.jobs = append(divisions, d), d.jobs(b.jobs)
			default:
				b.jobs = append(b.jobs, &t.job.match)
			}
		}
		if len(b.jobs) == 0 {
			continue
		}
		if err := m.Match(ctx, b.jobs, t); err != nil {
			return err
		}
		for i := range divisions {
			divisions[i].join()
		}
	}
	return nil
}

// answer makes hits of the entries of plans that are not rescored.
func (s *Searcher) answer(ctx context.Context, b *batch) error {
	work := 0
	for i := range b.plans {
		if job := &b.plans[i]; job.waits() {
			work += job.EndWork(len(job.match.Entries)+len(job.match.Hits), 0)
		}
	}
	return s.crew.Each(ctx, len(b.plans), work, func(i int) {
		if job := &b.plans[i]; job.waits() {
			job.answerMatch()
		}
	})
}

// waits is true of a job that is not rescored and has no answer yet.
func (j *planJob) waits() bool { return !j.answered && j.plan.Rescore == nil }

// EndWork implements Ender. What a plan wants to be rescored by lies anywhere in memory, and one core asks all jobs this: where entries say as much, it
// does not look.
func (j *planJob) EndWork(entries, known int) int {
	const hit, compared, scored = 3, 10, 40 // nanoseconds
	switch {
	case j.plan.Rescore == nil:
		return hit * entries
	case j.match.Ordered:
		return 2 * hit * entries
	}
	return compared*known + scored*min(known, j.plan.Wanted())
}

// End implements Ender: of jobs that are not rescored, and of those whose candidates have all been compared elsewhere, or put in order.
func (j *planJob) End(ctx context.Context, shift *Shift) {
	if j.match.Err != nil {
		return
	}
	if j.plan.Rescore == nil {
		j.answerMatch()
		j.forget()
		return
	}
	if j.match.Ordered && !j.plan.Certify {
		j.answerInOrder(j.batch.searcher.source.Objects())
		j.forget()
		return
	}
	if known := j.match.Known; !j.match.Ordered && (len(known) == 0 || len(known) < len(j.match.Entries) || slices.Contains(known, verify.Unknown)) {
		return
	}
	if err := Catch(func() { j.batch.searcher.rescoreJob(ctx, j.batch, j, shift) }); err != nil {
		j.fail(err)
	}
}

// rescore brings the rescorings of a batch from candidates to answers, as far as the call's allowance goes.
func (p *Searcher) rescore(ctx context.Context, b *batch, t *gpuexec.Trace) error {
	for len(b.pending) > 0 {
		if err := p.rescoreOnce(ctx, b); err != nil {
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
			case job.answered:
				continue
			case s == nil: // the allowance was spent before
				job.interrupt()
				continue
			case s.state == rescoringDone: // by a scan, or a fault
				job.answerScores()
				continue
			case over || s.state != rescoringWiden || b.pace.Plan > 0 && time.Duration(s.spent.Load())-s.before >= b.pace.Plan:
				job.interrupt()
				continue
			}
			s.state = rescoringMatched
			job.match.K = min(2*job.match.K, int(p.source.Objects()))
			job.match.Rescore, job.match.Known, job.match.Then, job.match.Orderable = nil, job.match.Known[:0], nil, false // the first ones have been scored
			b.round = append(b.round, turn{job, job.matcher, divides(&job.match)})
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

// rescoreOnce scores what the matcher has returned, on all cores. Jobs that are done then are answered, and give their memory to the next one of
// their core, whose caches have it.
func (p *Searcher) rescoreOnce(ctx context.Context, b *batch) error {
	const together = 8 // jobs beside each other share lines of memory
	b.pending = slices.DeleteFunc(b.pending, func(job *planJob) bool { return job.answered })
	stretch := max(1, min(together, len(b.pending)/(4*p.crew.Size())))
	return p.crew.Run(ctx, (len(b.pending)+stretch-1)/stretch, func(s *Shift, unit int) {
		for _, job := range b.pending[unit*stretch : min((unit+1)*stretch, len(b.pending))] {
			err := Catch(func() { p.rescoreJob(ctx, b, job, s) })
			if err != nil {
				job.fail(err)
			}
		}
	})
}

// rescoreJob is that of one job.
func (p *Searcher) rescoreJob(ctx context.Context, b *batch, job *planJob, s *Shift) {
	if job.rescoring == nil {
		if job.match.Err == nil && b.pace.over() {
			return
		}
		job.rescoring = p.rescoring()
	}
	job.score(ctx, p, b, s)
	if job.rescoring.state == rescoringDone {
		job.answerScores() // here, since hits are put in order
		p.rescorings.Put(job.rescoring)
		job.forget()
	}
}

// release keeps a batch's memory for the next call, without what it points to.
func (s *Searcher) release(b *batch) {
	for i := range b.plans {
		job := &b.plans[i]
		if job.plan == nil { // it has been forgotten
			continue
		}
		if job.rescoring != nil {
			job.rescoring.parts, job.rescoring.passing = nil, nil
			s.rescorings.Put(job.rescoring)
		}
		job.forget()
	}
	b.pace.Pace, b.searcher = nil, nil
	clear(b.round)
	clear(b.jobs)
	clear(b.pending)
	b.round, b.jobs, b.pending = b.round[:0], b.jobs[:0], b.pending[:0]
	s.batches.Put(b)
}

// forget leaves an answered job with nothing but the memory that it owns.
func (j *planJob) forget() {
	m := &j.match
	*j = planJob{match: Job{Entries: m.Entries[:0], Known: m.Known[:0], Hits: m.Hits[:0]}, answered: true}
}

// answerMatch fills the answer of a plan whose hits are in the order of counts.
func (j *planJob) answerMatch() {
	a, entries := j.answer, j.match.Entries
	a.Units, a.Candidates = j.match.Units, j.match.Candidates
	if a.Err = j.match.Err; a.Err != nil {
		return
	}
	a.Total = j.match.Total
	if j.match.Postponed {
		a.Unfinished, a.Rescoring = &unfinished{begun: j.match.Begun}, j.match.Spent
		return
	}
	if j.match.Ranked {
		a.Rescoring = j.match.Spent
		a.Hits = append(a.Hits, j.match.Hits...)
		a.Scored, a.Exact, a.Value = true, !j.match.Approximate, j.match.Value
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
