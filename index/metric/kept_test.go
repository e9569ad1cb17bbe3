package metric

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index/metric/sums"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// aloneWorlds are vectors whose distances from a query are alike: of one size from 1e-30 to 1e30, of values that are one ulp apart, and far from 0 and near each other.
func aloneWorlds(rng *rand.Rand, dims, n int) []*world {
	size := float32(math.Pow(10, float64(rng.IntN(61)-30)))
	at, from := 0, float32(rng.NormFloat64())
	return []*world{
		worldOf("sized", dims, n, n, func() float32 { return size * float32(rng.NormFloat64()) }),
		worldOf("sizes", dims, n, n, func() float32 { return float32(math.Pow(10, float64(rng.IntN(61)-30)) * rng.NormFloat64()) }),
		worldOf("ulps", dims, n, n, func() float32 { // one element of each has a neighbour of the others'
			if at++; at%dims != 0 {
				return from
			}
			return math.Float32frombits(math.Float32bits(from) + rng.Uint32N(9))
		}),
		worldOf("far", dims, n, n, func() float32 { return size * float32(1000+rng.NormFloat64()*math.Ldexp(1, -rng.IntN(16))) }),
	}
}

// TestScanAlone: few queries, each of which is sieved by itself, find what comparing finds, whatever values are alike, in the memory of any asker: the nearest, and those within a radius that is the value of
// one, or just less.
func TestScanAlone(t *testing.T) {
	rng := seeded.Rand(t)
	dropping := 0
	for range 60 {
		dims, n := []int{1, 2, 3, 8, 17, 40, 129}[rng.IntN(7)], 1+rng.IntN(700)
		all := append(append(worlds(rng, dims, n, 1+rng.IntN(n)), scanWorlds(rng, dims, n)...), aloneWorlds(rng, dims, n)...)
		for _, w := range all {
			m := []Metric{{L2, 0}, {L2, 0}, {Cosine, 0}, {Angular, 0}}[rng.IntN(4)]
			s, err := w.make(m)
			if err != nil {
				t.Fatal(err)
			}
			kernels := sums.All()
			s.kernels = &kernels[rng.IntN(len(kernels))]
			if rng.IntN(2) == 0 {
				if s, err = s.UseNorms(s.Norms(nil)); err != nil {
					t.Fatal(err)
				}
			}
			own, what := s.Of(rng.Uint32N(uint32(n))), fmt.Sprintf("%v, %s, %s, %d dimensions, %d objects", m, w.name, s.kernels.Name, dims, n)
			var askers []Asker
			for len(askers) < 1+rng.IntN(fewSieved-1) {
				askers = append(askers, s.Of(rng.Uint32N(uint32(n))))
			}
			dropping += scanAlone(t, rng, what, own, askers, n)
			Release(own)
		}
	}
	if sums.All()[0].Sieves() && dropping < 100 {
		t.Errorf("%d scans dropped anything: the test shows too little", dropping)
	}
}

// scanAlone scans some stretches one after the other, as cells are visited, and says whether anything was dropped.
func scanAlone(t *testing.T, rng *rand.Rand, what string, own Asker, askers []Asker, n int) (dropped int) {
	t.Helper()
	k := 1 + rng.IntN(12)
	best, limits, values := make([]Best, len(askers)), make([]float64, len(askers)), make([][]float64, len(askers))
	for i, a := range askers {
		values[i] = make([]float64, n)
		a.Values(0, uint32(n), values[i])
		limits[i] = []float64{math.Inf(1), values[i][rng.IntN(n)], math.Nextafter(values[i][rng.IntN(n)], math.Inf(-1))}[rng.IntN(3)]
		best[i].Reset(Want{k, limits[i]})
	}
	most := slices.Clone(limits)
	for lo := 0; lo < n; {
		hi := lo + min(n-lo, 1+rng.IntN(300))
		ScanWith(own, askers, uint32(lo), uint32(hi), limits, func(query int, object uint32, value float64) {
			if !(value <= limits[query]) || !same(value, values[query][object]) {
				t.Fatalf("%s: object %d has the value %v, not %v, and the limit is %v", what, object, value, values[query][object], limits[query])
			}
			best[query].Add(Hit{value, object})
			limits[query] = best[query].Bound()
		})
		if a, ok := own.(*vectorAsker[float32]); ok && a.narrowOf != nil && len(a.dense) < len(askers) {
			dropped = 1
		}
		lo = hi
	}
	for i := range askers {
		var want Best
		want.Reset(Want{k, most[i]})
		for j, v := range values[i] {
			want.Add(Hit{v, uint32(j)})
		}
		if got := best[i].Sorted(); !slices.Equal(got, want.Sorted()) {
			t.Fatalf("%s, the %d nearest within %v: %v, want %v", what, k, most[i], got, want.Sorted())
		}
	}
	return dropped
}

// TestAtTheLimit: an object whose value is the limit is found, however sums of float32s are rounded. With a bound that lacks 2^-22 some are lost.
func TestAtTheLimit(t *testing.T) {
	rng := seeded.Rand(t)
	for round := range 60 {
		dims, n := 1+round%4, 2000
		rows, v := make([]float32, n*dims), make([]float32, dims)
		for i := range rows {
			rows[i] = float32(rng.NormFloat64())
		}
		for i := range v {
			v[i] = float32(rng.NormFloat64())
		}
		m := Metric{Kind: []Kind{L2, Cosine, IP}[round/4%3]}
		s, err := NewVectors(m, dims, rows)
		if err != nil {
			t.Fatal(err)
		}
		a, err := s.Query(v)
		if err != nil {
			t.Fatal(err)
		}
		for i := range uint32(n) {
			found, value := false, a.Value(i)
			lo, askers := min(i&^7, uint32(n)-8), []Asker{a}
			if m.Kind == IP { // of which one is not sieved alone
				askers = slices.Repeat(askers, fewSieved)
			}
			Scan(askers, lo, lo+8, slices.Repeat([]float64{value}, len(askers)), func(_ int, object uint32, _ float64) { found = found || object == i })
			if !found {
				t.Fatalf("%v, %d dimensions: %v is not found from %v at its value %v", m, dims, rows[int(i)*dims:int(i+1)*dims], v, value)
			}
		}
	}
}

// TestAlikeByAnUlp: of objects whose values differ by the last bit of a float64 or are the same, the first are found, however many there are at the limit.
func TestAlikeByAnUlp(t *testing.T) {
	const n, dims = 400, 4
	for _, size := range []float32{1e-15, 1, 1e15} {
		rows := make([]float32, n*dims)
		for i := range n {
			rows[i*dims], rows[i*dims+1] = size, size*0x1p-26*float32(i%7) // whose squares are about an ulp of the sum
		}
		for _, kind := range []Kind{L2, Cosine} {
			s, err := NewVectors(Metric{Kind: kind}, dims, rows)
			if err != nil {
				t.Fatal(err)
			}
			a, err := s.Query([]float32{-size, 0, size, 0})
			if err != nil {
				t.Fatal(err)
			}
			values := make([]float64, n)
			a.Values(0, n, values)
			var want Best
			want.Reset(Want{50, math.Inf(1)})
			for i, v := range values {
				want.Add(Hit{v, uint32(i)})
			}
			if got := scan(s, []Asker{a}, 0, n, 50, []float64{math.Inf(1)}, 90); !slices.Equal(got[0], want.Sorted()) {
				t.Errorf("%v of the size %v: %v, want %v", kind, size, got[0], want.Sorted())
			}
		}
	}
}
