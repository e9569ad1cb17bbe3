package columns

import (
	"math"
	"testing"

	"github.com/geniemq/geniemq/index/metric/sums"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestColumns: in columns boxes are missed by as much, and objects have the values, as one by one.
func TestColumns(t *testing.T) {
	rng := seeded.Rand(t)
	for round := range 100 {
		dims := 1 + round%Most
		var blocks []Block
		n := uint32(0)
		for range rng.IntN(8) {
			blocks = append(blocks, Block{n, rng.Uint32N(40)})
			n += blocks[len(blocks)-1].Count
		}
		rows, boxes := make([]float32, int(n)*dims), make([]float32, 2*int(n)*dims)
		for i := range rows {
			rows[i] = float32(rng.NormFloat64())
		}
		for i := range boxes {
			boxes[i] = float32(rng.NormFloat64())
		}
		q := make([]float64, dims)
		for i := range q {
			q[i] = rng.NormFloat64()
		}
		var few [Most]float64
		copy(few[:], q)
		b := NewBoxes(blocks, boxes, dims)
		o := NewObjects(blocks, dims, func(object uint32, dst []float64) {
			for i := range dst {
				dst[i] = float64(rows[int(object)*dims+i])
			}
		})
		for at, block := range blocks {
			missed, values := b.Missed(nil, uint32(at), block.Count, q), o.Squares(nil, uint32(at), block.Count, &few)
			for i := range int(block.Count) {
				box, row := boxes[2*dims*(int(block.First)+i):], rows[dims*(int(block.First)+i):]
				sum := 0.0
				for j, x := range q {
					gap := max(float64(box[j])-x, x-float64(box[dims+j]), 0)
					sum += float64(gap * gap)
				}
				if want := sums.Squares(q, row[:dims]); math.Float64bits(values[i]) != math.Float64bits(want) || missed[i] != sum {
					t.Fatalf("%d dimensions, block %d of %d, %d: %v and %v, want %v and %v", dims, at, block.Count, i, values[i], missed[i], want, sum)
				}
			}
		}
	}
	if (*Boxes)(nil).Bytes() != 0 || NewObjects(nil, Most+1, nil) != nil {
		t.Error("nothing takes memory, or objects have more coordinates than kernels know")
	}
}
