package values

import (
	"math"
	"slices"

	"github.com/geniemq/geniemq/index/schema"
)

// Edges returns the interior bucket edges of numbers that lie in [low, high], strictly ascending and above
// low. Edges that coincide are one, so there can be fewer than buckets-1; a constant column has none, which is
// one bucket. Only equi-depth asks for the sorted numbers, whose i/buckets quantiles are its edges.
func Edges(rule schema.EdgeRule, buckets int, low, high float64, sorted func() []float64) []float64 {
	if low == high {
		return nil
	}
	edges := make([]float64, 0, buckets-1)
	add := func(edge float64) {
		if last := len(edges) - 1; edge > low && (last < 0 || edge > edges[last]) {
			edges = append(edges, edge)
		}
	}
	if rule == schema.EquiDepth {
		values := sorted()
		for i := 1; i < buckets; i++ {
			add(values[uint64(i)*uint64(len(values))/uint64(buckets)])
		}
		return slices.Clip(edges)
	}
	for i := 1; i < buckets; i++ {
		add(equalWidthEdge(low, high, i, buckets))
	}
	return slices.Clip(edges)
}

// equalWidthEdge returns low + i*(high-low)/buckets. Where that would leave the range of a float64 on the way it
// computes with numbers smaller by a power of two, which is exact. No product is added to, so that no machine can
// fuse the two, and edges agree everywhere.
func equalWidthEdge(low, high float64, i, buckets int) float64 {
	const scale = 1 << 32
	if span := float64(i) * (high - low); !math.IsInf(span, 0) {
		return min(low+span/float64(buckets), high)
	}
	small, large := low/scale, high/scale
	return min((small+float64(i)*(large-small)/float64(buckets))*scale, high)
}
