package cells

import (
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/recall"
)

// path is the index as one that recall is measured of: a step is a cell, the one with the nearest centroid first.
type path struct {
	*Index
	space *metric.Vectors // by id
	cell  []uint32        // of each object
}

// Steps is the number of probes, whatever k.
func (path) Steps(_ uint32, probes float64) uint32 { return uint32(probes) }

// Locator finds how many cells come before that of an object. A cell that is visited with any number of probes, since fewer than k objects lie in those
// before it, comes first.
func (x path) Locator() recall.Locator {
	count := x.Cells()
	v, keys := vector{space: x.space}, make([]float64, count)
	rank, before := make([]uint32, count), make([]uint32, count) // by cell: cells, and objects in cells, that come before it
	var q queue
	return func(query uint32, _ metric.Asker, objects []metric.Hit) func(int, uint32) uint32 {
		v.query(query, x.centroids).Values(0, uint32(count), keys)
		q.reset(keys, count)
		sum := uint32(0)
		for i := range uint32(count) {
			next, _ := q.next()
			c := next.ID
			rank[c], before[c] = i, sum
			sum += x.starts[c+1] - x.starts[c]
			if x.cell[query] == c {
				sum-- // it is held out
			}
		}
		return func(i int, k uint32) uint32 {
			c := x.cell[objects[i].ID]
			if before[c] < k {
				return 0
			}
			return rank[c]
		}
	}
}
