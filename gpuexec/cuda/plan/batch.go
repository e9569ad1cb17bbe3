package plan

import (
	"context"
	"fmt"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/gpuexec/topk"
)

// A Batch is the queries of one call on an index: those that wait for a piece, and those that must be executed again. Who executes
// it asks for a piece at a time (Next), has it encoded into the memory that is copied to the device (Encode), runs it, and hands
// back what came from there (Decode), until there is no other. It belongs to one goroutine.
type Batch struct {
	index  *Index
	policy Policy
	room   Room
	crew   *run.Crew
	work   *gpuexec.Work // nil unless it is wanted

	waiting []Query
	again   []Query // that the bound has given up
	piece   Piece
}

// NewBatch plans what jobs ask, on several cores where there are many. Pieces are planned by Next, by the policy and for the
// room of whoever executes them.
func NewBatch(ctx context.Context, x *Index, jobs []*run.Job, crew *run.Crew) (*Batch, error) {
	b := &Batch{index: x, crew: crew, waiting: make([]Query, len(jobs))}
	spans := 0
	for _, job := range jobs {
		spans += len(queryOf(job).Spans)
	}
	if err := crew.Each(ctx, len(jobs), spans*x.device.Profile.Host.PlanSpan, func(i int) { b.waiting[i] = x.Plan(jobs[i]) }); err != nil {
		return nil, err
	}
	return b, nil
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
		rest := b.index.Resting()
		b.policy.Resting = rest > 0
		piece, err := b.index.planPiece(b.waiting, b.room, &b.policy)
		if err != nil {
			b.waiting[0].Job.Err = err
			b.waiting = b.waiting[1:]
			continue
		}
		if piece.rested {
			b.index.rest.CompareAndSwap(rest, rest-1)
		}
		b.waiting, b.piece = b.waiting[len(piece.Queries):], piece
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

// Decode hands the answers of the piece at hand to its jobs, on several cores where these are long.
func (b *Batch) Decode(out []byte) error {
	p, n := &b.piece, len(b.piece.Queries)
	states := abi.Array[abi.State](out, 0, n)
	b.takeAbandoned(states)
	type offsets struct{ answer, distances int64 }
	of := make([]offsets, n)
	next := offsets{p.Answers - p.States, p.Distances - p.States}
	bytes := 0
	for i := range p.Queries {
		q, state := &p.Queries[i], &states[i]
		job := q.Job
		if !q.abandoned(state) { // else it is executed again, and that counts
			b.count(q, state)
		}
		if int(state.Kept) > job.K {
			return &gpuexec.DeviceError{Op: "reading the answers", Sticky: true, Err: fmt.Errorf(
				"query %d of %d has %d hits for k %d", i, n, state.Kept, job.K)}
		}
		of[i] = next
		next.answer += topk.EntryBytes * int64(job.K)
		next.distances += abi.DistanceBytes * int64(q.compared)
		bytes += topk.EntryBytes * int(state.Kept)
	}
	return b.crew.Each(context.Background(), n, bytes/b.policy.Profile.Host.AnswerBytes, func(i int) {
		job := p.Queries[i].Job
		job.Entries = append(job.Entries[:0], abi.Array[topk.Entry](out, of[i].answer, int(states[i].Kept))...)
		p.Queries[i].decodeDistances(out, of[i].distances)
	})
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

// count adds a query that was executed to its job and to the work: with postings that the (query, tile) kernel found, or in
// groups of 1,024 objects.
func (b *Batch) count(q *Query, state *abi.State) {
	q.Job.Candidates += state.Passed
	q.Job.Units += state.Postings
	if q.kernel != kernelTile {
		q.Job.Units += q.postings
	}
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
