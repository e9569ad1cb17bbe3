package verify

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index/similarity"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestRanking: the best k of objects in the total order, whatever their keys: equal ones, infinite ones, of which most are next to each other and some far
// away, that differ by more than a float holds, by less than one can divide by, and fractions that only Compare tells apart.
func TestRanking(t *testing.T) {
	seed := seeded.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	var set similarity.Set
	if err := set.Reset(similarity.Cosine, nil, nil, similarity.MaxWeight); err != nil {
		t.Fatal(err)
	}
	keys := map[string]func(o *ranked){
		"any":      func(o *ranked) { o.key = rng.NormFloat64() },
		"few":      func(o *ranked) { o.key = float64(rng.IntN(4)) },
		"one":      func(o *ranked) { o.key = 7 },
		"nowhere":  func(o *ranked) { o.key = nowhere },
		"some":     func(o *ranked) { o.key = []float64{nowhere, rng.Float64()}[rng.IntN(2)] },
		"crowded":  func(o *ranked) { o.key = []float64{1e9, rng.Float64()}[min(rng.IntN(40), 1)] },
		"huge":     func(o *ranked) { o.key = rng.NormFloat64() * math.MaxFloat64 / 8 },
		"tiny":     func(o *ranked) { o.key = float64(rng.IntN(1000)) * math.SmallestNonzeroFloat64 },
		"zeros":    func(o *ranked) { o.key = []float64{0, math.Copysign(0, -1), 1}[rng.IntN(3)] },
		"fraction": func(o *ranked) { o.set = set.Score(1<<40+rng.Uint64N(3), 1<<50+rng.Uint64N(3)); o.key = o.set.Key() },
	}
	for name, key := range keys {
		for range 200 {
			n, k := rng.IntN(300), 1+rng.IntN(200)
			all := make([]ranked, n)
			for i := range all {
				all[i].id, all[i].count = uint32(i), rng.Uint32N(4)
				key(&all[i])
			}
			if rng.IntN(2) == 0 { // as candidates come
				slices.SortFunc(all, func(a, b ranked) int { return int(b.count) - int(a.count) })
			} else {
				rng.Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
			}
			var h ranking
			h.reset(k)
			for i := range all {
				if h.keep(&all[i]); rng.IntN(100) == 0 {
					h.sorted()
				}
			}
			slices.SortFunc(all, func(a, b ranked) int {
				if a.key != b.key && math.Signbit(a.key-b.key) != (compare(&a, &b) < 0) {
					t.Fatalf("%s: %v and %v compare as %d", name, a, b, compare(&a, &b))
				}
				return compare(&a, &b)
			})
			want := all[:min(n, k)]
			if worst := h.worst(); (worst == nil) != (n < k) || worst != nil && *worst != want[k-1] {
				t.Fatalf("%s: the worst of %d, of which %d are kept, is %v, should be the last of %v", name, n, k, worst, want)
			}
			if got := h.sorted(); !slices.Equal(got, want) {
				t.Fatalf("%s: %d of %d are\n%v, should be\n%v", name, k, n, got, want)
			}
		}
	}
}

// TestCosineKeys: the key of a cosine keeps the order of fractions, also where it is not theirs to the bit.
func TestCosineKeys(t *testing.T) {
	seed := seeded.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 2))
	var set similarity.Set
	if err := set.Reset(similarity.Cosine, nil, nil, similarity.MaxWeight); err != nil {
		t.Fatal(err)
	}
	equal := 0
	score := func(base uint64) similarity.Score {
		common := base + rng.Uint64N(4)
		return set.Score(common, common+rng.Uint64N(4)+base/uint64(1+rng.IntN(3)))
	}
	for range 200_000 {
		base := uint64(1) << rng.IntN(60)
		a, b := score(base), score(base)
		c, d := a.Compare(b), a.Key()-b.Key()
		if d < 0 && c >= 0 || d > 0 && c <= 0 || c == 0 && d != 0 {
			t.Fatalf("%+v and %+v have keys %v and %v and compare as %d", a, b, a.Key(), b.Key(), c)
		}
		if c != 0 && d == 0 {
			equal++
		}
	}
	if equal == 0 {
		t.Error("no two fractions had the same key")
	}
}
