package group

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/gpuexec/topk"
)

// A spreadSearcher is an index in ranges of tiles, each on a device of its own. For each family there is a matcher over those of
// all devices.
type spreadSearcher struct {
	*run.Searcher
	shards []*run.Searcher
}

func newSpreadSearcher(x gpuexec.Source, crew *run.Crew, shards []*run.Searcher, ranges []run.Tiles) gpuexec.Searcher {
	matchers := make(map[string]run.Matcher)
	for _, family := range shards[0].Families() {
		m := &spreadMatcher{crew: crew, matchers: make([]run.Matcher, len(shards))}
		for i, s := range shards {
			m.matchers[i] = s.Matcher(family)
			m.objects = append(m.objects, int(ranges[i].Objects(x.Objects())))
		}
		matchers[family] = m
	}
	return &spreadSearcher{run.NewSearcher(x, crew, matchers, gpuexec.Capacity{}), shards}
}

func (s *spreadSearcher) Capacity() gpuexec.Capacity { return groupCapacity(s.shards) }

func (s *spreadSearcher) Cost(p *gpuexec.Plan) int64 { return groupCost(s.shards, p) }

func (s *spreadSearcher) Close() error { return closeShards(s.shards) }

// spreadMatcher hands a batch's jobs to all matchers at the same time and joins what they find. Each has its own copy of
// every job, with the k that its objects allow.
//
// Joining a job takes the best k of the sorted entries of all: k steps, each looking at one entry per matcher. That is
// spread over the cores where a batch is worth it. Units and candidates add up; a job that failed anywhere has
// failed, with the error of the first matcher that says so.
//
// Each matcher scores what it can of its own first candidates. An entry's rank among all is not less
// than among its matcher's, so where all score their first n the scores of the first n of all are known.
//
// An error of a matcher concerns all jobs. It ends the context of the others, which are waited for: no matcher works on a
// job after match has returned.
type spreadMatcher struct {
	crew     *run.Crew
	matchers []run.Matcher
	objects  []int     // by matcher
	batches  sync.Pool // of *spreadBatch
}

// spreadBatch is the memory of one call: by matcher, its copies of the jobs.
type spreadBatch struct {
	jobs  [][]run.Job
	round [][]*run.Job
}

// Check implements run.Matcher: all hold the same structure.
func (m *spreadMatcher) Check(p *gpuexec.Plan) (bound uint32, err error) {
	return m.matchers[0].Check(p)
}

// Cost, Residence and Close are not asked: the searcher asks those of its shards.
func (m *spreadMatcher) Cost(*gpuexec.Plan) int64 { return 0 }

func (m *spreadMatcher) Residence() run.Residence { return run.Residence{} }

func (m *spreadMatcher) Close() error { return nil }

// Match adds the stages of the matcher that took longest; waiting for the others and joining belong to Select.
func (m *spreadMatcher) Match(ctx context.Context, jobs []*run.Job, t *gpuexec.Trace) error {
	if len(jobs) == 0 {
		return nil
	}
	b := m.take(jobs)
	defer m.release(b)
	traces := newTraces(t, len(m.matchers))
	err := m.callAll(ctx, func(ctx context.Context, i int) error {
		defer traces.end(i)
		return m.matchers[i].Match(ctx, b.round[i], traces.of(i))
	})
	if err != nil {
		return err
	}
	ended := traces.addLongest()
	steps := 0
	for _, job := range jobs {
		steps += job.K
	}
	const step = 4 // nanoseconds
	err = m.crew.Each(ctx, len(jobs), steps*step, func(i int) { b.join(jobs[i], i) })
	if t != nil {
		t.Select += time.Since(ended)
	}
	return err
}

// callAll calls all matchers, the first one on this goroutine.
func (m *spreadMatcher) callAll(ctx context.Context, call func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	one := func(i int) {
		var err error
		if panicked := run.Protect(func() { err = call(ctx, i) }); panicked != nil {
			err = panicked
		}
		if err != nil {
			cancel(err)
		}
	}
	var others sync.WaitGroup
	for i := range m.matchers[1:] {
		others.Go(func() { one(i + 1) })
	}
	one(0)
	others.Wait()
	return context.Cause(ctx)
}

// Scan lets each matcher scan the objects that it holds. What all have found is the job's, of which its rescorer takes the best; a
// job that one of them cannot do is not done. Of the stages it adds those of the matcher that took longest; waiting for the others
// belongs to Verify.
func (m *spreadMatcher) Scan(ctx context.Context, jobs []*run.ScanJob, t *gpuexec.Trace) error {
	copies := make([][]*run.ScanJob, len(m.matchers))
	for i := range copies {
		for _, job := range jobs {
			own := *job
			copies[i] = append(copies[i], &own)
		}
	}
	traces := newTraces(t, len(m.matchers))
	err := m.callAll(ctx, func(ctx context.Context, i int) error {
		defer traces.end(i)
		return m.matchers[i].Scan(ctx, copies[i], traces.of(i))
	})
	if err != nil {
		return err
	}
	if ended := traces.addLongest(); t != nil {
		t.Verify += time.Since(ended)
	}
	for j, job := range jobs {
		job.Done = true
		for i := range copies {
			job.Done = job.Done && copies[i][j].Done
			job.Found = append(job.Found, copies[i][j].Found...)
		}
	}
	return nil
}

// take makes each matcher's copies of the jobs, with the memory of an earlier call.
func (m *spreadMatcher) take(jobs []*run.Job) *spreadBatch {
	b, _ := m.batches.Get().(*spreadBatch)
	if b == nil {
		b = &spreadBatch{jobs: make([][]run.Job, len(m.matchers)), round: make([][]*run.Job, len(m.matchers))}
	}
	for i := range m.matchers {
		own := b.jobs[i]
		if cap(own) < len(jobs) {
			own = append(own[:cap(own)], make([]run.Job, len(jobs)-cap(own))...)
		}
		own = own[:len(jobs)]
		b.jobs[i], b.round[i] = own, b.round[i][:0]
		for j, job := range jobs {
			own[j] = run.Job{
				Query: job.Query, K: min(job.K, m.objects[i]), MinCount: job.MinCount, Bound: job.Bound, Rescore: job.Rescore,
				Deadline: job.Deadline, Entries: own[j].Entries[:0], Known: own[j].Known[:0],
			}
			b.round[i] = append(b.round[i], &own[j])
		}
	}
	return b
}

// release keeps a call's memory for the next one, without what it points to.
func (m *spreadMatcher) release(b *spreadBatch) {
	for i := range b.jobs {
		for j := range b.jobs[i] {
			b.jobs[i][j].Query, b.jobs[i][j].Rescore, b.jobs[i][j].Err = nil, nil, nil
		}
	}
	m.batches.Put(b)
}

// join gives job what the matchers have found for their copies of it, which have number n.
func (b *spreadBatch) join(job *run.Job, n int) {
	found, known := 0, 0 // entries; scores
	for i := range b.jobs {
		part := &b.jobs[i][n]
		known += len(part.Known)
		slices.Reverse(part.Known) // so that both end with the best
		job.Units += part.Units
		job.Candidates += part.Candidates
		if job.Err == nil {
			job.Err = part.Err
		}
		found += len(part.Entries)
	}
	if job.Err != nil {
		return
	}
	found = min(found, job.K)
	job.Entries, job.Known = slices.Grow(job.Entries[:0], found)[:found], job.Known[:0]
	for to := found - 1; to >= 0; to-- {
		var best topk.Entry // less than any
		from := 0
		for i := range b.jobs {
			if part := b.jobs[i][n].Entries; len(part) > 0 && part[len(part)-1] > best {
				best, from = part[len(part)-1], i
			}
		}
		job.Entries[to] = best
		part := &b.jobs[from][n]
		part.Entries = part.Entries[:len(part.Entries)-1]
		if known == 0 {
			continue
		}
		score := math.NaN()
		if last := len(part.Known) - 1; last >= 0 {
			score, part.Known = part.Known[last], part.Known[:last]
			known--
		}
		job.Known = append(job.Known, score)
	}
}

// traces are those of matchers that work at the same time, for one trace of all. Without one nothing is measured.
type traces struct {
	all   *gpuexec.Trace
	each  []gpuexec.Trace
	ended []time.Time
}

func newTraces(all *gpuexec.Trace, matchers int) *traces {
	if all == nil {
		return &traces{}
	}
	return &traces{all: all, each: make([]gpuexec.Trace, matchers), ended: make([]time.Time, matchers)}
}

// of is the trace of a matcher.
func (t *traces) of(i int) *gpuexec.Trace {
	if t.all == nil {
		return nil
	}
	return &t.each[i]
}

func (t *traces) end(i int) {
	if t.all != nil {
		t.ended[i] = time.Now()
	}
}

// addLongest adds the trace of the matcher that took longest, and returns when the last one has ended.
func (t *traces) addLongest() time.Time {
	if t.all == nil {
		return time.Time{}
	}
	t.all.Add(slices.MaxFunc(t.each, func(a, b gpuexec.Trace) int { return int(a.Sum() - b.Sum()) }))
	return slices.MaxFunc(t.ended, time.Time.Compare)
}
