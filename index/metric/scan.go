package metric

import (
	"math"
	"math/bits"
	"slices"

	"github.com/geniemq/geniemq/index/metric/bound"
	"github.com/geniemq/geniemq/index/metric/sums"
)

// Found takes an object that a scan has found: its value for a query is not above the limit.
type Found func(query int, object uint32, value float64)

// Scan compares the objects lo to hi-1 with queries of one space, and tells of those whose value is at most that query's limit. limits may
// fall meanwhile, by found itself: what is above the limit by then is not told. Objects come in any order. The askers are used
// meanwhile, and what the first of them keeps of their query's elements serves the next call with the same ones.
//
// Many queries are faster than one: objects are read once for all, several queries are compared at a time, and under l2, cosine and angular
// most objects are dropped by a product of float32s, or of few queries by a sum (kept.go), which is some times faster than a value (package bound says why none is lost).
func Scan(askers []Asker, lo, hi uint32, limits []float64, found Found) {
	if len(askers) > 0 {
		ScanWith(askers[0], askers, lo, hi, limits, found)
	}
}

// ScanWith is Scan in the memory of an asker of the space, which may be none of those that are compared: so that of many, each of which is compared with something else, one has all the memory.
func ScanWith(own Asker, askers []Asker, lo, hi uint32, limits []float64, found Found) {
	if len(askers) == 0 {
		return
	}
	if s, ok := own.(scanner); ok && s.scan(askers, lo, hi, limits, found) {
		return
	}
	const run = 256
	var values [run]float64
	for i, a := range askers {
		for first := lo; first < hi; first += min(run, hi-first) {
			n := min(run, hi-first)
			ValuesTo(a, first, first+n, limits[i], values[:n])
			tell(i, first, values[:n], limits, found)
		}
	}
}

// Scratch is an asker of a space that asks nothing: memory for ScanWith. It is nil of other spaces.
func Scratch(s Space) Asker {
	switch s := s.(type) {
	case *Vectors:
		return s.rows.asker(s, sums.EmptyQuery(s.dims))
	case *Points:
		return Scratch(&s.Vectors)
	case *Texts:
		return s.Query("")
	}
	return nil
}

// Release makes an asker forget the others that it compared in its memory, which stays.
func Release(own Asker) {
	if s, ok := own.(scanner); ok {
		s.release()
	}
}

// scanner is an Asker that scans for others of its space together with itself.
type scanner interface {
	scan(askers []Asker, lo, hi uint32, limits []float64, found Found) bool
	release()
}

// tell tells of values of objects from first on.
func tell(query int, first uint32, values []float64, limits []float64, found Found) {
	limit := limits[query]
	for i, v := range values {
		if v <= limit {
			found(query, first+uint32(i), v)
			limit = limits[query]
		}
	}
}

const (
	// scanned is how many elements are scanned at a time: they and their panels fit the second cache.
	scanned = 1 << 15
	// begun is how many rows are scanned first, where a limit is not known yet; then twice as many, and so on: so that the first few make a limit which drops most of the next.
	begun = sums.Panel
	// fewSieved queries are sieved each by itself, since panels take more than they save.
	fewSieved = 8
	// dense is the part of objects, one in so many, from which on they are compared together rather than one by one.
	dense = 6
)

// scan implements scanner.
func (a *vectorAsker[E]) scan(askers []Asker, lo, hi uint32, limits []float64, found Found) bool {
	bytes, ok := a.same(askers)
	if !ok {
		return false
	}
	a.ready()
	s := a.space
	many := len(askers) >= fewSieved
	sieving := a.Sieves() && !bytes && (s.metric.Kind == L2 || s.angles() || s.metric.Kind == IP && many)
	inPanels := sieving && many
	most := scanned
	var all *panels
	if inPanels {
		a.pack(askers)
		most = wholePanels(s.dims)
		if lo%sums.Panel == 0 {
			all = a.panelled()
		}
	}
	elements := most
	if sieving && slices.Contains(limits, math.Inf(1)) {
		elements = min(most, begun*s.dims)
	}
	for first := lo; first < hi; elements = min(most, 2*elements) {
		rows, n := a.stretch(first, hi, elements)
		a.prepare(rows, first, n, bytes)
		p := pass[E]{a: a, askers: askers, rows: rows, n: n, first: first, limits: limits, found: found}
		a.dense = a.dense[:0]
		if inPanels {
			if all != nil {
				p.panels = all.of(int(first), n, s.dims)
			} else {
				a.own.lay(s.kernels, s.metric, s.dims, a.wide[:n*s.dims])
				p.panels = a.own
			}
			a.largest = p.panels.largest(s.dims)
			a.masks = slices.Grow(a.masks[:0], len(p.panels.squares))[:len(p.panels.squares)]
			for i := 0; i < len(askers); i += sums.Sieved {
				p.sieve(i, min(sums.Sieved, len(askers)-i))
			}
		} else {
			for i := range askers {
				if sieving {
					p.alone(i)
				} else {
					a.dense = append(a.dense, i)
				}
			}
		}
		p.compareDense()
		first += uint32(n)
	}
	return true
}

// release implements scanner.
func (a *vectorAsker[E]) release() {
	if a.memory != nil {
		clear(a.packedOf)
		clear(a.group.queries[:cap(a.group.queries)])
		clear(a.group.bytes[:cap(a.group.bytes)])
		a.packedOf, a.narrowOf = a.packedOf[:0], nil
		a.group.reset()
		if rows, ok := any(&a.wide).(*[]E); ok {
			*rows = nil // which lie where the space has them
		}
	}
}

// sieve is the memory of an asker for sieving.
type sieve struct {
	packedOf []Asker
	packed   []float32 // of each group of queries: elements in turn, sums.Sieved queries each
	sizes    []float64 // the norm of each query, not less
	own      panels    // of rows for which the space has none
	largest  float64   // of the panels that are compared
	limits   sums.Limits
	masks    [][sums.Sieved]uint32 // by panel
	dense    []int                 // queries that all rows are compared with
	values   []float64
}

// pack lays the elements of queries out as Sieve reads them.
func (a *vectorAsker[E]) pack(askers []Asker) {
	if len(a.packedOf) == len(askers) {
		same := true
		for i, o := range askers {
			same = same && a.packedOf[i] == o
		}
		if same {
			return
		}
	}
	dims := a.space.dims
	groups := (len(askers) + sums.Sieved - 1) / sums.Sieved
	a.packed = append(a.packed[:0], make([]float32, groups*dims*sums.Sieved)...)
	a.packedOf, a.sizes = append(a.packedOf[:0], askers...), a.sizes[:0]
	for i, o := range askers {
		q := o.(*vectorAsker[E]).query[:dims]
		into := a.packed[i/sums.Sieved*dims*sums.Sieved+i%sums.Sieved:]
		for j, e := range q {
			into[j*sums.Sieved] = float32(e)
		}
		a.sizes = append(a.sizes, bound.Up(o.(*vectorAsker[E]).norm, dims))
	}
}

// pass is a stretch of rows that is compared with queries.
type pass[E Element] struct {
	a      *vectorAsker[E]
	askers []Asker
	rows   []E
	n      int
	first  uint32
	limits []float64
	found  Found
	panels panels // of the rows, where many queries are compared
}

// sieve drops rows for some queries from the i-th on, and compares the others.
func (p *pass[E]) sieve(i, queries int) {
	a, dims := p.a, p.a.space.dims
	useful := false
	for j := range sums.Sieved {
		a.limits.Set(j, 0, 0, float32(math.Inf(1)))
		if j < queries {
			useful = a.limit(j, i+j, p.limits[i+j]) || useful
		}
	}
	if !useful {
		for j := range queries {
			a.dense = append(a.dense, i+j)
		}
		return
	}
	packed := a.packed[i*dims : (i+sums.Sieved)*dims]
	var kept [sums.Sieved]int
	for at := 0; at < p.n; at += sums.Panel {
		masks := &a.masks[at/sums.Panel]
		a.Sieve(packed, p.panels.elements[at*dims:(at+sums.Panel)*dims], dims, &p.panels.lengths[at/sums.Panel], &a.limits, masks)
		there := uint32(math.MaxUint32) >> (sums.Panel - min(sums.Panel, p.n-at))
		for j := range masks {
			masks[j] &= there
			kept[j] += bits.OnesCount32(masks[j])
		}
	}
	for j := range queries {
		if kept[j]*dense > p.n {
			a.dense = append(a.dense, i+j)
		} else if kept[j] > 0 {
			p.compareKept(i+j, j)
		}
	}
}

// compareKept compares what was kept for a query, the j-th of its group.
func (p *pass[E]) compareKept(query, j int) {
	a := p.a
	a.some = a.some[:0]
	for at := 0; at < p.n; at += sums.Panel {
		for set := a.masks[at/sums.Panel][j]; set != 0; set &= set - 1 {
			a.some = append(a.some, uint32(at+bits.TrailingZeros32(set)))
		}
	}
	p.compareSome(query)
}

// compareDense compares all rows with the queries for which that is best.
func (p *pass[E]) compareDense() {
	a := p.a
	if len(a.dense) == 0 {
		return
	}
	size := min(sums.Together, len(a.dense)) * p.n
	a.values = slices.Grow(a.values[:0], size)[:size]
	values := a.values
	a.measure(p.n)
	for i := 0; i < len(a.dense); i += sums.Together {
		some := a.dense[i:min(i+sums.Together, len(a.dense))]
		a.group.reset()
		for _, query := range some {
			a.join(p.askers[query].(*vectorAsker[E]))
		}
		a.compare(p.rows, p.n, values, p.n)
		for j, query := range some {
			tell(query, p.first, values[j*p.n:(j+1)*p.n], p.limits, p.found)
		}
	}
}

// limit sets what of the rows is kept for a query, the j-th of its group, and reports whether anything can be dropped.
//
// Norms are within 2^50, and those that matter not below 2^-50, so that float32s do not overflow and what vanishes is less than what is
// allowed for. For l2 package bound has the proof, with remainders of 0. For angles let w (1 + e) be the norm of a row, |e| <= (dims/2 + 4)
// 2^-24, and c = -|q| (most + gamma + 2^-21 + dims 2^-23). A row is dropped if c w - A > 0 as it is rounded, so A < c w + 3 2^-24 |c| w; with
// the product being at most A + gamma |q| w, the true cosine is less than -most - 2^-21 - dims 2^-23 + (dims/2 + 7) 2^-24 |c| / |q|, where |c|
// <= 1.1 |q|: so less than -most - 2^-22, and a value is wrong by much less than that.
//
// For ip a row is dropped if -g |q| w - A > l as it is rounded, with l = most + 2^-20 (|most| + |q| W), W the largest norm, and g = gamma + gamma^2 + 2^-20. A product is no more than A + gamma |q||x|, and
// what is rounded is below 2^-23 (|A| + |q| w), where |A| <= 1.1 |q| W: so it is less than -most, by more than a value is wrong by.
func (a *vectorAsker[E]) limit(j, query int, most float64) bool {
	dims, size := a.space.dims, a.sizes[query]
	gamma := bound.FusedGamma(dims)
	if !(size+a.largest < 0x1p50 && most < math.MaxFloat64) || gamma > 0x1p-8 {
		return false
	}
	if a.space.metric.Kind == L2 {
		if a.largest < 0x1p-50 || most < 0 {
			return false
		}
		q := bound.Query{Norm: size, Square: bound.Down(float64(size*size), 3*dims+32)}
		a.limits.Set(j, 1, -2, bound.Float32Up(bound.L2(most, dims, gamma, q, bound.Tile{Norm: a.largest})))
		return true
	}
	if a.space.metric.Kind == IP {
		if size < 0x1p-50 || math.Abs(most) > 0x1p100 {
			return false
		}
		limit := most + 0x1p-20*(math.Abs(most)+size*a.largest)
		a.limits.Set(j, -bound.Float32Up(size*(gamma+float64(gamma*gamma)+0x1p-20)), -1, bound.Float32Up(limit))
		return true
	}
	c := most + gamma + 0x1p-21 + float64(dims)*0x1p-23
	if size < 0x1p-50 || c >= 1 || c <= -1.1 {
		return false
	}
	a.limits.Set(j, float32(-size*c), -1, 0)
	return true
}
