//go:build cuda

package device

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/cuda/rescoring"
	"github.com/geniemq/geniemq/gpuexec/passing"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/filter"
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

func storedBy(x gpuexec.Source) filter.Stored {
	return filter.StoredBy(x.Structure(filter.StoredFamily))
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
	stored    filter.Stored // what the index keeps beside its lists; may be nil
	tiles     run.Tiles     // that are here
	resident  *resident
	residence run.Residence
	release   func() // of the memory budget
}

// loadPostings is run.Loader.Load.
func (e *Engine) loadPostings(ctx context.Context, h *run.Host, own run.Extent, later []run.Extent) (run.Matcher, error) {
	m := &matcher{engine: e, lists: postingsOf(own.Source), stored: storedBy(own.Source), tiles: own.Tiles}
	if err := m.load(ctx, h, own, later); err != nil {
		return nil, fmt.Errorf("loading an index onto %s: %w", e.About.Device, errors.Join(err, m.Close()))
	}
	return m, nil
}

func (m *matcher) load(ctx context.Context, h *run.Host, own run.Extent, later []run.Extent) error {
	var texts verify.Texts
	if x, ok := own.Source.(sequences); ok && x.Schema().Kind == schema.Sequences {
		texts = x
	}
	originals, err := rescoring.Survey(ctx, own.Source, texts, own.Tiles, h.Crew)
	if err != nil {
		return err
	}
	var following []plan.Extent
	for _, next := range later {
		if x, ok := next.Source.Structure(postings.FamilyName).(*postings.Lists); ok {
			following = append(following, plan.Extent{Lists: x, Stored: storedBy(next.Source), Tiles: next.Tiles})
		}
	}
	e := m.engine
	var p plan.Placement
	m.release, err = h.Budget.Place(func(free int64) (_ []gpuexec.Holding, err error) {
		limits := e.limits
		limits.Memory = free
		p, err = plan.Place(&e.kernels.Device, plan.Extent{Lists: m.lists, Stored: m.stored, Tiles: own.Tiles}, originals, following, limits)
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
	return e.do(func() error { return m.resident.load(ctx, p, e.uploader, h.Crew) })
}

func (m *matcher) Check(p *gpuexec.Plan) (bound uint32, err error) {
	return m.lists.CheckQuery(p.Query, m.stored)
}

func (m *matcher) Match(ctx context.Context, jobs []*run.Job, timed *gpuexec.Trace) error {
	if len(jobs) == 0 {
		return nil
	}
	start := time.Now()
	batch, err := plan.NewBatch(ctx, m.resident.Index, jobs, m.engine.Host.Crew) // before a lane is taken: while other batches run
	if err != nil {
		return err
	}
	defer batch.Close()
	if timed != nil {
		took := time.Since(start)
		timed.Plan += took
		timed.Host.Plan += took
	}
	return m.onLane(ctx, func(l *lane) error { return l.match(ctx, m.resident, batch, timed) })
}

func (m *matcher) Scan(ctx context.Context, jobs []*run.ScanJob, timed *gpuexec.Trace) error {
	own := m.resident.ScansOf(jobs)
	if len(own) == 0 {
		return nil
	}
	return m.onLane(ctx, func(l *lane) error { return l.scan(ctx, m.resident, own, timed) })
}

// Passing implements run.Passer: on the host's cores, which the scan that asks is about to use.
func (m *matcher) Passing(ctx context.Context, query run.Filtering) (filter.Set, error) {
	x := passing.Index{Lists: m.lists, Stored: m.stored}
	return passing.Objects(ctx, m.engine.Host.Crew, x, query.(*postings.MatchQuery).Filter, m.tiles)
}

// onLane calls work with a lane, once there is one for the index.
func (m *matcher) onLane(ctx context.Context, work func(l *lane) error) error {
	return m.engine.lanes.With(ctx, m.resident.Streamed, work)
}

func (m *matcher) Cost(p *gpuexec.Plan) int64 { return m.resident.Cost(p) }

func (m *matcher) Residence() run.Residence { return m.residence }

func (m *matcher) Close() error {
	var err error
	if m.resident != nil {
		err = m.engine.do(m.resident.free)
		m.resident = nil
	}
	if m.release != nil {
		m.release()
	}
	return err
}
