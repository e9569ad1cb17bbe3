package cpu

import (
	"context"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/passing"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestWaysAgree counts the same tiles in every way, whatever it costs.
func TestWaysAgree(t *testing.T) {
	raced.Skip(t, raced.One)
	rng := seeded.Rand(t)
	var s sums
	var c counters
	for range 300 {
		objects := []int{1, 63, 64, 65, 255, 256, 257, 1024, 1025, 5000, store.TileObjects}[rng.IntN(11)]
		if objects > 5000 && rng.IntN(10) > 0 {
			objects = 700
		}
		w := &enginetest.World{Vocabulary: []uint32{1, 7, 8, 300}, Layouts: slices.Repeat([]schema.Layout{schema.LayoutSliced}, 4)}
		for range objects {
			object := make([][]uint32, len(w.Vocabulary))
			for a, v := range w.Vocabulary {
				if rng.IntN(6) > 0 {
					object[a] = []uint32{min(rng.Uint32N(v), rng.Uint32N(v))}
				}
			}
			w.Objects = append(w.Objects, object)
		}
		w.Build(t)
		m := w.RandomPlanBelow(rng)
		var r resolved
		r.resolve(w.Index.Lists, enginetest.Query(m), run.AllTiles(w.Index))
		attributes, _, err := loadSliced(context.Background(), run.NewCrew(1), w.Index.Lists, run.AllTiles(w.Index))
		if err != nil {
			t.Fatal(err)
		}
		m.MinCount = max(1, m.MinCount)
		pass := randomPass(rng, objects)
		all := *m
		all.K = objects
		hits, _ := w.Search(&all)
		hits = slices.DeleteFunc(hits, func(h gpuexec.Hit) bool { return !pass.has(uint16(h.ID)) })
		hits = hits[:min(len(hits), m.K)]
		width := counterWidth(uint32(w.Index.CountBound(enginetest.Query(m))))
		for way := range 4 {
			var ways tileWays
			postings, _ := ways.gather(w.Index.Lists, attributes, 0, 0, 0, &r, tilePass{})
			ways.runs, ways.planes = ways.runs[:0], ways.planes[:0]
			for i := range ways.sliced {
				one := &ways.sliced[i]
				asList := way == 0 || way == 1 && i == 0 || way == 2 && rng.IntN(2) == 0
				if asList && one.isList {
					ways.runs = append(ways.runs, listRun{ids: one.ids, weight: one.weight})
				} else {
					ways.planes = append(ways.planes, one.planeRun)
				}
			}
			var g topk.Gate
			g.Reset(m.K, m.MinCount)
			ways.count(&c, &s, &g, pass, width, postings, 0, objects)
			entries := g.Finish(nil)
			slices.Reverse(entries)
			got := hitsOf(entries)
			if !slices.Equal(got, hits) {
				t.Fatalf("%d objects, way %d, %d bits: got %d hits %v\nwant %d %v", objects, way, width, len(got), got, len(hits), hits)
			}
			for _, b := range []int{8, 16, 32} {
				if i := slices.IndexFunc(c.of(b).lanes(), func(x uint64) bool { return x != 0 }); i >= 0 {
					t.Fatalf("way %d leaves counters of %d bits", way, b)
				}
			}
		}
	}
}

// TestPlaneMasks compares the masks of equal and between, and atLeast, with the definition.
func TestPlaneMasks(t *testing.T) {
	rng := seeded.Rand(t)
	for depth := 1; depth <= 14; depth++ {
		words := make([]uint64, depth*groupWords)
		for i := range words {
			words[i] = rng.Uint64()
		}
		for quad := range groupWords / quadWords {
			for range 30 {
				first := rng.Uint32N(1 << depth)
				last := first + rng.Uint32N(1<<depth-first)
				var all, one [quadWords]uint64
				all[0], all[1], all[2], all[3] = passing.Between(words[quad*quadWords:], first, last)
				one[0], one[1], one[2], one[3] = passing.Equal(words[quad*quadWords:], first)
				for i := range quadObjects {
					code := uint32(0)
					for p := range depth {
						code |= uint32(words[p*groupWords+quad*quadWords+i/64]>>(i%64)&1) << p
					}
					if got := all[i/64]>>(i%64)&1 == 1; got != (first <= code && code <= last) {
						t.Fatalf("%d planes: code %d in %d to %d: %v", depth, code, first, last, got)
					}
					if got := one[i/64]>>(i%64)&1 == 1; got != (code == first) {
						t.Fatalf("%d planes: code %d equals %d: %v", depth, code, first, got)
					}
				}
			}
		}
	}
}
