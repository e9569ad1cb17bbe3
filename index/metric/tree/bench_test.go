package tree

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index/metric"
)

// BenchmarkBuild builds trees of a given shape, whose time is that of sorting, cutting and comparing with pivots. Objects lie in clusters, and texts in no order.
func BenchmarkBuild(b *testing.B) {
	for _, c := range []struct {
		bounds  Bounds
		n, dims int
	}{{Box, 1_000_000, 2}, {Pivot, 1_000_000, 2}, {Pivot, 100_000, 300}, {Pivot, 300_000, 0}} {
		rng := rand.New(rand.NewPCG(1, 2))
		space, err := metric.Space(nil), error(nil)
		if c.dims == 0 {
			texts := make([]string, c.n)
			for i := range texts {
				var text strings.Builder
				for range 3 + rng.IntN(12) {
					text.WriteByte("etaoinshrdlucmfw"[min(rng.IntN(16), rng.IntN(16))])
				}
				texts[i] = text.String()
			}
			space, err = metric.NewTexts(uint32(c.n), func(i uint32) string { return texts[i] }, nil)
		} else {
			elements := make([]float32, 0, c.n*c.dims)
			for range c.n {
				centre := float64(rng.IntN(1000))
				for j := range c.dims {
					elements = append(elements, float32(centre*float64(j%7)+10*rng.NormFloat64()))
				}
			}
			space, err = metric.NewVectors(metric.Metric{Kind: metric.L2}, c.dims, elements)
		}
		if err != nil {
			b.Fatal(err)
		}
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/%dx%d/workers=%d", c.bounds, c.n, c.dims, workers), func(b *testing.B) {
				for b.Loop() {
					t := &Tree{measure: newMeasure(space.Metric(), c.dims), bounds: c.bounds, capacity: 20, leaf: 32, seed: 1, objects: space.Len()}
					placed, _ := space.(metric.Placed)
					w := builder{ctx: b.Context(), space: space, placed: placed, workers: workers, tree: t}
					if _, err := w.grow(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(c.n), "ns/object")
			})
		}
	}
}
