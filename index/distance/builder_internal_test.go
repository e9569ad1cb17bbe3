package distance

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// all is a schema of every kind of value and storage, with all access paths that there are.
func all() *schema.Schema {
	paths := []string{Scan, "tree", "cells", "permutation"}
	tree, some, ranks := &schema.TreeOptions{Leaf: 4, Capacity: 3}, &schema.CellsOptions{Cells: 5}, &schema.PermutationOptions{Permutants: 6}
	vectors := func(name, metric, storage string) schema.Column {
		return schema.Column{Name: name, Type: schema.VectorColumn, Metric: metric, Storage: storage, Dims: 3, Index: paths, Tree: tree, Cells: some, Permutation: ranks}
	}
	return &schema.Schema{Name: "all", Columns: []schema.Column{
		vectors("f32", "cosine", StorageF32), vectors("f16", "l2", StorageF16), vectors("u8", "l1", StorageU8),
		{Name: "p", Type: schema.PointColumn, Metric: "geo", Index: []string{Scan, "tree", "permutation"}, Tree: tree, Permutation: ranks},
		{Name: "s", Type: schema.StringColumn, Metric: "edit", Index: []string{Scan, "tree", "permutation"}, Tree: tree, Permutation: ranks},
	}}
}

// object is some object's values, of which each may be missing.
func object(rng *rand.Rand) []schema.Values {
	values := make([]schema.Values, 5)
	for i := range 3 {
		if rng.IntN(6) > 0 {
			values[i].Vector = []float32{float32(1 + rng.IntN(9)), float32(rng.IntN(9)), float32(rng.IntN(9))}
		}
	}
	if rng.IntN(6) > 0 {
		values[3].Numbers = []float64{180*rng.Float64() - 90, 360 * rng.Float64()}
	}
	for range rng.IntN(9) {
		values[4].Text += string(rune('a' + rng.IntN(3)))
	}
	return values
}

// The limit of memory changes no byte of an index, and a builder that wrote one goes on.
func TestMemoryShowsInNothing(t *testing.T) {
	rng := seeded.Rand(t)
	t.Setenv("TMPDIR", t.TempDir())
	builders := []*builder{newBuilder(all(), 1, spillMemory), newBuilder(all(), 2, 0), newBuilder(all(), 1, 1500)}
	for step, n := range []int{60, 1} {
		for range n {
			values := object(rng)
			for _, b := range builders {
				if err := b.Add(values); err != nil {
					t.Fatal(err)
				}
			}
		}
		var want []byte
		for i, b := range builders {
			draft, err := b.Finish(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got, err := store.Memory(t.Context(), 0, []store.Draft{draft})
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				want = got
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("step %d, builder %d: %d bytes, not the %d of the one that has all in memory, or others", step, i, len(got), len(want))
			}
		}
	}
}
