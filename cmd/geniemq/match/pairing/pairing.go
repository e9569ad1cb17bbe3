// Package pairing decides which pairs of rows and objects belong together, and how right that is.
package pairing

import (
	"cmp"
	"slices"
)

// Pair is a row and an object that may be the same, and how alike they are, from 0 to 1.
type Pair struct {
	Row, Object uint32
	Score       float64
}

// order puts the best first; those that are as good by row and by object, so that the order is one.
func order(a, b Pair) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Row, b.Row), cmp.Compare(a.Object, b.Object))
}

// OneToOne leaves of the pairs those in which no row and no object comes twice: the best pair of all, then the best of those that are left, and so on.
//
// # Why greedy
//
// The pairs with the greatest sum of scores are another answer, which gives up a pair that is surely right for two that are less bad than nothing. People who match
// records mean the former. It is stable: no row and object are left that would both be better off with each other. It takes the time of sorting, however the pairs
// hang together. And its pairs above a threshold are those that it would find with that threshold, so that one run tells what each threshold would have done.
func OneToOne(pairs []Pair) []Pair {
	slices.SortFunc(pairs, order)
	rows, objects := make(map[uint32]bool), make(map[uint32]bool)
	return slices.DeleteFunc(pairs, func(p Pair) bool {
		taken := rows[p.Row] || objects[p.Object]
		if !taken {
			rows[p.Row], objects[p.Object] = true, true
		}
		return taken
	})
}

// Undirected makes of pairs of rows among themselves such as have the smaller number first, each once, with the better of its scores.
func Undirected(pairs []Pair) []Pair {
	for i := range pairs {
		if p := &pairs[i]; p.Row > p.Object {
			p.Row, p.Object = p.Object, p.Row
		}
	}
	slices.SortFunc(pairs, func(a, b Pair) int {
		return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.Object, b.Object), cmp.Compare(b.Score, a.Score))
	})
	return slices.CompactFunc(pairs, func(a, b Pair) bool { return a.Row == b.Row && a.Object == b.Object })
}

// Apart leaves of undirected pairs those in which no row comes twice, as OneToOne does of rows and objects.
func Apart(pairs []Pair) []Pair {
	slices.SortFunc(pairs, order)
	taken := make(map[uint32]bool)
	return slices.DeleteFunc(pairs, func(p Pair) bool {
		if taken[p.Row] || taken[p.Object] {
			return true
		}
		taken[p.Row], taken[p.Object] = true, true
		return false
	})
}

// Clusters says of each of n rows which cluster it is in: the least of the rows that pairs connect it with.
func Clusters(n int, pairs []Pair) []uint32 {
	parent := make([]uint32, n)
	for i := range parent {
		parent[i] = uint32(i)
	}
	find := func(x uint32) uint32 {
		for parent[x] != x {
			parent[x] = parent[parent[x]]
			x = parent[x]
		}
		return x
	}
	for _, p := range pairs {
		if a, b := find(p.Row), find(p.Object); a < b {
			parent[b] = a
		} else {
			parent[a] = b
		}
	}
	for i := range parent {
		parent[i] = find(uint32(i))
	}
	return parent
}

// Quality is what pairs of at least a score are worth.
type Quality struct {
	Threshold float64 `json:"threshold"`
	Pairs     int     `json:"pairs"`
	Right     int     `json:"right"`
	Precision float64 `json:"precision"` // 1 without pairs
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
}

// Judge says of each threshold what the pairs of at least that score are worth: right says which pairs are, and of those there are all.
func Judge(pairs []Pair, right func(Pair) bool, all int, thresholds []float64) (judged []Quality) {
	for _, threshold := range thresholds {
		q := Quality{Threshold: threshold}
		for _, p := range pairs {
			if p.Score >= threshold {
				q.Pairs++
				if right(p) {
					q.Right++
				}
			}
		}
		q.Precision = 1
		if q.Pairs > 0 {
			q.Precision = float64(q.Right) / float64(q.Pairs)
		}
		if all > 0 {
			q.Recall = float64(q.Right) / float64(all)
		}
		if q.Right > 0 {
			q.F1 = 2 * float64(q.Right) / float64(q.Pairs+all)
		}
		judged = append(judged, q)
	}
	return judged
}

// Best is the place of the greatest F1, and of the highest threshold that has it; -1 of none.
func Best(judged []Quality) int {
	best := -1
	for i, q := range judged {
		if best < 0 || q.F1 >= judged[best].F1 {
			best = i
		}
	}
	return best
}
