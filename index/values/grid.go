package values

import "math"

// A Grid is CountLE for many numbers between the same extremes: cells of equal width say between which edges a number
// can lie, usually two. The builder looks each number up twice, and a binary search of 1,024 edges takes longer than all
// else that is done with it.
//
// cellOf never falls as numbers rise, whatever is rounded, so the edges of lower cells are below a number and those of
// higher ones above it: the result is CountLE's to the bit.
type Grid struct {
	edges      []float64
	low, scale float64
	below      []uint32 // by cell: the edges in lower cells; and the end. nil: no cells
}

func NewGrid(edges []float64, low, high float64) Grid {
	g := Grid{edges: edges, low: low}
	cells := min(4*len(edges), 1<<20)
	g.scale = float64(cells) / (high - low)
	if len(edges) < 4 || !Finite(high-low) || !Finite(g.scale) || !Finite(g.scale*(high-low)) {
		return g
	}
	g.below = make([]uint32, cells+2) // high itself may be rounded into a cell of its own
	for _, edge := range edges {
		g.below[g.cellOf(edge)+1]++
	}
	for cell := range cells + 1 {
		g.below[cell+1] += g.below[cell]
	}
	return g
}

func (g *Grid) cellOf(v float64) int { return min(int((v-g.low)*g.scale), len(g.below)-2) }

// CountLE returns how many edges are <= v, a number from low to high.
func (g *Grid) CountLE(v float64) uint32 {
	if g.below == nil {
		return CountLE(g.edges, v)
	}
	cell := g.cellOf(v)
	from := g.below[cell]
	return from + CountLE(g.edges[from:g.below[cell+1]], v)
}

// CountLE returns how many of the ascending edges are <= v.
func CountLE(edges []float64, v float64) uint32 {
	lo, n := 0, len(edges)
	for n > 0 {
		half := n >> 1
		if edges[lo+half] <= v {
			lo += half + 1
			n -= half + 1
		} else {
			n = half
		}
	}
	return uint32(lo)
}

// Finite says that v is a number that is no infinity.
func Finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
