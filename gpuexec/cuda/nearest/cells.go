package nearest

import (
	"math"
	"slices"
	"sync/atomic"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric/cells"
)

// Cells are a column's cells as they lie on a device: the centroids are a column like any other, of which the nearest are visited. A query to a recall visits a number of them
// that is known before; those that visit until they are exact are the host's.
type Cells struct {
	Candidates
	*cells.Index
	Starts   []uint32 // by cell: its first place in Order
	Together bool     // cells may be visited by many queries together (Visits)
	// Scans says what a scan takes, by which they may be visited too (Marks); nil: they may not.
	Scans *profile.NearWaves
	most  []uint32 // by a number of cells: how many objects they have at most
	last  atomic.Pointer[visits]
}

// visits are how many cells queries for so many hits visit to a recall, and what is expected of them. Queries of a batch are mostly alike.
type visits struct {
	k        int
	recall   float64
	probes   int
	expected float64 // share of the neighbours that is found
	known    bool    // what is expected
}

func (c *Cells) visits(q *distance.Query) *visits {
	if last := c.last.Load(); last != nil && last.k == q.K && last.recall == q.Recall {
		return last
	}
	v := &visits{k: q.K, recall: q.Recall, probes: c.Probes(q.K, q.Recall)}
	of, known := c.Recall().At(q.K, float64(v.probes))
	v.expected, v.known = of.Share, known
	c.last.Store(v)
	return v
}

// visited is about how many objects so many cells have.
func (c *Cells) visited(probes int) int {
	return int(int64(probes) * int64(c.Of.Objects) / int64(c.Cells()))
}

// NewCells are the cells of a column on a device; nil where there are none, or not of all its objects. Each of these has a value.
func NewCells(of *Column) *Cells {
	if of == nil || of.Of.Cells() == nil || of.Objects < of.Of.Objects {
		return nil
	}
	x := of.Of.Cells()
	c := &Cells{Candidates: Candidates{Of: of}, Index: x, Starts: x.Sections().Starts}
	count := uint32(x.Cells())
	c.Near = NewColumn(&distance.Column{
		Name: "centroids of " + of.Of.Name, Of: distance.Vectors, Metric: x.Centroids().Metric(), Dims: x.Centroids().Dims(), Storage: distance.StorageF32, Objects: count,
	}, run.Tiles{End: int((uint64(count) + run.TileObjects - 1) / run.TileObjects)})
	sizes := make([]uint32, count)
	for i := range sizes {
		sizes[i] = c.Starts[i+1] - c.Starts[i]
	}
	slices.Sort(sizes)
	c.most = make([]uint32, count+1)
	for i := range sizes {
		c.most[i+1] = c.most[i] + sizes[len(sizes)-1-i]
	}
	return c
}

// Takes says whether the device visits the cells of a query: so many as a recall wants, and nothing is filtered. Who sees too few objects there visits more, on the host.
func (c *Cells) Takes(q *distance.Query, waves *profile.NearWaves) bool {
	if q.K < 1 || c.Of.hits(q) > abi.WarpHits || q.Total || q.Recall <= 0 || q.Filter != nil {
		return false
	}
	most, probes := waves.CellsMost, c.visits(q).probes
	switch {
	case c.scans(&Ask{Query: q}, probes):
		most = math.MaxInt
	case c.Together:
		most = waves.CellsTogether
	}
	return probes < c.Cells() && int64(c.most[probes]) >= int64(c.Recall().Neighbours(q.K)) && int(c.most[probes]) <= most
}

// Least is the smallest batch of which a query is the device's: of a smaller one a host's cores have answered before a device has, unless much is visited.
func (c *Cells) Least(q *distance.Query, waves *profile.NearWaves) int {
	if c.visited(c.visits(q).probes) >= waves.CellsAlone {
		return 1
	}
	return waves.CellsLeast
}

// waves are those of centroids, of which so many are wanted. Of what a wave brings, for each centroid that was seen before, as many are expected to be as near as those that are wanted: so
// waves grow by as much as lists have room for.
func (c *Cells) waves(probes int, waves *profile.NearWaves) *profile.NearWaves {
	own := *waves
	expected := math.Ceil(1.25 * (float64(probes) + 4*math.Sqrt(float64(probes)) + 4))
	own.First, own.List = waves.CellsFirst, max(waves.CellsList, int(expected))
	for own.First < 2*probes {
		own.First *= 2
	}
	own.Growth = max(2, min(1+int(float64(own.List)/expected), int(c.Near.Objects)/own.First+1))
	return &own
}

// Asked is what asks ask of centroids.
func (c *Cells) Asked(asks []Ask) []Ask {
	asked, queries := slices.Clone(asks), make([]distance.Query, len(asks))
	for i := range asked {
		q := asked[i].Query
		queries[i] = distance.Query{Column: c.Near.Of, Vector: q.Vector, K: c.visits(q).probes, Most: math.Inf(1)}
		asked[i].Query = &queries[i]
	}
	return asked
}

// Plan makes a piece of the first asks, as many as fit; of none, if not even the first does. asked are theirs, of Asked.
func (c *Cells) Plan(asks, asked []Ask, room plan.Room, waves *profile.NearWaves) *CandidatesPiece {
	probes := 0
	for i := range asked {
		probes = max(probes, asked[i].Query.K)
	}
	first := c.waves(probes, waves)
	n, marked := c.marked(asks, asked)
	if marked {
		if p := c.planMarked(asks[:n], asked, room, waves, first); len(p.Asks) > 0 {
			return p
		}
	}
	asks = asks[:n]
	if n := c.together(asks, asked, waves); n > 0 {
		if p := c.planVisits(asks[:n], asked, max(waves.CellsList, c.visited(probes)/waves.CellsListed), room, waves, first); len(p.Asks) > 0 {
			return p
		}
	}
	p := c.plan(asks, asked, search{waves: waves, first: first}, room)
	if len(p.Asks) == 0 && len(asked) > 1 {
		return c.Plan(asks[:1], asked[:1], room, waves) // others visit more, and it has room alone
	}
	return p
}

// Cost is the memory of the device that a query takes at least.
func (c *Cells) Cost(q *distance.Query, waves *profile.NearWaves) int64 {
	probes := c.visits(q).probes
	return c.cost(q, int64(probes), 0, c.waves(probes, waves))
}

// Fits says whether a query can be executed alone.
func (c *Cells) Fits(q *distance.Query, room plan.Room, waves *profile.NearWaves) bool {
	probes := c.visits(q).probes
	return c.fits(q, int64(probes), 0, room, c.waves(probes, waves))
}

// Tell says what a search that compared so many objects has done, as one core does (cells.Searcher.End); false: it has to visit more cells, having seen too few objects.
func (c *Cells) Tell(a *Ask, compared uint64) (did distance.Answer, enough bool) {
	v := c.visits(a.Query)
	did = distance.Answer{Method: "cells", Distances: compared + uint64(c.Cells()), Blocks: uint64(v.probes)}
	if v.known && math.IsInf(a.Query.Most, 1) {
		did.Recall = v.expected
	}
	return did, compared >= uint64(c.Recall().Neighbours(a.Query.K))
}
