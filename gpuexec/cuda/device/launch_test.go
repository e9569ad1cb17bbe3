//go:build cuda

package device

import (
	"context"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index"
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
		Profile: plan.ProfileOf("")}}
	for i, v := range kernels.MatchVariants {
		k.Tile, k.tile = append(k.Tile, plan.TileVariant{Bits: v.Bits, Blocks: v.Blocks}), append(k.tile, function{threads: 100 + i})
	}
	for i, planes := range []int{8, 16, 32} {
		k.Sliced = append(k.Sliced, plan.SlicedVariant{Planes: planes, Warps: 8, Slots: 16, Decoders: 8, StageOctets: 62})
		k.sliced = append(k.sliced, function{threads: 200 + i})
	}
	for i, f := range []*function{&k.slicedPlan, &k.compact, &k.answer, &k.resolve, &k.boundPlan, &k.boundMatch, &k.boundCount} {
		f.threads = 300 + i
	}
	return k
}

// TestRecord: whatever is recorded for a piece stays in the arena and the pinned buffers, every kernel of the piece is launched, on
// every part of the index, and nothing needs a device for that.
func TestRecord(t *testing.T) {
	rng := enginetest.NewRand(t)
	// Addresses that no two numbers beside each other look like.
	const arena, beyond, resident0 = 0x7abc_def0_0000_0000, 0x7abc_def8_0000_0000, 1 << 42
	k := hostKernels()
	launched := map[int]int{} // by kernel
	for range 60 {
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
		p, err := plan.Place(&k.Device, plan.Extent{Lists: postingsOf(x), Tiles: run.AllTiles(x)}, nil, nil, limits)
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
		for range 1 + rng.IntN(300) {
			asked := w.RandomPlan(rng)
			if isCoded {
				asked = coded.Plan(rng)
			}
			if bound, err := postingsOf(x).CheckQuery(asked.Query); err == nil && bound > 0 {
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
			want := map[int]bool{k.answer.threads: true, k.slicedPlan.threads: len(piece.Sliced) > 0, k.boundPlan.threads: piece.Bound.Count > 0,
				k.boundMatch.threads: piece.Bound.Count > 0, k.boundCount.threads: piece.Bound.Count > 0, k.resolve.threads: piece.Tiled > 0 && r.Slots() > 0}
			for _, tile := range piece.Tile {
				want[k.tile[tile.Variant].threads] = true
			}
			for _, sliced := range piece.Sliced {
				want[k.sliced[sliced.Counters].threads] = true
				if n := own[k.sliced[sliced.Counters].threads]; n != len(r.Parts) {
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
	for _, f := range append([]function{k.slicedPlan, k.compact, k.answer, k.resolve, k.boundPlan, k.boundMatch, k.boundCount, k.sliced[0]}, k.tile[:3]...) {
		if launched[f.threads] == 0 {
			t.Errorf("kernel %d has not come up", f.threads)
		}
	}
}
