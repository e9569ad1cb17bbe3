package flatscan

import (
	"slices"

	"github.com/geniemq/geniemq/index/metric"
)

// Nearest is what a search by distance means: every object that passes is compared by itself, those with a value of want.Most at most are put in the order of
// (value, id), and the first want.K of these are the hits. within is how many there are, though K cut them. pass says which objects may be
// hits.
func Nearest(a metric.Asker, objects uint32, want metric.Want, pass func(id uint32) bool) (hits []metric.Hit, within uint64) {
	for id := range objects {
		if !pass(id) {
			continue
		}
		if v := a.Value(id); v <= want.Most {
			hits = append(hits, metric.Hit{Value: v, ID: id})
		}
	}
	slices.SortFunc(hits, metric.Hit.Compare)
	return hits[:min(len(hits), want.K)], uint64(len(hits))
}
