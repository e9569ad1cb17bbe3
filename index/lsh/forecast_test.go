package lsh

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// The binomial distribution, as a sum of its terms.
func TestAtLeast(t *testing.T) {
	rng := seeded.Rand(t)
	for range 2000 {
		m, p := 16+rng.IntN(500), .02+.96*rng.Float64()
		count := rng.IntN(m + 2)
		want := 1 - distuv.Binomial{N: float64(m), P: p}.CDF(float64(count)-1)
		if count == 0 {
			want = 1
		}
		o := newOdds(p)
		if got := o.atLeast(count, m); math.Abs(got-want) > .12 || p > .1 && p < .9 && m > 60 && math.Abs(got-want) > .025 {
			t.Fatalf("at least %d of %d with probability %v: %v, not %v", count, m, p, got, want)
		}
	}
	for _, p := range []float64{0, 1} {
		o := newOdds(p)
		if got := [3]float64{o.atLeast(0, 7), o.atLeast(7, 7), o.atLeast(8, 7)}; got != [3]float64{1, p, 0} {
			t.Errorf("with probability %v at least 0, 7 and 8 of 7: %v", p, got)
		}
	}
}

// What is forecast by distances alone is what hashing finds: recall and postings, whatever the functions; and by a part of the objects that of all of them.
func TestForecast(t *testing.T) {
	if testing.Short() {
		t.Skip("hashes thousands of vectors several times")
	}
	rng := seeded.Rand(t)
	const dim, n, part = 16, 4000, 4
	for _, family := range []Family{L2, Families()[1+rng.IntN(3)]} {
		centres := normal(rng, 12*dim, 3)
		objects, queries := clusters(rng, centres, dim, n), clusters(rng, centres, dim, 200)
		o := Options{Family: family, Dim: dim, Neighbours: 10, Candidates: 80, Workers: 2, Rehash: family == L1 || family == Laplacian, Objects: n}
		whole, some := newForecast(&o, queries, objects), newForecast(&o, queries, objects[:n/part*dim])
		for range 4 {
			p := Parameters{Family: family, Dim: dim, Functions: 32 << rng.IntN(4), Seed: rng.Uint64(), Rehash: o.Rehash}
			if family != Cosine {
				p.Width = whole.means[9] * math.Exp(2*rng.Float64()-.5)
			}
			if family.reaches() {
				p.Reach = rng.IntN(3)
			}
			o.Reaches, o.Seed, o.Buckets = []int{p.Reach}, p.Seed, 0
			c := Choice{Parameters: p}
			if err := o.measure(&c, queries, objects, true); err != nil {
				t.Fatal(err)
			}
			p.Buckets = c.Parameters.Buckets
			for i, x := range []*forecast{whole, some} {
				all, share := x.see(&p)
				recall, _ := x.recall(all, p.Functions)
				off := recall - c.Recall
				t.Logf("%v, %d functions, width %.3g, reach %d, by one of %d: recall %.3f, is %.3f; %.2f postings per object, are %.2f", family, p.Functions, p.Width, p.Reach,
					1+i*(part-1), recall, c.Recall, share*float64(p.Functions), c.Load)
				// Functions are few, and the same for all queries: what is measured is off too. Where objects near each other agree by the same functions, more is found.
				if allowed := .03 + .03*float64(i) + .4/math.Sqrt(float64(p.Functions)); off > allowed || off < -2*allowed-.1 {
					t.Errorf("%v: off by %.3f", family, off)
				}
				if math.Abs(share*float64(p.Functions)/c.Load-1) > .1+2.5/math.Sqrt(float64(p.Functions)) {
					t.Errorf("%v: %.3f postings per object, not %.3f", family, c.Load, share*float64(p.Functions))
				}
			}
		}
	}
}

// Equal objects, more of them than candidates, and queries that are among them: no neighbour is told from another, and nothing is no number.
func TestForecastOfEqualObjects(t *testing.T) {
	objects := make([]float32, 1000*8)
	for _, family := range Families() {
		for _, expected := range []int{0, 8000} {
			o := Options{Family: family, Dim: 8, Neighbours: 10, Candidates: 80, Functions: []int{16}, Widths: []float64{1}, Reaches: []int{0}, Workers: 1, Objects: expected}
			c, reached := newForecast(&o, objects[:80], objects).cheapest(.9)
			if want := 80 / float64(max(1000, expected)); reached || !(math.Abs(c.Recall-want) < want/10) && family != Cosine {
				t.Errorf("%v: the recall is %v, %v: one of %v has a place", family, c.Recall, reached, 1/want)
			}
		}
	}
}
