package vector

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/lsh"
	drawing "github.com/geniemq/geniemq/index/metric/recall"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/spill"
)

const (
	// heldOut are the queries that recall is measured with; of few vectors a third.
	heldOut = 200
	// leastMeasured vectors are too few to measure anything with.
	leastMeasured = 300
	// measuredBlock are compared at a time.
	measuredBlock = 2048
	// collected bytes of vectors are held in memory; more go to a temporary file.
	collected = 64 << 20
	// mostCandidates are as many as queries may have.
	mostCandidates = 1 << 16
)

// Recall's target: so many neighbours among so many candidates, which are what a query of ten hits has.
const (
	Neighbours = 10
	Candidates = 80
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
	p := f.Parameters()
	reaches := []int{p.Reach}
	for _, row := range p.Recall.Rows { // what was learned says what there is to choose from
		reaches = append(reaches, int(row.Reach))
	}
	slices.Sort(reaches)
	return &recall{
		functions: f, dims: c.Dims, workers: max(1, workers), wanted: c.Recall, reaches: slices.Compact(reaches),
		vectors: spill.New(&spill.Budget{Limit: collected}),
	}, nil
}

// recall measures which share of the nearest neighbours count most, with all vectors of the index, and sees to it that it is what the schema asks for.
//
// Parameters were chosen by the beginning of the data. How well they do for all of it is known when all of it has been seen: what the nearest are, brute
// force says, of vectors that are held out. They are drawn from everywhere, since data may be in some order, so vectors are collected first.
// The reach is nothing that lists depend on: the least that reaches the recall here is what queries get.
type recall struct {
	functions *lsh.Functions
	dims      int
	workers   int
	wanted    float64
	reaches   []int
	vectors   *spill.Run
	err       error // of collecting
}

// Add implements column.Measurement.
func (r *recall) Add(v *schema.Values) {
	if len(v.Vector) > 0 && r.err == nil {
		r.err = r.vectors.Append(unsafe.Slice((*byte)(unsafe.Pointer(&v.Vector[0])), 4*len(v.Vector)))
	}
}

// Finish implements column.Measurement: the table becomes part of what was learned, and the reach that it speaks for.
func (r *recall) Finish(c *schema.Column) error {
	if r.err != nil {
		return fmt.Errorf("measuring recall: %w", r.err)
	}
	data, err := r.vectors.Bytes()
	if err != nil {
		return fmt.Errorf("measuring recall: %w", err)
	}
	defer runtime.KeepAlive(r.vectors)
	p := r.functions.Parameters()
	p.Recall = lsh.Table{} // of a sample
	if len(data)/4/r.dims >= leastMeasured {
		measured, err := r.measure(unsafe.Slice((*float32)(unsafe.Pointer(&data[0])), len(data)/4))
		if err != nil {
			return err
		}
		table, err := measured.Table()
		if err != nil {
			return err
		}
		p.Reach = measured.Reaching(Neighbours, Candidates, r.wanted)
		p.Recall = table.Of(p.Reach)
	}
	return learned(c, p)
}

// measure holds some of the vectors against all others.
func (r *recall) measure(vectors []float32) (*lsh.Measurement, error) {
	n := len(vectors) / r.dims
	held := drawing.Draw(uint32(n), uint32(min(heldOut, n/3)), r.functions.Parameters().Seed)
	var queries []float32
	for _, at := range held {
		queries = append(queries, vectors[int(at)*r.dims:(int(at)+1)*r.dims]...)
	}
	slices.Sort(held)
	measures := lsh.Measures{
		Neighbours: []int{1, 2, 5, Neighbours, 20, 50, 100},
		Candidates: []int{1, 2, 5, 10, 20, 32, 50, Candidates, 100, 160, 200},
		Reaches:    r.reaches,
	}
	for k := 320; k <= min(n, mostCandidates); k *= 2 {
		measures.Candidates = append(measures.Candidates, k)
	}
	x, err := lsh.NewMeasurement(r.functions, queries, measures)
	if err != nil {
		return nil, err
	}
	hashes := make([]uint32, measuredBlock*r.functions.Parameters().Functions)
	block := make([]float32, 0, measuredBlock*r.dims)
	for at := 0; at < n; {
		block = block[:0]
		for ; at < n && len(block) < cap(block); at++ {
			if len(held) > 0 && held[0] == uint32(at) {
				held = held[1:]
				continue
			}
			block = append(block, vectors[at*r.dims:(at+1)*r.dims]...)
		}
		own := hashes[:len(block)/r.dims*r.functions.Parameters().Functions]
		if err := r.functions.Hash(own, block, r.workers); err != nil {
			return nil, fmt.Errorf("measuring recall: %w", err)
		}
		x.Add(own, block, r.workers)
	}
	return x, nil
}
