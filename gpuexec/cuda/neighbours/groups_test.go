//go:build cuda

package neighbours

import (
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/nearest"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestCUDAGroups: products of float16s by groups of warps, in blocks of one width and of two, leave what the flat definition finds.
func TestCUDAGroups(t *testing.T) {
	e := open(t, gpuexec.CUDAOptions{BatchMemory: 16 << 20, InFlight: 1})
	near, rng := &e.Device().Profile.Near, seeded.Rand(t)
	near.Grouped = 2
	for i := range scaled(400) {
		w := &enginetest.DistanceWorld{
			Metric: []string{"l2", "cosine", "angular"}[rng.IntN(3)], Storage: []string{"f32", "f16", "u8"}[rng.IntN(3)], Dims: []int{5, 33, 70, 120}[rng.IntN(4)],
		}
		for range 1 + rng.IntN(700) {
			w.Places = append(w.Places, w.Random(rng))
		}
		w.Build(t)
		requests := make([]*index.Request, []int{1, 129, 1 + rng.IntN(300)}[rng.IntN(3)])
		for i := range requests {
			requests[i] = &index.Request{Vector: w.Random(rng).Vector, Near: nearest.Near{K: 1 + rng.IntN(30), Method: "scan"}}
		}
		near.Wide = 1 + i%2*1000
		s := enginetest.LoadOn(t, e, w.Index)
		answered(t, s, w, requests)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
