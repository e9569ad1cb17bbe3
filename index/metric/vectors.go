package metric

import (
	"fmt"
	"math"

	"github.com/geniemq/geniemq/index/metric/sums"
)

// Element is what coordinates are stored as: those of vectors float32, sums.Half or uint8, those of points float64.
type Element interface {
	float32 | sums.Half | uint8 | float64
}

// Vectors are a space of vectors, as they lie in memory. It is immutable.
type Vectors struct {
	metric Metric
	dims   int
	n      uint32
	order  []uint32
	norms  []float64
	rows   rows
	laid   *laid // nil: panels are made for each batch

	kernels *sums.Kernels
}

// rows are the vectors of a space by row, whatever they are stored as.
type rows interface {
	// widen writes the elements of a row as float64s.
	widen(row uint32, dst []float64)
	// asker makes a query.
	asker(s *Vectors, q sums.Query) Asker
	askerIn(old Asker, s *Vectors, v []float32) Asker
	// stored are the parts that rows lie in, inPart how many each but the last has.
	stored() []any
	inPart() uint32
	// lay lays out the rows first to end-1 among all panels of a space.
	lay(s *Vectors, all panels, first, end uint32)
}

// NewVectors makes a space of vectors of dims elements each, which lie one after the other in parts. All parts but the last have as many.
// What is given is kept, and must not change. Vectors are trusted to be what Admits takes; an object of others has some value, math.Inf(1) where it would be NaN.
func NewVectors[E Element](m Metric, dims int, parts ...[]E) (*Vectors, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	if m.Kind == Edit || m.Kind == Geo {
		return nil, fmt.Errorf("the metric %s is none of vectors", m.Kind)
	}
	return newVectors(m, dims, parts)
}

func newVectors[E Element](m Metric, dims int, parts [][]E) (*Vectors, error) {
	if dims < 1 {
		return nil, fmt.Errorf("vectors of %d elements", dims)
	}
	t := &table[E]{dims: dims, parts: parts}
	total := 0
	for i, part := range parts {
		n := len(part) / dims
		if i == 0 {
			t.each = uint32(n)
		}
		if len(part)%dims != 0 || uint32(n) > t.each || i < len(parts)-1 && uint32(n) != t.each {
			return nil, fmt.Errorf("part %d of the vectors has %d elements, which are not %d vectors of %d", i, len(part), t.each, dims)
		}
		total += n
	}
	if total > math.MaxUint32 {
		return nil, fmt.Errorf("%d vectors are more than %d", total, uint32(math.MaxUint32))
	}
	return &Vectors{metric: m, dims: dims, n: uint32(total), rows: t, kernels: &sums.All()[0]}, nil
}

func checkOrder(order []uint32, rows int) error {
	for i, row := range order {
		if int64(row) >= int64(rows) {
			return fmt.Errorf("object %d is at place %d of %d", i, row, rows)
		}
	}
	return nil
}

// Permuted is a space of the same vectors, of which object i is object order[i] of this one. The order is kept.
func (s *Vectors) Permuted(order []uint32) (*Vectors, error) {
	p := *s
	p.laid = nil // which are in another order
	if err := checkOrder(order, int(s.n)); err != nil {
		return nil, err
	}
	p.n = uint32(len(order))
	p.order = order
	if s.order != nil {
		p.order = make([]uint32, len(order))
		for i, at := range order {
			p.order[i] = s.order[at]
		}
	}
	return &p, nil
}

// Norms are the norms of the objects, for UseNorms.
func (s *Vectors) Norms(dst []float64) []float64 {
	v := make([]float64, s.dims)
	for i := range s.n {
		s.Coordinates(i, v)
		dst = append(dst, math.Sqrt(sums.Norm(v)))
	}
	return dst
}

// UseNorms is the same space, of which Cosine and Angular take the norms from what Norms returned rather than from the vectors each time.
func (s *Vectors) UseNorms(norms []float64) (*Vectors, error) {
	if s.order != nil || len(norms) != int(s.n) {
		return nil, fmt.Errorf("%d norms for %d vectors", len(norms), s.n)
	}
	with := *s
	with.norms = norms
	return &with, nil
}

// Len implements Space.
func (s *Vectors) Len() uint32 { return s.n }

// Metric implements Space.
func (s *Vectors) Metric() Metric { return s.metric }

// Dims is how many elements a vector has.
func (s *Vectors) Dims() int { return s.dims }

// Coordinates writes the elements of object i, which are dims.
func (s *Vectors) Coordinates(i uint32, dst []float64) { s.rows.widen(s.row(i), dst[:s.dims]) }

func (s *Vectors) row(i uint32) uint32 {
	if s.order != nil {
		return s.order[i]
	}
	return i
}

// Of implements Space.
func (s *Vectors) Of(i uint32) Asker {
	q := sums.EmptyQuery(s.dims)
	s.Coordinates(i, q)
	return s.rows.asker(s, q)
}

// Query makes a vector a query: an error says why it cannot be one.
func (s *Vectors) Query(v []float32) (Asker, error) { return s.QueryIn(nil, v) }

// QueryIn is Query in the memory of an earlier query that nobody uses any longer, if it was one of the same space.
func (s *Vectors) QueryIn(old Asker, v []float32) (Asker, error) {
	if len(v) != s.dims {
		return nil, fmt.Errorf("the vector has %d elements, and the column's have %d", len(v), s.dims)
	}
	if err := s.metric.Admits(v); err != nil {
		return nil, err
	}
	return s.rows.askerIn(old, s, v), nil
}

// Admits says why a vector, of an object or a query, has no distances under a metric, nil if it has: elements that are NaN, infinite or, for lp,
// beyond 2^100; no direction, for cosine and angular.
func (m Metric) Admits(v []float32) error {
	zero := true
	for i, e := range v {
		switch {
		case e-e != 0:
			return fmt.Errorf("element %d of the vector is %v", i, e)
		case m.Kind == Lp && (e > 0x1p100 || e < -0x1p100):
			return fmt.Errorf("element %d of the vector is %v: those of the metric lp are at most 2^100, since their powers must be numbers", i, e)
		}
		zero = zero && e == 0
	}
	if zero && (m.Kind == Cosine || m.Kind == Angular) {
		return fmt.Errorf("the vector is zero, which has no angle to another")
	}
	return nil
}
