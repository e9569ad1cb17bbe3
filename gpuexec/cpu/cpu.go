// Package cpu is the engine that searches on the cores of this machine.
package cpu

import (
	"context"
	"fmt"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/gpuexec/topk"
)

// cpuEngine searches on the cores of this machine. It is a tiled ScanCount:
//
// A tile's counters, one an object, packed in 8, 16 or 32 bits by the query's count bound, stay in the cache nearest
// to the core while the postings of the tile are added to them (cpu_count.go). Then the counters, or with few postings
// the postings once more, are searched for counts that reach the Gate's threshold (cpu_harvest.go), and the counters
// are cleared for the next query. All that costs about half a nanosecond a posting on a core.
//
// The loops over tiles are outside the loops over the queries of a batch, so that the postings of a tile are
// read from memory once for many queries. Batches with fewer queries than keep the cores busy are split into ranges of
// tiles too, and a query's ranges are joined by the total order (cpu_match.go).
//
// Postings are read in place, from the file's mapping, which costs nothing to load and whose memory is shared. So are the
// planes of sliced attributes; but Load makes lists of them as well, up to 2 bytes an object and attribute, except where a
// list would be so dense that the planes are always cheaper (cpu_sliced.go). In each tile a query counts its spans in
// the cheapest way (cpu_ways.go). Rare keywords are looked up once a query and range of tiles (cpu_query.go).
type Engine struct {
	opts    gpuexec.CPUOptions
	crew    *run.Crew
	info    gpuexec.Info
	scratch []*scratch // by seat of the crew
}

// scratch is what one goroutine at a time needs for counting. Between uses all counters are zero.
type scratch struct {
	counters counters
	ways     tileWays // of the query and tile at hand
	sums     sums
}

// NewCPU returns an engine on the cores of this machine.
func New(opts gpuexec.CPUOptions) gpuexec.Engine { return On(opts, run.NewCrew(opts.Workers)) }

// newCPUEngine makes an engine that shares the cores of a crew.
func On(opts gpuexec.CPUOptions, crew *run.Crew) *Engine {
	if opts.BatchPlans <= 0 {
		opts.BatchPlans = 1024
	}
	if opts.BatchBytes <= 0 {
		opts.BatchBytes = 256 << 20
	}
	e := &Engine{opts: opts, crew: crew}
	for range e.crew.Size() {
		e.scratch = append(e.scratch, new(scratch))
	}
	e.info = gpuexec.Info{Kind: gpuexec.CPU, Device: fmt.Sprintf("%d cores", e.crew.Size()), Workers: e.crew.Size()}
	return e
}

func (e *Engine) Info() gpuexec.Info { return e.info }

func (e *Engine) Close() error { return nil }

func (e *Engine) Load(ctx context.Context, snapshot *gpuexec.Snapshot, _ ...*gpuexec.Snapshot) (gpuexec.Searcher, error) {
	x, err := run.IndexOf(snapshot)
	if err != nil {
		return nil, err
	}
	return e.LoadTiles(ctx, run.Extent{Index: x, Tiles: run.AllTiles(x)}, nil)
}

func (e *Engine) LoadTiles(ctx context.Context, own run.Extent, _ []run.Extent) (run.Shard, error) {
	x, tiles := own.Index, own.Tiles
	sliced, bytes, err := loadSliced(ctx, e.crew, x, tiles)
	if err != nil {
		return nil, fmt.Errorf("making lists of sliced attributes: %w", err)
	}
	s := &cpuSearcher{engine: e, listBytes: bytes}
	s.Pipeline.Index, s.Pipeline.Crew = x, e.crew
	s.Pipeline.Matcher = &cpuMatcher{index: x, tiles: tiles, sliced: sliced, crew: e.crew, scratch: e.scratch, nibbles: e.opts.NibbleCounters}
	return s, nil
}

type cpuSearcher struct {
	run.Pipeline
	engine    *Engine
	listBytes int64 // of sliced attributes
}

func (s *cpuSearcher) Capacity() gpuexec.Capacity {
	shared := int64(s.engine.crew.Size()) * maxCounterBytes
	return gpuexec.Capacity{
		BatchPlans: s.engine.opts.BatchPlans,
		BatchBytes: s.engine.opts.BatchBytes,
		OnHost:     true,
		// One batch runs while the answers of another are published and its successor is decoded.
		InFlight:    2,
		IndexBytes:  s.Index.Size(),
		DeviceBytes: shared + s.listBytes,
		SharedBytes: shared,
		Parts:       1,
		Form:        s.form(),
	}
}

func (s *cpuSearcher) form() string {
	if s.listBytes > 0 {
		return "in place, with lists of bit-sliced attributes"
	}
	return "in place"
}

// Cost is the gate and the result of the matcher plus the hits, at their largest, and its rare postings. A plan that is split
// into ranges of tiles has a gate for each, but then there are few plans.
func (s *cpuSearcher) Cost(p *gpuexec.Plan) int64 {
	const (
		fixed    = 512
		hitBytes = 16
	)
	m := &p.Match
	k, hits := m.K, m.K
	if m.Verify != nil {
		k, hits = max(m.K, m.Verify.K), m.Verify.K
	}
	objects := int(min(int64(s.Index.Objects()), gpuexec.MaxK))
	k, hits = max(0, min(k, objects)), max(0, min(hits, objects))
	return fixed + topk.GateBytes(k) + topk.EntryBytes*int64(k) + hitBytes*int64(hits) + rareBytes*countRare(s.Index, &m.Query)
}

func (s *cpuSearcher) Match(ctx context.Context, jobs []*run.Job, t *gpuexec.Trace) error {
	return s.Matcher.Match(ctx, jobs, t)
}

func (s *cpuSearcher) Scan(ctx context.Context, jobs []*run.ScanJob, t *gpuexec.Trace) error {
	return s.Matcher.Scan(ctx, jobs, t)
}

func (s *cpuSearcher) Close() error { return nil }
