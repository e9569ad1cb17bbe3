package metric

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geniemq/geniemq/index/metric/sums"
)

// BenchmarkScan: 64 queries, the 10 nearest of 16,384 vectors, on one core; and all values of the same, alone and in blocks.
func BenchmarkScan(b *testing.B) {
	const n, queries, k = 1 << 14, 64, 10
	for _, kind := range []Kind{L2, L1, Linf, Cosine, Hamming} {
		for _, dims := range []int{32, 128, 300} {
			rng := rand.New(rand.NewPCG(1, 1))
			floats, bytes := make([]float32, n*dims), make([]uint8, n*dims)
			halves := make([]sums.Half, n*dims)
			for i := range floats {
				floats[i], bytes[i], halves[i] = float32(rng.NormFloat64()), uint8(rng.Uint32()), sums.Half(rng.Uint32()&0xbfff)
			}
			m := Metric{Kind: kind}
			byFloats, _ := NewVectors(m, dims, floats)
			byHalves, _ := NewVectors(m, dims, halves)
			byBytes, _ := NewVectors(m, dims, bytes)
			for name, s := range map[string]*Vectors{"f32": byFloats, "f16": byHalves, "u8": byBytes} {
				for _, kernels := range sums.All() {
					s.kernels = &kernels
					var askers []Asker
					for i := range uint32(queries) {
						askers = append(askers, s.Of(i))
					}
					run := func(way string, f func(lo, hi uint32)) {
						b.Run(fmt.Sprintf("%s/%s/%d/%s/%s", kind, name, dims, kernels.Name, way), func(b *testing.B) {
							for b.Loop() {
								f(0, n)
							}
							b.ReportMetric(float64(b.N)*n*queries/b.Elapsed().Seconds()/1e6, "Mpairs/s")
						})
					}
					dst := make([]float64, n*queries)
					run("alone", func(lo, hi uint32) {
						for i, a := range askers {
							a.Values(lo, hi, dst[i*n:(i+1)*n])
						}
					})
					run("block", func(lo, hi uint32) { Block(askers, lo, hi, dst) })
					run("scan", func(lo, hi uint32) {
						best, limits := make([]Best, queries), make([]float64, queries)
						for i := range best {
							best[i].Reset(Want{k, math.Inf(1)})
							limits[i] = best[i].Bound()
						}
						Scan(askers, lo, hi, limits, func(q int, object uint32, v float64) {
							best[q].Add(Hit{v, object})
							limits[q] = best[q].Bound()
						})
					})
				}
			}
		}
	}
}

// BenchmarkPoints and BenchmarkTexts: a query at a time.
func BenchmarkPoints(b *testing.B) {
	const n = 1 << 14
	rng := rand.New(rand.NewPCG(1, 1))
	var units []float64
	for range n {
		u, _ := Unit(rng.Float64()*180-90, rng.Float64()*360)
		units = append(units, u[:]...)
	}
	s, _ := NewPoints(units)
	for _, kernels := range sums.All() {
		s.kernels = &kernels
		b.Run(kernels.Name, func(b *testing.B) {
			a, dst := s.Of(0), make([]float64, n)
			for b.Loop() {
				a.Values(0, n, dst)
			}
			b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds()/1e6, "Mpairs/s")
		})
	}
}

func BenchmarkTexts(b *testing.B) {
	const n = 1 << 12
	for _, length := range []int{9, 40, 108} {
		rng := rand.New(rand.NewPCG(1, 1))
		texts := make([]string, n)
		for i := range texts {
			text := make([]byte, length/2+rng.IntN(length))
			for j := range text {
				text[j] = "etaoinshrdlu"[min(rng.IntN(12), rng.IntN(12))]
			}
			texts[i] = string(text)
		}
		s, _ := NewTexts(n, func(i uint32) string { return texts[i] }, nil)
		for _, most := range []float64{1e9, 3} {
			b.Run(fmt.Sprintf("%d within %v", length, most), func(b *testing.B) {
				a, dst := s.Of(0), make([]float64, n)
				for b.Loop() {
					ValuesTo(a, 0, n, most, dst)
				}
				b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds()/1e6, "Mpairs/s")
			})
		}
	}
}
