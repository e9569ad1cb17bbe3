package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/index/store"
)

// BenchmarkPlanes measures what the costs of decide are made of, in ns a quad of 256 objects.
//
//	go test ./gpuexec/cpu -run '^$' -bench Planes
func BenchmarkPlanes(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	const objects = store.TileObjects
	quads := float64(quadsOf(objects))
	report := func(b *testing.B) { b.ReportMetric(float64(b.Elapsed())/float64(b.N)/quads, "ns/quad") }
	runs := func(depth, items int, equal bool) []planeRun {
		r := make([]planeRun, items)
		for i := range r {
			r[i] = planeRun{planes: make([]uint64, objects/64*depth), depth: depth, weight: 1}
			for w := range r[i].planes {
				r[i].planes[w] = rng.Uint64()
			}
			r[i].first = rng.Uint32N(1 << depth)
			r[i].last = r[i].first
			if !equal {
				r[i].last += rng.Uint32N(1<<depth - r[i].first)
			}
		}
		return r
	}
	var s sums
	var c counters
	for _, depth := range []int{2, 5, 7, 10} {
		for _, items := range []int{1, 14, 60} {
			for _, equal := range []bool{true, false} {
				b.Run(fmt.Sprintf("depth=%d/items=%d/equal=%v", depth, items, equal), func(b *testing.B) {
					r := runs(depth, items, equal)
					var g topk.Gate
					for range b.N {
						g.Reset(100, uint32(items))
						s.gatePlanes(&g, r, tilePass{}, 0, objects)
					}
					report(b)
				})
			}
		}
	}
	for _, items := range []int{1, 7, 14, 60} {
		b.Run(fmt.Sprintf("turn/depth=5/items=%d", items), func(b *testing.B) {
			r := runs(5, items, false)
			own := c.of(8)
			for range b.N {
				s.addPlanes(&c, 8, r, tilePass{}, objects)
				clear(own.lanes())
			}
			report(b)
		})
	}
}
