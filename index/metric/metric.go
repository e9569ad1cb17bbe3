// Package metric says how far objects are from queries: the metrics, their values to the bit, what users are told of values, and spaces, the
// objects of a column under one metric.
//
// # Values, reports and distances
//
// A value is what objects are ordered by: the cheapest number that rises with the distance, defined to the bit. No engine, processor, batch or
// access path gives another one, so ties are ties everywhere, and they are broken by id.
//
//	l1, linf         sum of |q-o|, the largest of them
//	l2, lp           sum of (q-o)^2, of |q-o|^p by p-1 products
//	cosine, angular  -q.o / (|q| |o|), from -1 to 1
//	ip               -q.o, of any sign
//	hamming, edit    elements that differ, edits of code points
//	geo              squared chord of the points' unit vectors (Unit)
//
// Sums are those of package sums. A value is never NaN and never -0; an object that is damaged has math.Inf(1), or some value. A report
// (Metric.Report) is what users see of a value: roots, degrees, metres. It never falls as the value rises, so a radius is a value too: the
// largest that is reported as within (Metric.Within). A distance (Metric.Distance) is a true metric that rises with the value, which bounds are
// computed with, but for Metric.Slack. Products (ip) have none: they obey no triangle inequality, so objects are scanned.
//
// # Spaces and askers
//
// A Space is immutable and for any number of goroutines. Of and Query prepare an Asker, which has memory of its own and is for one goroutine at
// a time. Objects lie where the file has them: nothing is copied, and nothing is checked but lengths and orders. Who loads objects asks
// Metric.Admits.
//
// Values come one by one, in runs (Values), of objects that lie apart (ValuesOf), for many queries (Block), with a cut-off (ValuesTo) and for many queries with cut-offs (Scan): the
// fewer the calls, the faster. None of these allocates but what an asker keeps.
package metric

import "cmp"

// Kind names a metric.
type Kind string

// The metrics.
const (
	L1      Kind = "l1"
	L2      Kind = "l2"
	Linf    Kind = "linf"
	Lp      Kind = "lp"
	Cosine  Kind = "cosine"
	Angular Kind = "angular"
	IP      Kind = "ip"
	Hamming Kind = "hamming"
	Edit    Kind = "edit"
	Geo     Kind = "geo"
)

// Metric is how two objects are compared. P is Lp's exponent, 3 to 8, and 0 of others.
type Metric struct {
	Kind Kind
	P    int
}

// Space is the objects of one column under one metric. Objects count from 0. The order of objects under a query is (value, id), ascending,
// and a value is the same to the bit whoever computes it.
type Space interface {
	Len() uint32
	Metric() Metric
	// Of makes object i a query.
	Of(i uint32) Asker
}

// Asker is a query that was prepared. One goroutine at a time uses it.
type Asker interface {
	// Value is that of object i: what the metric orders by. It is never NaN.
	Value(i uint32) float64
	// Values are those of the objects lo to hi-1.
	Values(lo, hi uint32, dst []float64)
}

// Want is what a search is to find: the first K objects in the order of (value, id) whose value is Most at most.
type Want struct {
	K    int     // at least 1; every object within: math.MaxInt
	Most float64 // math.Inf(1): no bound
}

// Hit is an object and its value.
type Hit struct {
	Value float64
	ID    uint32
}

// Less is the order of hits.
func (h Hit) Less(other Hit) bool {
	return h.Value < other.Value || h.Value == other.Value && h.ID < other.ID
}

// Compare is the order of hits, as package slices has it.
func (h Hit) Compare(other Hit) int {
	switch {
	case h.Value < other.Value:
		return -1
	case h.Value > other.Value:
		return 1
	}
	return cmp.Compare(h.ID, other.ID)
}

// Placed is a space whose objects have coordinates, of whose differences values are made: of l1, linf, l2, lp and geo as they are, of cosine and angular once divided by their norm.
type Placed interface {
	Space
	Dims() int
	Coordinates(object uint32, dst []float64)
}

// Sized is a space of objects of so many elements. A tree over numbers needs to know, since what sums lose grows with them.
type Sized interface {
	Dims() int
}

// PlacedAsker is a query that has coordinates.
type PlacedAsker interface {
	Asker
	Coordinates() []float64
}
