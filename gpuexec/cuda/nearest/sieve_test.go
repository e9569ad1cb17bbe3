package nearest

import (
	"math"
	"testing"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/bound"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// vectorsOf makes vectors by a function of a dimension.
func vectorsOf(n, dims int, of func(d int) float64) []float64 {
	all := make([]float64, 0, n*dims)
	for range n {
		for d := range dims {
			all = append(all, of(d))
		}
	}
	return all
}

// TestSetLevels: whole numbers are levels, so that nothing is lost; of normal vectors little is; and one far element, or one wide dimension of many, does not make
// the steps so coarse that the others are one level.
func TestSetLevels(t *testing.T) {
	rng := seeded.Rand(t)
	const dims = 40
	vector := 0
	normal := func(int) float64 { return float64(float32(rng.NormFloat64())) }
	for name, c := range map[string]struct {
		of    func(d int) float64
		least float64 // of the distances of the sample, that bytes prove
	}{
		"whole numbers":        {func(int) float64 { return float64(rng.IntN(17)) }, 1},
		"bytes":                {func(int) float64 { return float64(rng.IntN(256)) }, 1},
		"normal":               {normal, 0.95},
		"a large common mean":  {func(d int) float64 { return float64(float32(1e6 + normal(d))) }, 0.9},
		"tiny":                 {func(d int) float64 { return normal(d) * 0x1p-140 }, 0.9},
		"one element far away": {func(d int) float64 { return normal(d) + float64(rng.IntN(4000)/3999)*1e5 }, 0.9},
		"many near duplicates": {func(d int) float64 {
			if vector++; (vector-1)/dims%2 == 0 {
				return float64(rng.IntN(250))
			}
			return float64(20+d*37%200) + rng.Float64()/1024
		}, 0.7},
		"a wide dimension": {func(d int) float64 {
			if d == 3 {
				return normal(d) * 50
			}
			return normal(d)
		}, 0.5},
	} {
		for _, kind := range []metric.Kind{metric.L1, metric.Linf} {
			s, sample := columnOf(kind, dims, 100, true).Sieve, vectorsOf(200, dims, c.of)
			if !s.SetLevels(sample) {
				t.Errorf("%s: there are no levels", name)
				continue
			}
			for d, low := range s.Mean {
				if low != math.Floor(low) {
					t.Errorf("%s: dimension %d begins at %v, which is no whole number", name, d, low)
				}
			}
			share := s.Product.proven(sample, s.Mean, s.Exponent)
			first := sampleLost(sample[:dims], s)
			if share < c.least-1e-9 || share > 1+1e-9 || c.least == 1 && first != 0 {
				t.Errorf("%s, %s: bytes of steps of 2^%d prove %v of the distances, and lose %v of the first", name, kind, -s.Exponent, share, first)
			}
		}
	}
	for name, of := range map[string]func(int) float64{"all alike": func(d int) float64 { return float64(d) }, "infinite": func(int) float64 { return math.Inf(1 - 2*rng.IntN(2)) }} {
		if columnOf(metric.L1, dims, 100, true).Sieve.SetLevels(vectorsOf(50, dims, of)) {
			t.Errorf("vectors that are %s have levels", name)
		}
	}
	if columnOf(metric.L1, dims, 100, true).Sieve.SetLevels(nil) {
		t.Error("no vectors have levels")
	}
}

// sampleLost is what a vector loses as bytes.
func sampleLost(v []float64, s *Sieve) (sum float64) {
	for d, x := range v {
		_, lost := bound.Level(x, s.Scale(), s.Mean[d])
		sum += lost
	}
	return sum
}
