package metric

import (
	"math"
	"slices"

	"github.com/geniemq/geniemq/index/metric/sums"
)

// table is rows in parts of each.
type table[E Element] struct {
	dims  int
	each  uint32
	parts [][]E
}

func (t *table[E]) row(i uint32) []E {
	part, at := t.parts[i/t.each], int(i%t.each)*t.dims
	return part[at : at+t.dims]
}

func (t *table[E]) widen(row uint32, dst []float64) { widen(dst, t.row(row)) }

func (t *table[E]) inPart() uint32 { return t.each }

func (t *table[E]) stored() (parts []any) {
	for _, p := range t.parts {
		parts = append(parts, p)
	}
	return parts
}

func widen[E Element](dst []float64, row []E) {
	if halves, ok := any(row).([]sums.Half); ok {
		for i, h := range halves {
			dst[i] = float64(h.Float32())
		}
		return
	}
	for i, e := range row {
		dst[i] = float64(e)
	}
}

// stretch is how many elements are compared with all queries of a block before the next: what the nearest cache holds.
const stretch = 8192

// vectorAsker is a query of vectors. What it is compared with others in is made when that is first asked for, since of many queries that are compared together one needs it.
type vectorAsker[E Element] struct {
	space *Vectors
	table *table[E]
	query sums.Query
	bytes *sums.ByteQuery // of a space of bytes, if it consists of such
	norm  float64
	*memory[E]
}

// memory is what comparing queries with a stretch of rows takes.
type memory[E Element] struct {
	*sums.Worker
	group     group
	gathered  []E       // rows in another order, and those at the end of memory that is read beyond
	picked    []uint32  // the numbers of those that lie apart
	wide      []float32 // rows as float32s
	norms     []float64 // of rows
	measured  bool      // norms are those of the rows that were prepared
	someNorms []float64 // of rows that are compared one by one
	one       [1]float64
	sieve
	alone
}

// ready makes sure that there is memory.
func (a *vectorAsker[E]) ready() {
	if a.memory == nil {
		a.memory = &memory[E]{Worker: sums.NewWorker(a.space.kernels)}
	}
}

// group is some queries that are compared at once.
type group struct {
	queries []sums.Query
	bytes   []*sums.ByteQuery
	norms   []float64
}

func (g *group) reset() { g.queries, g.bytes, g.norms = g.queries[:0], g.bytes[:0], g.norms[:0] }

func (t *table[E]) asker(s *Vectors, q sums.Query) Asker {
	a := &vectorAsker[E]{space: s, table: t, query: q}
	a.know()
	return a
}

func (t *table[E]) askerIn(old Asker, s *Vectors, v []float32) Asker {
	a, ok := old.(*vectorAsker[E])
	if ok && a.space == s {
		a.release() // of those with whom it was compared, and which it knows by where they lie
	} else {
		a = &vectorAsker[E]{space: s, table: t, query: sums.EmptyQuery(s.dims)}
	}
	for i, e := range v {
		a.query[i] = float64(e)
	}
	a.know()
	return a
}

// know finds out what is to be known of the query.
func (a *vectorAsker[E]) know() {
	s, q := a.space, a.query[:a.space.dims]
	if s.metric.Kind == L2 || s.metric.Kind == IP || s.angles() {
		a.norm = math.Sqrt(sums.Norm(q))
	}
	if _, ok := any(a.table).(*table[uint8]); ok && s.metric.Kind != Lp {
		a.bytes = sums.NewByteQuery(q)
	}
}

// angles says that norms matter.
func (s *Vectors) angles() bool { return s.metric.Kind == Cosine || s.metric.Kind == Angular }

// op is what is found of two vectors for the metric.
func (m Metric) op() sums.Op {
	switch m.Kind {
	case L1:
		return sums.OpDifferences
	case L2, Geo:
		return sums.OpSquares
	case Linf:
		return sums.OpLargest
	case Lp:
		return sums.OpPowers
	case Hamming:
		return sums.OpUnequal
	default:
		return sums.OpDots
	}
}

// Coordinates are the elements of the query, which must not change.
func (a *vectorAsker[E]) Coordinates() []float64 { return a.query[:a.space.dims] }

// Value implements Asker.
func (a *vectorAsker[E]) Value(i uint32) float64 {
	a.ready()
	a.Values(i, i+1, a.one[:])
	return a.one[0]
}

// Values implements Asker.
func (a *vectorAsker[E]) Values(lo, hi uint32, dst []float64) {
	a.ready()
	dst = dst[:hi-lo]
	a.group.reset()
	a.join(a)
	for lo < hi {
		rows, n := a.stretch(lo, hi, stretch)
		a.prepare(rows, lo, n, a.bytes != nil)
		a.measure(n)
		a.compare(rows, n, dst, 0)
		lo, dst = lo+uint32(n), dst[n:]
	}
}

// join puts a query into the group that is compared next.
func (a *vectorAsker[E]) join(o *vectorAsker[E]) {
	g := &a.group
	g.queries, g.norms = append(g.queries, o.query), append(g.norms, o.norm)
	if o.bytes != nil {
		g.bytes = append(g.bytes, o.bytes)
	}
}

// block implements blocker.
func (a *vectorAsker[E]) block(askers []Asker, lo, hi uint32, dst []float64) bool {
	bytes, ok := a.same(askers)
	if !ok {
		return false
	}
	a.ready()
	width := int(hi - lo)
	for first := lo; first < hi; {
		rows, n := a.stretch(first, hi, stretch)
		a.prepare(rows, first, n, bytes)
		a.measure(n)
		for i := 0; i < len(askers); i += len(a.group.queries) {
			a.group.reset()
			for _, o := range askers[i:min(i+sums.Together, len(askers))] {
				a.join(o.(*vectorAsker[E]))
			}
			a.compare(rows, n, dst[i*width+int(first-lo):], width)
		}
		first += uint32(n)
	}
	return true
}

// same reports whether all askers are of one space, and all of bytes.
func (a *vectorAsker[E]) same(askers []Asker) (bytes, ok bool) {
	bytes = true
	for _, other := range askers {
		o, ok := other.(*vectorAsker[E])
		if !ok || o.space != a.space {
			return false, false
		}
		bytes = bytes && o.bytes != nil
	}
	return bytes, true
}

// stretch returns the rows of some objects from lo on, one after the other, of about as many elements as are asked for, and how many they are:
// at least one. Bytes may be read beyond them.
func (a *vectorAsker[E]) stretch(lo, hi uint32, elements int) ([]E, int) {
	s, t := a.space, a.table
	n := int(min(hi-lo, uint32(max(1, elements/s.dims))))
	if s.order == nil {
		n = min(n, int(t.each-lo%t.each))
		part, at := t.parts[lo/t.each], int(lo%t.each)*s.dims
		rows := part[at : at+n*s.dims]
		if _, ok := any(t).(*table[uint8]); !ok || cap(rows) >= len(rows)+sums.BytesBeyond(s.dims) {
			return rows, n
		}
		a.gathered = append(a.gathered[:0], rows...)
	} else {
		a.gather(s.order[lo : int(lo)+n])
	}
	a.gathered = slices.Grow(a.gathered, sums.BytesBeyond(s.dims))
	return a.gathered, n
}

// gather puts rows one after the other.
func (a *vectorAsker[E]) gather(rows []uint32) {
	a.gathered = a.gathered[:0]
	for _, row := range rows {
		a.gathered = append(a.gathered, a.table.row(row)...)
	}
}

// prepare makes float32s of the rows of n objects from lo on where those are compared. With bytes, integers are. Norms that are known are at hand afterwards.
func (a *vectorAsker[E]) prepare(rows []E, lo uint32, n int, bytes bool) {
	s := a.space
	a.widen(rows, bytes)
	if a.measured || s.norms == nil {
		return
	}
	if s.order != nil {
		a.known(s.order[lo : int(lo)+n])
		return
	}
	a.measured = true
	a.norms = append(a.norms[:0], s.norms[lo:int(lo)+n]...)
}

// known takes the norms of rows from those of the space.
func (a *vectorAsker[E]) known(rows []uint32) {
	a.measured = true
	a.norms = a.norms[:0]
	for _, row := range rows {
		a.norms = append(a.norms, a.space.norms[row])
	}
}

// widen makes float32s of rows, as prepare does.
func (a *vectorAsker[E]) widen(rows []E, bytes bool) {
	s := a.space
	a.measured = !s.angles()
	switch rows := any(rows).(type) {
	case []float32:
		a.wide = rows
	case []sums.Half:
		a.wide = slices.Grow(a.wide[:0], len(rows))[:len(rows)]
		a.Halves(a.wide, rows)
	case []uint8:
		if !bytes || s.angles() && s.norms == nil {
			a.wide = slices.Grow(a.wide[:0], len(rows))[:len(rows)]
			a.Widen(a.wide, rows)
		}
	}
}

// measure finds the norms of rows that were prepared, if they matter and are not known.
func (a *vectorAsker[E]) measure(n int) {
	if !a.measured {
		a.norms = slices.Grow(a.norms[:0], n)[:n]
		a.Norms(a.wide, a.space.dims, a.norms)
		a.measured = true
	}
}

// compare writes the values of rows that were prepared and the queries of the group, those of query i at dst[i*next].
func (a *vectorAsker[E]) compare(rows []E, n int, dst []float64, next int) {
	s, g, op := a.space, &a.group, a.space.metric.op()
	switch rows := any(rows).(type) {
	case []float64:
		for i, q := range g.queries {
			a.Points(dst[i*next:i*next+n], rows, (*[3]float64)(q))
		}
	case []uint8:
		if len(g.bytes) == len(g.queries) {
			a.Bytes(op, g.bytes, rows, s.dims, dst, next)
			break
		}
		a.Floats(op, s.metric.P, g.queries, a.wide, s.dims, dst, next)
	default:
		a.Floats(op, s.metric.P, g.queries, a.wide, s.dims, dst, next)
	}
	switch {
	case s.angles():
		for i, norm := range g.norms {
			a.Cosines(dst[i*next:i*next+n], a.norms, norm)
		}
	case s.metric.Kind == IP:
		for i := range g.norms {
			turn(dst[i*next : i*next+n])
		}
	}
}

// turn makes values of products. None is -0, nor NaN.
func turn(dst []float64) {
	for i, product := range dst {
		if dst[i] = 0 - product; product != product {
			dst[i] = math.Inf(1)
		}
	}
}

// compareRows writes the values of a query and some rows that were prepared as float32s, by their numbers.
func (a *vectorAsker[E]) compareRows(o *vectorAsker[E], some []uint32, dst []float64) {
	s := a.space
	a.Some(s.metric.op(), s.metric.P, o.query, a.wide, s.dims, some, dst)
	if s.metric.Kind == IP {
		turn(dst)
	}
	if !s.angles() {
		return
	}
	a.someNorms = slices.Grow(a.someNorms[:0], len(some))[:len(some)]
	for i, row := range some {
		if a.measured {
			a.someNorms[i] = a.norms[row]
		} else {
			a.Norms(a.wide[int(row)*s.dims:int(row+1)*s.dims], s.dims, a.someNorms[i:i+1])
		}
	}
	a.Cosines(dst, a.someNorms, o.norm)
}
