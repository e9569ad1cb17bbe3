//go:build cuda

package device

import (
	"fmt"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
)

// A filterPolicy decides which queries go to the filter instead of the kernel that a launchPolicy has chosen for them.
//
// The filter's time follows how many attributes the rows have, whatever a query asks of them, and a block costs the same for
// one query and for 128: large batches of queries of many attributes are its own. How many objects it passes on for an
// exact count depends on data. Where attributes have more than 32 codes, those that are equal mod 32 are not told apart: a
// range of 32 or more passes everything. So a query is left to the other kernels where its masks are dense (bits), and an
// index on which many queries were abandoned is left to them for some batches (rest).
//
// Times are nanoseconds of one multiprocessor, as in launchPolicy.
type filterPolicy struct {
	step    float64 // eight columns of 64 objects, for a query block
	wave    float64 // two launches and their ends, of every multiprocessor
	recount float64 // an object
	spill   float64 // objects that are counted in a wave for each of the k wanted
	bits    int     // of an item's mask of more than 32 codes, at most, on average
	rest    int     // batches, or pieces of such as are cut
}

// defaultFilters is measured on an H200 with W1 (docs/benchmarks/history/2026-11-21-h200-tensor.md; ranges and large k:
// 2026-11-21-h200-policy.md). There a batch takes 12.8 ms in place of 37.6 when masks have 21 of 32 bits, 30.5 with 25, and 42.9
// with all, when every query is abandoned. Of data that is less selective more objects are counted; what that can cost at most,
// abandoning bounds.
var defaultFilters = filterPolicy{step: 40, wave: 36e3, recount: 25, spill: 2, bits: 22, rest: 64}

func (f filterPolicy) String() string {
	return fmt.Sprintf("filter: %g ns a step, %g a wave, %g a count, %g counts for each of k; at most %d bits a mask; rests for %d",
		f.step, f.wave, f.recount, f.spill, f.bits, f.rest)
}

// choose marks the queries for the filter.
func (f *filterPolicy) choose(l *lane, codes *residentCodes, d policyDevice) {
	p := &l.policy
	if codes == nil || p.path != pathByCost && p.path != pathFilter {
		return
	}
	candidate := func(q *laneQuery) bool {
		return q.filterable && (p.path == pathFilter || q.dense <= f.bits*q.spans)
	}
	queries, r := l.pieces, l.resident
	if p.path == pathByCost {
		loads := make([]slicedLoad, len(r.kernels.sliced))
		n, k, now := 0, 0, 0.0
		for i := range queries {
			q := &queries[i]
			if !candidate(q) {
				continue
			}
			n++
			k += q.job.K
			if q.sliced {
				loads[q.counters].add(q)
			} else {
				now += p.tile(q, d)
			}
		}
		for v := range loads {
			if loads[v].queries > 0 {
				now += p.sliced(&loads[v], r.slicedLayout(), &r.kernels.sliced[v], d)
			}
		}
		if n == 0 || f.estimate(n, k, codes, &l.waves, d) >= now {
			return
		}
		if rest := codes.rest.Load(); rest > 0 {
			codes.rest.CompareAndSwap(rest, rest-1)
			return
		}
	}
	for i := range queries {
		if q := &queries[i]; candidate(q) {
			q.filter, q.sliced = true, true
		}
	}
}

// estimate is the time of n queries that want k objects in all.
func (f *filterPolicy) estimate(n, k int, c *residentCodes, w *wavePolicy, d policyDevice) float64 {
	run := newFilterLaunch(0, n, c, d.processors)
	waves := 0
	for range w.filterWaves(c.objects) {
		waves++
	}
	steps := float64(c.steps()) * float64(c.objects/abi.BoundTile) * float64(run.blocks)
	idle := max(1, float64(d.processors)/float64(run.blocks*run.columns))
	recounts := min(f.spill*float64(k)*float64(waves), float64(n)*float64(c.objects))
	return f.step*steps*idle + f.wave*float64(waves*d.processors) + f.recount*recounts
}

// learn takes notice of how many queries of a piece were abandoned.
func (f *filterPolicy) learn(codes *residentCodes, queries, abandoned int) {
	if abandoned*8 > queries {
		codes.rest.Store(int32(f.rest))
	}
}
