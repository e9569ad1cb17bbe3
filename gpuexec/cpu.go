package gpuexec

import (
	"context"
	"fmt"
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
type cpuEngine struct {
	opts    CPUOptions
	crew    *crew
	info    Info
	scratch []*scratch // by seat of the crew
}

// scratch is what one goroutine at a time needs for counting. Between uses all counters are zero.
type scratch struct {
	counters counters
	ways     tileWays // of the query and tile at hand
	sums     sums
}

// NewCPU returns an engine on the cores of this machine.
func NewCPU(opts CPUOptions) Engine { return newCPUEngine(opts, newCrew(opts.Workers)) }

// newCPUEngine makes an engine that shares the cores of a crew.
func newCPUEngine(opts CPUOptions, crew *crew) *cpuEngine {
	if opts.BatchPlans <= 0 {
		opts.BatchPlans = 1024
	}
	if opts.BatchBytes <= 0 {
		opts.BatchBytes = 256 << 20
	}
	e := &cpuEngine{opts: opts, crew: crew}
	for range e.crew.size() {
		e.scratch = append(e.scratch, new(scratch))
	}
	e.info = Info{Kind: CPU, Device: fmt.Sprintf("%d cores", e.crew.size()), Workers: e.crew.size()}
	return e
}

func (e *cpuEngine) Info() Info { return e.info }

func (e *cpuEngine) Close() error { return nil }

func (e *cpuEngine) Load(ctx context.Context, snapshot *Snapshot, _ ...*Snapshot) (Searcher, error) {
	x, err := indexOf(snapshot)
	if err != nil {
		return nil, err
	}
	return e.loadTiles(ctx, extent{x, allTiles(x)}, nil)
}

func (e *cpuEngine) loadTiles(ctx context.Context, own extent, _ []extent) (shard, error) {
	x, tiles := own.index, own.tiles
	sliced, bytes, err := loadSliced(ctx, e.crew, x, tiles)
	if err != nil {
		return nil, fmt.Errorf("making lists of sliced attributes: %w", err)
	}
	s := &cpuSearcher{engine: e, listBytes: bytes}
	s.pipeline.index, s.pipeline.crew = x, e.crew
	s.pipeline.matcher = &cpuMatcher{index: x, tiles: tiles, sliced: sliced, crew: e.crew, scratch: e.scratch, nibbles: e.opts.NibbleCounters}
	return s, nil
}

type cpuSearcher struct {
	pipeline
	engine    *cpuEngine
	listBytes int64 // of sliced attributes
}

func (s *cpuSearcher) Capacity() Capacity {
	shared := int64(s.engine.crew.size()) * maxCounterBytes
	return Capacity{
		BatchPlans: s.engine.opts.BatchPlans,
		BatchBytes: s.engine.opts.BatchBytes,
		OnHost:     true,
		// One batch runs while the answers of another are published and its successor is decoded.
		InFlight:    2,
		IndexBytes:  s.index.Size(),
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
func (s *cpuSearcher) Cost(p *Plan) int64 {
	const (
		fixed    = 512
		hitBytes = 16
	)
	m := &p.Match
	k, hits := m.K, m.K
	if m.Verify != nil {
		k, hits = max(m.K, m.Verify.K), m.Verify.K
	}
	objects := int(min(int64(s.index.Objects()), MaxK))
	k, hits = max(0, min(k, objects)), max(0, min(hits, objects))
	return fixed + gateBytes(k) + entryBytes*int64(k) + hitBytes*int64(hits) + rareBytes*countRare(s.index, &m.Query)
}

func (s *cpuSearcher) match(ctx context.Context, jobs []*matchJob) error {
	return s.matcher.match(ctx, jobs)
}

func (s *cpuSearcher) scan(ctx context.Context, jobs []*scanJob) error {
	return s.matcher.scan(ctx, jobs)
}

func (s *cpuSearcher) Close() error { return nil }
