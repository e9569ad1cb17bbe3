// Package cpu is the engine that searches on the cores of this machine.
package cpu

import (
	"context"
	"fmt"
	"math"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu/nearest"
	"github.com/geniemq/geniemq/gpuexec/passing"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/store"
)

// scratch is what one goroutine at a time needs for counting. Between uses all counters are zero.
type scratch struct {
	counters counters
	ways     tileWays // of the query and tile at hand
	sums     sums
}

// New returns the engine on the cores of this machine. It is a tiled ScanCount:
//
// A tile's counters, one per object, packed in 8, 16 or 32 bits by the query's count bound, stay in the cache nearest
// to the core while the postings of the tile are added to them (count.go). Then the counters, or with few postings
// the postings once more, are searched for counts that reach the Gate's threshold (harvest.go), and the counters
// are cleared for the next query. All that costs about half a nanosecond per posting on a core.
//
// The loops over tiles are outside the loops over the queries of a batch, so that the postings of a tile are
// read from memory once for many queries. Batches with fewer queries than keep the cores busy are split into ranges of
// tiles too, and a query's ranges are joined by the total order (match.go).
//
// Postings are read in place, from the file's mapping, which costs nothing to load and whose memory is shared. So are the
// planes of sliced attributes; but Load makes lists of them as well, up to 2 bytes per object and attribute, except where a
// list would be so dense that the planes are always cheaper (sliced.go). In each tile a query counts its spans in
// the cheapest way (ways.go). Rare keywords are looked up once per query and range of tiles (query.go).
func New(opts gpuexec.CPUOptions) *run.Engine { return On(run.NewCrew(opts.Workers)) }

// On returns an engine on the cores of a crew, which other engines may share. Its memory for counting is the host's Device, by
// seat of the crew.
func On(crew *run.Crew) *run.Engine {
	seats := make([]*scratch, crew.Size())
	for i := range seats {
		seats[i] = new(scratch)
	}
	shared := int64(crew.Size()) * maxCounterBytes
	budget := run.NewBudget(0, math.MaxInt64) // the host's memory has no bound of ours
	_, _ = budget.Reserve(gpuexec.Holding{Owner: "engine", Form: "counters, at most", Bytes: shared, Needed: true})
	return &run.Engine{
		About:   gpuexec.Info{Kind: gpuexec.CPU, Device: fmt.Sprintf("%d cores", crew.Size()), Workers: crew.Size()},
		Host:    &run.Host{Crew: crew, Budget: budget, Device: seats},
		Loaders: Loaders(),
		Capacity: gpuexec.Capacity{
			BatchPlans: 1024, // within a tile that many read the postings from memory once, and more gain nothing
			BatchBytes: 256 << 20,
			OnHost:     true,
			// One batch runs while the answers of another are published and its successor is decoded.
			InFlight:    2,
			SharedBytes: shared,
		},
	}
}

// Loaders are the families that the engine can search.
func Loaders() run.Loaders {
	return run.Loaders{
		postings.FamilyName: {
			Load:  loadPostings,
			Weigh: func(x gpuexec.Source) []uint64 { return postingsOf(x).TileWork() },
		},
		distance.FamilyName: nearest.Loader(),
	}
}

func postingsOf(x gpuexec.Source) *postings.Lists {
	return x.Structure(postings.FamilyName).(*postings.Lists)
}

// Tiles are those of the index.
const (
	_ = uint(run.TileObjects - store.TileObjects)
	_ = uint(store.TileObjects - run.TileObjects)
)

func loadPostings(ctx context.Context, h *run.Host, own run.Extent, _ []run.Extent) (run.Matcher, error) {
	x, tiles := postingsOf(own.Source), own.Tiles
	sliced, bytes, err := loadSliced(ctx, h.Crew, x, tiles)
	if err != nil {
		return nil, fmt.Errorf("making lists of sliced attributes: %w", err)
	}
	m := &matcher{index: x, stored: filter.StoredBy(own.Source.Structure(filter.StoredFamily)), tiles: tiles, sliced: sliced, listBytes: bytes, crew: h.Crew, scratch: h.Device.([]*scratch)}
	m.release, err = h.Budget.Reserve(gpuexec.Holding{Owner: run.OwnerOf(own.Source), Form: "lists of sliced attributes", Bytes: bytes})
	return m, err
}

func (m *matcher) Residence() run.Residence {
	form := "in place"
	if m.listBytes > 0 {
		form = "in place, with lists of bit-sliced attributes"
	}
	return run.Residence{IndexBytes: m.index.Size(), DeviceBytes: m.listBytes, Parts: 1, Form: form}
}

func (m *matcher) Check(p *gpuexec.Plan) (bound uint32, err error) {
	return m.index.CheckQuery(p.Query, m.stored)
}

// Cost is the gate and the result of the matcher plus the hits, at their largest, its rare postings and those of its filter. A plan that is split
// into ranges of tiles has a gate for each, but then there are few plans.
func (m *matcher) Cost(p *gpuexec.Plan) int64 {
	const (
		fixed    = 512
		hitBytes = 16
	)
	objects := int(min(int64(m.index.Objects()), gpuexec.MaxK))
	k, hits := max(0, min(p.Candidates(), objects)), max(0, min(p.Wanted(), objects))
	cost := fixed + topk.GateBytes(k) + topk.EntryBytes*int64(k) + hitBytes*int64(hits)
	if q, ok := p.Query.(*postings.MatchQuery); ok && q != nil {
		cost += rareBytes * countRare(m.index, q)
		cost += passing.RareBytes * passing.Rare(passing.Index{Lists: m.index}, q.Filter)
	}
	return cost
}

func (m *matcher) Close() error {
	m.release()
	return nil
}
