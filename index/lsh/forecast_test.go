package lsh

import (
	"math"
	"math/rand/v2"
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
		if got := o.atLeast(count, m, 1); math.Abs(got-want) > .12 || p > .1 && p < .9 && m > 60 && math.Abs(got-want) > .025 {
			t.Fatalf("at least %d of %d with probability %v: %v, not %v", count, m, p, got, want)
		}
	}
	for _, p := range []float64{0, 1} {
		o := newOdds(p)
		if got := [3]float64{o.atLeast(0, 7, 1), o.atLeast(7, 7, 1), o.atLeast(8, 7, 1)}; got != [3]float64{1, p, 0} {
			t.Errorf("with probability %v at least 0, 7 and 8 of 7: %v", p, got)
		}
	}
}

// What is forecast by distances, and by a few witnesses, is what hashing finds: recall and postings, whatever the functions; and by a part of the objects that of all of them.
func TestForecast(t *testing.T) {
	if testing.Short() {
		t.Skip("hashes thousands of vectors several times")
	}
	rng := seeded.Rand(t)
	const dim, n, part, draws = 16, 4000, 4, 4
	for _, family := range []Family{L2, Families()[1+rng.IntN(3)]} {
		centres := normal(rng, 12*dim, 3)
		objects, queries := clusters(rng, centres, dim, n), clusters(rng, centres, dim, 200)
		o := Options{Family: family, Dim: dim, Neighbours: 10, Candidates: 80, Workers: 2, Rehash: family == L1 || family == Laplacian, Objects: n, Seed: rng.Uint64()}
		whole, some := newForecast(&o, queries, objects), newForecast(&o, queries, objects[:n/part*dim])
		for range 3 {
			p := Parameters{Family: family, Dim: dim, Functions: 32 << rng.IntN(4), Rehash: o.Rehash}
			if family != Cosine {
				p.Width = whole.means[9] * math.Exp(2*rng.Float64()-.5)
			}
			if family.reaches() {
				p.Reach = rng.IntN(3)
			}
			recall, load := 0.0, 0.0
			for range draws { // functions are few, and the same for all queries: one draw of them is off by .07 at times
				drawn := o
				drawn.Reaches, drawn.Seed = []int{p.Reach}, rng.Uint64()
				c := Choice{Parameters: p}
				if err := drawn.measure(&c, queries, objects, true); err != nil {
					t.Fatal(err)
				}
				recall, load = recall+c.Recall/draws, load+c.Load/draws
				p.Buckets = c.Parameters.Buckets
			}
			for i, x := range []*forecast{whole, some} {
				all, share := x.see(&p)
				forecast, _ := x.recall(all, p.Functions)
				t.Logf("%v, %d functions, width %.3g, reach %d, by one of %d: recall %.3f, is %.3f; %.2f postings per object, are %.2f", family, p.Functions, p.Width, p.Reach,
					1+i*(part-1), forecast, recall, share*float64(p.Functions), load)
				// Nobody chooses functions that agree on half of the objects: there, where few tell anything, too much is forecast.
				if off := forecast - recall; share < .5 && math.Abs(off) > .05+.02*float64(i) {
					t.Errorf("%v: off by %.3f", family, off)
				}
				if math.Abs(share*float64(p.Functions)/load-1) > .1+1.5/math.Sqrt(float64(p.Functions)) {
					t.Errorf("%v: %.3f postings per object, not %.3f", family, load, share*float64(p.Functions))
				}
			}
			p.Buckets = 0
		}
	}
}

// TestChosenBySample: functions that are chosen by a part of the objects have the recall that was forecast with all of them, and reach what is wanted.
func TestChosenBySample(t *testing.T) {
	if testing.Short() {
		t.Skip("hashes tens of thousands of vectors")
	}
	rng := rand.New(rand.NewPCG(1, 2)) // the same is chosen each time
	points, _, _ := sift(t)
	grouped := clusters(rng, normal(rng, 16*32, 3), 32, 10_000)
	for _, c := range []struct {
		name      string
		family    Family
		dim, part int
		objects   []float32
	}{
		{"SIFT", Cosine, 128, 4, points},
		{"clusters", L1, 32, 8, grouped},
		{"digits", Laplacian, 64, 4, digits(t)},
		{"clusters", L2, 32, 8, grouped},
	} {
		queries, objects := (&Options{Dim: c.dim, Queries: 200, Seed: 7}).split(c.objects)
		n := len(objects) / c.dim
		for _, wanted := range []float64{.9, .95} {
			choice, err := Choose(objects[:n/c.part*c.dim], Options{Family: c.family, Dim: c.dim, Recall: wanted, Workers: 2, Seed: 1, Objects: n})
			p := &choice.Parameters
			if err != nil {
				t.Errorf("%s, %v is wanted of %v: %v", c.name, wanted, c.family, err)
				continue
			}
			forecast := choice.Recall
			if err := (&Options{Dim: c.dim, Seed: 1, Neighbours: 10, Candidates: 80, Workers: 2, Reaches: []int{p.Reach}}).measure(&choice, queries, objects, true); err != nil {
				t.Fatal(err)
			}
			t.Logf("| %s, one in %d of %d | %v | %v | %d of width %.4g, reach %d | %.3f | %.3f | %.1f |", c.name, c.part, n, c.family, wanted, p.Functions, p.Width, p.Reach, forecast,
				choice.Recall, choice.Load)
			// The mean of these queries is that of all but for its standard error.
			if choice.Recall+1.645*choice.Error < wanted || math.Abs(choice.Recall-forecast) > .015+1.645*choice.Error {
				t.Errorf("%s, %v is wanted of %v: the recall is %.3f (standard error %.3f), the forecast is %.3f", c.name, wanted, c.family, choice.Recall, choice.Error, forecast)
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
