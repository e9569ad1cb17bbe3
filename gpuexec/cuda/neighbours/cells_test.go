//go:build cuda

package neighbours

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/nearest"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestCUDACellsSieved: of many centroids the nearest are found by a sieve, with lists that are too short for some queries. The hits are those of one core, and all that is said of them.
func TestCUDACellsSieved(t *testing.T) {
	rng := seeded.Rand(t)
	first := rng.IntN(10)
	for round := range scaled(10) {
		round += first
		metric, scale := []string{"l2", "l1", "cosine", "l2", "linf", "cosine", "l3"}[round%7], 1.0
		storage := []string{"f32", "f16", "u8"}[rng.IntN(3)]
		if round%2 > 0 { // numbers that sums of float32s round, lose, or do not hold
			storage, scale = "f32", []float64{math.Pi, 1e-21 * math.Pi, 1e14 * math.Pi}[rng.IntN(3)]
		}
		c := vectors{
			metric: metric, dims: 2 + rng.IntN(39), n: 2000 + rng.IntN(2000), storage: storage, method: "cells",
			options: fmt.Sprintf(", cells: {cells: %d}", 300+rng.IntN(500)),
			made: func(rng *rand.Rand, dims int) []float32 {
				v, near := make([]float32, dims), rand.New(rand.NewPCG(rng.Uint64N(40), 7))
				noise := []int{1, 20}[rng.IntN(2)] // half are alike, or as good as
				for i := range v {
					v[i] = float32(scale * float64(min(255, 1+near.IntN(200)+rng.IntN(noise))))
					if storage == "f32" {
						v[i] *= float32(1 + 1e-7*rng.NormFloat64())
					}
				}
				return v
			},
		}
		if rng.IntN(3) == 0 { // a grid, where objects of different cells are equally far
			c.dims = 2
			c.made = func(rng *rand.Rand, dims int) []float32 {
				return []float32{float32(scale * float64(1+rng.IntN(40))), float32(scale * float64(1+rng.IntN(40)))}
			}
		}
		x := columnOf(t, c)
		queries, err := index.NewQueries(x)
		if err != nil {
			t.Fatal(err)
		}
		plans, most := make([]gpuexec.Plan, 200), rng.IntN(2) == 0
		for i := range plans {
			r := index.Request{Vector: c.made(rng, c.dims), Near: nearest.Near{K: 1 + rng.IntN(20), Method: "cells", Recall: rng.Float64()}}
			if most && i%4 > 0 { // so many visit the same cells that there are several groups of one
				r.Near.K, r.Near.Recall = 1+rng.IntN(9), 0.9+0.09*rng.Float64()
				r.Vector = slices.Clone(plans[0].Query.(*distance.Query).Vector)
			} else if rng.IntN(8) == 0 { // far beyond all, which few bits do not hold
				for i := range r.Vector {
					r.Vector[i] *= 1e7
				}
			}
			if rng.IntN(4) == 0 {
				r.Near.Radius = new(float64(rng.IntN(100)))
				if metric == "cosine" {
					*r.Near.Radius /= 1000
				}
			}
			made, err := queries.Plan(new(postings.MatchQuery), &r)
			if err != nil {
				t.Fatal(err)
			}
			plans[i] = gpuexec.Plan{Family: distance.FamilyName, Query: made.Query, K: r.Near.K}
		}
		want, got := byOneCore(t, x, plans), make([]gpuexec.Answer, len(plans))
		for _, list := range []int{16, 64, 1024} {
			t.Run(fmt.Sprint("lists of ", list), func(t *testing.T) { // whose engine ends with it
				e := openEngine(t, gpuexec.CUDAOptions{Untried: list != 64, Workers: 2})
				near := &e.Device().Profile.Near
				near.CellsFirst, near.CellsList, near.CellsPairs, near.CellsEach = 128, list, 0, 1<<30
				near.CellsElement = []float64{0, 0.14, 1e9}[rng.IntN(3)] // none, some or all go by a scan
				near.First, near.List, near.Sample, near.SampleShare = 128, []int{64, 1024}[rng.IntN(2)], []int{128, 512}[rng.IntN(2)], 1
				if rng.IntN(3) == 0 { // each query visits its cells alone
					near.CellsPairs = 1e9
				}
				s := enginetest.LoadOn(t, e, x)
				if err := s.Search(t.Context(), plans, got, nil); err != nil {
					t.Fatal(err)
				}
				for i := range got {
					sameNearest(t, plans[i].Query.(*distance.Query), &got[i], &want[i])
				}
				if form := s.Capacity().Form; scale == 1 && !strings.Contains(form, "cells of v by ") {
					t.Errorf("%s: centroids are not sieved: %s", metric, form)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}
