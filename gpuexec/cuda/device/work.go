//go:build cuda

package device

import (
	"github.com/geniemq/geniemq/gpuexec"
)

// countQuery adds a query that was executed: with postings that the (query, tile) kernel found, or in groups of 1,024 objects.
func countQuery(w *gpuexec.Work, q *laneQuery, postings uint64, groups int) {
	switch {
	case q.filter:
		w.FilterQueries++
	case q.sliced:
		w.SlicedQueries++
		w.SlicedRows += uint64(q.weightedRows) * uint64(groups)
	default:
		w.TileQueries++
		if q.planeRows == 0 {
			w.TilePostings += postings
		}
	}
}
