package plan

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestSlicedBounds: the programs of query blocks, dealt as kernels/sliced_plan.cu does, are within what newSlicedLaunch provides
// for, else the kernel would trap. Queries ask many spans of one attribute, in one item or several, with weights.
func TestSlicedBounds(t *testing.T) {
	rng := seeded.Rand(t)
	blocks, crowded, full := 0, 0, 0
	for range enginetest.Rounds(make([]struct{}, 300)) {
		w := enginetest.SlicedWorld(t, rng, 1+rng.IntN(3000))
		r := hostIndex(t, w.Index, Limits{Memory: 1 << 40})
		if r.Planes == nil {
			continue
		}
		v := SlicedVariant{Planes: 32, Warps: 1 + rng.IntN(8), Slots: 1 + rng.IntN(16), Decoders: 8, StageOctets: 32 + rng.IntN(40)}
		var queries []Query
		most, heaviest := 1+rng.IntN(60), []int{1, 1, 20}[rng.IntN(3)]
		for range 1 + rng.IntN([]int{2, 200}[rng.IntN(2)]) {
			q := crowdedQuery(w, rng, most, heaviest)
			planned := r.Plan(&run.Job{Query: q, K: 1, MinCount: 1, Bound: 1 << 30})
			if planned.spans > 0 {
				queries = append(queries, planned)
			}
		}
		if len(queries) == 0 {
			continue
		}
		launch := newSlicedLaunch(&Device{Processors: 132, Sliced: []SlicedVariant{v}}, 0, queries, 0, r.Planes)
		for b := range launch.Blocks {
			block := queries[b*launch.PerBlock : min((b+1)*launch.PerBlock, len(queries))]
			d := dealBlock(r.Planes, block, v.StageOctets)
			if d.rows > launch.MaxRows || d.trees > launch.MaxTrees || d.chunks > launch.MaxChunks || d.tasks > launch.MaxTasks || d.tasks+d.chunks >= launch.MaxList {
				t.Fatalf("%d queries: %+v, provided for: %d rows, %d trees, %d chunks, %d tasks, lists of %d", len(block), d,
					launch.MaxRows, launch.MaxTrees, launch.MaxChunks, launch.MaxTasks, launch.MaxList)
			}
			blocks++
			if d.trees > d.chunks {
				crowded++
			}
			if d.trees*2 > launch.MaxTrees {
				full++
			}
		}
	}
	t.Logf("%d blocks, %d with chunks of several trees, %d with more than half of the trees provided for", blocks, crowded, full)
	if crowded*10 < blocks {
		t.Error("a case has not come up")
	}
}

// TestCrowd: trees are provided for the worst codes that the spans of an attribute can have, in however many items it is asked,
// and for no more where each item has an attribute of its own.
func TestCrowd(t *testing.T) {
	rng := seeded.Rand(t)
	alone := 0
	for range 10_000 {
		var totals planTotals
		items, last, spans := 1+rng.IntN(10), uint32(0), map[uint32]uint32{}
		for range items {
			attribute := uint32(rng.IntN(10))
			if rng.IntN(3) == 0 {
				attribute += seenAttributes - 5
			}
			n := uint32(1 + rng.IntN(40))
			totals.crowd(attribute, n)
			last, spans[attribute] = max(last, attribute), spans[attribute]+n
		}
		worst := uint32(0)
		for _, n := range spans { // n rows of one unit, and n of another
			worst += 2 * ((n+abi.TreeRows-1)/abi.TreeRows - 1)
		}
		tight := len(spans) == items && last < seenAttributes
		if totals.crowded < worst || tight && totals.crowded > worst {
			t.Fatalf("spans by attribute %v, in %d items: %d trees, %d may be needed", spans, items, totals.crowded, worst)
		}
		if tight {
			alone++
		}
	}
	if alone == 0 {
		t.Error("a case has not come up")
	}
}

// crowdedQuery asks up to so many spans per item.
func crowdedQuery(w *enginetest.World, rng *rand.Rand, most, heaviest int) *postings.MatchQuery {
	q := new(postings.MatchQuery)
	for range 1 + rng.IntN(2*len(w.Vocabulary)) {
		a := rng.IntN(len(w.Vocabulary))
		v := w.Vocabulary[a]
		q.StartItem(uint32(a), uint32(1+rng.IntN(heaviest)))
		// Spans of an item ascend and do not touch.
		for lo, n := uint32(rng.IntN(int(v)+1)), rng.IntN(most+1); lo < v && n > 0; n-- {
			hi := min(v, lo+1+uint32(rng.IntN(2)*rng.IntN(5)))
			q.AddSpan(lo, hi)
			lo = hi + 1 + uint32(rng.IntN(4))
		}
	}
	return q
}

// dealt is what a query block became.
type dealt struct{ rows, trees, chunks, tasks int }

// dealBlock deals the rows of a block to chunks and trees, as the planner on the device.
func dealBlock(l *Planes, queries []Query, stageOctets int) (d dealt) {
	const taskOctets = 8
	type row struct {
		unit, octet int
		query       int
		weight      uint32
	}
	var rows []row
	var weights uint32
	for i := range queries {
		query := queryOf(queries[i].Job)
		for _, item := range query.Items {
			for _, span := range query.ItemSpans(item) {
				codes := l.codes[item.Attr]
				if !l.Has(int(item.Attr)) {
					continue
				}
				weights |= item.Weight
				lo, hi := int(codes.Of(span.Lo)), int(codes.Of(span.Hi))
				add := func(kind, code int) {
					unit := kind*len(l.UnitAttribute) + int(l.Attributes[item.Attr].Unit) + code/abi.UnitCodes
					rows = append(rows, row{unit, code % abi.UnitCodes / 8, i, item.Weight})
				}
				switch {
				case lo >= hi:
				case hi == lo+1:
					add(0, lo)
				default:
					add(1, hi)
					if lo > 0 {
						add(2, lo)
					}
				}
			}
		}
	}
	d.rows = len(rows)
	slices.SortStableFunc(rows, func(a, b row) int { return a.unit - b.unit })
	for bit := bits.Len32(weights|1) - 1; bit >= 0; bit-- {
		fill := make([]int, len(queries))
		octets, allowed, begun, dealtAny := 0, 0, false, false
		closeChunk := func() {
			d.chunks++
			d.trees += max(1, (slices.Max(fill)+abi.TreeRows-1)/abi.TreeRows)
			begun = false
		}
		for first := 0; first < len(rows); {
			end := first
			needed, count := 0, make([]int, len(queries))
			for ; end < len(rows) && rows[end].unit == rows[first].unit; end++ {
				if r := rows[end]; r.weight>>bit&1 != 0 {
					needed |= 1 << r.octet
					count[r.query]++
				}
			}
			first = end
			if needed == 0 {
				continue
			}
			fits := octets+bits.OnesCount(uint(needed)) <= stageOctets
			for i := range count {
				fits = fits && fill[i]+count[i] <= allowed
			}
			if begun && !fits {
				closeChunk()
			}
			if !begun {
				clear(fill)
				octets, begun, dealtAny = 0, true, true
				allowed = max(abi.TreeRows, (slices.Max(count)+abi.TreeRows-1)/abi.TreeRows*abi.TreeRows)
			}
			for i := range count {
				fill[i] += count[i]
			}
			octets += bits.OnesCount(uint(needed))
			d.tasks += (bits.OnesCount(uint(needed)) + taskOctets - 1) / taskOctets
		}
		if begun {
			closeChunk()
		}
		if bit == 0 && !dealtAny { // an empty tree
			d.chunks++
			d.trees++
		}
	}
	return d
}
