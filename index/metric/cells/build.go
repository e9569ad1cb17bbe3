package cells

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/bound"
	"github.com/geniemq/geniemq/index/metric/recall"
	"github.com/geniemq/geniemq/internal/spread"
)

// Build makes cells of the objects of a space and measures recall, with so many goroutines and the aid of a device if there is one.
func Build(ctx context.Context, space *metric.Vectors, p Parameters, workers int, aid *metric.Aid) (*Index, error) {
	x, err := build(ctx, space, p, assigners{aid, workers})
	if err != nil {
		return nil, fmt.Errorf("building cells of %d vectors: %w", space.Len(), err)
	}
	return x, nil
}

func build(ctx context.Context, space *metric.Vectors, p Parameters, by assigners) (*Index, error) {
	n := space.Len()
	if err := p.fill(n); err != nil {
		return nil, err
	}
	if err := able(space.Metric()); err != nil {
		return nil, err
	}
	// Queries, then the sample that centroids are learned from, which begins with the first centroids: parts of one draw.
	held := min(uint32(max(p.HeldOut, 0)), n/10)
	drawn := recall.Draw(n, uint32(min(uint64(n), uint64(held)+uint64(p.Cells)*sampled)), p.Seed)
	queries, sample := drawn[:held], drawn[held:]
	x := &Index{parameters: p}
	m := &means{space: space, by: by}
	for _, id := range sample[:min(p.Cells, len(sample))] {
		x.elements = m.vector(x.elements, id)
	}
	slices.Sort(sample)
	if err := m.learn(ctx, sample, x.elements); err != nil {
		return nil, fmt.Errorf("k-means: %w", err)
	}
	cell, err := x.settle(ctx, space, by)
	if err != nil {
		return nil, err
	}
	return x, x.measure(ctx, space, cell, queries, by)
}

// settle puts every object into its cell, and returns which it is.
func (x *Index) settle(ctx context.Context, space *metric.Vectors, by assigners) (cell []uint32, err error) {
	n, dims := space.Len(), space.Dims()
	cell = make([]uint32, n)
	values := make([]float64, n)
	if n > 0 {
		all, err := centroids(space.Metric(), dims, x.elements)
		if err != nil {
			return nil, err
		}
		if err := by.assign(ctx, space, all, nil, cell, values); err != nil {
			return nil, fmt.Errorf("assigning objects to cells: %w", err)
		}
	}
	// Cells without objects go, and those behind them move up.
	counts := make([]uint32, len(x.elements)/dims)
	for _, c := range cell {
		counts[c]++
	}
	moved, kept := make([]uint32, len(counts)), uint32(0)
	for c, count := range counts {
		moved[c] = kept
		if count > 0 {
			copy(x.elements[int(kept)*dims:(int(kept)+1)*dims], x.elements[c*dims:])
			counts[kept] = count
			kept++
		}
	}
	x.elements, counts = slices.Clip(x.elements[:int(kept)*dims]), counts[:kept]
	x.starts = make([]uint32, kept+1)
	for c, count := range counts {
		x.starts[c+1] = x.starts[c] + count
	}
	x.order, x.radii = make([]uint32, n), make([]float32, kept)
	next := slices.Clone(x.starts)
	farthest := slices.Repeat([]float64{math.Inf(-1)}, int(kept))
	for id, c := range cell {
		c = moved[c]
		cell[id] = c
		x.order[next[c]] = uint32(id)
		next[c]++
		farthest[c] = max(farthest[c], values[id])
	}
	for c, v := range farthest {
		x.radii[c] = bound.Float32Up(space.Metric().Distance(v))
	}
	return cell, x.open(space.Metric(), dims)
}

// means learns centroids.
type means struct {
	space *metric.Vectors
	by    assigners
	wide  []float64
}

// vector appends the elements of an object.
func (m *means) vector(dst []float32, id uint32) []float32 {
	if m.wide == nil {
		m.wide = make([]float64, m.space.Dims())
	}
	m.space.Coordinates(id, m.wide)
	for _, e := range m.wide {
		dst = append(dst, float32(e))
	}
	return dst
}

// learn replaces centroids by the means of the sample's objects that are nearest to them, a few times or until nothing changes. The sample ascends.
func (m *means) learn(ctx context.Context, sample []uint32, elements []float32) error {
	dims := m.space.Dims()
	count := len(elements) / dims
	cells, before, values := make([]uint32, len(sample)), make([]uint32, len(sample)), make([]float64, len(sample))
	starts, members := make([]uint32, count+1), make([]uint32, len(sample))
	for round := range rounds {
		if count < 2 {
			return nil // whose radius decides nothing
		}
		space, err := centroids(m.space.Metric(), dims, elements)
		if err != nil {
			return err
		}
		if err := m.by.assign(ctx, m.space, space, sample, cells, values); err != nil {
			return err
		}
		if round > 0 && slices.Equal(cells, before) {
			return nil
		}
		copy(before, cells)
		clear(starts)
		for _, c := range cells {
			starts[c+1]++
		}
		for c := range count {
			starts[c+1] += starts[c]
		}
		next := slices.Clone(starts)
		for i, c := range cells {
			members[next[c]] = sample[i]
			next[c]++
		}
		err = spread.Run(ctx, m.by.workers, count, func() func(int) {
			sums, own := make([]float64, dims), make([]float64, dims)
			return func(c int) { m.mean(elements[c*dims:(c+1)*dims], members[starts[c]:starts[c+1]], sums, own) }
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// mean writes the mean of some objects, which ascend; under cosine and angular that of their directions. Where there is none the centroid stays.
func (m *means) mean(dst []float32, members []uint32, sums, own []float64) {
	kind := m.space.Metric().Kind
	directions := kind == metric.Cosine || kind == metric.Angular
	clear(sums)
	for _, id := range members {
		m.space.Coordinates(id, own)
		length := 1.0
		if directions {
			square := 0.0
			for _, e := range own {
				square += float64(e * e)
			}
			length = math.Sqrt(square)
		}
		for j, e := range own {
			sums[j] += e / length
		}
	}
	some := false
	for j, sum := range sums {
		mean := float32(sum / float64(len(members)))
		if mean-mean != 0 {
			return // of no objects, or of what is no number
		}
		some = some || mean != 0
		own[j] = float64(mean)
	}
	if directions && !some {
		return
	}
	for j, e := range own {
		dst[j] = float32(e)
	}
}
