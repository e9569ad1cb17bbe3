package sums

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestKeep: what is kept of rows for one query is what the definition keeps, but where roundings decide; NaN is kept, and nothing is read or written beyond.
func TestKeep(t *testing.T) {
	rng := seeded.Rand(t)
	for _, k := range All() {
		if !k.Sieves() {
			continue
		}
		w, kept, dropped := NewWorker(&k), 0, 0
		for range 400 {
			dims, n := dimensions[rng.IntN(len(dimensions))], Fours+rng.IntN(40)
			all := append(normal(rng, n*dims), float32(math.NaN()), float32(math.NaN()), float32(math.NaN()))
			rows, wide := all[:n*dims:n*dims], make([]float64, dims)
			for i := range wide {
				wide[i] = float64(float32(rng.NormFloat64()))
			}
			q := Narrow(nil, NewQuery(wide))
			if rng.IntN(4) == 0 { // of whose direction too little is known
				clear(rows[:dims])
			}
			odd := -1
			if rng.IntN(4) == 0 {
				odd = rng.IntN(n)
				rows[odd*dims+rng.IntN(dims)] = float32(math.NaN())
			}
			out := slices.Repeat([]uint8{7}, (n+Fours-1)/Fours+1)
			middle := rows[rng.IntN(n)*dims:][:dims]
			near, angle := rng.IntN(2) == 0, rng.NormFloat64()/2
			limit := float32(Squares(wide, middle))
			if near {
				w.KeepNear(q, rows, dims, limit, out)
			} else {
				w.KeepAngles(q, rows, dims, float32(angle), out)
			}
			if last := len(out) - 1; out[last] != 7 || out[last-1]>>((n-1)%Fours+1) != 0 {
				t.Fatalf("%s: %d rows of %d dimensions: written beyond: %x", k.Name, n, dims, out)
			}
			for r := range n {
				row := rows[r*dims : (r+1)*dims]
				got := out[r/Fours]>>(r%Fours)&1 == 1
				left, right, size := Squares(wide, row), float64(limit), 0.0
				if !near {
					left, right = angle*math.Sqrt(Norm(row)), Dots(wide, row)
				}
				for i, e := range row {
					size += math.Abs(wide[i]*float64(e)) + float64(e)*float64(e)
				}
				want, doubt := !(left > right), float64(dims+8)*0x1p-23*(size+math.Abs(left))
				if !near && Norm(row) < tiny {
					want, doubt = true, -1
				}
				if got != want && !(math.Abs(left-right) <= doubt) {
					t.Fatalf("%s: %d dimensions, near %v, row %d of %d: kept %v, want %v (%v, %v)", k.Name, dims, near, r, n, got, want, left, right)
				}
				if r == odd && !got {
					t.Fatalf("%s: a damaged row is dropped", k.Name)
				}
				if got {
					kept++
				} else {
					dropped++
				}
			}
		}
		if kept < 1000 || dropped < 1000 {
			t.Errorf("%s: %d kept, %d dropped: the test shows too little", k.Name, kept, dropped)
		}
	}
}

// BenchmarkKeep is one query and 1,024 rows of which none is kept.
func BenchmarkKeep(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, k := range All() {
		for _, dims := range []int{32, 128, 300} {
			if k.Sieves() && k.Name == "avx2" { // which all have
				const n = 1024
				rows, q, out, w := normal(rng, n*dims), Narrow(nil, NewQuery(make([]float64, dims))), make([]uint8, n/Fours), NewWorker(&k)
				for name, f := range map[string]func(){"near": func() { w.KeepNear(q, rows, dims, 0, out) }, "angles": func() { w.KeepAngles(q, rows, dims, 1, out) }} {
					b.Run(fmt.Sprintf("%s/%d", name, dims), func(b *testing.B) {
						for b.Loop() {
							f()
						}
						b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mpairs/s")
					})
				}
			}
		}
	}
}
