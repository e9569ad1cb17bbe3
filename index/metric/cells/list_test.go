package cells

import (
	"math"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// A list has the first hits in the order of (value, id), whatever the order in which it is told of them and however many tie; in rounds, each has those that come next.
func TestListHasTheFirst(t *testing.T) {
	rng := seeded.Rand(t)
	var l, rounds list
	for round := range 2000 {
		n, most, distinct := rng.IntN(600), 1+rng.IntN(200), 1+rng.IntN(1<<rng.IntN(11))
		hits := make([]metric.Hit, n)
		for i := range hits {
			hits[i] = metric.Hit{Value: float64(rng.IntN(distinct)) - 3, ID: uint32(i)}
			switch {
			case rng.IntN(50) == 0:
				hits[i].Value = math.Inf(rng.IntN(2)*2 - 1)
			case round%5 == 0: // ascending, or descending
				hits[i].Value = float64(i * (round%2*2 - 1))
			}
		}
		if round%3 == 0 {
			rng.Shuffle(n, func(i, j int) { hits[i], hits[j] = hits[j], hits[i] })
		}
		l.reset(most)
		rounds.reset(most)
		for _, h := range hits {
			if h.Value <= l.bound {
				l.add(h)
				rounds.add(h)
			}
			if len(l.hits) >= 2*most {
				t.Fatalf("%d hits are kept for %d", len(l.hits), most)
			}
		}
		want := sorted(slices.Clone(hits))
		want = want[:min(n, most)]
		if got := l.sorted(); !slices.Equal(got, want) {
			t.Fatalf("the first %d of %v: %v", most, hits, got)
		}
		ends, from := []int{1, 5, 21, 85, 341}, 0
		rounds.rounds(ends)
		for _, to := range ends {
			to = min(to, len(want))
			if got := sorted(slices.Clone(rounds.hits[from:to])); !slices.Equal(got, want[from:to]) {
				t.Fatalf("round %d to %d of the first %d of %v: %v", from, to, most, hits, got)
			}
			from = to
		}
	}
}

// Pairs are put in the order of cells and queries, of few cells and of so many that it takes several digits.
func TestPairsAreSorted(t *testing.T) {
	rng := seeded.Rand(t)
	for range 200 {
		cells := 1 + rng.IntN(1<<rng.IntN(21))
		b := together{index: &Index{radii: make([]float32, cells)}}
		for query := range rng.IntN(100) {
			for range rng.IntN(20) {
				b.pairs = append(b.pairs, pairOf(uint32(rng.IntN(cells)), query))
			}
		}
		want := slices.Sorted(slices.Values(b.pairs))
		if b.sort(); !slices.Equal(b.pairs, want) {
			t.Fatalf("%d cells: %v, want %v", cells, b.pairs, want)
		}
	}
}
