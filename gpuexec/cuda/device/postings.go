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
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/verify"
)

// loaders are the families that the engine can search.
func (e *Engine) loaders() run.Loaders {
	return run.Loaders{postings.FamilyName: {
		Load:  e.loadPostings,
		Weigh: func(x gpuexec.Source) []uint64 { return postingsOf(x).TileWork() },
	}}
}

func postingsOf(x gpuexec.Source) *postings.Lists {
	return x.Structure(postings.FamilyName).(*postings.Lists)
}

// sequences are the texts of a source that has them.
type sequences interface {
	verify.Texts
	Schema() *schema.Schema
}

// matcher is the postings of an index, or a range of its tiles, resident on the device.
type matcher struct {
	engine    *Engine
	lists     *postings.Lists
	resident  *resident
	residence run.Residence
	release   func() // of the memory budget
}

// loadPostings is run.Loader.Load.
func (e *Engine) loadPostings(ctx context.Context, h *run.Host, own run.Extent, later []run.Extent) (run.Matcher, error) {
	m := &matcher{engine: e, lists: postingsOf(own.Source)}
	if err := m.load(ctx, h, own, later); err != nil {
		return nil, fmt.Errorf("loading an index onto %s: %w", e.About.Device, errors.Join(err, m.Close()))
	}
	return m, nil
}

func (m *matcher) load(ctx context.Context, h *run.Host, own run.Extent, later []run.Extent) error {
	var texts *plan.Texts
	if x, ok := own.Source.(sequences); ok && x.Schema().Kind == schema.Sequences {
		var err error
		if texts, err = plan.SurveyTexts(ctx, x, own.Tiles, h.Crew); err != nil {
			return err
		}
	}
	var following []plan.Extent
	for _, next := range later {
		if x, ok := next.Source.Structure(postings.FamilyName).(*postings.Lists); ok {
			following = append(following, plan.Extent{Lists: x, Tiles: next.Tiles})
		}
	}
	e := m.engine
	var p plan.Placement
	var err error
	m.release, err = h.Budget.Place(func(free int64) (_ []gpuexec.Holding, err error) {
		limits := e.limits
		limits.Memory = free
		p, err = plan.Place(&e.kernels.Device, plan.Extent{Lists: m.lists, Tiles: own.Tiles}, texts, following, limits)
		if err != nil {
			return nil, err
		}
		return p.Holdings(run.OwnerOf(own.Source)), nil
	})
	if err != nil {
		return err
	}
	m.residence = run.Residence{
		IndexBytes: p.DeviceBytes(), DeviceBytes: p.DeviceBytes(), Parts: p.PartsOfBatch(), Form: p.Description(),
	}
	m.resident = &resident{kernels: e.kernels}
	return e.thread.do(func() error { return m.resident.load(ctx, p, e.uploader, h.Crew) })
}

// Check implements run.Matcher.
func (m *matcher) Check(p *gpuexec.Plan) (bound uint32, err error) {
	return m.lists.CheckQuery(p.Query)
}

// Match implements run.Matcher.
func (m *matcher) Match(ctx context.Context, jobs []*run.Job, timed *gpuexec.Trace) error {
	if len(jobs) == 0 {
		return nil
	}
	start := time.Now()
	batch, err := plan.NewBatch(ctx, m.resident.Index, jobs, m.engine.Host.Crew) // before a lane is taken: while other batches run
	if err != nil {
		return err
	}
	if timed != nil {
		timed.Plan += time.Since(start)
	}
	return m.onLane(ctx, func(l *lane) error { return l.match(ctx, m.resident, batch, timed) })
}

// Scan implements run.Matcher.
func (m *matcher) Scan(ctx context.Context, jobs []*run.ScanJob, timed *gpuexec.Trace) error {
	own := m.resident.ScansOf(jobs)
	if len(own) == 0 {
		return nil
	}
	return m.onLane(ctx, func(l *lane) error { return l.scan(ctx, m.resident, own, timed) })
}

// onLane calls work with a lane, once there is one for the index.
func (m *matcher) onLane(ctx context.Context, work func(l *lane) error) error {
	return m.engine.lanes.with(ctx, m.resident.Streamed, work)
}

// Cost implements run.Matcher.
func (m *matcher) Cost(p *gpuexec.Plan) int64 { return m.resident.Cost(p) }

// Residence implements run.Matcher.
func (m *matcher) Residence() run.Residence { return m.residence }

// Close implements run.Matcher.
func (m *matcher) Close() error {
	var err error
	if m.resident != nil {
		err = m.engine.thread.do(m.resident.free)
		m.resident = nil
	}
	if m.release != nil {
		m.release()
	}
	return err
}
