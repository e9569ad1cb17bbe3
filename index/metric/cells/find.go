package cells

import (
	"math"

	"github.com/geniemq/geniemq/index/metric"
)

// finder finds the centroids that are nearest to some queries, each as many as its list is for.
//
// Centroids come in no order, so those that were compared are a sample of all: which value is just beyond the last one that is wanted is guessed from them, again and again, and what is beyond
// need not be compared. A query whose guess was too low finds fewer than it wants, and asks all of them. So guesses decide how much is compared, and never what is found.
type finder struct {
	askers []metric.Asker
	lists  []*list
	limits []float64
	found  metric.Found // take, which would be allocated
}

// Guesses are made of so many centroids, then of growth times as many, and so on.
const (
	firstGuess  = 64
	guessGrowth = 3
)

// reset begins with no query.
func (f *finder) reset() { f.askers, f.lists, f.limits = f.askers[:0], f.lists[:0], f.limits[:0] }

// add adds a query and its list, which has been reset.
func (f *finder) add(near metric.Asker, l *list) {
	f.askers, f.lists, f.limits = append(f.askers, near), append(f.lists, l), append(f.limits, math.Inf(1))
}

// find finds centroids, in the memory of an asker of theirs.
func (f *finder) find(own metric.Asker, centroids uint32) {
	for from, to := uint32(0), uint32(firstGuess); from < centroids; from, to = to, guessGrowth*to {
		to = min(to, centroids)
		metric.ScanWith(own, f.askers, from, to, f.limits, f.found)
		for i, l := range f.lists {
			if to < centroids {
				l.guess(to, centroids)
			}
			f.limits[i] = l.bound
		}
	}
	missed := 0
	for i, l := range f.lists {
		if len(l.hits) < min(l.most, int(centroids)) {
			l.reset(l.most)
			f.askers[missed], f.lists[missed], f.limits[missed] = f.askers[i], l, math.Inf(1)
			missed++
		}
	}
	f.askers, f.lists, f.limits = f.askers[:missed], f.lists[:missed], f.limits[:missed]
	metric.ScanWith(own, f.askers, 0, centroids, f.limits, f.found)
}

// release leaves nothing but memory.
func (f *finder) release() {
	clear(f.askers[:cap(f.askers)])
	clear(f.lists[:cap(f.lists)])
	f.reset()
}

// take takes a centroid that is not beyond the limit.
func (f *finder) take(query int, cell uint32, value float64) {
	l := f.lists[query]
	l.add(metric.Hit{Value: value, ID: cell})
	f.limits[query] = l.bound
}
