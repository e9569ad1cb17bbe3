//go:build cuda

package neighbours

import (
	"slices"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/nearest"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestCUDAGroups: products of float16s by groups of warps leave what the flat definition finds.
func TestCUDAGroups(t *testing.T) {
	e := open(t, gpuexec.CUDAOptions{BatchMemory: 16 << 20, InFlight: 1})
	near, rng := &e.Device().Profile.Near, seeded.Rand(t)
	near.Grouped = 2
	for range scaled(400) {
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
		near.List, near.Sample = []int{96, 512}[rng.IntN(2)], []int{128, 256, 512}[rng.IntN(3)]
		s := enginetest.LoadOn(t, e, w.Index)
		answered(t, s, w, requests)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCUDASamples: limits that come of a sample lose nothing, where few or none of it pass a filter, have a value or are within a radius, and of rows in any order.
func TestCUDASamples(t *testing.T) {
	e := open(t, gpuexec.CUDAOptions{BatchMemory: 16 << 20, InFlight: 1})
	near, rng := &e.Device().Profile.Near, seeded.Rand(t)
	near.List = 2048
	for range scaled(200) {
		near.Grouped, near.Sample = []int{2, 1000}[rng.IntN(2)], []int{128, 256, 512}[rng.IntN(3)]
		w := &enginetest.DistanceWorld{
			Metric: []string{"l2", "cosine", "angular"}[rng.IntN(3)], Storage: []string{"f32", "f16", "u8"}[rng.IntN(3)], Dims: []int{3, 33, 70}[rng.IntN(3)],
		}
		absent := []int{0, 0, 2, 30}[rng.IntN(4)]
		for range near.Sample + rng.IntN(1500) {
			p := w.Random(rng)
			p.Class = max(0, rng.IntN(200)-196)
			if absent > 0 && rng.IntN(absent) > 0 {
				p.Vector = nil
			}
			w.Places = append(w.Places, p)
		}
		if rng.IntN(2) == 0 {
			slices.SortFunc(w.Places, func(a, b enginetest.Place) int { return slices.Compare(a.Vector, b.Vector) })
		}
		w.Build(t)
		requests := make([]*index.Request, 1+rng.IntN(200))
		for i := range requests {
			r := request(rng, w)
			if r.Near.K > 0 {
				r.Near.K = 1 + rng.IntN(40)
			}
			requests[i] = r
		}
		s := enginetest.LoadOn(t, e, w.Index)
		answered(t, s, w, requests)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
