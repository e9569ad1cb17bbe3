package sums

// Panel is how many rows are sieved at once, and Sieved for how many queries.
const (
	Panel  = 32
	Sieved = 8
)

// sieve are the kernels that drop what is too far by products of float32s, which no plain ones make up for: without, all is compared.
type sieve struct {
	drop    func(q, panel *float32, dims int, norms *[Panel]float32, limits *[3 * Sieved]float32, out *[Sieved]uint32)
	turn    func(panel, rows *float32, step, groups int)
	lengths func(panel *float32, dims int, out *[Panel]float32)
	near    rowsKernel
	angles  rowsKernel
}

// rowsKernel compares fours of rows, step bytes apart, with one query.
type rowsKernel func(q, rows *float32, step, groups, tail, fours int, limit *[4]float32, out *uint8)

// Sieves says whether a machine has Turn, Lengths, Sieve, KeepNear and KeepAngles.
func (k *Kernels) Sieves() bool { return k.sieve.drop != nil }

// Turn writes up to Panel rows as columns: element i of row r goes to panel[i*Panel + r]. The columns of rows that are not there are zeros.
func (k *Kernels) Turn(panel, rows []float32, dims int) {
	n, whole := len(rows)/dims, dims&^(lanes-1)
	panel = panel[:dims*Panel]
	if n < Panel {
		clear(panel)
	}
	r := 0
	for ; r+lanes <= n && whole > 0; r += lanes {
		k.sieve.turn(&panel[r], &rows[r*dims], 4*dims, dims/lanes)
		for j := r; j < r+lanes; j++ {
			for i := whole; i < dims; i++ {
				panel[i*Panel+j] = rows[j*dims+i]
			}
		}
	}
	for ; r < n; r++ {
		for i, e := range rows[r*dims : (r+1)*dims] {
			panel[i*Panel+r] = e
		}
	}
}

// Lengths are the sums of squares of the rows of a panel: of dims fused products of float32s, each rounded.
func (k *Kernels) Lengths(panel []float32, dims int, out *[Panel]float32) {
	_ = panel[dims*Panel-1]
	k.sieve.lengths(&panel[0], dims, out)
}

// Limits are what is kept of a panel by each query: the objects with
//
//	OfNorm[query] norm[row] + OfProduct[query] A <= Limit[query],  A the product of both, a sum of dims fused products of float32s,
//
// and those where the left side is NaN. Both products and the sum on the left are rounded to float32.
type Limits [3 * Sieved]float32

// Set sets those of a query.
func (l *Limits) Set(query int, ofNorm, ofProduct, limit float32) {
	l[query], l[Sieved+query], l[2*Sieved+query] = ofNorm, ofProduct, limit
}

// Sieve writes which rows of a panel are kept for each query, a bit per row. Element i of query j is at queries[i*Sieved + j].
func (k *Kernels) Sieve(queries, panel []float32, dims int, norms *[Panel]float32, limits *Limits, out *[Sieved]uint32) {
	_, _ = panel[dims*Panel-1], queries[dims*Sieved-1]
	k.sieve.drop(&queries[0], &panel[0], dims, norms, (*[3 * Sieved]float32)(limits), out)
}

// Fours is how many rows one query is compared with at a time. Of fewer nothing can be dropped.
const Fours = 4

// Narrow writes a query as KeepNear and KeepAngles read it: float32s, a multiple of 8, with zeros at the end.
func Narrow(dst []float32, q Query) []float32 {
	dst = dst[:0]
	for _, e := range q {
		dst = append(dst, float32(e))
	}
	return dst
}

// KeepNear writes which of dims elements' rows, which lie one after the other and are Fours or more, are kept for one query, four to a byte of which the lowest bit is the first row: those
// whose sum of squares of differences is no more than the limit, and those where that is NaN. Each difference is rounded to float32, and so is the sum after each of dims fused
// products, in some order.
func (w *Worker) KeepNear(q, rows []float32, dims int, limit float32, out []uint8) {
	w.limit = [4]float32{limit}
	w.keep(w.sieve.near, q, rows, dims, out)
}

// What KeepAngles knows of: sums of squares from tiny to below huge.
const tiny, huge = 0x1p-100, 0x1p100

// KeepAngles is KeepNear for angles: what is kept has limit sqrt(N) <= A, of the product A with the query and the sum N of the row's squares; and all with an N that is below 2^-100, or not
// below 2^100, or NaN. N and A are rounded after each of dims fused products, in some order, and so are the root and its product.
func (w *Worker) KeepAngles(q, rows []float32, dims int, limit float32, out []uint8) {
	w.limit = [4]float32{limit, tiny, huge}
	w.keep(w.sieve.angles, q, rows, dims, out)
}

func (w *Worker) keep(f rowsKernel, q, rows []float32, dims int, out []uint8) {
	n := len(rows) / dims
	fours, left := n/Fours, n%Fours
	_, _, _ = out[(n+Fours-1)/Fours-1], rows[Fours*dims-1], q[(dims+lanes-1)/lanes*lanes-1]
	f(&q[0], &rows[0], 4*dims, dims/lanes, dims%lanes, fours, &w.limit, &out[0])
	if left > 0 { // the last four rows, of which some were there before
		f(&q[0], &rows[(n-Fours)*dims], 4*dims, dims/lanes, dims%lanes, 1, &w.limit, &out[fours])
		out[fours] >>= Fours - left
	}
}
