package values

import (
	"math"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestGridFindsWhatTheBinarySearchFinds compares the two for edges of every sort, at the edges and beside them.
func TestGridFindsWhatTheBinarySearchFinds(t *testing.T) {
	random := seeded.Rand(t)
	draws := []func() float64{
		random.NormFloat64,
		random.ExpFloat64,
		func() float64 { return math.Exp(random.NormFloat64() * 100) },
		func() float64 { return float64(random.IntN(100)) },
		func() float64 { return math.Float64frombits(random.Uint64() &^ (1 << 62)) },
		func() float64 { return (random.Float64() - 0.5) * 2 * math.MaxFloat64 },
		func() float64 { return 1e300 + float64(random.IntN(3)) },
		func() float64 { return float64(random.IntN(9)) * math.SmallestNonzeroFloat64 },
	}
	for range 500 {
		draw := draws[random.IntN(len(draws))]
		values := make([]float64, 1+random.IntN(300))
		for i := range values {
			values[i] = draw() + 0
		}
		values = slices.DeleteFunc(values, func(v float64) bool { return !Finite(v) })
		if len(values) == 0 {
			continue
		}
		slices.Sort(values)
		low, high := values[0], values[len(values)-1]
		edges := slices.Compact(slices.Clone(values))
		g := NewGrid(edges, low, high)
		for _, v := range values {
			for _, v := range []float64{v, math.Nextafter(v, low), math.Nextafter(v, high), low + (v-low)/2} {
				if v < low || v > high {
					continue
				}
				if got, want := g.CountLE(v), CountLE(edges, v); got != want {
					t.Fatalf("countLE(%v) = %d, want %d, of %v", v, got, want, edges)
				}
			}
		}
	}
}
