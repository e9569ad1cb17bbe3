package plan

import (
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
)

// A Policy decides, batch by batch, which kernel executes a query: it estimates the kernels and takes the fastest. The
// answers are the same.
//
//   - The (query, tile) kernel scans postings: its time follows how many the query has. It is ready at once, so small
//     batches and single queries are its own.
//   - The shared-decode kernel reads every object's planes: its time follows how many rows a query adds, whatever the
//     length of lists, and what it decodes is shared by the queries of a block. All attributes of the query must be
//     bit-sliced. A batch's mix is judged as a whole, since decoding is shared.
//   - The bound's time follows how many attributes the rows have, whatever a query asks of them, and a block costs the same
//     for one query and for 128: large batches of queries of many attributes are its own. How many objects it passes on for an
//     exact count depends on data. Where attributes have more than 32 codes, those that are equal mod 32 are not told apart: a
//     range of 32 or more passes everything. So a query is left to the other kernels where its masks are dense
//     (BoundCosts.Bits), and an index on which many queries were abandoned is left to them for some batches (BoundCosts.Rest).
type Policy struct {
	Profile *profile.Profile
	Path    Path // tests force one
	// Resting: the bound is left alone now, because it did not pay.
	Resting bool
}

// Path says which kernels a policy may take.
type Path uint8

// The paths.
const (
	ByCost     Path = iota
	PathTile        // always the (query, tile) kernel
	PathSliced      // the shared-decode kernel wherever it can
	PathBound       // the bound wherever it can, and the shared-decode kernel for the others
)

// load is what a batch meets where it runs.
type load struct {
	*Index
	tiles, groups int
	parts         int   // each is a launch
	copied        int64 // bytes of a streamed index that are copied only for the sake of the shared-decode kernel
}

// choose chooses the kernel of each query. again: they are only a part of what would fit the (query, tile) kernel, so that a
// streamed index is copied once more. rested is true where the bound would have been chosen if it did not rest.
func (p *Policy) choose(x *Index, queries []Query, again bool) (rested bool) {
	for i := range queries {
		queries[i].kernel = kernelTile
	}
	at := load{Index: x, tiles: x.Tiles.Len(), groups: x.groups(), parts: len(x.Parts)}
	if again && x.Streamed {
		at.copied = x.Units * abi.UnitBytes
	}
	p.chooseSliced(queries, &at)
	return p.chooseBound(queries, &at)
}

// chooseSliced marks the queries of the variants for which the shared-decode kernel is faster, where together they make up for
// what is copied for them.
func (p *Policy) chooseSliced(queries []Query, at *load) {
	if p.Path == PathTile || at.Planes == nil {
		return
	}
	var faster uint // a bit for each variant
	saved := -p.Profile.Tile.Copying * float64(at.copied) * float64(at.device.Processors)
	for v := range at.device.Sliced {
		var asked slicedLoad
		var tiles float64
		for i := range queries {
			if q := &queries[i]; int(q.counters) == v {
				asked.add(q)
				tiles += p.tile(q, at)
			}
		}
		if asked.queries == 0 {
			continue
		}
		if saving := tiles - p.sliced(&asked, v, at); p.Path != ByCost || saving > 0 {
			faster |= 1 << v
			saved += saving
		}
	}
	if p.Path == ByCost && saved <= 0 {
		return
	}
	for i := range queries {
		if q := &queries[i]; q.counters >= 0 && faster>>q.counters&1 == 1 {
			q.kernel = kernelSliced
		}
	}
}

// tile estimates a query in the (query, tile) kernel.
func (p *Policy) tile(q *Query, at *load) float64 {
	c := &p.Profile.Tile
	hits := c.Hit * float64(q.K)
	if q.planeRows > 0 {
		return hits + (c.Block+c.Plane*float64(q.planeRows))*float64(at.tiles)
	}
	return hits + c.Block*float64(at.tiles) + c.Posting*float64(q.postings)
}

// slicedLoad is what a set of queries asks of the shared-decode kernel.
type slicedLoad struct {
	queries int
	hits    int // wanted
	rows    int // each as often as its weight has bits
	ranges  bool
}

func (l *slicedLoad) add(q *Query) {
	l.queries++
	l.hits += q.K
	l.rows += int(q.weightedRows)
	l.ranges = l.ranges || q.rows > q.spans
}

// sliced estimates a variant of the shared-decode kernel.
func (p *Policy) sliced(l *slicedLoad, variant int, at *load) float64 {
	c, v, processors := &p.Profile.Sliced, &at.device.Sliced[variant], at.device.Processors
	s := v.blocks(l.queries)
	octets, octet := at.Planes.octets, c.Octet
	if l.ranges {
		octets, octet = 2*octets, c.Bounds
	}
	octets = min(octets, (l.rows+s.Blocks-1)/s.Blocks)
	trees := max((l.rows+l.queries*8-1)/(l.queries*8), (octets+v.StageOctets-1)/v.StageOctets)
	slots := (s.PerBlock + v.Warps - 1) / v.Warps * v.Warps
	block := c.Group + max(octet*float64(octets), c.Tree*float64(trees*slots))
	rounds := float64(at.groups) / float64(v.columns(s.Blocks, processors, at.groups))
	if s.Blocks > processors {
		rounds *= float64(s.Blocks) / float64(processors)
	}
	return (c.Launch*float64(max(1, at.parts))+block*rounds)*float64(processors) + c.Hit*float64(l.hits)
}

// chooseBound marks the queries for the bound, in place of the kernel that they were marked for.
func (p *Policy) chooseBound(queries []Query, at *load) (rested bool) {
	if at.Codes == nil || p.Path != ByCost && p.Path != PathBound {
		return false
	}
	candidate := func(q *Query) bool {
		return q.boundable && (p.Path == PathBound || int(q.dense) <= p.Profile.Bound.Bits*int(q.spans))
	}
	if p.Path == ByCost {
		n, k, now := 0, 0, 0.0
		loads := make([]slicedLoad, len(at.device.Sliced))
		for i := range queries {
			q := &queries[i]
			if !candidate(q) {
				continue
			}
			n++
			k += q.K
			if q.kernel == kernelSliced {
				loads[q.counters].add(q)
			} else {
				now += p.tile(q, at)
			}
		}
		for v := range loads {
			if loads[v].queries > 0 {
				now += p.sliced(&loads[v], v, at)
			}
		}
		if n == 0 || p.bound(n, k, at) >= now {
			return false
		}
		if p.Resting {
			return true
		}
	}
	for i := range queries {
		if q := &queries[i]; candidate(q) {
			q.kernel = kernelBound
		}
	}
	return false
}

// bound estimates the bound for n queries that want k objects in all.
func (p *Policy) bound(n, k int, at *load) float64 {
	c, processors := at.Codes, at.device.Processors
	run := newBoundLaunch(0, n, c, processors)
	waves := 0
	for range p.Profile.Waves.Bound(c.Objects) {
		waves++
	}
	costs := &p.Profile.Bound
	idle := max(1, float64(processors)/float64(run.Blocks*run.Columns))
	recounts := min(costs.Spill*float64(k)*float64(waves), float64(n)*float64(c.Objects))
	return costs.Step*float64(run.steps(c))*idle + costs.Wave*float64(waves*processors) + costs.Recount*recounts
}
