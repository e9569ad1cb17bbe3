package metric_test

import (
	"math"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// The first hits and the bound are those of sorting everything that was added, at each moment.
func TestBestIsSorting(t *testing.T) {
	rng := seeded.Rand(t)
	var b metric.Best
	for range 2000 {
		n, values := rng.IntN(60), 1+rng.IntN(8) // many ties
		want := metric.Want{K: rng.IntN(n + 3), Most: float64(rng.IntN(values + 1))}
		if rng.IntN(2) == 0 {
			want.Most = math.Inf(1)
		}
		if rng.IntN(8) == 0 {
			want.K = math.MaxInt
		}
		b.Reset(want)
		var all []metric.Hit
		for _, id := range rng.Perm(n) {
			h := metric.Hit{Value: float64(rng.IntN(values)), ID: uint32(id)}
			b.Add(h)
			if h.Value <= want.Most {
				all = append(all, h)
			}
			slices.SortFunc(all, func(x, y metric.Hit) int {
				if x.Less(y) {
					return -1
				}
				return 1
			})
			all = all[:min(len(all), want.K)]
			bound := want.Most
			if want.K == 0 {
				bound = math.Inf(-1)
			} else if len(all) == want.K {
				bound = all[len(all)-1].Value
			}
			if b.Bound() != bound {
				t.Fatalf("%+v of %v: the bound is %v, not %v", want, all, b.Bound(), bound)
			}
		}
		if got := b.Sorted(); !slices.Equal(got, all) {
			t.Fatalf("%+v: %v, not %v", want, got, all)
		}
	}
}
