package cells

import (
	"context"
	"math"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/internal/spread"
)

// assigners find nearest centroids, which is nearly all of the work of building: a device, or as many goroutines.
type assigners struct {
	aid     *metric.Aid
	workers int
}

// assign writes for each object, all of the space if objects is nil, the number of the centroid that comes first in the order of (value, number), and its value. The
// space of centroids has one at least.
func (a assigners) assign(ctx context.Context, space, centroids *metric.Vectors, objects, cells []uint32, values []float64) error {
	done, err := a.aid.Find(ctx, centroids, space, objects, 1, func(i int, hits []metric.Hit) {
		values[i], cells[i] = hits[0].Value, hits[0].ID
	})
	if done || err != nil {
		return err
	}
	return assignHere(ctx, a.workers, space, centroids, objects, cells, values)
}

// What is compared at a time where nothing is filtered: a batch of objects with so many centroids, whose values fit the nearest cache.
const run = 256

// assignHere assigns on the cores of this machine.
func assignHere(ctx context.Context, workers int, space, centroids *metric.Vectors, objects, cells []uint32, values []float64) error {
	f := newFilter(centroids)
	parts := (len(cells) + batch - 1) / batch
	return spread.Run(ctx, workers, parts, func() func(int) {
		w := &assigner{v: vector{space: space}, centroids: centroids, dst: make([]float64, batch*run)}
		if f != nil {
			w.sieve = f.sieve()
		}
		return func(part int) {
			lo, hi := part*batch, min((part+1)*batch, len(cells))
			w.ids = w.ids[:0]
			for i := lo; i < hi; i++ {
				id := uint32(i)
				if objects != nil {
					id = objects[i]
				}
				w.ids = append(w.ids, id)
			}
			w.assign(cells[lo:hi], values[lo:hi])
		}
	})
}

// assigner is what one goroutine assigns with.
type assigner struct {
	v         vector
	centroids *metric.Vectors
	sieve     *sieve // nil: everything is compared
	ids       []uint32
	askers    []metric.Asker
	dst       []float64
}

// assign finds the centroids of a batch of objects.
func (w *assigner) assign(cells []uint32, values []float64) {
	w.askers = w.askers[:0]
	for _, id := range w.ids {
		w.askers = append(w.askers, w.v.query(id, w.centroids))
	}
	n := w.centroids.Len()
	if w.sieve == nil {
		nearest(w.askers, n, w.dst, cells, values)
		return
	}
	for i, r := range w.sieve.sift(w.v.space, w.ids) {
		if r.all {
			nearest(w.askers[i:i+1], n, w.dst, cells[i:i+1], values[i:i+1])
			continue
		}
		values[i], cells[i] = math.Inf(1), 0
		for _, c := range r.centroids {
			if v := w.askers[i].Value(c.centroid); v < values[i] {
				values[i], cells[i] = v, c.centroid
			}
		}
	}
}

// nearest writes the first of n centroids for each asker.
func nearest(askers []metric.Asker, n uint32, dst []float64, cells []uint32, values []float64) {
	for i := range values {
		values[i], cells[i] = math.Inf(1), 0
	}
	for lo := uint32(0); lo < n; lo += run {
		hi := min(lo+run, n)
		metric.Block(askers, lo, hi, dst)
		for i := range askers {
			least, at := values[i], cells[i]
			for c, v := range dst[i*int(hi-lo) : (i+1)*int(hi-lo)] {
				if v < least {
					least, at = v, lo+uint32(c)
				}
			}
			values[i], cells[i] = least, at
		}
	}
}

// vector makes objects of a space queries of another.
type vector struct {
	space    *metric.Vectors
	wide     []float64
	elements []float32
}

func (v *vector) query(id uint32, other *metric.Vectors) metric.Asker {
	if v.wide == nil {
		v.wide, v.elements = make([]float64, v.space.Dims()), make([]float32, v.space.Dims())
	}
	v.space.Coordinates(id, v.wide)
	for j, e := range v.wide {
		v.elements[j] = float32(e) // which it was widened from
	}
	a, err := other.Query(v.elements)
	if err != nil {
		return inadmissible{}
	}
	return a
}

// inadmissible is an object that a space should not have: a builder refuses it before. It is far from everything, so that no cell is left out because of it.
type inadmissible struct{}

func (inadmissible) Value(uint32) float64 { return math.Inf(1) }

func (inadmissible) Values(lo, hi uint32, dst []float64) {
	for i := range dst[:hi-lo] {
		dst[i] = math.Inf(1)
	}
}
