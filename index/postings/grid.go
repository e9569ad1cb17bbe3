package postings

// grid is countLE for many numbers between the same extremes: cells of equal width say between which edges a number
// can lie, usually two. The builder looks each number up twice, and a binary search of 1,024 edges takes longer than all
// else that is done with it.
//
// cellOf never falls as numbers rise, whatever is rounded, so the edges of lower cells are below a number and those of
// higher ones above it: the result is countLE's to the bit.
type grid struct {
	edges      []float64
	low, scale float64
	below      []uint32 // by cell: the edges in lower cells; and the end. nil: no cells
}

func newGrid(edges []float64, low, high float64) grid {
	g := grid{edges: edges, low: low}
	cells := min(4*len(edges), 1<<20)
	g.scale = float64(cells) / (high - low)
	if len(edges) < 4 || !finite(high-low) || !finite(g.scale) || !finite(g.scale*(high-low)) {
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

func (g *grid) cellOf(v float64) int { return min(int((v-g.low)*g.scale), len(g.below)-2) }

// countLE returns how many edges are <= v, a number from low to high.
func (g *grid) countLE(v float64) uint32 {
	if g.below == nil {
		return countLE(g.edges, v)
	}
	cell := g.cellOf(v)
	from := g.below[cell]
	return from + countLE(g.edges[from:g.below[cell+1]], v)
}
