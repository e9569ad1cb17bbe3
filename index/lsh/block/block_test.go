package block

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/generated"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/twmb/murmur3"
)

func numbers(rng *rand.Rand, n int, scale float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64() * scale)
		if rng.IntN(20) == 0 {
			x[i] = float32(math.Copysign(0, rng.Float64()-.5))
		}
		if rng.IntN(200) == 0 {
			x[i] = float32(rng.NormFloat64()) * 1e-42 // not normal
		}
	}
	return x
}

// define is the definition in words of the package's comment, written down once more.
func define(row, x []float32, offset float32) int32 {
	var s [8]float32
	for i := range x {
		product := row[i] * x[i]
		s[i%8] = s[i%8] + float32(product)
	}
	return floor((((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))) + offset)
}

func floor(v float32) int32 {
	return int32(max(-1<<31, min(1<<31-128, math.Floor(float64(v)))))
}

func TestBucketsAreTheDefinition(t *testing.T) {
	rng := seeded.Rand(t)
	for range 300 {
		dim, m, n := 1+rng.IntN(300), 1+rng.IntN(20), rng.IntN(60)
		scale := math.Pow(10, float64(rng.IntN(12)-3)) // up to sums beyond 32 bits
		x, data := NewMatrix(m, dim), numbers(rng, n*dim, scale)
		elements, offsets := make([][]float32, m), make([]float32, m)
		for i := range m {
			elements[i], offsets[i] = numbers(rng, dim, 1), rng.Float32()
			x.Set(i, elements[i], offsets[i])
		}
		for _, k := range []Kernels{Plain(), Best()} {
			got := make([]int32, n*m)
			NewWorker(k).Buckets(got, x, data)
			for v := range n {
				for i := range m {
					if want := define(elements[i], data[v*dim:(v+1)*dim], offsets[i]); got[v*m+i] != want {
						t.Fatalf("%s, %d dimensions, %d rows: vector %d, row %d is in %d, not in %d", k.Name, dim, m, v, i, got[v*m+i], want)
					}
				}
			}
		}
	}
}

// The judge of hashes is a library.
func TestCellsAreTheDefinition(t *testing.T) {
	rng := seeded.Rand(t)
	for range 200 {
		dim, m, n := 1+rng.IntN(300), 1+rng.IntN(20), rng.IntN(60)
		g, data := NewGrids(m, dim), numbers(rng, n*dim, math.Pow(10, float64(rng.IntN(12)-3)))
		rates, offsets, seeds := make([][]float32, m), make([][]float32, m), make([]uint32, m)
		for i := range m {
			rates[i], offsets[i], seeds[i] = numbers(rng, dim, 10), numbers(rng, dim, 1), rng.Uint32()
			g.Set(i, rates[i], offsets[i], seeds[i])
		}
		for _, k := range []Kernels{Plain(), Best()} {
			got := make([]uint32, n*m)
			NewWorker(k).Cells(got, g, data)
			for v := range n {
				for i := range m {
					var signature []byte
					for j := range dim {
						product := float32(data[v*dim+j] * rates[i][j])
						c := uint32(floor(product + offsets[i][j]))
						signature = append(signature, byte(c), byte(c>>8), byte(c>>16), byte(c>>24))
					}
					if want := murmur3.SeedSum32(seeds[i], signature); got[v*m+i] != want {
						t.Fatalf("%s, %d dimensions, %d grids: vector %d, grid %d is %08x, not %08x", k.Name, dim, m, v, i, got[v*m+i], want)
					}
				}
			}
		}
	}
}

func TestWithin(t *testing.T) {
	rng := seeded.Rand(t)
	for range 2000 {
		n, most, reach := rng.IntN(100), 1+rng.Uint32N(1<<rng.IntN(31)), rng.Uint32N(70)
		a, b := make([]uint32, n), make([]uint32, n)
		want := uint32(0)
		for i := range a {
			a[i], b[i] = rng.Uint32N(most), rng.Uint32N(most)
			if max(a[i], b[i])-min(a[i], b[i]) <= reach {
				want++
			}
		}
		for _, k := range []Kernels{Plain(), Best()} {
			if got := k.Within(a, b, reach); got != want {
				t.Fatalf("%s: %d of %d are within %d, not %d: %v, %v", k.Name, got, n, reach, want, a, b)
			}
		}
	}
}

func TestMurmur3(t *testing.T) {
	rng := seeded.Rand(t)
	for range 10000 {
		seed, word := rng.Uint32(), rng.Uint32()
		if got, want := Murmur3(seed, word), murmur3.SeedSum32(seed, []byte{byte(word), byte(word >> 8), byte(word >> 16), byte(word >> 24)}); got != want {
			t.Fatalf("word %08x with seed %08x hashes to %08x, not to %08x", word, seed, got, want)
		}
	}
}

// No compiler may fuse what the definition rounds twice: the code for the architectures that have such instructions has none.
func TestNothingIsFused(t *testing.T) {
	for arch, fused := range map[string][]string{
		"arm64":   {"FMADDS", "FMSUBS", "FNMADDS", "FNMSUBS", "FMADDD", "FMSUBD", "FNMADDD", "FNMSUBD"},
		"ppc64le": {"FMADD", "FMSUB", "FMADDS", "FMSUBS"},
		"s390x":   {"FMADD", "FMADDS", "FMSUB", "FMSUBS"},
	} {
		cmd := exec.Command("go", "build", "-gcflags=-S", "-o", os.DevNull, ".")
		cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("plainBuckets")) {
			t.Fatalf("compiling for %s: %v\n%.2000s", arch, err, out)
		}
		for line := range bytes.Lines(out) {
			for _, field := range bytes.Fields(line) {
				if slices.Contains(fused, string(field)) {
					t.Errorf("%s: %s", arch, line)
				}
			}
		}
	}
}

// The assembly that is checked in must be what the generator writes.
func TestAssemblyIsCurrent(t *testing.T) { generated.Assembly(t, "block", "block_amd64.s") }

// normal has none of the numbers near zero, which processors take a hundred times as long for.
func normal(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

func BenchmarkBuckets(b *testing.B) {
	for _, k := range []Kernels{Plain(), Best()} {
		for _, dim := range []int{96, 100, 128, 960} {
			b.Run(fmt.Sprintf("%s/%d", k.Name, dim), func(b *testing.B) {
				const n, m = 1024, 237
				rng := rand.New(rand.NewPCG(1, 1))
				x, data, dst := NewMatrix(m, dim), normal(rng, n*dim), make([]int32, n*m)
				for i := range m {
					x.Set(i, normal(rng, dim), rng.Float32())
				}
				w := NewWorker(k)
				b.ReportAllocs()
				for b.Loop() {
					w.Buckets(dst, x, data)
				}
				b.ReportMetric(2*float64(n*m*dim)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}

func BenchmarkCells(b *testing.B) {
	for _, k := range []Kernels{Plain(), Best()} {
		b.Run(k.Name, func(b *testing.B) {
			const n, m, dim = 1024, 237, 128
			rng := rand.New(rand.NewPCG(1, 1))
			g, data, dst := NewGrids(m, dim), normal(rng, n*dim), make([]uint32, n*m)
			for i := range m {
				g.Set(i, normal(rng, dim), normal(rng, dim), rng.Uint32())
			}
			w := NewWorker(k)
			b.ReportAllocs()
			for b.Loop() {
				w.Cells(dst, g, data)
			}
			b.ReportMetric(float64(n*m*dim)*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gcells/s")
		})
	}
}
