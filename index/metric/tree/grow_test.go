package tree

import (
	"reflect"
	"testing"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

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
