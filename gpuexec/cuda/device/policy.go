//go:build cuda

package device

import (
	"fmt"
	"math/bits"
)

// A launchPolicy decides, batch by batch, which kernel executes a query: it estimates both and takes the faster one. The
// answers are the same.
//
//   - The (query, tile) kernel scans postings: its time follows how many the query has. It is ready at once, so small
//     batches and single queries are its own.
//   - The shared-decode kernel reads every object's planes: its time follows how many rows a query adds, whatever the
//     length of lists, and what it decodes is shared by the queries of a block. All attributes of the query must be
//     bit-sliced.
//
// Times are nanoseconds of one multiprocessor. A batch's mix is judged as a whole, since decoding is shared.
type launchPolicy struct {
	path launchPath

	// Of the (query, tile) kernel.
	posting float64 // a posting
	block   float64 // a query and tile
	plane   float64 // a plane of a tile, where what is sliced has no postings
	copying float64 // a byte of an index that is streamed, over the bus: of every multiprocessor
	tileHit float64 // each of the k that a query wants: Gate, compaction and selection
	// Of the shared-decode kernel.
	octet  float64 // decoding eight rows of 1,024 objects, for a query block: rows of one value
	bounds float64 // the same, rows of a range's end
	tree   float64 // adding eight rows of 1,024 objects to one query, while others decode
	group  float64 // 1,024 objects of a query block: Gate, hand-over
	launch float64 // planning and starting, for each part of the index: of every multiprocessor
	// Each of the k that a query wants: it stores more candidates than the (query, tile) kernel, and a warp alone settles them.
	slicedHit float64
}

type launchPath uint8

const (
	pathByCost launchPath = iota
	pathTile              // always the (query, tile) kernel
	pathSliced            // the shared-decode kernel wherever it can
	pathFilter            // the filter wherever it can, and the shared-decode kernel for the others
)

func (p launchPath) String() string {
	return [...]string{"by cost", "(query, tile)", "shared decode", "filter"}[p]
}

// defaultPolicy is measured on an H200 (docs/benchmarks/history/2026-11-21-h200-two-kernels.md). The (query, tile) kernel takes
// 0.43 ps a posting and 6 ns a query and tile over 132 multiprocessors, and 255 ns of one for a plane of a tile
// (2026-11-21-h200-layouts.md); 55 GB/s are copied. The shared-decode kernel takes 8 us for 1,024 objects of a block of
// Adult's queries, and 40 us of W1's, which decode six times as many octets in rows of one value (2026-11-21-h200-sliced.md,
// state D). What large k add was measured with k of 10 to 10,000 (2026-11-21-h200-policy.md): 58 to 83 ns a hit by
// waves of sixteen tiles; in shared decode 460 of 0.98 M rows and 1,550 of 4.5 M signatures. By all these, 1,024 queries of
// one value an attribute of 67 keywords are equal where lists hold 2.2 % of the objects.
var defaultPolicy = launchPolicy{
	posting: 0.056, block: 800, plane: 255, copying: 0.018, tileHit: 75,
	octet: 17, bounds: 23, tree: 8, group: 2.5e3, launch: 300e3, slicedHit: 1e3,
}

func (p launchPolicy) String() string {
	return fmt.Sprintf("%s; (query, tile): %g ns a posting, %g a tile, %g a plane, %g a byte copied, %g a hit; "+
		"shared decode: %g ns an octet, %g of ranges, %g a tree, %g a group, %g a launch, %g a hit",
		p.path, p.posting, p.block, p.plane, p.copying, p.tileHit, p.octet, p.bounds, p.tree, p.group, p.launch, p.slicedHit)
}

// policyDevice is what a policy has to know of where a batch runs.
type policyDevice struct {
	processors, tiles, groups int
	parts                     int   // each is a launch
	copied                    int64 // bytes of a streamed index that are copied only for the sake of the shared-decode kernel
}

// choose marks the queries of the variants for which the shared-decode kernel is faster, where together they make up for what is
// copied for them.
func (p *launchPolicy) choose(queries []laneQuery, layout *slicedLayout, variants []cudaSliced, d policyDevice) {
	if p.path == pathTile || layout == nil {
		return
	}
	var faster uint // a bit for each variant
	saved := -p.copying * float64(d.copied) * float64(d.processors)
	for v := range variants {
		var load slicedLoad
		var tiles float64
		for i := range queries {
			if q := &queries[i]; q.counters == v {
				load.add(q)
				tiles += p.tile(q, d)
			}
		}
		if load.queries == 0 {
			continue
		}
		if saving := tiles - p.sliced(&load, layout, &variants[v], d); p.path != pathByCost || saving > 0 {
			faster |= 1 << v
			saved += saving
		}
	}
	if p.path == pathByCost && saved <= 0 {
		return
	}
	for i := range queries {
		if q := &queries[i]; q.counters >= 0 && faster>>q.counters&1 == 1 {
			q.sliced = true
		}
	}
}

// tile estimates a query in the (query, tile) kernel.
func (p *launchPolicy) tile(q *laneQuery, d policyDevice) float64 {
	hits := p.tileHit * float64(q.job.K)
	if q.planeRows > 0 {
		return hits + (p.block+p.plane*float64(q.planeRows))*float64(d.tiles)
	}
	return hits + p.block*float64(d.tiles) + p.posting*float64(q.postings)
}

// slicedLoad is what a set of queries asks of the shared-decode kernel.
type slicedLoad struct {
	queries int
	hits    int // wanted
	rows    int // each as often as its weight has bits
	ranges  bool
}

func (l *slicedLoad) add(q *laneQuery) {
	l.queries++
	l.hits += q.job.K
	l.rows += int(q.weightedRows)
	l.ranges = l.ranges || q.rows > uint32(q.spans)
}

// sliced estimates the shared-decode kernel.
func (p *launchPolicy) sliced(l *slicedLoad, layout *slicedLayout, v *cudaSliced, d policyDevice) float64 {
	s := v.blocks(l.queries)
	octets, octet := layout.octets, p.octet
	if l.ranges {
		octets, octet = 2*octets, p.bounds
	}
	octets = min(octets, (l.rows+s.blocks-1)/s.blocks)
	trees := max((l.rows+l.queries*8-1)/(l.queries*8), (octets+v.stageOctets-1)/v.stageOctets)
	slots := (s.perBlock + v.warps - 1) / v.warps * v.warps
	block := p.group + max(octet*float64(octets), p.tree*float64(trees*slots))
	rounds := float64(d.groups) / float64(v.columns(s.blocks, d.processors, d.groups))
	if s.blocks > d.processors {
		rounds *= float64(s.blocks) / float64(d.processors)
	}
	return (p.launch*float64(max(1, d.parts))+block*rounds)*float64(d.processors) + p.slicedHit*float64(l.hits)
}

// weightBits is how many rows a row of this weight is added as.
func weightBits(weight uint32) int { return bits.OnesCount32(weight) }
