package nearest

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/passing"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/metric"
)

// Batch is one call of Match, and its memory, which the next one has.
type Batch struct {
	*Matcher
	jobs     []*run.Job
	distinct passing.Distinct
	passing  []filter.Set      // by distinct filter; the first bit is the matcher's first object
	counts   []uint32          // of these
	choices  []distance.Choice // by job
	grams    []*gramQuery      // by job; nil: counts prove nothing
	seeing   sync.Mutex
	seen     []seen // by column: what took a processor how long, as far as the system tells
	pace     *gpuexec.Pace
	beside   Elsewhere
	spent    atomic.Int64   // nanoseconds of cores on distances, in this call
	all      []int          // the numbers of the jobs, of Match
	scans    [][]int        // those that are scanned, by column
	others   []int          // those that are not
	asks     []distance.Ask // of those that are answered together
}

// End gives the memory of the batch to the next one: nobody uses it any more.
func (b *Batch) End() {
	m := b.Matcher
	clear(b.choices)
	clear(b.grams)
	clear(b.asks)
	b.distinct.Release()
	b.spent.Store(0)
	b.Matcher, b.jobs, b.passing, b.counts, b.pace, b.beside, b.all = nil, nil, nil, nil, nil, nil, b.all[:0]
	m.batches.Put(b)
}

// Elsewhere is what a query takes by a method that somebody else executes, together with so many, by the clock; 0: nobody does.
type Elsewhere func(q *distance.Query, method string, queries int) time.Duration

// filter finds out what passes the filters of a batch, each once.
func (b *Batch) filter(ctx context.Context) error {
	b.distinct.FindIn(len(b.jobs), func(i int) *filter.Filter { return b.jobs[i].Query.(*distance.Query).Filter })
	for _, f := range b.distinct.Filters {
		set, err := passing.Objects(ctx, b.crew, b.index, f, b.tiles)
		if err != nil {
			return err
		}
		b.passing, b.counts = append(b.passing, set), append(b.counts, uint32(set.Len()))
	}
	return nil
}

// Method is the way that a job is to be answered.
func (b *Batch) Method(job int) string { return b.choices[job].Method }

// Len is how many jobs there are.
func (b *Batch) Len() int { return len(b.jobs) }

// Job is one of the batch.
func (b *Batch) Job(i int) *run.Job { return b.jobs[i] }

// Passing are the objects that pass the filter of a job, the matcher's first object first, and the filter's number in the batch, the same one for all
// that are equal; nil and -1: the job has none.
func (b *Batch) Passing(job int) (set filter.Set, number int) {
	if n, ok := b.distinct.Of(job); ok {
		return b.passing[n], n
	}
	return nil, -1
}

// passingOf is how many objects of the index pass the filter of a job, which a path is over: whoever has a part of them has no paths.
func (b *Batch) passingOf(job int) uint32 {
	if n, ok := b.distinct.Of(job); ok {
		return b.counts[n]
	}
	return b.jobs[job].Query.(*distance.Query).Column.Objects
}

// position is that of a column of the index.
func (m *Matcher) position(c *distance.Column) int {
	for i := range m.columns.Len() {
		if m.columns.At(i) == c {
			return i
		}
	}
	return -1 // which Check has refused
}

// pass is what passes the filter of a job; nil: everybody.
func (b *Batch) pass(job int) filter.Set {
	if n, ok := b.distinct.Of(job); ok {
		return b.passing[n]
	}
	return nil
}

// Answer is what a job has come to: hits in order, at most as many as are wanted.
func (b *Batch) Answer(n int, hits []metric.Hit, answer *distance.Answer) {
	job, c := b.jobs[n], &b.choices[n]
	job.Ranked, job.Value, job.Hits, job.Begun = true, answer, slices.Grow(job.Hits[:0], len(hits)), nil
	job.Units += answer.Distances
	answer.Predicted, answer.Why, answer.Considered = c.Predicted, c.Why, c.Considered
	for _, h := range hits {
		job.Hits = append(job.Hits, gpuexec.Hit{ID: h.ID, Score: h.Value})
	}
	if job.Query.(*distance.Query).Total {
		job.Total = uint64(b.hi - b.lo)
		if pass := b.pass(n); pass != nil {
			job.Total = uint64(pass.Len())
		}
	}
}
