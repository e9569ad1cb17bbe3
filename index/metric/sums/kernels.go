package sums

import (
	"math"
	"unsafe"
)

//go:generate go run ./asm -out sums_amd64.s -stubs stubs_amd64.go -pkg sums

// Op is what is found of two vectors.
type Op uint8

// What is found, each by the function of its name.
const (
	OpSquares Op = iota
	OpDifferences
	OpDots
	OpLargest
	OpUnequal
	OpPowers
	OpNorms // of rows alone
	ops
)

// MostBytes is how many elements vectors of bytes may have that are to be compared as integers: sums of squares are below 2^32.
const MostBytes = 1 << 16

// Together is how many queries are compared with rows at once.
const Together = 4

const lanes = 8

// args are what a kernel of vectors takes: a run of rows, and as many queries as there are results. The assembly knows where its fields lie.
type args struct {
	queries      [Together]unsafe.Pointer // as Query and ByteQuery make them
	rows         unsafe.Pointer
	step, count  int // bytes from row to row; rows
	groups, tail int // of 8 float32s or 32 bytes, and how many elements are left
	dst          *float64
	next, power  int // bytes from the results of a query to those of the next; p
}

// kernel takes args as what they are made of, since the generator of the assembly knows no types of ours.
type kernel func(a *[12]uintptr)

// Kernels are the inner loops that suit a machine. All have the same bits.
type Kernels struct {
	// Name says what they are made of, for people: "avx512", "avx2" or "go".
	Name string

	floats, bytes         [ops]kernel
	manyFloats, manyBytes [ops]kernel
	points                func(dst, units []float64, q *[3]float64)
	columns               [MostColumns + 1]func(dst []float64, columns []float32, q *[MostColumns]float64) // by how many there are
	boxes                 func(dst []float64, sides []float32, q []float64)
	cosines               func(dst, norms []float64, norm float64)
	halves                func(dst []float32, src []uint16)
	widen                 func(dst []float32, src []uint8)
	sieve                 sieve
}

// Worker is what one goroutine compares with. It may be used again and again.
type Worker struct {
	*Kernels
	a     args
	limit [4]float32 // of KeepNear and KeepAngles
}

// NewWorker returns a worker with kernels, which are kept.
func NewWorker(k *Kernels) *Worker { return &Worker{Kernels: k} }

// run calls a kernel. Afterwards the worker points to nobody's memory, which may be a mapping that goes away.
func (w *Worker) run(k kernel) { k((*[12]uintptr)(unsafe.Pointer(&w.a))) }

func (w *Worker) forget() { w.a = args{} }

// Query is a query as kernels of float32s read it: the number of its elements is a multiple of 8, with zeros at the end.
type Query []float64

// NewQuery makes a query of a vector.
func NewQuery(v []float64) Query {
	q := EmptyQuery(len(v))
	copy(q, v)
	return q
}

// EmptyQuery is a query of zeros, whose first elements, so many, may be written.
func EmptyQuery(dims int) Query { return make(Query, (dims+lanes-1)/lanes*lanes) }

// ByteQuery is a query as kernels of bytes read it.
type ByteQuery struct {
	bytes []uint8  // of 32 and 32
	words []uint16 // the same
}

const bytesGroup = 32

// NewByteQuery makes a query of a vector, nil if it has elements that are no bytes, or more than MostBytes.
func NewByteQuery(v []float64) *ByteQuery {
	if len(v) > MostBytes {
		return nil
	}
	n := (len(v) + bytesGroup - 1) / bytesGroup * bytesGroup
	q := &ByteQuery{make([]uint8, n), make([]uint16, n)}
	for i, e := range v {
		if !(e >= 0 && e <= math.MaxUint8) || e != math.Floor(e) {
			return nil
		}
		q.bytes[i], q.words[i] = uint8(e), uint16(e)
	}
	return q
}

// Floats compares rows of dims elements each, which lie one after the other, with up to Together queries. The results of query i are at
// dst[i*next], a number per row. None is NaN, but for dot products and norms: there it becomes infinite, of damaged rows. OpNorms takes one
// query, and looks at none.
func (w *Worker) Floats(op Op, p int, queries []Query, rows []float32, dims int, dst []float64, next int) {
	count := len(rows) / dims
	if count == 0 {
		return
	}
	defer w.forget()
	w.a = args{
		rows: unsafe.Pointer(&rows[0]), step: 4 * dims, count: count, groups: dims / lanes, tail: dims % lanes,
		next: 8 * next, power: p,
	}
	if many := w.manyFloats[op]; len(queries) == Together && many != nil {
		for i, q := range queries {
			w.a.queries[i] = unsafe.Pointer(&q[:dims][0])
		}
		_ = dst[(Together-1)*next+count-1]
		w.a.dst = &dst[0]
		w.run(many)
		return
	}
	for i, q := range queries {
		if op != OpNorms {
			w.a.queries[0] = unsafe.Pointer(&q[:dims][0])
		}
		_ = dst[i*next+count-1]
		w.a.dst = &dst[i*next]
		w.run(w.floats[op])
	}
}

// Some is Floats of one query and of some rows alone, by their numbers: a result for each.
func (w *Worker) Some(op Op, p int, q Query, rows []float32, dims int, numbers []uint32, dst []float64) {
	if len(numbers) == 0 {
		return
	}
	defer w.forget()
	w.a = args{queries: [Together]unsafe.Pointer{unsafe.Pointer(&q[:dims][0])}, count: 1, groups: dims / lanes, tail: dims % lanes, power: p}
	k := w.floats[op]
	for i, n := range numbers {
		w.a.rows, w.a.dst = unsafe.Pointer(&rows[int(n)*dims : int(n+1)*dims][0]), &dst[i]
		w.run(k)
	}
}

// Norms are the lengths of rows: roots of their sums of squares.
func (w *Worker) Norms(rows []float32, dims int, dst []float64) {
	w.Floats(OpNorms, 0, make([]Query, 1), rows, dims, dst, 0)
	for i, square := range dst {
		dst[i] = math.Sqrt(square)
	}
}

// Bytes is Floats for vectors of bytes and queries of the same: all but OpPowers and OpNorms. Beyond the rows there must be BytesBeyond more
// bytes in their memory, which are not looked at.
func (w *Worker) Bytes(op Op, queries []*ByteQuery, rows []uint8, dims int, dst []float64, next int) {
	count := len(rows) / dims
	if count == 0 {
		return
	}
	_ = rows[:count*dims+BytesBeyond(dims)] // its memory is as long
	defer w.forget()
	w.a = args{
		rows: unsafe.Pointer(&rows[0]), step: dims, count: count, groups: dims / bytesGroup, tail: dims % bytesGroup,
		next: 8 * next,
	}
	at := func(q *ByteQuery) unsafe.Pointer {
		if op == OpSquares || op == OpDots {
			return unsafe.Pointer(&q.words[:dims][0])
		}
		return unsafe.Pointer(&q.bytes[:dims][0])
	}
	if len(queries) == Together {
		for i, q := range queries {
			w.a.queries[i] = at(q)
		}
		_ = dst[(Together-1)*next+count-1]
		w.a.dst = &dst[0]
		w.run(w.manyBytes[op])
		return
	}
	for i, q := range queries {
		_ = dst[i*next+count-1]
		w.a.queries[0], w.a.dst = at(q), &dst[i*next]
		w.run(w.bytes[op])
	}
}

// BytesBeyond is how many bytes behind the last row kernels of bytes read, and do not look at.
func BytesBeyond(dims int) int { return (bytesGroup - dims%bytesGroup) % bytesGroup }

// Points is the sum of squares of three coordinates each.
func (k *Kernels) Points(dst, units []float64, q *[3]float64) {
	whole := len(dst) &^ 3
	k.points(dst[:whole], units[:3*whole], q)
	plainPoints(dst[whole:], units[3*whole:3*len(dst)], q)
}

// MostColumns is how many coordinates objects may have that are compared by columns.
const MostColumns = 8

// Columns are the sums of squares of objects whose coordinates lie in columns, one coordinate of all of them after the other, which is the fastest where there are few. Of q the first
// dims count. The number of objects, that of dst, is a multiple of 4.
func (k *Kernels) Columns(dst []float64, columns []float32, dims int, q *[MostColumns]float64) {
	_ = columns[:dims*len(dst)]
	k.columns[dims](dst, columns, q)
}

// Boxes are the sums of squares by which coordinates are outside of boxes, which are added up in turn: no value has the same bits, and none is below a bound that allows for rounding. sides
// are, by coordinate, the least of all boxes and then the largest. The number of boxes, that of dst, is a multiple of 4.
func (k *Kernels) Boxes(dst []float64, sides []float32, q []float64) {
	_ = sides[:2*len(q)*len(dst)]
	k.boxes(dst, sides, q)
}

// Cosines makes values of dot products: -dot / (norm norms), from -1 to 1; 0 where a norm is, since such a vector has no angle; infinite where
// that is NaN, of damaged vectors.
func (k *Kernels) Cosines(dst, norms []float64, norm float64) {
	whole := len(dst) &^ 3
	k.cosines(dst[:whole], norms[:whole], norm)
	plainCosines(dst[whole:], norms[whole:len(dst)], norm)
}

// Halves makes float32s of as many float16s.
func (k *Kernels) Halves(dst []float32, src []Half) {
	whole := len(dst) &^ 7
	k.halves(dst[:whole], unsafe.Slice((*uint16)(unsafe.SliceData(src)), whole))
	Float32s(dst[whole:], src[whole:len(dst)])
}

// Widen makes float32s of as many bytes.
func (k *Kernels) Widen(dst []float32, src []uint8) {
	whole := len(dst) &^ 7
	k.widen(dst[:whole], src[:whole])
	for i, e := range src[whole:len(dst)] {
		dst[whole+i] = float32(e)
	}
}
