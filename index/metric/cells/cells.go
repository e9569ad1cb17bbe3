// Package cells finds neighbours among vectors that lie in cells around centroids.
package cells

import (
	"cmp"
	"context"
	"fmt"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/recall"
)

// MaxCells is how many cells there are at most.
const MaxCells = 1 << 20

// Parameters are what cells are made with.
type Parameters struct {
	Cells int // at most so many, 1 to MaxCells; default Auto of the number of objects
	Seed  uint64
	// HeldOut is how many objects recall is measured with: default 4,096, negative none; at most a tenth of all.
	HeldOut int
}

// What k-means takes: at 4.5 million objects about as much as putting all of them into their cells.
const (
	sampled = 32 // objects per cell
	rounds  = 8
)

func (p *Parameters) fill(objects uint32) error {
	if p.Cells == 0 {
		p.Cells = Auto(objects)
	}
	p.HeldOut = cmp.Or(p.HeldOut, 4096)
	if p.Cells < 1 || p.Cells > MaxCells {
		return fmt.Errorf("%d cells: there may be 1 to %d", p.Cells, MaxCells)
	}
	return nil
}

// Auto is how many cells so many objects get. A search compares the query with each centroid and with the objects of some cells, here 64: as many as
// data take that are neither clearly clustered (2 cells for a recall of 0.995) nor without any structure (2,395). So the cost of C cells is
// C + 64 n / C; of the powers of two it is the cheapest, 16,384 for 4.5 million objects.
func Auto(objects uint32) int {
	cost := func(c int) float64 { return float64(c) + 64*float64(objects)/float64(c) }
	c := 1
	for c < MaxCells && cost(2*c) < cost(c) {
		c *= 2
	}
	return max(1, min(c, int(min(objects, MaxCells))))
}

// Index is the cells of a space of vectors.
//
// # How
//
// Objects are stored by cell: those of cell c are at positions starts[c] to starts[c+1]-1, by ascending id, and order says which
// object is at a position. Each is in the cell of its nearest centroid, the first in the order of (value, number). A search visits cells and compares the
// query with all their objects, so values and the order of hits are those of every other method.
//
// With probes it visits so many cells, nearest centroid first, and goes on until it has compared k objects that pass, so that there are k hits
// where a scan has k. How many neighbours that finds was measured when the index was built. It is exact only if all cells were visited.
//
// Without, it is exact. No object of a cell is nearer to the query than the distance to the centroid less the cell's radius, by the triangle
// inequality. Cells are visited in the order of that bound until it exceeds the largest distance that can still be a hit's, less what rounding may have added
// (metric.Slack). An object at that distance may be a hit by its id, so only what exceeds it is left out.
//
// # Why these cells
//
// They are k-means: centroids begin as objects, and are replaced by the mean of the sample's objects that are nearest to them, a few times.
// Under cosine and angular it is the mean of unit vectors. Whether centroids are good decides how much is compared, never what is right. A cell that gets no
// object is dropped, so none is empty.
//
// # Invariants
//
// The index is a function of the objects, their order and the parameters: sums are in float64 by ascending id, draws are integers, values are the same to the
// bit everywhere. So neither the machine nor the number of cores shows. Radii are float32, rounded up. Held-out objects are no part of k-means.
//
// An Index is immutable and borrows what Open was given. A Searcher belongs to one goroutine.
type Index struct {
	parameters Parameters
	centroids  *metric.Vectors
	elements   []float32 // of the centroids, one after the other
	starts     []uint32  // one more than cells
	order      []uint32  // position to object
	radii      []float32 // metric.Distance of the farthest object from the centroid, rounded up
	recall     *recall.Table
}

// Len is the number of objects.
func (x *Index) Len() uint32 { return uint32(len(x.order)) }

// Cells is the number of cells.
func (x *Index) Cells() int { return len(x.radii) }

// Centroids are the space of the centroids, which a query is made for as for the objects.
func (x *Index) Centroids() *metric.Vectors { return x.centroids }

// Order is the object at each position: the space that is searched has them in this order.
func (x *Index) Order() []uint32 { return x.order }

// Recall is the table that was measured. Its efforts are probes.
func (x *Index) Recall() *recall.Table { return x.recall }

// Probes returns the least number of probes whose recall of k neighbours was share at least, by its lower bound. Where the table has none it is all cells,
// which is an exact search.
func (x *Index) Probes(k int, share float64) int {
	if probes, _, ok := x.recall.Least(k, share); ok {
		return min(int(probes), x.Cells())
	}
	return x.Cells()
}

// open makes the space of the centroids.
func (x *Index) open(m metric.Metric, dims int) (err error) {
	if err := able(m); err != nil {
		return err
	}
	if x.centroids, err = centroids(m, dims, x.elements); err == nil {
		x.centroids = x.centroids.UsePanels()
	}
	return err
}

// centroids are a space of vectors, with their norms at hand.
func centroids(m metric.Metric, dims int, elements []float32) (*metric.Vectors, error) {
	space, err := metric.NewVectors(m, dims, elements)
	if err != nil {
		return nil, err
	}
	if m.Kind == metric.Cosine || m.Kind == metric.Angular {
		return space.UseNorms(space.Norms(nil))
	}
	return space, nil
}

// able says why a metric has no cells: a mean has to be an object.
func able(m metric.Metric) error {
	switch m.Kind {
	case metric.L1, metric.L2, metric.Linf, metric.Lp, metric.Cosine, metric.Angular:
		return nil
	}
	return fmt.Errorf("the metric %s has no cells, since a mean of objects is none: use a tree or a permutation index", m.Kind)
}

// neighbours are the numbers of neighbours that recall is measured for.
func neighbours() []uint32 { return []uint32{1, 10, 100} }

// probes are the numbers of cells that recall is measured for: each about a third or a half more than the one before, and never all.
func probes(cells int) (efforts []float64) {
	for p := 1; p < cells; p *= 2 {
		efforts = append(efforts, float64(p))
		if half := p + p/2; half > p && half < cells {
			efforts = append(efforts, float64(half))
		}
	}
	return efforts
}

// measure measures recall with objects that were held out.
func (x *Index) measure(ctx context.Context, space *metric.Vectors, cell, queries []uint32, by assigners) (err error) {
	plan := recall.Plan{Queries: queries, Ks: neighbours(), Efforts: probes(x.Cells()), Aid: by.aid}
	x.recall, err = recall.Measure(ctx, space, path{x, space, cell}, plan, by.workers)
	return err
}
