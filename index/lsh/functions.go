package lsh

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/geniemq/geniemq/index/lsh/block"
)

// Functions are the hash functions that parameters make. They are immutable and safe for concurrent use.
type Functions struct {
	parameters Parameters
	matrix     *block.Matrix // of families that project
	grids      *block.Grids  // of laplacian
	seeds      []uint32      // of re-hashing, per function
	low        []int32       // per function: the bucket that is keyword 0, where buckets are clamped
	limit      float32       // of the absolute values of elements
	workers    *sync.Pool    // of *worker
	elsewhere  Hasher        // hashes what is at least so many vectors; nil: nothing does
	least      int
}

// stretch is how many vectors a goroutine takes at a time.
const stretch = 48

// worker is what a goroutine hashes with.
type worker struct {
	*block.Worker
	buckets []int32
}

// ElementError says that an element of a vector cannot be hashed. Callers know it to tell users which of their vectors it is.
type ElementError struct {
	Vector, Element int
	Value           float32
	Limit           float32 // of absolute values
}

func (e *ElementError) Error() string {
	switch v := float64(e.Value); {
	case math.IsNaN(v):
		return fmt.Sprintf("element %d of vector %d is not a number (NaN)", e.Element, e.Vector)
	case math.IsInf(v, 0):
		return fmt.Sprintf("element %d of vector %d is infinite", e.Element, e.Vector)
	}
	return fmt.Sprintf("element %d of vector %d is %g, beyond %g, where sums overflow: scale the vectors", e.Element, e.Vector, e.Value, e.Limit)
}

// New makes the functions of parameters.
func New(p Parameters) (*Functions, error) { return newWith(p, block.Best()) }

// newWith makes functions that compute by some kernels.
func newWith(p Parameters, kernels block.Kernels) (*Functions, error) {
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("making hash functions: %w", err)
	}
	f := &Functions{parameters: p, seeds: make([]uint32, p.Functions), limit: math.MaxFloat32}
	f.workers = &sync.Pool{New: func() any {
		return &worker{block.NewWorker(kernels), make([]int32, stretch*p.Functions)}
	}}
	if p.Family.projects() {
		f.project()
	} else {
		f.bin()
	}
	if p.ordered() {
		return f, f.settle()
	}
	return f, nil
}

// project makes the rows of functions that are products.
func (f *Functions) project() {
	p := &f.parameters
	f.matrix = block.NewMatrix(p.Functions, p.Dim)
	row, largest := make([]float32, p.Dim+1), 0.0
	for i := range p.Functions {
		v := newVariates(p.Seed, i, p.Family)
		scale := 1.0
		if p.Family != Cosine {
			scale = p.Width
		}
		for j := 0; j < p.Dim; j++ {
			if p.Family == L1 {
				row[j] = float32(v.cauchy() / scale)
				continue
			}
			a, b := v.gaussians()
			row[j], row[j+1] = float32(a/scale), float32(b/scale)
			j++
		}
		offset := float32(0)
		if p.Family != Cosine {
			offset = v.offset()
		}
		f.seeds[i] = uint32(v.source.Uint64())
		f.matrix.Set(i, row[:p.Dim], offset)
		for _, a := range row[:p.Dim] {
			largest = max(largest, math.Abs(float64(a)))
		}
	}
	if largest > 0 {
		f.limit = float32(min(math.MaxFloat32, math.MaxFloat32/4/float64(p.Dim)/largest))
	}
}

// bin makes the grids of Random Binning.
func (f *Functions) bin() {
	p := &f.parameters
	f.grids = block.NewGrids(p.Functions, p.Dim)
	rates, offsets := make([]float32, p.Dim), make([]float32, p.Dim)
	for i := range p.Functions {
		v := newVariates(p.Seed, i, p.Family)
		for j := range rates {
			// Each dimension has a width of its own. With one for all, as the paper says, the kernel is no longer the product of the dimensions'.
			rates[j] = float32(1 / float64(p.Width*v.gamma()))
			offsets[j] = v.offset()
		}
		f.seeds[i] = uint32(v.source.Uint64())
		f.grids.Set(i, rates, offsets, f.seeds[i])
	}
}

// settle finds keyword 0 of clamped functions: the centre is in the middle.
func (f *Functions) settle() error {
	p := &f.parameters
	centre := p.Centre
	if centre == nil {
		centre = make([]float32, p.Dim)
	}
	if at := firstBeyond(centre, f.limit); at >= 0 {
		return fmt.Errorf("making hash functions: the centre: %w", &ElementError{0, at, centre[at], f.limit})
	}
	f.low = make([]int32, p.Functions)
	w := f.workers.Get().(*worker)
	w.Buckets(f.low, f.matrix, centre)
	f.workers.Put(w)
	for i, middle := range f.low {
		f.low[i] = int32(max(math.MinInt32, int64(middle)-int64(p.Buckets/2)))
	}
	return nil
}

// Parameters returns what the functions were made from.
func (f *Functions) Parameters() Parameters { return f.parameters }

// Tables are what functions are made of, for an engine that hashes by itself (kernels/hash.cu). They are not to be changed.
type Tables struct {
	// Panels and Offsets are those of block.Matrix, or of block.Grids, which have their offsets in the panels.
	Panels, Offsets []float32
	// Seeds are those of re-hashing and of grids, per function, Low the buckets that are keyword 0 where they are clamped.
	Seeds []uint32
	Low   []int32
	// Limit is of the absolute values of elements: what is beyond must not be hashed.
	Limit float32
}

// Tables returns what the functions are made of.
func (f *Functions) Tables() Tables {
	t := Tables{Seeds: f.seeds, Low: f.low, Limit: f.limit}
	if f.grids != nil {
		t.Panels, t.Seeds = f.grids.Tables()
	} else {
		t.Panels, t.Offsets = f.matrix.Tables()
	}
	return t
}

// WithReach returns the same functions for queries of another reach.
func (f *Functions) WithReach(reach int) (*Functions, error) {
	other := *f
	other.parameters.Reach = reach
	if err := other.parameters.Check(); err != nil {
		return nil, fmt.Errorf("changing the reach of hash functions: %w", err)
	}
	return &other, nil
}

// Hash writes the keywords of vectors, which lie one after the other: dst[v*m + i] is that of vector v by function i, in [0, D). dst is as long as that needs. At most
// so many workers compute at a time; with 1 it is the caller alone. The error is an *ElementError, of the first such element.
func (f *Functions) Hash(dst []uint32, vectors []float32, workers int) error {
	return f.each(dst, vectors, 1, workers)
}

// HashQueries writes the keywords that queries ask, dst[(v*m + i)*Asked + j], as Hash otherwise. With Span around each they are what matches. Where there are
// several, the first is the query's own bucket, then come those one below and above it, two below, and so on; two may be the same keyword, which counts once.
func (f *Functions) HashQueries(dst []uint32, vectors []float32, workers int) error {
	return f.each(dst, vectors, f.parameters.Asked(), workers)
}

// each hashes stretches of vectors, on several cores if there are some.
func (f *Functions) each(dst []uint32, vectors []float32, asked, workers int) error {
	dim, width := f.parameters.Dim, f.parameters.Functions*asked
	n := len(vectors) / dim
	if len(vectors)%dim != 0 || len(dst) != n*width {
		return fmt.Errorf("hashing vectors: %d numbers into %d keywords, where a vector of %d numbers has %d", len(vectors), len(dst), dim, width)
	}
	if done, fault := f.hashedElsewhere(dst, vectors, asked); fault != nil {
		return fault
	} else if done {
		return nil
	}
	var next atomic.Int64
	var mutex sync.Mutex
	var fault *ElementError
	work := func() {
		w := f.workers.Get().(*worker)
		defer f.workers.Put(w)
		for {
			first := int(next.Add(stretch)) - stretch
			if first >= n {
				return
			}
			end := min(n, first+stretch)
			part := vectors[first*dim : end*dim]
			if at := firstBeyond(part, f.limit); at >= 0 {
				// What was taken before this is looked at by others, to its end: so the first fault is always found.
				next.Store(int64(n))
				mutex.Lock()
				if e := (&ElementError{first + at/dim, at % dim, part[at], f.limit}); fault == nil || e.Vector < fault.Vector {
					fault = e
				}
				mutex.Unlock()
				return
			}
			f.stretch(w, dst[first*width:end*width], part, asked)
		}
	}
	var group sync.WaitGroup
	for range min(workers, (n+stretch-1)/stretch) - 1 {
		group.Go(work)
	}
	work()
	group.Wait()
	if fault != nil {
		return fault
	}
	return nil
}

// stretch hashes a few vectors.
func (f *Functions) stretch(w *worker, dst []uint32, vectors []float32, asked int) {
	p := &f.parameters
	m, buckets := p.Functions, uint64(p.Buckets)
	if p.Family == Laplacian {
		w.Cells(dst, f.grids, vectors)
		for i, hash := range dst {
			dst[i] = uint32(uint64(hash) * buckets >> 32)
		}
		return
	}
	found := w.buckets[:len(vectors)/p.Dim*m]
	w.Buckets(found, f.matrix, vectors)
	switch {
	case p.Family == Cosine:
		for i, b := range found {
			dst[i] = 1 - uint32(b)>>31
		}
	case p.ordered():
		last := int64(buckets - 1)
		for ; len(found) > 0; found, dst = found[m:], dst[m:] {
			for i, low := range f.low {
				dst[i] = uint32(max(0, min(last, int64(found[i])-int64(low))))
			}
		}
	default:
		for v := 0; v < len(found); v += m {
			for i, seed := range f.seeds {
				own, into := uint32(found[v+i]), dst[(v+i)*asked:(v+i+1)*asked]
				for j := range into {
					// 0, -1, 1, -2, 2, ...
					step := uint32(j+1) / 2
					if j%2 == 1 {
						step = -step
					}
					into[j] = uint32(uint64(block.Murmur3(seed, own+step)) * buckets >> 32)
				}
			}
		}
	}
}

// Check says why a vector cannot be hashed: an *ElementError, or that its length is wrong.
func (f *Functions) Check(vector []float32) error {
	if len(vector) != f.parameters.Dim {
		return fmt.Errorf("hashing a vector of %d elements by functions of %d", len(vector), f.parameters.Dim)
	}
	if at := firstBeyond(vector, f.limit); at >= 0 {
		return &ElementError{0, at, vector[at], f.limit}
	}
	return nil
}
