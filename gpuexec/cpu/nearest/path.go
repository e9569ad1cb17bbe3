package nearest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric"
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

// search answers jobs by access paths of their columns: those that may be together, the others each on one core.
func (b *Batch) search(ctx context.Context, chosen []int) error {
	chosen, err := b.searchTogether(ctx, chosen)
	if err != nil {
		return err
	}
	return b.crew.Run(ctx, len(chosen), func(_ *run.Shift, unit int) {
		n := chosen[unit]
		job := b.jobs[n]
		if unit > 0 && b.exhausted() {
			job.Postponed = true
			return
		}
		start := time.Now()
		defer func() {
			job.Spent = time.Since(start)
			b.spent.Add(int64(job.Spent))
		}()
		ctx, cancel := limited(ctx, job)
		defer cancel()
		answer := &distance.Answer{Method: b.choices[n].Method}
		var hits []metric.Hit
		find := b.searchOne
		if answer.Method == distance.Ngram {
			find = b.searchGrams
		}
		err := run.Catch(func() { hits, job.Err = find(ctx, n, answer) })
		if err != nil {
			job.Err = err
		}
		if cause := context.Cause(ctx); job.Err != nil && (errors.Is(cause, gpuexec.ErrDeadline) || errors.Is(cause, gpuexec.ErrWork)) {
			job.Err = cause
		}
		if job.Err == nil {
			job.Approximate = !answer.Exact
			b.Answer(n, hits, answer)
		}
	})
}

// limited is a context that ends with a job's deadline, or when it has taken the time that it may take.
func limited(ctx context.Context, job *run.Job) (context.Context, context.CancelFunc) {
	cancel := context.CancelFunc(func() {})
	if !job.Deadline.IsZero() {
		ctx, cancel = context.WithDeadlineCause(ctx, job.Deadline, gpuexec.ErrDeadline)
	}
	if job.Work > 0 {
		outer := cancel
		inner, end := context.WithTimeoutCause(ctx, job.Work, gpuexec.ErrWork)
		return inner, func() { end(); outer() }
	}
	return ctx, cancel
}

// searchOne answers a job by an access path.
func (b *Batch) searchOne(ctx context.Context, n int, answer *distance.Answer) ([]metric.Hit, error) {
	q := b.jobs[n].Query.(*distance.Query)
	own := b.scanned[b.position(q.Column)].bound
	if own == nil || own.searchers[answer.Method] == nil {
		return nil, errors.New("the access path " + answer.Method + " is not loaded") // which Check has refused
	}
	hits, err := own.searchers[answer.Method].Search(ctx, q, b.passes(n, own.ids), answer)
	if err != nil {
		return nil, err
	}
	answer.Counted = q.Column.Path(answer.Method).Counts() && (q.Total || q.K == 0)
	return own.hits(hits), nil
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

// hits are hits by the ids of the index.
func (o *bound) hits(hits []metric.Hit) []metric.Hit {
	if o.ids == nil {
		return hits
	}
	hits = slices.Clone(hits)
	for i := range hits {
		hits[i].ID = o.ids[hits[i].ID]
	}
	return hits
}
