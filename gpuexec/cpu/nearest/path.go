package nearest

import (
	"context"
	"errors"
	"time"

	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/verify"
	"github.com/geniemq/geniemq/internal/processor"
)

// bound is the access paths of a column, over its objects that have a value.
type bound struct {
	ids       []uint32 // of the index, by object of the space; nil: the same
	searchers map[string]distance.Searcher
}

// bind makes the searchers of a column's access paths; nil where it has none.
func bind(c *distance.Column, space metric.Space) (*bound, int64, error) {
	methods := c.Built()
	if len(methods) == 0 {
		return nil, 0, nil
	}
	dense, ids, err := c.Dense(space)
	if err != nil {
		return nil, 0, err
	}
	b, held := &bound{ids: ids, searchers: make(map[string]distance.Searcher)}, 4*int64(len(ids))
	for _, name := range methods {
		if b.searchers[name], err = c.Path(name).Bind(dense); err != nil {
			return nil, 0, err
		}
		if s, ok := b.searchers[name].(interface{ Bytes() int64 }); ok {
			held += s.Bytes()
		}
	}
	return b, held, nil
}

// all are the searchers, by path.
func (o *bound) all() map[string]distance.Searcher {
	if o == nil {
		return nil
	}
	return o.searchers
}

const (
	// unitWork is what a unit of several searches takes a core, about: enough that handing it over is nothing beside.
	unitWork = 500 * time.Microsecond
	// unitJobs is how many searches are a unit at most.
	unitJobs = 256
	// quickWork is what a search may be expected to take that is accounted for with others, quickJobs of them at most: to read the clock takes as long as a tenth
	// of a search among few coordinates.
	quickWork = 2 * time.Microsecond
	quickJobs = 16
)

// search answers jobs by access paths of their columns, and by n-grams: those that may be together, the others in units of some, each of which one core answers one after the other.
func (b *Batch) search(ctx context.Context, chosen []int) error {
	chosen, err := b.searchTogether(ctx, chosen)
	if err != nil {
		return err
	}
	most := max(1, min(unitJobs, len(chosen)/(4*b.crew.Size())))
	var units [][]int
	for len(chosen) > 0 {
		n, work := 1, b.choices[chosen[0]].Predicted
		for n < min(most, len(chosen)) && work < unitWork {
			work += b.choices[chosen[n]].Predicted
			n++
		}
		units, chosen = append(units, chosen[:n]), chosen[n:]
	}
	return b.crew.Run(ctx, len(units), func(shift *run.Shift, at int) {
		jobs := units[at]
		u := pathUnit{Batch: b, ctx: ctx, shift: shift, since: time.Now(), quick: make([]int, 0, quickJobs), answers: answers{jobs: len(jobs)}}
		worked := processor.Time(func() {
			for i, n := range jobs {
				if at+i > 0 && b.exhausted() {
					b.jobs[n].Postponed = true
					if before := b.begun(n); before != nil {
						b.jobs[n].Spent = before.spent
					}
					continue
				}
				u.one(n)
			}
			u.settle()
		})
		for _, n := range jobs {
			if job := b.jobs[n]; job.Err == nil && !job.Postponed {
				b.saw(b.position(job.Query.(*distance.Query).Column), work{b.Method(n), worked / time.Duration(len(jobs)), b.choices[n].Predicted})
				b.ended(ctx, shift, n)
			}
		}
	})
}

// pathUnit is some jobs that one core answers one after the other. It is the meter of the one that it is at.
type pathUnit struct {
	*Batch
	ctx   context.Context
	shift *run.Shift
	since time.Time // accounted for until then
	quick []int     // jobs since then: see quickWork

	answers answers
	hits    []metric.Hit // of the last job

	searcher distance.Searcher // by which the last job was answered: of own and method
	own      *bound
	method   string

	job    int
	left   int           // work before the clock is looked at
	took   time.Duration // of the job in this call
	before time.Duration // and in earlier ones
	err    error         // why it ends
}

// one answers a job, or goes on with it, until it is done or interrupted.
func (u *pathUnit) one(n int) {
	job := u.jobs[n]
	before := u.begun(n)
	quick := before == nil && u.choices[n].Predicted <= quickWork
	if !quick || len(u.quick) == quickJobs {
		u.settle()
	}
	u.job, u.left, u.took, u.before, u.err = n, u.Most(), 0, 0, nil
	if before != nil {
		u.before = before.spent
	}
	if u.err = over(job, u.since, u.before); u.err == nil {
		if err := run.Catch(func() { u.err = u.search(before) }); err != nil {
			u.err = err
		}
		if quick && u.err == nil && u.took == 0 && job.Begun == nil {
			u.quick = append(u.quick, n)
			return
		}
		u.account()
	}
	job.Spent = u.before + u.took
	if u.err != nil {
		job.Err, job.Postponed, job.Begun = u.err, false, nil
	} else if s, ok := job.Begun.(begunAll); ok {
		s[0].spent = job.Spent
	}
}

// search goes on with the job's search, or begins it.
func (u *pathUnit) search(before *begun) (err error) {
	job := u.jobs[u.job]
	q := job.Query.(*distance.Query)
	var searching distance.Searching
	method, predicted := u.Method(u.job), u.choices[u.job].Predicted
	if before != nil {
		searching, method, predicted = before.search, before.method, before.predicted
	} else if searching, err = u.begin(q, method); err != nil {
		return err
	}
	keep := func() {
		job.Begun = begunAll{{lo: u.lo, hi: u.hi, search: searching, method: method, predicted: predicted}}
	}
	own := u.scanned[u.position(q.Column)].bound
	pass := u.pass(u.job)
	var passes func(id uint32) bool
	switch {
	case method != distance.Ngram:
		passes = u.passes(u.job, own.ids)
	case pass != nil:
		passes = func(id uint32) bool { return pass.Has(id - u.lo) }
	}
	done := searching.Run(passes, u)
	switch {
	case u.err != nil:
		return u.err
	case !done:
		job.Postponed = true
		keep()
		return nil
	}
	answer := u.answers.of(job)
	answer.Method = method
	u.hits = searching.End(answer, u.hits[:0])
	if method == distance.Ngram {
		job.Candidates += answer.Distances
	} else {
		answer.Counted = q.Column.Path(method).Counts() && (q.Total || q.K == 0)
		own.name(u.hits)
	}
	job.Approximate = !answer.Exact
	u.Answer(u.job, u.hits, answer)
	if u.hi-u.lo < q.Column.Objects { // other parts may have to go on
		keep()
	}
	return nil
}

// answers is memory for those of some jobs, which one core answers.
type answers struct {
	jobs int
	left []distance.Answer
}

// of is where a job's answer is put: memory that it brings, or else of all together.
func (s *answers) of(job *run.Job) *distance.Answer {
	if a, ok := job.Spare.(*distance.Answer); ok {
		*a = distance.Answer{}
		return a
	}
	if len(s.left) == 0 {
		s.left = make([]distance.Answer, s.jobs)
	}
	a := &s.left[0]
	s.left = s.left[1:]
	return a
}

// begin begins a job's search.
func (u *pathUnit) begin(q *distance.Query, method string) (distance.Searching, error) {
	if method == distance.Ngram {
		return u.beginGrams(u.job, q)
	}
	if own := u.scanned[u.position(q.Column)].bound; own != u.own || method != u.method { // else it is the same as before, mostly
		if own == nil || own.searchers[method] == nil {
			return nil, errors.New("the access path " + method + " is not loaded") // which Check has refused
		}
		u.own, u.method, u.searcher = own, method, own.searchers[method]
	}
	return u.searcher.Begin(q, u.passingOf(u.job))
}

// Most implements metric.Meter.
func (u *pathUnit) Most() int {
	if grain := u.pace.Grain; grain > 0 {
		return grain
	}
	return verify.PaceWork
}

// Did implements metric.Meter.
func (u *pathUnit) Did(work int) { u.left -= work }

// Stop implements metric.Meter.
func (u *pathUnit) Stop() bool {
	if u.left > 0 {
		return false
	}
	u.left = u.Most()
	now := u.account()
	switch err := over(u.jobs[u.job], now, u.before+u.took); {
	case err != nil:
		u.err = err
	case u.ctx.Err() != nil:
		u.err = context.Cause(u.ctx)
	case !u.pause(u.job, u.took):
		u.since = time.Now() // waiting for a seat is no work
		return false
	}
	return true
}

// settle accounts for the quick jobs, each of which has taken as much as any other.
func (u *pathUnit) settle() {
	if len(u.quick) == 0 {
		return
	}
	u.took = 0
	u.account()
	for _, n := range u.quick {
		u.jobs[n].Spent = u.took / time.Duration(len(u.quick))
	}
	u.quick = u.quick[:0]
}

// account adds the time since the last account to what is spent, and offers the seat.
func (u *pathUnit) account() time.Time {
	now := time.Now()
	took := now.Sub(u.since)
	u.since = now
	u.took += took
	u.spent.Add(int64(took))
	if u.shift.Due(int(took) * 2) {
		u.shift.Spend(int(took) * 2)
		u.since = time.Now()
		return now
	}
	u.shift.Spend(int(took) * 2)
	return now
}

// passes says which objects of a space may be hits of a job; nil: all.
func (b *Batch) passes(job int, ids []uint32) func(id uint32) bool {
	set := b.pass(job)
	if set == nil {
		return nil
	}
	if ids == nil {
		return set.Has
	}
	return func(i uint32) bool { return set.Has(ids[i]) }
}

// name gives hits the ids of the index.
func (o *bound) name(hits []metric.Hit) {
	if o.ids != nil {
		for i := range hits {
			hits[i].ID = o.ids[hits[i].ID]
		}
	}
}
