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
}

// Sieves says whether a machine has Turn, Lengths and Sieve.
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
