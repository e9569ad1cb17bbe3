//go:build cuda

package neighbours

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/index"
	asked "github.com/geniemq/geniemq/index/nearest"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// levelled makes vectors that bytes may get wrong: just below and just above the middle between levels, so that neighbours differ by a level in each dimension; and
// whole numbers, of which nothing may be lost.
func levelled(rng *rand.Rand, sort, dims int) []float32 {
	v := make([]float32, dims)
	side, far, one := float32(rng.IntN(2)*2-1), rng.IntN(2) == 0, rng.IntN(2) == 0
	for i := range v {
		whole := float32(rng.IntN(3))
		switch sort {
		case 0: // half of them far apart, so that steps are 1, and half at one place, but for roundings
			v[i] = float32(rng.IntN(250))
			if !far {
				v[i] = float32(20+i*37%200) + 0.5 + 0.001*float32(rng.IntN(2)*2-1)
				if one { // to one side of all
					v[i] = float32(20+i*37%200) + 0.5 + 0.001*side
				}
			}
		case 1: // grids, on which most distances are equal
			v[i] = whole
		case 2: // one level apart from each other, and some far out, where they are cut
			v[i] = whole / 1024
			if rng.IntN(40) == 0 {
				v[i] = side * float32(math.Ldexp(1, rng.IntN(60)))
			}
		case 3: // near-equal distances from all
			v[i] = math.Nextafter32(1+whole, 1+whole+side)
		case 4: // just below the highest level, to which it is rounded before it is cut
			v[i] = -255 * float32(rng.IntN(2))
			if rng.IntN(4) > 0 {
				v[i] = []float32{-1, -float32(math.Ldexp(rng.Float64(), -46))}[rng.IntN(2)]
			}
		case 5: // bytes as they are: half of them at the ends, and half next to multiples of eight, a step below all or above
			v[i] = float32(255 * rng.IntN(2))
			if !far {
				v[i] = float32(8*(1+i*37%31)) - (1-side)/2
			}
		}
	}
	return v
}

// TestCUDADistancesBytes: by l1, linf, hamming and lp no hit is lost by words, whatever is lost by rounding and cutting; and the sieve spares most comparisons.
func TestCUDADistancesBytes(t *testing.T) {
	e := open(t, gpuexec.CUDAOptions{BatchMemory: 8 << 20, InFlight: 1})
	e.Device().Profile.Near.List = 600
	rng := seeded.Rand(t)
	for sort := range 6 {
		var compared, all uint64
		for round := range scaled(36) {
			of := append([]string{"l1", "linf", "hamming"}, sieved()[6:]...)
			w := &enginetest.DistanceWorld{Metric: of[(round+rng.IntN(3)*3)%len(of)], Storage: "f32", Dims: []int{1, 4, 7, 8, 9, 16, 31, 33, 282}[rng.IntN(9)]}
			switch sort {
			case 4:
				w.Metric, w.Dims = of[round%2], 1+rng.IntN(2)
			case 5:
				w.Metric = "l1"
			case 1:
				w.Storage = []string{"f32", "f16", "u8"}[rng.IntN(3)]
			}
			for range 1400 {
				p := w.Random(rng)
				p.Vector = levelled(rng, sort, w.Dims)
				if rng.IntN(20) == 0 {
					p.Vector = nil
				}
				w.Places = append(w.Places, p)
			}
			w.Build(t)
			column := w.Index.Distances().Column("vector")
			space, err := column.Space()
			if err != nil {
				t.Fatal(err)
			}
			requests := make([]*index.Request, 24)
			for i := range requests {
				requests[i] = request(rng, w)
				requests[i].Point, requests[i].Vector = nil, levelled(rng, sort, w.Dims)
				requests[i].Near = asked.Near{K: 1 + rng.IntN(40), Method: "scan"}
				if radius := 0.003 * float64(w.Dims); sort == 0 && i%2 == 0 { // all at the one place
					requests[i].Near.Radius, requests[i].Total = &radius, true
				}
				id, other := rng.Uint32N(column.Objects), rng.Uint32N(column.Objects)
				if rng.IntN(2) == 0 || !column.Has(id) || !column.Has(other) {
					continue
				}
				requests[i].Vector = w.Places[id].Vector
				if rng.IntN(2) == 0 { // the distance of an object, to the bit
					radius := column.Metric.Report(space.Of(id).Value(other))
					requests[i].Near.Radius, requests[i].Total = &radius, true
				}
			}
			some, whole := comparedOf(t, e, w, requests)
			compared, all = compared+some, all+whole
		}
		share := float64(compared) / float64(all)
		t.Logf("sort %d: %.1f %% of the objects are compared exactly", sort, 100*share)
		if sort == 0 && share > 0.9 {
			t.Errorf("sort %d: the sieve spares nothing", sort)
		}
	}
}
