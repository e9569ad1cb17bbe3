package cells

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index/metric"
)

func metrics() []metric.Metric {
	return []metric.Metric{{Kind: metric.L1}, {Kind: metric.L2}, {Kind: metric.Linf}, {Kind: metric.Lp, P: 3}, {Kind: metric.Lp, P: 8},
		{Kind: metric.Cosine}, {Kind: metric.Angular}}
}

// world is vectors: grids, whose distances tie and whose points lie on each other, clusters, norms of all sizes, and neighbours that differ in the last bit.
type world struct {
	space *metric.Vectors
	draw  func() []float32
}

func someWorld(t testing.TB, rng *rand.Rand, n int) world {
	dims := []int{1, 2, 3, 7, 8, 9, 16, 17, 33}[rng.IntN(9)]
	kind, side := rng.IntN(5), 1+rng.IntN(5)
	centres := make([][]float32, 1+rng.IntN(10))
	draw := func() []float32 {
		v := make([]float32, dims)
		some := false
		for j := range v {
			switch kind {
			case 0:
				v[j] = float32(rng.IntN(side) - side/2)
			case 1:
				v[j] = float32(rng.NormFloat64())
			case 2:
				v[j] = float32(rng.NormFloat64() * math.Pow(10, float64(rng.IntN(50)-25)))
			case 4: // sums cancel, and what is left depends on their order
				v[j] = []float32{0x1p60, -0x1p60, rng.Float32()}[rng.IntN(3)]
			case 3:
				v[j] = math.Float32frombits(math.Float32bits(1) + rng.Uint32N(3))
			}
			some = some || v[j] != 0
		}
		if !some {
			v[0] = 1
		}
		return v
	}
	for i := range centres {
		centres[i] = draw()
	}
	near := func() []float32 {
		if kind != 1 {
			return draw()
		}
		v := slices.Clone(centres[rng.IntN(len(centres))])
		for j := range v {
			v[j] += float32(rng.NormFloat64() * .01)
		}
		return v
	}
	var elements []float32
	for range n {
		elements = append(elements, near()...)
	}
	m := metrics()[rng.IntN(len(metrics()))]
	space, err := metric.NewVectors(m, dims, elements)
	if err != nil {
		t.Fatal(err)
	}
	return world{space, near}
}

// query is a vector, which may be an object, for objects by id, objects by position, and centroids.
func (w world) query(t testing.TB, rng *rand.Rand, x *Index) (by, at, near metric.Asker) {
	t.Helper()
	v := w.draw()
	if n := w.space.Len(); n > 0 && rng.IntN(2) == 0 {
		wide := make([]float64, len(v))
		w.space.Coordinates(rng.Uint32N(n), wide)
		for j, e := range wide {
			v[j] = float32(e)
		}
	}
	positions, err := w.space.Permuted(x.Order())
	if err != nil {
		t.Fatal(err)
	}
	var askers [3]metric.Asker
	for i, space := range []*metric.Vectors{w.space, positions, x.Centroids()} {
		if askers[i], err = space.Query(v); err != nil {
			t.Fatal(err)
		}
	}
	return askers[0], askers[1], askers[2]
}

// sorted are hits in order.
func sorted(hits []metric.Hit) []metric.Hit {
	slices.SortFunc(hits, func(x, y metric.Hit) int {
		if x.Less(y) {
			return -1
		}
		return 1
	})
	return hits
}

// first are the hits that are wanted of some objects.
func first(a metric.Asker, ids []uint32, want metric.Want, pass func(uint32) bool) []metric.Hit {
	var hits []metric.Hit
	for _, id := range ids {
		if v := a.Value(id); v <= want.Most && (pass == nil || pass(id)) {
			hits = append(hits, metric.Hit{Value: v, ID: id})
		}
	}
	hits = sorted(hits)
	return hits[:max(0, min(len(hits), want.K))]
}

func all(n uint32) []uint32 {
	ids := make([]uint32, n)
	for i := range ids {
		ids[i] = uint32(i)
	}
	return ids
}

func some(rng *rand.Rand) Parameters {
	return Parameters{Cells: rng.IntN(40), Seed: rng.Uint64(), HeldOut: -1}
}

func must(t testing.TB, space *metric.Vectors, p Parameters) *Index {
	t.Helper()
	x, err := Build(t.Context(), space, p, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// wants are all sorts of searches; radii are at distances that there are, or just below.
func wants(rng *rand.Rand, by metric.Asker, n uint32) (metric.Want, func(uint32) bool) {
	want := metric.Want{K: rng.IntN(int(n) + 3), Most: math.Inf(1)}
	if rng.IntN(3) == 0 {
		want.K = math.MaxInt
	}
	if n > 0 && rng.IntN(2) == 0 {
		want.Most = by.Value(rng.Uint32N(n))
		if rng.IntN(3) == 0 {
			want.Most = math.Nextafter(want.Most, math.Inf(-1))
		}
	}
	if rng.IntN(2) == 0 {
		return want, nil
	}
	salt, in := rng.Uint32(), 1+rng.Uint32N(5)
	return want, func(id uint32) bool { return (id^salt)*2654435761>>16%5 < in }
}
