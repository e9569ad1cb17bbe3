package tree

// Parent is the parent of a node, -1 for the root, which is node 0.
func (t *Tree) Parent(node int) int { return int(t.parent[node]) }

// lowerBound is the least edit distance that trees of so many nodes with a match count can have, by the theorem that Factor names.
func lowerBound(query, object, count int) int {
	return (max(query, object) - count + Factor - 1) / Factor
}
