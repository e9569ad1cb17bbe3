package metric_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// randomHits are n hits of a sort of values.
func randomHits(rng *rand.Rand, n, sort int) []metric.Hit {
	hits := make([]metric.Hit, n)
	for i := range hits {
		v := rng.Float64()
		switch sort {
		case 1: // few values
			v = float64(rng.IntN(3))
		case 2: // one
			v = 7
		case 3: // of both signs, -0 among them
			v = math.Copysign(float64(rng.IntN(2))*rng.ExpFloat64(), rng.Float64()-0.5)
		case 4: // of all sizes
			v = math.Ldexp(rng.NormFloat64(), rng.IntN(2000)-1000)
		case 5: // that differ in the last bits, some by more than tables hold
			v = math.Float64frombits(math.Float64bits(1) + rng.Uint64N(1<<uint(rng.IntN(48))))
		case 6: // infinite ones
			v = []float64{math.Inf(1), math.Inf(-1), 0, math.MaxFloat64, math.SmallestNonzeroFloat64}[rng.IntN(5)]
		}
		hits[i] = metric.Hit{Value: v, ID: uint32(i)}
	}
	for i := range hits {
		hits[i].ID *= 1 + uint32(math.MaxUint32)/uint32(n+1) // all bits of ids, and distinct
	}
	rng.Shuffle(n, func(i, j int) { hits[i], hits[j] = hits[j], hits[i] })
	return hits
}

// TestSort: whatever values and ids are, hits come in the order that comparing them gives, and memory is used again.
func TestSort(t *testing.T) {
	rng := seeded.Rand(t)
	var spare []metric.Hit
	for round := range 700 {
		hits := randomHits(rng, 1+rng.IntN([]int{3, 300, 700, 9000}[rng.IntN(4)]), round%7)
		want := slices.Clone(hits)
		slices.SortFunc(want, metric.Hit.Compare)
		if spare = metric.Sort(hits, spare); !slices.Equal(hits, want) {
			t.Fatalf("%d hits of sort %d are not in order", len(hits), round%7)
		}
	}
	hits := randomHits(rng, 5000, 0)
	if n := testing.AllocsPerRun(10, func() { spare = metric.Sort(hits, spare) }); n > 0 {
		t.Errorf("%v allocations with memory at hand", n)
	}
}

func BenchmarkSort(b *testing.B) {
	for _, sort := range []int{0, 1} {
		for _, n := range []int{128, 384, 1000, 3200, 65_536} {
			b.Run(strconv.Itoa(sort)+"/"+strconv.Itoa(n), func(b *testing.B) {
				hits := randomHits(rand.New(rand.NewPCG(1, 1)), n, sort)
				own, spare := make([]metric.Hit, n), []metric.Hit(nil)
				for b.Loop() {
					copy(own, hits)
					spare = metric.Sort(own, spare)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/hit")
			})
		}
	}
}
