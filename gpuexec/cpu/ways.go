package cpu

import (
	"math"
	"math/bits"

	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/index/postings"
)

// tileWays is how a query is counted in a tile. There are three ways, and decide takes the cheapest:
//
//	lists:  all spans as lists, then the counters are harvested
//	mixed:  each span of a sliced attribute as a list or on planes; the sums of the planes become counters, lists are
//	        added to these, and they are harvested
//	planes: all spans on planes, without counters
//
// The first is the only one without sliced attributes, and the last needs all to be sliced. A crossover for each span
// alone would not do: the first span on planes pays for turning sums into counters, and the last one that is not pays
// for the counters. By the costs below a span breaks even at a density of 18 % (3 planes), 29 % (7) or 38 % (10) where the
// others are on planes as well; the first beside lists only at 88 % (7 planes).
type tileWays struct {
	runs   []listRun   // are counted as lists
	rare   []uint32    // and these; see resolved
	sliced []slicedRun // may be either
	planes []planeRun  // are counted on planes
	picked picked      // of runs and rare, where few objects pass
}

// slicedRun is a span of a sliced attribute in a tile: on planes, and as a list if it is kept as one.
type slicedRun struct {
	planeRun
	ids      []uint16
	isList   bool
	ascends  bool
	passes   bool
	postings int
}

// What counting costs in picoseconds, measured on Zen 4 (BenchmarkPlanes).
const (
	postingCost = 400 // a posting of a list
	revisitCost = 500 // a posting, when the counters are harvested by visiting the postings again
	// Of a quad of 256 objects:
	spanCost  = 9_000  // a span on planes, whatever it selects: its mask is added, once for each bit of the weight
	planeCost = 3_000  // each plane of it
	gateCost  = 6_000  // sums meet the Gate
	turnCost  = 60_000 // sums become counters
	sweepCost = 16_000 // counters of 8 bits are swept
)

func quadsOf(objects int) int { return (objects + quadObjects - 1) / quadObjects }

// onPlanes is the cost of a span on planes, in so many quads.
func onPlanes(depth int, weight uint32, quads int) int {
	return quads * (spanCost*bits.OnesCount32(weight) + planeCost*depth)
}

// listLimit is the length from which on a list of an attribute is no way that decide takes, unless for heavy weights.
func listLimit(depth, objects int) int {
	return (onPlanes(depth, 1, quadsOf(objects)) + quadsOf(objects)*turnCost) / postingCost
}

// gather collects the runs of a query in a tile, which is tile t of the range that r was resolved for, and decides how
// they are counted. It returns the number of postings that may be, and of those of the query. sliced is by attribute, tile at of each.
func (w *tileWays) gather(x *postings.Lists, sliced []slicedAttribute, tile, at, t int, r *resolved, p tilePass) (total, units int) {
	w.runs, w.sliced, w.planes = w.runs[:0], w.sliced[:0], w.planes[:0]
	w.rare = r.rareIn(t)
	total = len(w.rare)
	units = total
	attr := uint32(math.MaxUint32)
	var lists postings.Postings
	var own *slicedTile
	for i := range r.steps {
		s := &r.steps[i]
		if s.attr != attr {
			attr, own = s.attr, nil
			if tiles := sliced[attr].tiles; tiles != nil {
				own = &tiles[at]
			} else {
				lists = x.Postings(tile, int(attr))
			}
		}
		if own != nil {
			n := own.postings(s.lo, s.hi)
			if s.kind <= stepUnits {
				units += n
			}
			if n > 0 && s.kind != stepUnits {
				ids, isList := own.run(s.lo, s.hi)
				w.sliced = append(w.sliced, slicedRun{planeRun{own.planes, own.depth, s.lo, s.hi - 1, s.weight}, ids, isList, s.hi-s.lo == 1, s.kind == stepPasses, n})
				total += n
			}
		} else if ids := lists.Run(s.lo, s.hi); len(ids) > 0 {
			w.runs = append(w.runs, listRun{ids, s.weight, s.hi-s.lo == 1, false})
			total += len(ids)
			units += len(ids)
		}
	}
	if len(w.sliced) > 0 {
		w.decide(x.TileLen(tile), total, p)
	}
	return total, units
}

// decide makes a run or a planeRun of each slicedRun. Where few objects pass, their postings are picked out of lists, and planes are looked
// at where they are.
func (w *tileWays) decide(objects, postings int, p tilePass) {
	const never = math.MaxInt
	quads, swept, perPosting := quadsOf(objects), quadsOf(objects), postingCost
	lists := min(postings*revisitCost, quads*sweepCost)
	if p.picks(objects) {
		quads, lists, perPosting = min(quads, p.count), 0, pickCost
	}
	mixed := quads*turnCost + swept*sweepCost
	planes := quads * gateCost
	areLists := true
	for i := range w.sliced {
		s := &w.sliced[i]
		asList, asPlanes := s.postings*perPosting, onPlanes(s.depth, s.weight, quads)
		lists += asList
		planes += asPlanes
		if s.isList {
			mixed += min(asList, asPlanes)
		} else {
			mixed += asPlanes
			areLists = false
		}
	}
	if !areLists {
		lists = never
	}
	if len(w.runs)+len(w.rare) > 0 {
		planes = never
	}
	for i := range w.sliced {
		s := &w.sliced[i]
		asPlanes := planes < min(lists, mixed) ||
			mixed < lists && s.postings*perPosting > onPlanes(s.depth, s.weight, quads) || !s.isList
		if asPlanes {
			w.planes = append(w.planes, s.planeRun)
		} else {
			w.runs = append(w.runs, listRun{s.ids, s.weight, s.ascends, s.passes})
		}
	}
}

// count counts what gather has collected in a tile whose first object is base, and offers what passes and reaches the threshold.
func (w *tileWays) count(c *counters, s *sums, g *topk.Gate, p tilePass, width, postings int, base uint32, objects int) {
	if len(w.planes) > 0 {
		if len(w.runs)+len(w.rare) == 0 {
			s.gatePlanes(g, w.planes, p, base, objects)
			return
		}
		width = max(width, 8)
	}
	own := c.of(width)
	runs, rare := w.runs, w.rare
	if p.picks(objects) {
		w.picked.pick(p, runs, rare)
		runs, rare = w.picked.runs, w.picked.rare
		postings = w.picked.postings
	}
	if len(w.planes) > 0 {
		s.addPlanes(c, width, w.planes, p, objects)
		postings = math.MaxInt // not all of them can be visited again
	}
	own.add(runs)
	own.addRare(rare)
	harvest(own, g, p, width, runs, rare, postings, base, objects)
}
