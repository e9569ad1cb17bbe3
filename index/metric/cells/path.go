package cells

import (
	"slices"

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
// before it, comes first. Only the cells that some of the objects lie in are put in order: of all others it is enough which of these they come before.
func (x path) Locator() recall.Locator {
	count := x.Cells()
	v, keys := vector{space: x.space}, make([]float64, count)
	rank, before := make([]uint32, count), make([]uint32, count) // by cell: cells, and objects in cells, that come before it
	var wanted []metric.Hit
	return func(query uint32, _ metric.Asker, objects []metric.Hit) func(int, uint32) uint32 {
		v.query(query, x.centroids).Values(0, uint32(count), keys)
		wanted = wanted[:0]
		for _, h := range objects {
			c := x.cell[h.ID]
			wanted = append(wanted, metric.Hit{Value: keys[c], ID: c})
		}
		slices.SortFunc(wanted, metric.Hit.Compare)
		wanted = slices.Compact(wanted)
		for _, w := range wanted {
			rank[w.ID], before[w.ID] = 0, 0
		}
		for c, key := range keys {
			h := metric.Hit{Value: key, ID: uint32(c)}
			if !h.Less(wanted[len(wanted)-1]) {
				continue
			}
			at, same := slices.BinarySearchFunc(wanted, h, metric.Hit.Compare)
			if same {
				at++
			}
			size := x.starts[c+1] - x.starts[c]
			if x.cell[query] == h.ID {
				size-- // it is held out
			}
			next := wanted[at].ID
			rank[next]++
			before[next] += size
		}
		for i, w := range wanted[1:] {
			rank[w.ID] += rank[wanted[i].ID]
			before[w.ID] += before[wanted[i].ID]
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
