package group

import (
	"context"
	"slices"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/verify"
	"github.com/geniemq/geniemq/internal/pool"
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
		m.Matcher = m.matchers[0]
		matchers[family] = m
	}
	return &spreadSearcher{run.NewSearcher(x, crew, matchers, gpuexec.Capacity{}), shards}
}

func (s *spreadSearcher) Capacity() gpuexec.Capacity { return groupCapacity(s.shards) }

func (s *spreadSearcher) Cost(p *gpuexec.Plan) int64 { return groupCost(s.shards, p) }

func (s *spreadSearcher) Close() error { return run.CloseAll(slices.Values(s.shards)) }

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
	run.Matcher // the first one, to check plans: all hold the same structure. What is of one device the searcher asks its shards
	crew        *run.Crew
	matchers    []run.Matcher
	objects     []int // by matcher
	batches     pool.Of[spreadBatch]
}

// spreadBatch is the memory of one call: by matcher, its copies of the jobs.
type spreadBatch struct {
	jobs  [][]run.Job
	round [][]*run.Job
}

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
		return m.matchers[i].Match(ctx, b.round[i], traces.of[i])
	})
	if err != nil {
		return err
	}
	ended := traces.addLongest(t)
	steps := 0
	for _, job := range jobs {
		steps += job.K
	}
	const step = 4 // nanoseconds
	joiner, ranked := m.Matcher.(run.Joiner)
	err = m.crew.Each(ctx, len(jobs), steps*step, func(i int) {
		if ranked {
			joiner.Join(jobs[i], b.parts(i))
		} else {
			b.join(jobs[i], i)
		}
	})
	if t != nil {
		t.Select += time.Since(ended)
	}
	return err
}

// Passing implements run.Passer where the members do: a member's objects follow those of the one before, and fill words.
func (m *spreadMatcher) Passing(ctx context.Context, query run.Filtering) (filter.Set, error) {
	sets := make([]filter.Set, len(m.matchers))
	err := m.callAll(ctx, func(ctx context.Context, i int) (err error) {
		sets[i], err = m.matchers[i].(run.Passer).Passing(ctx, query)
		return err
	})
	return slices.Concat(sets...), err
}

// callAll calls all matchers.
func (m *spreadMatcher) callAll(ctx context.Context, call func(ctx context.Context, i int) error) error {
	return callAll(ctx, len(m.matchers), call, func(_ int, err error) error { return err })
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
		return m.matchers[i].Scan(ctx, copies[i], traces.of[i])
	})
	if err != nil {
		return err
	}
	if ended := traces.addLongest(t); t != nil {
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
	b := m.batches.Get()
	b.jobs, b.round = run.Resize(b.jobs, len(m.matchers)), run.Resize(b.round, len(m.matchers))
	for i := range m.matchers {
		own := run.Resize(b.jobs[i], len(jobs))
		b.jobs[i], b.round[i] = own, b.round[i][:0]
		for j, job := range jobs {
			own[j] = run.Job{
				Query: job.Query, K: min(job.K, m.objects[i]), MinCount: job.MinCount, Bound: job.Bound, Rescore: job.Rescore,
				Deadline: job.Deadline, Work: job.Work, Begun: job.Begun, Hits: own[j].Hits[:0], Entries: own[j].Entries[:0], Known: own[j].Known[:0],
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
			b.jobs[i][j].Value, b.jobs[i][j].Begun = nil, nil
		}
	}
	m.batches.Put(b)
}

// parts are the copies of a job.
func (b *spreadBatch) parts(n int) []*run.Job {
	parts := make([]*run.Job, len(b.jobs))
	for i := range b.jobs {
		parts[i] = &b.jobs[i][n]
	}
	return parts
}

// join gives job what the matchers have found for their copies of it, which have number n.
func (b *spreadBatch) join(job *run.Job, n int) {
	found, known := 0, 0 // entries; scores
	job.Total = 0
	for i := range b.jobs {
		part := &b.jobs[i][n]
		known += len(part.Known)
		slices.Reverse(part.Known) // so that both end with the best
		job.Units += part.Units
		job.Total += part.Total
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
		score := verify.Unknown
		if last := len(part.Known) - 1; last >= 0 {
			score, part.Known = part.Known[last], part.Known[:last]
			known--
		}
		job.Known = append(job.Known, score)
	}
}

// traces are those of matchers that work at the same time. A matcher's is nil where none is wanted.
type traces struct {
	each  []gpuexec.Trace
	of    []*gpuexec.Trace
	ended []time.Time
}

func newTraces(all *gpuexec.Trace, matchers int) *traces {
	t := &traces{of: make([]*gpuexec.Trace, matchers), ended: make([]time.Time, matchers)}
	if all != nil {
		t.each = make([]gpuexec.Trace, matchers)
		for i := range t.each {
			t.of[i] = &t.each[i]
		}
	}
	return t
}

func (t *traces) end(i int) { t.ended[i] = time.Now() }

// addLongest adds the trace of the matcher that took longest to that of all, and returns when the last one has ended.
func (t *traces) addLongest(all *gpuexec.Trace) time.Time {
	if all != nil {
		all.Add(slices.MaxFunc(t.each, func(a, b gpuexec.Trace) int { return int(a.Sum() - b.Sum()) }))
	}
	return slices.MaxFunc(t.ended, time.Time.Compare)
}
