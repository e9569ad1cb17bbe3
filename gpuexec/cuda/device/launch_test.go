//go:build cuda

package device

import (
	"context"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
	"github.com/geniemq/geniemq/gpuexec/cuda/rescoring"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/kernels"
)

// Kinds of steps (shim.h).
const (
	stepLaunch = iota
	stepCopyIn
	stepCopyOut
	stepFill
)

// hostKernels are the kernels that an H200 has, without the functions. Each has its number in place of its threads.
func hostKernels() *loaded {
	k := &loaded{Device: plan.Device{Processors: 132, BoundColumns: plan.MaxColumns, MaxPattern: 2048, ScanObjects: 1024, ScanFarthest: 4096,
		Profile: profile.Of("")}}
	for i, v := range kernels.MatchVariants {
		k.Tile, k.tile = append(k.Tile, plan.TileVariant{Bits: v.Bits, Blocks: v.Blocks}), append(k.tile, function{threads: 100 + i})
		k.tileFiltered = append(k.tileFiltered, function{threads: 150 + i})
	}
	for i, planes := range []int{8, 16, 32} {
		k.Sliced = append(k.Sliced, plan.SlicedVariant{Planes: planes, Warps: 8, Slots: 16, Decoders: 8, StageOctets: 62})
		k.sliced = append(k.sliced, function{threads: 200 + i})
		k.slicedFiltered = append(k.slicedFiltered, function{threads: 250 + i})
	}
	for i, f := range []*function{&k.slicedPlan, &k.compact, &k.answer, &k.resolve, &k.boundPlan, &k.boundMatch, &k.boundCount,
		&k.filterTiles, &k.firstPassing, &k.boundFiltered} {
		f.threads = 300 + i
	}
	return k
}

// TestRecord: whatever is recorded for a piece stays in the arena and the pinned buffers, every kernel of the piece is launched, on
// every part of the index, and nothing needs a device for that.
func TestRecord(t *testing.T) {
	rng := seeded.Rand(t)
	// Addresses that no two numbers beside each other look like.
	const arena, beyond, resident0 = 0x7abc_def0_0000_0000, 0x7abc_def8_0000_0000, 1 << 42
	k := hostKernels()
	launched := map[int]int{} // by kernel
	all := append([]function{k.slicedPlan, k.compact, k.answer, k.resolve, k.boundPlan, k.boundMatch, k.boundCount, k.sliced[0],
		k.filterTiles, k.firstPassing, k.boundFiltered, k.slicedFiltered[0], k.tileFiltered[0]}, k.tile[:3]...)
	missing := func(f function) bool { return launched[f.threads] == 0 }
	for round := 0; round < 60 || round < 600 && slices.ContainsFunc(all, missing); round++ {
		var x *index.Index
		w := enginetest.SlicedWorld(t, rng, 1+rng.IntN(150_000))
		coded := enginetest.NewCodedWorld(t, rng, 1+rng.IntN(2000), 40+rng.IntN(60))
		isCoded := rng.IntN(2) == 0
		if x = w.Index; isCoded {
			x = coded.Index
		}
		limits := plan.Limits{Memory: 1 << 40, PlanesOnly: rng.IntN(2) == 0}
		streamed := rng.IntN(4) == 0
		if streamed {
			limits.PartBytes = partBytesOf(t, x)
		}
		p, err := plan.Place(&k.Device, plan.Extent{Lists: postingsOf(x), Tiles: run.AllTiles(x)}, rescoring.Originals{}, nil, limits)
		if err != nil {
			t.Fatal(err)
		}
		r := &resident{kernels: k, data: resident0, sections: resident0, rare: resident0, tables: resident0, forms: resident0, codes: resident0}
		r.Index = plan.NewIndex(&k.Device, p, slices.Repeat([]uint32{1}, p.Attributes))
		if streamed {
			r.partStream = &partStream{buffers: [2]abi.Pointer{resident0, 2 * resident0}}
			for _, part := range r.Parts {
				r.hosts = append(r.hosts, make(pinned, part.Units*abi.UnitBytes))
			}
		}
		l := &lane{arena: arena, bytes: 1<<20 + rng.Int64N(32<<20), policy: plan.Policy{Profile: k.Profile, Path: plan.Path(rng.IntN(4))}}
		l.policy.Profile.Waves.Blocks = 1 + rng.IntN(8)
		l.in, l.out = make(pinned, inBytes), make(pinned, outBytes)
		var jobs []*run.Job
		filtered, shared := rng.IntN(2) == 0, &filter.Filter{}
		shared.StartGroup(true)
		shared.StartClause(0)
		if x.Attribute(0).Keywords > 0 {
			shared.AddSpan(0, 1)
		}
		for range 1 + rng.IntN(300) {
			asked := w.RandomPlan(rng)
			if isCoded {
				asked = coded.Plan(rng)
			}
			if filtered && rng.IntN(2) == 0 { // the same for all, or for none
				q := enginetest.OwnQuery(&asked)
				q.Filter = shared
				if rng.IntN(4) == 0 {
					q.Items, q.Spans = nil, nil
				}
			}
			if bound, err := postingsOf(x).CheckQuery(asked.Query, nil); err == nil && (bound > 0 || enginetest.Query(&asked).Filter != nil) {
				jobs = append(jobs, &run.Job{Query: asked.Query, K: max(1, min(asked.K, int(x.Objects()))), MinCount: 1, Bound: bound})
			}
		}
		b, err := plan.NewBatch(context.Background(), r.Index, jobs, run.NewCrew(1))
		if err != nil {
			t.Fatal(err)
		}
		b.Executes(l.policy, l.room(), nil)
		for piece := b.Next(); piece != nil; piece = b.Next() {
			l.begin(nil)
			pieceLauncher{launcher{l, r}, piece}.record()
			own := map[int]int{}
			for i := range l.steps {
				s := &l.steps[i]
				switch s.kind {
				case stepLaunch:
					own[int(s.threads)]++
					if s.x < 1 || s.y < 1 || s.y > abi.MaxGridY {
						t.Fatalf("step %d: a grid of %d times %d blocks", i, s.x, s.y)
					}
					for _, word := range s.arguments {
						if at := uint64(word); at >= arena && at < beyond && at > arena+uint64(piece.End) {
							t.Fatalf("step %d: an address %d bytes into an arena of %d", i, at-arena, piece.End)
						}
					}
				case stepCopyIn, stepCopyOut, stepFill:
					if at := uint64(s.device); at >= arena && at < beyond && int64(at-arena)+int64(s.bytes) > l.bytes {
						t.Fatalf("step %d: %d bytes at %d of an arena of %d", i, s.bytes, at-arena, l.bytes)
					}
				}
			}
			meets := func(first, count int, kernel, other function) function {
				if piece.Filtered(first, count) {
					return other
				}
				return kernel
			}
			recount := meets(piece.Bound.First, piece.Bound.Count, k.boundCount, k.boundFiltered)
			want := map[int]bool{k.answer.threads: true, k.filterTiles.threads: piece.Filters.Count > 0, k.firstPassing.threads: piece.Filters.Only, k.slicedPlan.threads: len(piece.Sliced) > 0, k.boundPlan.threads: piece.Bound.Count > 0,
				k.boundMatch.threads: piece.Bound.Count > 0, recount.threads: piece.Bound.Count > 0, k.resolve.threads: piece.Tiled > 0 && r.Slots() > 0}
			for _, tile := range piece.Tile {
				want[meets(tile.First, tile.Count, k.tile[tile.Variant], k.tileFiltered[tile.Variant]).threads] = true
			}
			for _, sliced := range piece.Sliced {
				kernel := meets(sliced.First, sliced.Count, k.sliced[sliced.Counters], k.slicedFiltered[sliced.Counters])
				want[kernel.threads] = true
				if n := own[kernel.threads]; n != len(r.Parts) {
					t.Fatalf("%d launches on %d parts", n, len(r.Parts))
				}
			}
			for kernel, there := range want {
				if (own[kernel] > 0) != there {
					t.Fatalf("kernel %d is launched %d times: %+v", kernel, own[kernel], want)
				}
			}
			for kernel, n := range own {
				launched[kernel] += n
			}
		}
	}
	for _, f := range all {
		if missing(f) {
			t.Errorf("kernel %d has not come up", f.threads)
		}
	}
}
