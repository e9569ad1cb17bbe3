package sorting

import (
	"math"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestSort: of many equal distances, of one far beyond all, of as many magnitudes as there are, and of infinite ones, by one goroutine or several.
func TestSort(t *testing.T) {
	rng := seeded.Rand(t)
	distances := map[string]func() float64{
		"uniform":    rng.Float64,
		"ties":       func() float64 { return float64(rng.IntN(1 + rng.IntN(9))) },
		"all alike":  func() float64 { return 0.1 },
		"far beyond": func() float64 { return []float64{rng.Float64(), 1e300}[rng.IntN(200)/199] },
		"magnitudes": func() float64 { return math.Ldexp(1+float64(rng.IntN(3)), rng.IntN(2000)-1020) },
		"infinite":   func() float64 { return []float64{rng.Float64(), math.Inf(1)}[rng.IntN(20)/19] },
		"one ulp":    func() float64 { return math.Float64frombits(math.Float64bits(1) + rng.Uint64N(3)) },
		"denormal":   func() float64 { return math.Float64frombits(rng.Uint64N(5)) },
	}
	for name, distance := range distances {
		if raced.Detector && name != "uniform" {
			continue // goroutines share the same
		}
		for _, n := range []int{0, 1, 2, sorted - 1, sorted, 1000, 5 * wide} {
			n += rng.IntN(1 + n/10)
			items := make([]metric.Hit, n)
			for i, object := range rng.Perm(n) {
				items[i] = metric.Hit{Value: distance(), ID: uint32(object)}
			}
			want := slices.Clone(items)
			slices.SortFunc(want, metric.Hit.Compare)
			if Sort(items, make([]metric.Hit, n), 1+rng.IntN(5)); !slices.Equal(items, want) {
				t.Errorf("%d, %s: not in order", n, name)
			}
		}
	}
}

// TestLeast: the least keys are in front, wherever the cut is and whatever is close to it.
func TestLeast(t *testing.T) {
	rng := seeded.Rand(t)
	for range 300 {
		n := 1 + rng.IntN(5000)
		keys, each := make([]uint64, n), []uint64{1, 1 << 20, math.MaxUint64 / uint64(n)}[rng.IntN(3)]
		for i := range keys {
			keys[i] = uint64(i) * each
		}
		switch rng.IntN(4) {
		case 0:
			slices.Reverse(keys)
		case 1: // in order
		default:
			rng.Shuffle(n, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		}
		least := []int{rng.IntN(n + 1), n / 2, 0, 1 % (n + 1), n - 1, n}[rng.IntN(6)]
		want := slices.Sorted(slices.Values(keys))
		Least(keys, make([]uint64, n), least)
		slices.Sort(keys[:least])
		slices.Sort(keys[least:])
		if !slices.Equal(keys, want) {
			t.Fatalf("%d of %d: others are in front", least, n)
		}
	}
}

// TestPlaces: of any numbers, negative ones and zeros of either sign, keys are in the order of (coordinate, object), but for zeros.
func TestPlaces(t *testing.T) {
	rng := seeded.Rand(t)
	for range 200 {
		p, n := Places{Dims: 1 + rng.IntN(5)}, 1+rng.IntN(300)
		scale, widths := []float64{1, 1e-44, 1e38}[rng.IntN(3)], make([]float64, p.Dims)
		for j := range widths {
			widths[j] = rng.Float64()
		}
		for range n {
			for _, width := range widths {
				p.Of = append(p.Of, float32(width*scale*float64(rng.IntN(7)-3)))
			}
		}
		keys := make([]uint64, n)
		for i, object := range rng.Perm(n) {
			keys[i] = rng.Uint64()<<32 | uint64(object) // of which the coordinate was another one
		}
		halves := func(n int, work func(lo, hi int)) {
			if n > 1 {
				work(0, n/2)
			}
			work(n/2, n)
		}
		want, most := 0, float32(-1)
		for j := range p.Dims {
			lo, hi := p.Of[j], p.Of[j]
			for i := j; i < len(p.Of); i += p.Dims {
				lo, hi = min(lo, p.Of[i]), max(hi, p.Of[i])
			}
			if hi-lo > most {
				want, most = j, hi-lo
			}
		}
		axis := p.Widest(keys, halves)
		if axis != want {
			t.Fatalf("the widest coordinate is %d, not %d", axis, want)
		}
		p.By(keys, axis, halves)
		slices.Sort(keys)
		for i := range keys[1:] {
			a, b := p.At(keys[i])[axis], p.At(keys[i+1])[axis]
			if a > b || a == b && a != 0 && uint32(keys[i]) > uint32(keys[i+1]) {
				t.Fatalf("object %d at %v comes before %d at %v", uint32(keys[i]), a, uint32(keys[i+1]), b)
			}
		}
	}
}
