// Package block computes what hash functions need of many vectors: products with the rows of a matrix, rounded down, and the hashes of the cells
// that vectors fall into in grids.
//
// # The same bits everywhere
//
// What is computed here ends up as keywords in files and in queries, and both must agree whatever computed them: assembly, plain Go on any
// architecture, later a GPU. So every operation and its order is defined, and no multiplication is fused with an addition. All numbers
// are float32, each operation rounds to nearest, even.
//
//	bucket(row, x)  s[j] = 0; for i = 0 .. dim-1: s[i mod 8] = s[i mod 8] + (row[i] * x[i])
//	                v = (((s0+s1) + (s2+s3)) + ((s4+s5) + (s6+s7))) + offset
//	                floor(v), as an int32: below -2^31 that, above 2^31 - 128 that
//	cells(grid, x)  for i = 0 .. dim-1: c[i] = floor((x[i] * rate[i]) + offset[i]), as an int32 in the same way
//	                MurmurHash3 (x86, 32 bits) of c[0] .. c[dim-1] as little-endian bytes, with the function's seed
//
// The eight partial sums are the lanes of a register. Go fuses x*y + z on some architectures, but not across an explicit conversion, so
// each product is converted to the type that it has.
//
// # Who checks
//
// Nothing here checks numbers. The caller makes sure that elements are finite and so small that no sum overflows: an infinite one can lead to
// NaN, of which no bits are promised. Lengths are checked.
//
// # Why tiles
//
// A kernel takes 4 rows and 3 vectors, or 8 grids and 4 vectors: what fits the sixteen registers, so that each load serves several products. Rows lie
// in panels as the kernel reads them, eight elements of each row in turn, rows filled up with zeros, which change no sum. A panel
// meets all vectors of a stretch while both are in the nearest cache.
package block

import "fmt"

//go:generate go run ./asm -out block_amd64.s -stubs stubs_amd64.go -pkg block

const (
	lanes   = 8 // partial sums of a product, and functions of a panel of grids
	rows    = 4 // of a panel
	vectors = 3 // that a kernel multiplies with a panel
	binned  = 4 // vectors that a kernel finds the cells of
	stretch = 24
)

// Matrix is m rows of numbers with an offset each. It is immutable once its rows are set.
type Matrix struct {
	m, dim, groups int
	panels         []float32 // [panel][group of 8 elements][row][8]
	offsets        []float32
}

// NewMatrix returns a matrix of zeros.
func NewMatrix(m, dim int) *Matrix {
	groups, panels := (dim+lanes-1)/lanes, (m+rows-1)/rows
	return &Matrix{m, dim, groups, make([]float32, panels*groups*lanes*rows), make([]float32, panels*rows)}
}

// Set sets a row, which has dim elements. Different rows may be set at the same time.
func (x *Matrix) Set(row int, elements []float32, offset float32) {
	x.offsets[row] = offset
	panel := x.panels[row/rows*x.groups*lanes*rows:]
	for i, e := range elements[:x.dim] {
		panel[(i/lanes*rows+row%rows)*lanes+i%lanes] = e
	}
}

// Tables returns what a matrix is made of, for those who compute with it elsewhere: panels of 4 rows, [panel][group of 8 elements][row][8], and an offset per row, all filled
// up with zeros to whole panels and groups. They are not to be changed.
func (x *Matrix) Tables() (panels, offsets []float32) { return x.panels, x.offsets }

// Grids are m grids, each with a rate (one over the width of its cells) and an offset (in cells) per element, and a seed. It is immutable once they are set.
type Grids struct {
	m, dim int
	panels []float32 // [panel][element][rates of 8 grids, offsets of 8 grids]
	seeds  []uint32
}

// NewGrids returns grids of zeros.
func NewGrids(m, dim int) *Grids {
	panels := (m + lanes - 1) / lanes
	return &Grids{m, dim, make([]float32, panels*dim*2*lanes), make([]uint32, panels*lanes)}
}

// Set sets a grid, whose rates and offsets are dim each. Different grids may be set at the same time.
func (g *Grids) Set(grid int, rates, offsets []float32, seed uint32) {
	g.seeds[grid] = seed
	panel := g.panels[grid/lanes*g.dim*2*lanes:]
	for i := range g.dim {
		panel[i*2*lanes+grid%lanes] = rates[i]
		panel[i*2*lanes+lanes+grid%lanes] = offsets[i]
	}
}

// Tables returns what grids are made of, as that of a Matrix: panels of 8 grids, [panel][element][8 rates, 8 offsets], and a seed per grid.
func (g *Grids) Tables() (panels []float32, seeds []uint32) { return g.panels, g.seeds }

// Kernels are the inner loops that suit a machine.
type Kernels struct {
	buckets func(out *[rows * vectors]int32, panel []float32, offsets *[rows]float32, x0, x1, x2 []float32)
	bins    func(out *[binned * lanes]uint32, panel []float32, seeds *[lanes]uint32, x0, x1, x2, x3 []float32)
	within  func(a, b []uint32, reach uint32) uint32
	// Name says what they are made of, for people: "avx2" or "go".
	Name string
}

// Plain returns the kernels in Go, which every machine has.
func Plain() Kernels { return Kernels{plainBuckets, plainBins, plainWithin, "go"} }

// Within counts in how many places two lists of numbers below 2^31, of one length, are at most reach apart.
func (k Kernels) Within(a, b []uint32, reach uint32) uint32 {
	whole := len(a) &^ (lanes - 1)
	return k.within(a[:whole], b[:whole], reach) + plainWithin(a[whole:], b[whole:len(a)], reach)
}

// Worker is what one goroutine computes with. It may be used again and again.
type Worker struct {
	kernels Kernels
	padded  []float32
	tile    [rows * vectors]int32
	cells   [binned * lanes]uint32
}

// NewWorker returns a worker with kernels.
func NewWorker(k Kernels) *Worker { return &Worker{kernels: k} }

// Buckets writes the bucket of every vector and row, dst[v*m + row]. The vectors lie one after the other.
func (w *Worker) Buckets(dst []int32, x *Matrix, data []float32) {
	n := len(data) / x.dim
	check(len(dst), x.m, len(data), x.dim)
	for first := 0; first < n; first += stretch {
		count := min(stretch, n-first)
		part := w.pad(data[first*x.dim:(first+count)*x.dim], x.dim, x.groups*lanes)
		width := x.groups * lanes
		for row := 0; row < x.m; row += rows {
			panel := x.panels[row*width : (row+rows)*width]
			offsets := (*[rows]float32)(x.offsets[row:])
			for v := 0; v < count; v += vectors {
				at := func(i int) []float32 { i = min(v+i, count-1); return part[i*width : (i+1)*width] }
				w.kernels.buckets(&w.tile, panel, offsets, at(0), at(1), at(2))
				for i := range min(vectors, count-v) {
					copy(dst[(first+v+i)*x.m+row:(first+v+i+1)*x.m], w.tile[i*rows:(i+1)*rows])
				}
			}
		}
	}
}

// Cells writes the hash of the cell of every vector and grid, dst[v*m + grid]. The vectors lie one after the other.
func (w *Worker) Cells(dst []uint32, g *Grids, data []float32) {
	n := len(data) / g.dim
	check(len(dst), g.m, len(data), g.dim)
	for first := 0; first < n; first += stretch {
		count := min(stretch, n-first)
		part := data[first*g.dim : (first+count)*g.dim]
		for grid := 0; grid < g.m; grid += lanes {
			panel := g.panels[grid*g.dim*2 : (grid+lanes)*g.dim*2]
			seeds := (*[lanes]uint32)(g.seeds[grid:])
			for v := 0; v < count; v += binned {
				at := func(i int) []float32 { i = min(v+i, count-1); return part[i*g.dim : (i+1)*g.dim] }
				w.kernels.bins(&w.cells, panel, seeds, at(0), at(1), at(2), at(3))
				for i := range min(binned, count-v) {
					into := dst[(first+v+i)*g.m+grid : (first+v+i+1)*g.m]
					for j := range min(lanes, len(into)) {
						into[j] = finish(w.cells[i*lanes+j], g.dim)
					}
				}
			}
		}
	}
}

func check(dst, m, data, dim int) {
	if data%dim != 0 || dst != data/dim*m {
		panic(fmt.Sprintf("block: %d results for %d numbers, where %d vectors of %d have %d", dst, data, data/dim, dim, data/dim*m))
	}
}

// pad returns vectors of width numbers each, filled up with zeros.
func (w *Worker) pad(data []float32, dim, width int) []float32 {
	if dim == width {
		return data
	}
	n := len(data) / dim
	if len(w.padded) < n*width {
		w.padded = make([]float32, stretch*width)
	}
	for v := range n {
		clear(w.padded[v*width+copy(w.padded[v*width:], data[v*dim:(v+1)*dim]) : (v+1)*width])
	}
	return w.padded[:n*width]
}
