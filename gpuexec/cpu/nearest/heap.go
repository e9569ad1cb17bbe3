package nearest

import (
	"cmp"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/verify"
)

func compareScored(a, b verify.Scored) int {
	return cmp.Or(cmp.Compare(a.Score, b.Score), cmp.Compare(a.ID, b.ID))
}

// heap is the best k hits of all that are offered, the worst one first.
type heap struct {
	k    int
	hits []metric.Hit
}

// full says that there are as many as k hits.
func (h *heap) full(k int) bool { return k > 0 && len(h.hits) >= k }

// offer takes a hit if it is among the best so far.
func (h *heap) offer(hit metric.Hit) bool {
	if len(h.hits) < h.k {
		h.hits = append(h.hits, hit)
		for i := len(h.hits) - 1; i > 0; {
			up := (i - 1) / 2
			if !h.hits[up].Less(h.hits[i]) {
				break
			}
			h.hits[up], h.hits[i] = h.hits[i], h.hits[up]
			i = up
		}
		return true
	}
	if h.k == 0 || !hit.Less(h.hits[0]) {
		return false
	}
	at := 0
	for {
		down := 2*at + 1
		if down >= h.k {
			break
		}
		if down+1 < h.k && h.hits[down].Less(h.hits[down+1]) {
			down++
		}
		if !hit.Less(h.hits[down]) {
			break
		}
		h.hits[at] = h.hits[down]
		at = down
	}
	h.hits[at] = hit
	return true
}
