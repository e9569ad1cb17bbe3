// Package sorting puts the objects of a tree's nodes in order while it is built: by their distances to a pivot (Sort), or by a coordinate as far as to know which are the least (Places, Least). No
// two are alike, so that any way gives the same, and any number of goroutines.
package sorting

import (
	"context"
	"math"
	"slices"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/internal/spread"
)

// What Sort deals objects into: as many buckets as a near cache holds the ends of, of so many objects each at least. Fewer objects than sorted are compared.
const (
	mostBuckets = 4096
	ofBucket    = 4
	sorted      = 48
	// wide is how many objects are dealt by one goroutine more.
	wide = 1 << 14
)

// Sort sorts by (distance, object), the value and the id of a hit, which no two share, so that any way of sorting gives the same. Objects are dealt into buckets by their distance, which are sorted each; spare is
// memory of as many.
func Sort(items, spare []metric.Hit, workers int) {
	if len(items) < sorted {
		slices.SortFunc(items, metric.Hit.Compare)
		return
	}
	workers = max(1, min(workers, len(items)/wide))
	span := func(i int) (lo, hi int) { return len(items) * i / workers, len(items) * (i + 1) / workers }
	together := func(n int, work func(i int)) {
		_ = spread.Run(context.Background(), workers, n, func() func(int) { return work })
	}
	least, most := make([]float64, workers), make([]float64, workers)
	together(workers, func(i int) {
		lo, hi := span(i)
		least[i], most[i] = items[lo].Value, items[lo].Value
		for _, it := range items[lo:hi] {
			least[i], most[i] = min(least[i], it.Value), max(most[i], it.Value)
		}
	})
	lowest, buckets := slices.Min(least), min(mostBuckets, len(items)/ofBucket)
	scale := float64(buckets) / (slices.Max(most) - lowest)
	if !(scale > 0 && scale <= math.MaxFloat64) { // all are as far, or differ by next to nothing
		slices.SortFunc(items, metric.Hit.Compare)
		return
	}
	bucketOf := func(it metric.Hit) int { return min(buckets-1, int((it.Value-lowest)*scale)) }
	ends := make([][]int, workers) // where the objects of a span that are of a bucket begin, and end once they are dealt
	together(workers, func(i int) {
		ends[i] = make([]int, buckets)
		lo, hi := span(i)
		for _, it := range items[lo:hi] {
			ends[i][bucketOf(it)]++
		}
	})
	at := 0
	for bucket := range buckets {
		for i := range ends {
			at, ends[i][bucket] = at+ends[i][bucket], at
		}
	}
	together(workers, func(i int) {
		lo, hi := span(i)
		for _, it := range items[lo:hi] {
			to := &ends[i][bucketOf(it)]
			spare[*to] = it
			*to++
		}
	})
	last := ends[workers-1]
	const some = 64 // buckets
	together((buckets+some-1)/some, func(i int) {
		first, end := 0, min((i+1)*some, buckets)
		if i > 0 {
			first = last[i*some-1]
		}
		for bucket := i * some; bucket < end; bucket++ {
			own, memory := spare[first:last[bucket]], items[first:last[bucket]]
			if first = last[bucket]; len(own) > len(items)/2 { // else there may be as many levels as distances have exponents
				slices.SortFunc(own, metric.Hit.Compare)
			} else {
				Sort(own, memory, 1)
			}
			copy(memory, own)
		}
	})
}
