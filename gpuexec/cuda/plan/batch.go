package plan

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/filters"
	"github.com/geniemq/geniemq/gpuexec/passing"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/gpuexec/topk"
)

// A Batch is the queries of one call on an index: those that wait for a piece, and those that must be executed again. Who executes
// it asks for a piece at a time (Next), has it encoded into the memory that is copied to the device (Encode), runs it, and hands
// back what came from there (Decode), until there is no other. It belongs to one goroutine. Its memory is the index's, for the
// batches after it (Close).
type Batch struct {
	index  *Index
	policy Policy
	room   Room
	crew   *run.Crew
	work   *gpuexec.Work // nil unless it is wanted

	queries []Query // all
	waiting []Query // those of them that were in no piece, or again
	again   []Query // that the bound has given up, or whose candidates were not put in order
	piece   Piece
	places  []int64 // where the answers of the piece's queries are in what comes back

	asked    []askedFilter // by query
	distinct passing.Distinct
	planned  []filters.Planned // the distinct filters
}

// sampled: what a batch's work takes is estimated by one of so many jobs, which lie anywhere in memory.
const sampled = 8

// NewBatch plans what jobs ask, on several cores where there are many. Pieces are planned by Next, by the policy and for the
// room of whoever executes them.
func NewBatch(ctx context.Context, x *Index, jobs []*run.Job, crew *run.Crew) (*Batch, error) {
	b := x.batches.Get()
	b.index = x
	b.crew, b.queries = crew, slices.Grow(b.queries[:0], len(jobs))[:len(jobs)]
	b.waiting, b.again = b.queries, nil
	b.asked = slices.Grow(b.asked[:0], len(jobs))[:len(jobs)]
	costs, work := &x.device.Profile.Host, 0
	for i := 0; i < len(jobs); i += sampled { // each has to be waited for
		query := queryOf(jobs[i])
		some := min(sampled, len(jobs)-i)
		if work += some * len(query.Spans) * costs.PlanSpan; query.Filter != nil {
			work += some * costs.PlanFilter
		}
	}
	var filtered atomic.Bool
	err := crew.Each(ctx, len(jobs), work, func(i int) {
		b.queries[i] = x.plan(jobs[i])
		f := queryOf(jobs[i]).Filter
		if b.asked[i].plan(f); f != nil {
			filtered.Store(true)
		}
	})
	if err != nil {
		b.Close()
		return nil, err
	}
	if filtered.Load() {
		b.filters()
	}
	return b, nil
}

// Close ends the batch. Its memory is used again, without what it points to.
func (b *Batch) Close() {
	clear(b.queries)
	clear(b.piece.Queries)
	b.distinct.Release()
	clear(b.asked)
	clear(b.planned)
	b.piece.Filters.Begin()
	b.waiting, b.again, b.work, b.crew = nil, nil, nil, nil
	b.index.batches.Put(b)
}

// Executes says who executes the batch: by which policy, with what room, and whether its work is counted.
func (b *Batch) Executes(policy Policy, room Room, work *gpuexec.Work) {
	b.policy, b.room, b.work = policy, room, work
}

// Next plans the next piece; nil: there is none. A query that does not fit alone gets its error and is in no piece.
func (b *Batch) Next() *Piece {
	for {
		if len(b.waiting) == 0 {
			b.waiting, b.again = b.again, nil
		}
		if len(b.waiting) == 0 {
			return nil
		}
		rest := b.index.rest.Load()
		b.policy.Resting = rest > 0
		if err := b.index.planPiece(&b.piece, b.waiting, b.room, &b.policy); err != nil {
			b.waiting[0].Job.Err = err
			b.waiting = b.waiting[1:]
			continue
		}
		if b.piece.rested {
			b.index.rest.CompareAndSwap(rest, rest-1)
		}
		b.waiting = b.waiting[len(b.piece.Queries):]
		return &b.piece
	}
}

// Encode fills the memory that is copied to the device with the piece at hand.
func (b *Batch) Encode(in []byte) error {
	p := &b.piece
	if p.End > b.room.Arena { // planPiece sees to it that this cannot be
		return fmt.Errorf("a piece of %d queries is planned for %d bytes, a batch has %d", len(p.Queries), p.End, b.room.Arena)
	}
	if b.work != nil {
		b.work.Used(p.End, len(p.Queries))
	}
	return p.encode(b.index, in, b.crew, b.policy.Profile.Host.EncodeSpan)
}

// Decode hands the answers of the piece at hand to its jobs, on several cores where these are long, and ends those that are done.
func (b *Batch) Decode(ctx context.Context, out []byte) error {
	p, n := &b.piece, len(b.piece.Queries)
	states := abi.Array[abi.State](out, 0, n)
	b.takeAbandoned(states)
	b.takeUnordered(states, out)
	b.places = slices.Grow(b.places[:0], n)[:n]
	next := p.Answers - p.States
	work := 0
	totals := abi.Array[uint64](out, p.Totals-p.States, p.Filters.Count)
	for i := range p.Queries {
		q, state := &p.Queries[i], &states[i]
		if b.places[i] = next; !q.Ordered() {
			next += topk.EntryBytes * int64(q.K)
		}
		if !b.done(q, state, out) { // it is executed again, and that counts
			continue
		}
		b.count(q, state)
		if int(state.Kept) > q.K {
			return &gpuexec.DeviceError{Op: "reading the answers", Sticky: true, Err: fmt.Errorf(
				"query %d of %d has %d hits for k %d", i, n, state.Kept, q.K)}
		}
		if !q.Ordered() {
			work += topk.EntryBytes * int(state.Kept) / b.policy.Profile.Host.AnswerBytes
		}
		if i%sampled == 0 {
			work += min(sampled, n-i) * q.endWork(state)
		}
	}
	return b.crew.EachShift(context.Background(), n, work, func(s *run.Shift, i int) {
		q, state := &p.Queries[i], &states[i]
		if !b.done(q, state, out) {
			return
		}
		job := q.Job
		q.counted(state)
		p.total(b.index, q, totals)
		job.Entries = job.Entries[:0]
		if job.Ordered = q.Ordered(); job.Ordered {
			job.Found = int(state.Kept)
		} else {
			job.Entries = append(job.Entries, abi.Array[topk.Entry](out, b.places[i], int(state.Kept))...)
		}
		p.Scores.Decode(out, p.States, &q.Share, job)
		if job.Then != nil {
			job.Then.End(ctx, s)
		}
	})
}

// endWork estimates what it takes to end the job of a query, in nanoseconds of a core.
func (q *Query) endWork(state *abi.State) int {
	job := q.Job
	if job.Then == nil {
		return 0
	}
	entries := int(state.Kept)
	if job.Ordered = q.Ordered(); job.Ordered {
		entries = q.Hits()
	}
	return job.Then.EndWork(entries, min(int(state.Kept), int(q.Share.Scored)))
}

// done is true of a query of the piece at hand that is not executed again.
func (b *Batch) done(q *Query, state *abi.State, out []byte) bool {
	return !q.abandoned(state) && b.piece.Scores.Orders.Sound(out, b.piece.States, &q.Share)
}

// takeUnordered collects the queries whose candidates could not be put in order, for another piece, from which these come back.
func (b *Batch) takeUnordered(states []abi.State, out []byte) {
	if b.piece.Scores.Orders.Count == 0 {
		return
	}
	for i, q := range b.piece.Queries {
		if !q.abandoned(&states[i]) && !b.done(&q, &states[i], out) {
			q.Disorder()
			b.again = append(b.again, q)
		}
	}
}

// abandoned is true of a query that the bound has given up.
func (q *Query) abandoned(state *abi.State) bool {
	return q.kernel == kernelBound && state.Threshold == abi.GivenUp
}

// takeAbandoned collects the queries that the bound has given up, for another piece, and takes notice of how many they are: an
// index where they are common is left to the other kernels for some batches.
func (b *Batch) takeAbandoned(states []abi.State) {
	l := &b.piece.Bound
	if l.Count == 0 {
		return
	}
	n := 0
	for i := l.First; i < l.First+l.Count; i++ {
		if q := b.piece.Queries[i]; q.abandoned(&states[i]) {
			n++
			q.boundable = false
			b.again = append(b.again, q)
		}
	}
	if n*8 > l.Count {
		b.index.rest.Store(int32(b.policy.Profile.Bound.Rest))
	}
	if b.work != nil {
		b.work.BoundSteps += l.steps(b.index.Codes)
	}
}

// counted adds what the device did for a query to its job.
func (q *Query) counted(state *abi.State) {
	q.Job.Candidates += state.Passed
	q.Job.Units += state.Postings
	if q.kernel != kernelTile {
		q.Job.Units += q.postings
	}
}

// count adds a query that was executed to the work: with postings that the (query, tile) kernel found, or in groups of 1,024 objects.
func (b *Batch) count(q *Query, state *abi.State) {
	if b.work == nil {
		return
	}
	switch q.kernel {
	case kernelBound:
		b.work.BoundQueries++
	case kernelSliced:
		b.work.SlicedQueries++
		b.work.SlicedRows += uint64(q.weightedRows) * uint64(b.index.groups())
	default:
		b.work.TileQueries++
		if q.planeRows == 0 {
			b.work.TilePostings += state.Postings
		}
	}
}
