package plan

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestAbandoned: a query that the bound has given up is executed again by another kernel, and nothing of the first time
// counts but the steps that the bound took.
func TestAbandoned(t *testing.T) {
	rng := seeded.Rand(t)
	w := enginetest.NewCodedWorld(t, rng, 3000, 100)
	x := hostIndex(t, w.Index, Limits{Memory: 1 << 40})
	work := &gpuexec.Work{}
	var jobs []*run.Job
	for len(jobs) < 100 {
		p := w.Plan(rng)
		p.K = 1 + rng.IntN(20)
		bound, err := x.Lists.CheckQuery(p.Query, nil)
		if err != nil || bound == 0 {
			continue
		}
		jobs = append(jobs, &run.Job{Query: enginetest.Query(&p), K: p.K, MinCount: 1, Bound: bound})
	}
	crew := run.NewCrew(1)
	b, err := NewBatch(context.Background(), x, jobs, crew)
	if err != nil {
		t.Fatal(err)
	}
	policy := hostPolicy()
	policy.Path = PathBound
	b.Executes(*policy, roomOf(1<<30), work)
	in, out := make([]byte, 8<<20), make([]byte, 8<<20)
	// round hands the queries of a piece what the device might hand back.
	round := func(abandon func(q *Query) bool) *Piece {
		p := b.Next()
		if err := b.Encode(in); err != nil {
			t.Fatal(err)
		}
		clear(out)
		states := abi.Array[abi.State](out, 0, len(p.Queries))
		for i := range p.Queries {
			q := &p.Queries[i]
			states[i] = abi.State{Threshold: 2, Kept: 1, Stored: 1, Passed: 7}
			if q.kernel == kernelTile {
				states[i].Postings = 5
			}
			if q.kernel == kernelBound && abandon(q) {
				states[i].Threshold = math.MaxUint32
			}
		}
		if err := b.Decode(t.Context(), out); err != nil {
			t.Fatal(err)
		}
		return p
	}
	given := map[*run.Job]bool{}
	postings := map[*run.Job]uint64{}
	p := round(func(q *Query) bool {
		given[q.Job] = rng.IntN(2) == 0
		return given[q.Job]
	})
	if len(p.Queries) != len(jobs) {
		t.Fatal("the queries do not fit")
	}
	bounded, again := p.Bound.Count, 0
	for _, job := range given {
		if job {
			again++
		}
	}
	for i := range p.Queries {
		q := &p.Queries[i]
		if postings[q.Job] = q.postings; q.counters < 0 {
			postings[q.Job] = 5
		}
	}
	if again == 0 || again == bounded || len(b.again) != again || x.rest.Load() == 0 {
		t.Fatalf("%d of %d queries are given up, %d executed again; rests for %d", again, bounded, len(b.again), x.rest.Load())
	}
	p = round(func(*Query) bool { return false })
	if b.Next() != nil || p.Bound.Count != 0 || len(p.Queries) != again {
		t.Fatalf("%d queries are executed again, %d by the bound", len(p.Queries), p.Bound.Count)
	}
	for _, job := range jobs {
		if job.Candidates != 7 || job.Units != postings[job] || len(job.Entries) != 1 {
			t.Errorf("given up: %v; %d candidates, %d postings of %d, %d entries", given[job], job.Candidates, job.Units, postings[job], len(job.Entries))
		}
	}
	if work.BoundQueries != bounded-again || work.BoundQueries+work.SlicedQueries+work.TileQueries != len(jobs) {
		t.Errorf("%d queries, %d given up: %+v", len(jobs), again, work)
	}
	blocks := (bounded + abi.BoundQueries - 1) / abi.BoundQueries
	if want := uint64(blocks * x.Codes.Steps() * (x.Codes.Objects / abi.BoundTile)); work.BoundSteps != want {
		t.Errorf("the bound took %d steps, not %d", work.BoundSteps, want)
	}
}

// TestBatchRefuses: a query that does not fit alone gets its error and the others are executed; an answer that cannot be is the
// device's fault, and the bound's rest ends batch by batch.
func TestBatchRefuses(t *testing.T) {
	rng := seeded.Rand(t)
	w := enginetest.NewCodedWorld(t, rng, 3000, 100)
	x := hostIndex(t, w.Index, Limits{Memory: 1 << 40})
	plan := w.Plan(rng)
	query := enginetest.Query(&plan)
	jobs := []*run.Job{{Query: query, K: 3000, MinCount: 1, Bound: 100}, {Query: query, K: 1, MinCount: 1, Bound: 100}}
	b, err := NewBatch(context.Background(), x, jobs, run.NewCrew(1))
	if err != nil {
		t.Fatal(err)
	}
	b.Executes(*hostPolicy(), roomOf(3000*16), nil)
	p := b.Next()
	var device *gpuexec.DeviceError
	if p == nil || len(p.Queries) != 1 || p.Queries[0].Job != jobs[1] || !errors.As(jobs[0].Err, &device) || !device.OutOfMemory || jobs[1].Err != nil {
		t.Fatalf("%+v: %v, %v", p, jobs[0].Err, jobs[1].Err)
	}
	out := make([]byte, 1<<20)
	abi.Array[abi.State](out, 0, 1)[0].Kept = 2
	if err := b.Decode(t.Context(), out); !errors.As(err, &device) || !device.Sticky {
		t.Errorf("two hits for k 1: %v", err)
	}
	if b.Next() != nil {
		t.Error("a query is executed twice")
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	many := make([]*run.Job, 20_000)
	for i := range many {
		many[i] = jobs[1]
	}
	if _, err := NewBatch(ended, x, many, run.NewCrew(2)); !errors.Is(err, context.Canceled) {
		t.Errorf("a batch of a caller who has gone: %v", err)
	}
}
