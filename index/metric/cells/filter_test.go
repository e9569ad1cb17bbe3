package cells

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// hard are vectors that a filter of float32s has to be careful with: a large common mean, differences in the last bits, norms of all sizes, points on each other.
func hard(rng *rand.Rand, n, dims int) []float32 {
	mean, scale := float32(0), math.Pow(10, float64(rng.IntN(60)-30))
	if rng.IntN(2) == 0 {
		mean = float32(scale * math.Pow(10, float64(rng.IntN(7))))
	}
	kind := rng.IntN(4)
	first := make([]float32, dims)
	for j := range first {
		first[j] = mean + float32(rng.NormFloat64()*scale)
	}
	out := make([]float32, 0, n*dims)
	for range n {
		some := false
		for j := range dims {
			e := mean + float32(rng.NormFloat64()*scale)
			switch kind {
			case 1:
				e = mean + float32(rng.IntN(3))*float32(scale)
			case 2:
				e = math.Float32frombits(math.Float32bits(first[j]) + rng.Uint32N(3))
			case 3:
				e *= float32(math.Pow(10, float64(rng.IntN(6))))
			}
			some = some || e != 0
			out = append(out, e)
		}
		if !some {
			out[len(out)-1] = 1
		}
	}
	return out
}

// The filter never changes what is nearest, and where data are not hard it leaves few centroids.
func TestFilterIsComparingAll(t *testing.T) {
	rng := seeded.Rand(t)
	var remained, easy float64
	for range 150 {
		dims, n, count := 1+rng.IntN(70), 1+rng.IntN(60), fewest+rng.IntN(1200)
		m := metrics()[rng.IntN(len(metrics()))]
		elements := hard(rng, count+n, dims)
		both, err := metric.NewVectors(m, dims, elements[:count*dims])
		if err != nil {
			t.Fatal(err)
		}
		objects := elements[count*dims:]
		switch rng.IntN(3) {
		case 0:
			objects = hard(rng, n, dims) // far from the centroids, or near zero beside them
		case 1: // centroids that differ in the last bits, and objects several times as far out, where products are large and rounding is
			for i := range elements[:count/2*dims] {
				near := &elements[count/2*dims+i]
				*near = math.Float32frombits(math.Float32bits(elements[i]) + rng.Uint32N(3))
			}
			far := 1 + 5*rng.Float32()
			for i := range objects {
				objects[i] *= far
			}
		}
		space, err := metric.NewVectors(m, dims, objects)
		if err != nil {
			t.Fatal(err)
		}
		cells, values := make([]uint32, n), make([]float64, n)
		if err := assignHere(t.Context(), 2, space, both, nil, cells, values); err != nil {
			t.Fatal(err)
		}
		v := vector{space: space}
		for id := range uint32(n) {
			a, at, least := v.query(id, both), uint32(0), math.Inf(1)
			for c := range both.Len() {
				if value := a.Value(c); value < least {
					at, least = c, value
				}
			}
			if cells[id] != at || values[id] != least {
				t.Fatalf("%+v, %d dimensions, %d centroids: object %d is in cell %d at %v, not in %d at %v", m, dims, count, id, cells[id], values[id], at, least)
			}
		}
	}
	space, centroids := clustered(t, 500, 32, 100, .5), clustered(t, 2000, 32, 100, .5)
	s, ids := newFilter(centroids).sieve(), all(space.Len())
	for lo := 0; lo < len(ids); lo += batch {
		for _, r := range s.sift(space, ids[lo:min(lo+batch, len(ids))]) {
			if r.all {
				t.Fatal("an object among the centroids is compared with all")
			}
			easy++
			remained += float64(len(r.centroids))
		}
	}
	if remained > 2*easy {
		t.Errorf("%.1f centroids remain per object", remained/easy)
	}
}

// around are vectors around so many centres, spread so much of the distance between centres.
func around(n, dims, clusters int, spread float64) []float32 {
	rng := rand.New(rand.NewPCG(1, 1))
	centres := make([]float64, clusters*dims)
	for i := range centres {
		centres[i] = rng.NormFloat64()
	}
	elements := make([]float32, 0, n*dims)
	for range n {
		centre := centres[rng.IntN(clusters)*dims:]
		for j := range dims {
			elements = append(elements, float32(centre[j]+spread*rng.NormFloat64()))
		}
	}
	return elements
}

// clustered is a space of such vectors under l2.
func clustered(t testing.TB, n, dims, clusters int, spread float64) *metric.Vectors {
	space, err := metric.NewVectors(metric.Metric{Kind: metric.L2}, dims, around(n, dims, clusters, spread))
	if err != nil {
		t.Fatal(err)
	}
	return space
}
