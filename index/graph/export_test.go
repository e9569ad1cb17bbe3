package graph

// Edges is the number of edges.
func (g *Graph) Edges() int { return len(g.near) / 2 }

// Label is the label of a vertex.
func (g *Graph) Label(vertex int) string { return g.labels.Names[g.label[vertex]] }

// lowerBound is the least edit distance of graphs of so many vertices with a match count, by the theorem that Factor names, where degree
// is the smaller of their largest degrees, or one of them.
func lowerBound(query, object, count, degree int) int {
	f := Factor(degree)
	return (max(query, object) - count + f - 1) / f
}
