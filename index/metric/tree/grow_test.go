package tree

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestSortItems: of many equal distances, of one far beyond all, of as many magnitudes as there are, and of infinite ones, by one goroutine or several.
func TestSortItems(t *testing.T) {
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
			items := make([]item, n)
			for i, object := range rng.Perm(n) {
				items[i] = item{distance(), uint32(object)}
			}
			want := slices.Clone(items)
			slices.SortFunc(want, compareItems)
			if sortItems(items, make([]item, n), 1+rng.IntN(5)); !slices.Equal(items, want) {
				t.Errorf("%d, %s: not in order", n, name)
			}
		}
	}
}

// TestPart: the least keys are in front, wherever the cut is and whatever is close to it.
func TestPart(t *testing.T) {
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
		part(keys, make([]uint64, n), least)
		slices.Sort(keys[:least])
		slices.Sort(keys[least:])
		if !slices.Equal(keys, want) {
			t.Fatalf("%d of %d: others are in front", least, n)
		}
	}
}

// TestSameTreeOfMany: of so many objects that goroutines share a node, too.
func TestSameTreeOfMany(t *testing.T) {
	rng := seeded.Rand(t)
	const n, dims = 2 * wide, 2
	elements := make([]float32, 0, n*dims)
	for range n * dims {
		elements = append(elements, float32(rng.IntN(2000)-1000)) // of which some are alike
	}
	space, err := metric.NewVectors(metric.Metric{Kind: metric.L2}, dims, elements)
	if err != nil {
		t.Fatal(err)
	}
	for _, bounds := range []Bounds{Box, Pivot} {
		var one Arrays
		for _, workers := range []int{1, 2, 9} {
			b := builder{
				ctx: t.Context(), space: space, placed: space, workers: workers,
				tree: &Tree{measure: newMeasure(space.Metric(), dims), bounds: bounds, capacity: 20, leaf: 32, seed: 1, objects: n},
			}
			tree, err := b.grow()
			if err != nil {
				t.Fatal(err)
			}
			if workers == 1 {
				one = tree.Arrays()
			} else if !reflect.DeepEqual(tree.Arrays(), one) {
				t.Errorf("%s: the tree of %d goroutines is another one", bounds, workers)
			}
		}
	}
}
