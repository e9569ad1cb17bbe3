package index

import (
	"math"
	"slices"
)

// interiorEdges returns the interior bucket edges of numbers that lie in [low, high], strictly ascending and above
// low. Edges that coincide are one, so there can be fewer than buckets-1; a constant column has none, which is
// one bucket. Only equi-depth asks for the sorted numbers, whose i/buckets quantiles are its edges.
func interiorEdges(rule EdgeRule, buckets int, low, high float64, sorted func() []float64) []float64 {
	if low == high {
		return nil
	}
	edges := make([]float64, 0, buckets-1)
	add := func(edge float64) {
		if last := len(edges) - 1; edge > low && (last < 0 || edge > edges[last]) {
			edges = append(edges, edge)
		}
	}
	if rule == EquiDepth {
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

// equalWidthEdge returns low + i*(high-low)/buckets. Where that leaves the range of a float64 it interpolates, with
// explicit conversions so that no machine fuses the operations and edges agree everywhere.
func equalWidthEdge(low, high float64, i, buckets int) float64 {
	if span := float64(i) * (high - low); !math.IsInf(span, 0) {
		return min(low+span/float64(buckets), high)
	}
	t := float64(i) / float64(buckets)
	return float64(low*(1-t)) + float64(high*t)
}
