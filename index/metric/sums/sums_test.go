package sums

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/generated"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// sum is the definition of the package's comment, written down once more.
func sum(n int, term func(i int) float64) float64 {
	var s [8]float64
	for i := range n {
		s[i%8] = float64(s[i%8] + term(i))
	}
	a, b, c, d := float64(s[0]+s[1]), float64(s[2]+s[3]), float64(s[4]+s[5]), float64(s[6]+s[7])
	return float64(float64(a+b) + float64(c+d))
}

func define(op Op, p int, q []float64, o []float32) float64 {
	difference := func(i int) float64 { return math.Abs(q[i] - float64(o[i])) }
	v := 0.0
	switch op {
	case OpSquares:
		v = sum(len(q), func(i int) float64 { return float64(difference(i) * difference(i)) })
	case OpDifferences:
		v = sum(len(q), difference)
	case OpDots:
		v = sum(len(q), func(i int) float64 { return float64(q[i] * float64(o[i])) })
	case OpNorms:
		v = sum(len(q), func(i int) float64 { return float64(float64(o[i]) * float64(o[i])) })
	case OpPowers:
		v = sum(len(q), func(i int) float64 {
			power := 1.0
			for range p {
				power = float64(power * difference(i))
			}
			return power
		})
	case OpLargest:
		for i := range q {
			if d := difference(i); d > v {
				v = d
			}
		}
	case OpUnequal:
		for i := range q {
			if q[i] != float64(o[i]) {
				v++
			}
		}
	}
	if op != OpDots && op != OpNorms {
		v = tame(v)
	}
	return v
}

// same is equality of bits; what is NaN may have any.
func same(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b
}

// elements are friendly, of all sizes, not normal, near each other, of a grid, or of damaged vectors.
func elements(rng *rand.Rand) []func() float32 {
	base := float32(math.Ldexp(1+rng.Float64(), rng.IntN(100)-50))
	odd := []float32{0, float32(math.Copysign(0, -1)), math.MaxFloat32, -math.MaxFloat32, 1e-45, float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 1}
	return []func() float32{
		func() float32 { return float32(rng.NormFloat64()) },
		func() float32 { return float32(math.Ldexp(rng.NormFloat64(), rng.IntN(250)-125)) },
		func() float32 {
			return math.Float32frombits(rng.Uint32()>>rng.IntN(32)&0x807fffff | rng.Uint32()&0x80000000)
		},
		func() float32 { return math.Float32frombits(math.Float32bits(base) + rng.Uint32N(2)) },
		func() float32 { return float32(rng.IntN(3) - 1) },
		func() float32 { return odd[rng.IntN(len(odd))] },
	}
}

var dimensions = []int{1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 40, 63, 64, 65, 100, 128, 300, 301}

// TestFloats: all kernels have the definition's bits, whatever the elements are, and write nowhere else.
func TestFloats(t *testing.T) {
	rng := seeded.Rand(t)
	for _, k := range All() {
		w := NewWorker(&k)
		for _, dims := range dimensions {
			for kind, element := range elements(rng) {
				count := rng.IntN(6)
				rows := make([]float32, count*dims)
				for i := range rows {
					rows[i] = element()
				}
				wide := make([][]float64, 1+rng.IntN(Together))
				queries := make([]Query, len(wide))
				for i := range queries {
					wide[i] = make([]float64, dims)
					for j := range wide[i] {
						wide[i][j] = float64(element())
						if kind == 5 && rng.IntN(100) > 0 { // queries are numbers
							wide[i][j] = 1
						}
					}
					if count > 0 && rng.IntN(3) == 0 {
						for j, e := range rows[:dims] {
							wide[i][j] = float64(e)
						}
					}
					queries[i] = NewQuery(wide[i])
				}
				for op := range ops {
					p, next := 1+rng.IntN(8), count+rng.IntN(3)
					n := len(queries)
					if op == OpNorms {
						n = 1
					}
					dst := slices.Repeat([]float64{7}, Together*next+1)
					w.Floats(op, p, queries[:n], rows, dims, dst, next)
					if some := rng.Perm(count); op != OpNorms {
						numbers, own := make([]uint32, count), make([]float64, count)
						for i, n := range some {
							numbers[i] = uint32(n)
						}
						w.Some(op, p, queries[0], rows, dims, numbers, own)
						for i, n := range some {
							if !same(own[i], dst[n]) {
								t.Fatalf("%s: op %d, %d dimensions, row %d alone: %v, want %v", k.Name, op, dims, n, own[i], dst[n])
							}
						}
					}
					for i := range n {
						for j := range count {
							if got, want := dst[i*next+j], define(op, p, wide[i], rows[j*dims:(j+1)*dims]); !same(got, want) {
								t.Fatalf("%s: op %d, p %d, %d dimensions, query %d of %d, row %d: %v (%x), want %v (%x)",
									k.Name, op, p, dims, i, n, j, got, math.Float64bits(got), want, math.Float64bits(want))
							}
							dst[i*next+j] = 7
						}
					}
					if i := slices.IndexFunc(dst, func(v float64) bool { return v != 7 }); i >= 0 {
						t.Fatalf("%s: op %d, %d dimensions, %d queries, %d rows: %v is written at %d", k.Name, op, dims, n, count, dst[i], i)
					}
				}
			}
		}
	}
}

// TestBytes: vectors of bytes have the integers that they should, which are those of floats too, whatever lies behind them.
func TestBytes(t *testing.T) {
	rng := seeded.Rand(t)
	for _, k := range All() {
		w := NewWorker(&k)
		for _, dims := range append(dimensions, 1000, MostBytes) {
			count := rng.IntN(6)
			if dims == MostBytes {
				count = 1
			}
			most := []uint32{2, 256}[rng.IntN(2)]
			element := func() uint8 { return uint8(rng.Uint32N(most)) }
			if dims == MostBytes { // as far apart as can be
				element = func() uint8 { return 255 }
			}
			rows := make([]uint8, count*dims+BytesBeyond(dims))
			for i := range rows {
				rows[i] = element()
			}
			queries := make([]*ByteQuery, 1+rng.IntN(Together))
			wide := make([][]float64, len(queries))
			for i := range queries {
				wide[i] = make([]float64, dims)
				for j := range wide[i] {
					if wide[i][j] = float64(element()); dims == MostBytes && rng.IntN(2) == 0 {
						wide[i][j] = 0
					}
				}
				if queries[i] = NewByteQuery(wide[i]); queries[i] == nil {
					t.Fatalf("%v are no bytes", wide[i])
				}
			}
			floats := make([]float32, count*dims)
			k.Widen(floats, rows[:count*dims])
			for op := range OpPowers {
				next := count + rng.IntN(3)
				dst := slices.Repeat([]float64{7}, Together*next+1)
				w.Bytes(op, queries, rows[:count*dims], dims, dst, next)
				for i := range queries {
					for j := range count {
						if got, want := dst[i*next+j], define(op, 0, wide[i], floats[j*dims:(j+1)*dims]); got != want {
							t.Fatalf("%s: op %d, %d dimensions, query %d of %d, row %d: %v, want %v", k.Name, op, dims, i, len(queries), j, got, want)
						}
						dst[i*next+j] = 7
					}
				}
				if i := slices.IndexFunc(dst, func(v float64) bool { return v != 7 }); i >= 0 {
					t.Fatalf("%s: op %d, %d dimensions, %d queries, %d rows: %v is written at %d", k.Name, op, dims, len(queries), count, dst[i], i)
				}
			}
		}
	}
	for _, bad := range [][]float64{{-1}, {256}, {0.5}, {math.NaN()}, make([]float64, MostBytes+1)} {
		if NewByteQuery(bad) != nil {
			t.Errorf("%v are taken for bytes", bad[0])
		}
	}
}

// TestPoints: chords are sums of squares of three.
func TestPoints(t *testing.T) {
	rng := seeded.Rand(t)
	for _, k := range All() {
		for n := range 20 {
			units, dst := make([]float64, 3*n), make([]float64, n)
			for i := range units {
				units[i] = []float64{rng.NormFloat64(), 1, 0, math.NaN(), 1e-200}[min(4, rng.IntN(30))%5]
			}
			q := [3]float64{rng.NormFloat64(), 1, rng.NormFloat64()}
			k.Points(dst, units, &q)
			for i, got := range dst {
				if want := tame(Squares(q[:], units[3*i:3*i+3])); !same(got, want) {
					t.Fatalf("%s: point %d of %d: %v, want %v", k.Name, i, n, got, want)
				}
			}
		}
	}
}

// TestColumns: objects in columns have the values that they have in rows, and boxes are missed by what is written down.
func TestColumns(t *testing.T) {
	rng := seeded.Rand(t)
	odd := []float64{0, 1, math.NaN(), math.Inf(1), 1e-30, 3e38}
	for _, k := range All() {
		for round := range 400 {
			dims, n := 1+round%MostColumns, 4*rng.IntN(9)
			columns, row, dst := make([]float32, dims*n), make([]float32, dims), make([]float64, n)
			for i := range columns {
				if columns[i] = float32(rng.NormFloat64()); rng.IntN(20) == 0 {
					columns[i] = float32(odd[rng.IntN(len(odd))])
				}
			}
			var q [MostColumns]float64
			for i := range q { // what is beyond dims does not count
				q[i] = float64(float32(rng.NormFloat64()))
			}
			k.Columns(dst, columns, dims, &q)
			for i, got := range dst {
				for j := range row {
					row[j] = columns[j*n+i]
				}
				if want := tame(Squares(q[:dims], row)); !same(got, want) {
					t.Fatalf("%s: object %d of %d, %d columns: %v, want %v", k.Name, i, n, dims, got, want)
				}
			}
			many := make([]float64, 1+rng.IntN(20))
			sides := make([]float32, 2*len(many)*n)
			for i := range sides {
				sides[i] = float32(rng.NormFloat64())
			}
			for i := range many {
				many[i] = rng.NormFloat64()
			}
			k.Boxes(dst, sides, many)
			for i, got := range dst {
				want := 0.0
				for j, x := range many {
					gap := max(float64(sides[2*j*n+i])-x, x-float64(sides[(2*j+1)*n+i]), 0)
					want += float64(gap * gap)
				}
				if !same(got, want) {
					t.Fatalf("%s: box %d of %d, %d coordinates: %v, want %v", k.Name, i, n, len(many), got, want)
				}
			}
		}
	}
}

// TestCosines: values are in their range and never NaN nor -0.
func TestCosines(t *testing.T) {
	rng := seeded.Rand(t)
	odd := []float64{0, math.Copysign(0, -1), 1, -1, math.NaN(), math.Inf(1), math.Inf(-1), 1e300, 1e-300, 0x1p-1074}
	for _, k := range All() {
		for range 2000 {
			n := rng.IntN(12)
			dots, norms, norm := make([]float64, n), make([]float64, n), math.Abs(odd[rng.IntN(len(odd))])
			for i := range dots {
				dots[i], norms[i] = rng.NormFloat64(), math.Abs(rng.NormFloat64())
				if rng.IntN(2) == 0 {
					dots[i] = odd[rng.IntN(len(odd))]
				}
				if rng.IntN(2) == 0 {
					norms[i] = math.Abs(odd[rng.IntN(len(odd))])
				}
			}
			got := slices.Clone(dots)
			k.Cosines(got, norms, norm)
			for i, v := range got {
				want := -dots[i] / float64(norms[i]*norm)
				switch {
				case float64(norms[i]*norm) == 0:
					want = 0
				case want != want:
					want = math.Inf(1)
				default:
					want = math.Max(-1, math.Min(1, want)) + 0
				}
				if !same(v, want) {
					t.Fatalf("%s: %v of norms %v and %v: %v, want %v", k.Name, dots[i], norms[i], norm, v, want)
				}
			}
		}
	}
}

// TestHalves: every float16 is the number that IEEE 754 says, and comes back.
func TestHalves(t *testing.T) {
	all := make([]Half, 1<<16)
	for i := range all {
		all[i] = Half(i)
	}
	for _, k := range All() {
		wide := make([]float32, len(all))
		k.Halves(wide, all)
		for i, got := range wide {
			sign, exponent, fraction := 1-2*float64(i>>15), i>>10&31, float64(i&1023)
			want := sign * math.Ldexp(1024+fraction, exponent-25)
			switch exponent {
			case 0:
				want = sign * math.Ldexp(fraction, -24)
			case 31:
				if want = sign * math.Inf(1); fraction != 0 {
					want = math.NaN()
				}
			}
			if !same(float64(got), want) || got == 0 && math.Signbit(float64(got)) != (i>>15 == 1) {
				t.Fatalf("%s: %04x is %v, want %v", k.Name, i, got, want)
			}
			if h, ok := ToHalf(got); exponent < 31 && (!ok || h != all[i]) || exponent == 31 && ok {
				t.Fatalf("%v comes back as %04x, %v", got, h, ok)
			}
		}
	}
	for _, f := range []float32{65520, 65505, 1.0001, 0x1p-25, 0x1.8p-24, math.MaxFloat32, 0x1.002p-14, 1e-45} {
		if h, ok := ToHalf(f); ok {
			t.Errorf("%v is taken for the float16 %04x", f, h)
		}
	}
}

// TestAllocations: comparing takes no memory.
func TestAllocations(t *testing.T) {
	for _, k := range All() {
		q, rows, dst := NewQuery(make([]float64, 40)), make([]float32, 400), make([]float64, 40)
		queries := []Query{q, q, q, q}
		w := NewWorker(&k)
		if n := testing.AllocsPerRun(100, func() { w.Floats(OpSquares, 0, queries, rows, 40, dst, 10) }); n != 0 {
			t.Errorf("%s: %v allocations", k.Name, n)
		}
	}
}

// TestAssemblyIsCurrent: the assembly that is checked in is what the generator writes.
func TestAssemblyIsCurrent(t *testing.T) { generated.Assembly(t, "sums", "sums_amd64.s") }

// TestNeverFused: in the code for arm64, whose compiler fuses wherever Go lets it, no product is added without being rounded.
func TestNeverFused(t *testing.T) {
	cmd := exec.Command("go", "build", "-gcflags=-S", "-o", os.DevNull, ".")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "plainPoints") {
		t.Fatalf("compiling for arm64: %v\n%.2000s", err, out)
	}
	fused := regexp.MustCompile(`\sFN?M(ADD|SUB)[DS]\s`)
	for line := range strings.Lines(string(out)) {
		if fused.MatchString(line) {
			t.Errorf("fused: %s", line)
		}
	}
}

// normal has none of the numbers near zero, which processors take a hundred times as long for.
func normal(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

func BenchmarkFloats(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	for name, op := range map[string]Op{"l1": OpDifferences, "l2": OpSquares, "linf": OpLargest, "dot": OpDots, "lp5": OpPowers, "norm": OpNorms, "hamming": OpUnequal} {
		for _, dims := range []int{32, 128, 300} {
			for _, k := range All() {
				for _, n := range []int{1, Together} {
					if op == OpNorms && n > 1 {
						continue
					}
					b.Run(fmt.Sprintf("%s/%d/%s/%d", name, dims, k.Name, n), func(b *testing.B) {
						count := 1 << 13 / dims
						rows, dst, queries := normal(rng, count*dims), make([]float64, n*count), make([]Query, n)
						for i := range queries {
							queries[i] = NewQuery(make([]float64, dims))
						}
						w := NewWorker(&k)
						for b.Loop() {
							w.Floats(op, 5, queries, rows, dims, dst, count)
						}
						b.ReportMetric(float64(n*count)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mpairs/s")
					})
				}
			}
		}
	}
}

func BenchmarkBytes(b *testing.B) {
	for name, op := range map[string]Op{"l1": OpDifferences, "l2": OpSquares, "linf": OpLargest, "dot": OpDots, "hamming": OpUnequal} {
		for _, dims := range []int{32, 128, 300} {
			for _, k := range All() {
				for _, n := range []int{1, Together} {
					b.Run(fmt.Sprintf("%s/%d/%s/%d", name, dims, k.Name, n), func(b *testing.B) {
						count := 1 << 13 / dims
						rows, dst, queries := make([]uint8, count*dims, count*dims+32), make([]float64, n*count), make([]*ByteQuery, n)
						for i := range queries {
							queries[i] = NewByteQuery(make([]float64, dims))
						}
						w := NewWorker(&k)
						for b.Loop() {
							w.Bytes(op, queries, rows, dims, dst, count)
						}
						b.ReportMetric(float64(n*count)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mpairs/s")
					})
				}
			}
		}
	}
}

// TestSieve: what is kept is what the definition keeps, but where roundings of products decide; columns are rows, and lengths sums of squares.
func TestSieve(t *testing.T) {
	rng := seeded.Rand(t)
	for _, k := range All() {
		if !k.Sieves() {
			continue
		}
		kept, dropped := 0, 0
		for _, dims := range dimensions {
			n := 1 + rng.IntN(Panel)
			rows, queries := normal(rng, n*dims), normal(rng, Sieved*dims)
			panel := slices.Repeat([]float32{7}, dims*Panel+1)
			k.Turn(panel, rows, dims)
			for i := range dims {
				for r := range Panel {
					want := float32(0)
					if r < n {
						want = rows[r*dims+i]
					}
					if got := panel[i*Panel+r]; got != want {
						t.Fatalf("%s: %d rows of %d: element %d of row %d is %v, want %v", k.Name, n, dims, i, r, got, want)
					}
				}
			}
			if panel[dims*Panel] != 7 {
				t.Fatalf("%s: written behind the panel", k.Name)
			}
			var lengths [Panel]float32
			k.Lengths(panel, dims, &lengths)
			for r := range n {
				if want := Norm(rows[r*dims : (r+1)*dims]); math.Abs(float64(lengths[r])-want) > want*float64(dims)*0x1p-24 {
					t.Fatalf("%s: %d dimensions: a sum of squares of %v, want %v", k.Name, dims, lengths[r], want)
				}
			}
			if n > 2 { // of damaged rows
				panel[0], panel[1] = float32(math.NaN()), float32(math.Inf(1))
			}
			var limits Limits
			var out [Sieved]uint32
			for q := range Sieved {
				limits.Set(q, float32(q%2), float32(q-3), float32(rng.NormFloat64()))
			}
			k.Sieve(queries, panel, dims, &lengths, &limits, &out)
			for q := range Sieved {
				for r := range n {
					a, size := 0.0, 0.0
					for i := range dims {
						p := float64(queries[i*Sieved+q]) * float64(panel[i*Panel+r])
						a, size = a+p, size+math.Abs(p)
					}
					left := float64(q%2)*float64(lengths[r]) + float64(q-3)*a
					doubt := float64(dims+8) * 0x1p-23 * (float64(lengths[r]) + 8*size)
					got, want := out[q]>>r&1 == 1, !(left > float64(limits[2*Sieved+q]))
					if got != want && !(math.Abs(left-float64(limits[2*Sieved+q])) <= doubt) {
						t.Fatalf("%s: %d dimensions, query %d, row %d: kept %v, want %v (%v, the limit is %v)", k.Name, dims, q, r, got, want, left, limits[2*Sieved+q])
					}
					if got {
						kept++
					} else {
						dropped++
					}
				}
			}
		}
		if kept < 100 || dropped < 100 {
			t.Errorf("%s: %d kept, %d dropped: the test shows too little", k.Name, kept, dropped)
		}
	}
}

func BenchmarkSieve(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, k := range All() {
		for _, dims := range []int{32, 128, 300} {
			if k.Sieves() {
				rows, queries, panel := normal(rng, Panel*dims), normal(rng, Sieved*dims), make([]float32, dims*Panel)
				b.Run(fmt.Sprintf("%s/%d", k.Name, dims), func(b *testing.B) {
					var lengths [Panel]float32
					var limits Limits
					var out [Sieved]uint32
					k.Turn(panel, rows, dims)
					for b.Loop() {
						k.Sieve(queries, panel, dims, &lengths, &limits, &out)
					}
					b.ReportMetric(Panel*Sieved*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mpairs/s")
				})
				b.Run(fmt.Sprintf("turn/%s/%d", k.Name, dims), func(b *testing.B) {
					for b.Loop() {
						k.Turn(panel, rows, dims)
					}
					b.ReportMetric(Panel*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
				})
			}
		}
	}
}
