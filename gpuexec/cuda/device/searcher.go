//go:build cuda

package device

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index"
)

// Load implements gpuexec.Engine.
func (e *Engine) Load(ctx context.Context, snapshot *gpuexec.Snapshot, later ...*gpuexec.Snapshot) (gpuexec.Searcher, error) {
	indexes, err := run.IndexesOf(snapshot, later)
	if err != nil {
		return nil, err
	}
	var following []run.Extent
	for _, x := range indexes[1:] {
		following = append(following, run.Extent{Index: x, Tiles: run.AllTiles(x)})
	}
	return e.LoadTiles(ctx, run.Extent{Index: indexes[0], Tiles: run.AllTiles(indexes[0])}, following)
}

// LoadTiles implements run.Member.
func (e *Engine) LoadTiles(ctx context.Context, own run.Extent, later []run.Extent) (run.Shard, error) {
	s := &searcher{engine: e}
	s.Pipeline.Index, s.Pipeline.Crew, s.Pipeline.Matcher = own.Index, e.crew, s
	if err := s.open(ctx, own, later); err != nil {
		return nil, fmt.Errorf("loading an index onto %s: %w", e.info.Device, errors.Join(err, s.Close()))
	}
	return s, nil
}

// A searcher is an index, or a range of its tiles, resident on the device.
type searcher struct {
	run.Pipeline
	engine   *Engine
	resident *resident
	bytes    int64 // of the memory budget
	parts    int   // of a batch
	form     string
}

func (s *searcher) open(ctx context.Context, own run.Extent, later []run.Extent) error {
	e := s.engine
	var texts *plan.Texts
	if own.Index.Schema().Kind == index.Sequences {
		var err error
		if texts, err = plan.SurveyTexts(ctx, own.Index, own.Tiles, e.crew); err != nil {
			return err
		}
	}
	p, err := e.place(own, texts, later)
	if err != nil {
		return err
	}
	s.bytes, s.parts, s.form = p.DeviceBytes(), p.PartsOfBatch(), p.Description()
	s.resident = &resident{kernels: e.kernels}
	return e.thread.do(func() error { return s.resident.load(ctx, p, e.uploader, e.crew) })
}

// Match implements run.Matcher.
func (s *searcher) Match(ctx context.Context, jobs []*run.Job, timed *gpuexec.Trace) error {
	if len(jobs) == 0 {
		return nil
	}
	start := time.Now()
	batch, err := plan.NewBatch(ctx, s.resident.Index, jobs, s.engine.crew) // before a lane is taken: while other batches run
	if err != nil {
		return err
	}
	if timed != nil {
		timed.Plan += time.Since(start)
	}
	return s.onLane(ctx, func(l *lane) error { return l.match(ctx, s.resident, batch, timed) })
}

// Scan implements run.Matcher.
func (s *searcher) Scan(ctx context.Context, jobs []*run.ScanJob, timed *gpuexec.Trace) error {
	own := s.resident.ScansOf(jobs)
	if len(own) == 0 {
		return nil
	}
	return s.onLane(ctx, func(l *lane) error { return l.scan(ctx, s.resident, own, timed) })
}

// onLane calls work with a lane, once there is one for the index.
func (s *searcher) onLane(ctx context.Context, work func(l *lane) error) error {
	return s.engine.lanes.with(ctx, s.resident.Streamed, work)
}

// Capacity implements gpuexec.Searcher.
func (s *searcher) Capacity() gpuexec.Capacity {
	lanes := int64(s.engine.opts.InFlight) * s.engine.opts.BatchMemory
	return gpuexec.Capacity{
		BatchPlans:  s.engine.opts.BatchPlans,
		BatchBytes:  s.engine.opts.BatchMemory,
		InFlight:    s.engine.opts.InFlight,
		IndexBytes:  s.bytes,
		DeviceBytes: s.bytes + lanes,
		SharedBytes: lanes,
		Parts:       s.parts,
		Form:        s.form,
	}
}

// Cost implements gpuexec.Searcher.
func (s *searcher) Cost(p *gpuexec.Plan) int64 { return s.resident.Cost(p) }

// Close implements gpuexec.Searcher.
func (s *searcher) Close() error {
	var errs []error
	if r := s.resident; r != nil {
		errs = append(errs, s.engine.thread.do(r.free))
		s.resident = nil
	}
	s.engine.release(s.bytes)
	s.bytes = 0
	return errors.Join(errs...)
}

// place takes memory for an index, and for its texts if they are given and there is room.
func (e *Engine) place(own run.Extent, texts *plan.Texts, later []run.Extent) (plan.Placement, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	limits := e.limits
	limits.Memory = e.free
	p, err := plan.Place(&e.kernels.Device, own, texts, later, limits)
	if err != nil {
		return p, err
	}
	return p, e.take("placing the index", p.DeviceBytes())
}

// reserve takes bytes of the memory budget.
func (e *Engine) reserve(op string, bytes int64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.take(op, bytes)
}

// take is reserve for who holds the lock.
func (e *Engine) take(op string, bytes int64) error {
	if bytes > e.free {
		return &gpuexec.DeviceError{Op: op, OutOfMemory: true, Err: fmt.Errorf("it needs %d MiB of device memory, %d MiB are free",
			bytes>>20, e.free>>20)}
	}
	e.free -= bytes
	return nil
}

func (e *Engine) release(bytes int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.free += bytes
}
