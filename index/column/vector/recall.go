package vector

import (
	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/lsh"
	"github.com/geniemq/geniemq/index/schema"
)

const (
	// heldOut are the queries that recall is measured with, of the first firstVectors.
	heldOut      = 100
	firstVectors = sampleVectors
	// leastMeasured vectors are too few to measure anything with.
	leastMeasured = 3 * heldOut
	// measuredBlock are compared at a time.
	measuredBlock = 2048
)

// Measure implements column.Measurer: recall, where the schema asks for one.
func (Column) Measure(c *schema.Column, workers int) (column.Measurement, error) {
	if c.Recall == 0 || !distance.Hashed(c) {
		return nil, nil
	}
	f, err := functions(c)
	if err != nil {
		return nil, err
	}
	return &recall{functions: f, dims: c.Dims, workers: workers}, nil
}

// recall measures which share of the nearest neighbours count most, with all vectors that are added. Some of the first are held out: queries that meet all
// others. What the nearest are, brute force says.
type recall struct {
	functions   *lsh.Functions
	dims        int
	workers     int
	measurement *lsh.Measurement // nil before the first vectors are there
	vectors     []float32        // not yet measured
	hashes      []uint32
}

// Add implements column.Measurement.
func (r *recall) Add(v *schema.Values) {
	if len(v.Vector) == 0 {
		return
	}
	r.vectors, r.hashes = append(r.vectors, v.Vector...), append(r.hashes, v.Ordinals...)
	n := len(r.vectors) / r.dims
	switch {
	case r.measurement == nil && n == firstVectors:
		r.begin()
	case r.measurement != nil && n == measuredBlock:
		r.flush()
	}
}

// begin takes the queries out of the first vectors, evenly.
func (r *recall) begin() {
	m, n := r.functions.Parameters().Functions, len(r.vectors)/r.dims
	var queries, vectors []float32
	var hashes []uint32
	for i := range n {
		own := r.vectors[i*r.dims : (i+1)*r.dims]
		if (i+1)*heldOut/n > i*heldOut/n {
			queries = append(queries, own...)
			continue
		}
		vectors, hashes = append(vectors, own...), append(hashes, r.hashes[i*m:(i+1)*m]...)
	}
	measures := lsh.Measures{
		Neighbours: []int{1, 2, 5, 10, 20, 50, 100},
		Candidates: []int{1, 2, 5, 10, 20, 32, 50, 80, 100, 160, 200},
		Reaches:    []int{r.functions.Parameters().Reach},
	}
	for k := 320; k <= n; k *= 2 {
		measures.Candidates = append(measures.Candidates, k)
	}
	x, err := lsh.NewMeasurement(r.functions, queries, measures)
	if err != nil {
		panic(err) // the queries were hashed before, and the measures are in order
	}
	r.measurement, r.vectors, r.hashes = x, vectors, hashes
	r.flush()
}

// flush measures what has come.
func (r *recall) flush() {
	r.measurement.Add(r.hashes, r.vectors, max(1, r.workers))
	r.vectors, r.hashes = r.vectors[:0], r.hashes[:0]
}

// Finish implements column.Measurement: the table becomes part of what was learned.
func (r *recall) Finish(c *schema.Column) error {
	if r.measurement == nil {
		if len(r.vectors)/r.dims < leastMeasured {
			return nil
		}
		r.begin()
	}
	r.flush()
	p := r.functions.Parameters()
	var err error
	if p.Recall, err = r.measurement.Table(); err != nil {
		return err
	}
	return learned(c, p)
}
