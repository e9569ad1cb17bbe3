package metric

import (
	"math"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/naive"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestScanOfTexts: a scan of texts finds what comparing one by one finds: lengths around those of lanes, queries of none and of many symbols, limits that fall, and all within one.
func TestScanOfTexts(t *testing.T) {
	rng := seeded.Rand(t)
	lengths := []int{0, 1, 5, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 200}
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	for range rounds {
		alphabet := naive.Alphabets()[rng.IntN(len(naive.Alphabets()))]
		n, longest := 1+rng.IntN(300), 1+rng.IntN(len(lengths))
		texts := make([]string, n)
		for i := range texts {
			text := naive.Text(rng, alphabet, lengths[rng.IntN(longest)])
			if i > 0 && rng.IntN(2) == 0 {
				text = naive.Edited(rng, alphabet, []rune(texts[rng.IntN(i)]), rng.IntN(4))
			}
			texts[i] = string(text)
			if rng.IntN(20) == 0 {
				texts[i] += "\xff"
			}
		}
		s, err := NewTexts(uint32(n), func(i uint32) string { return texts[i] }, nil)
		if err != nil {
			t.Fatal(err)
		}
		var askers []Asker
		var most []float64
		for range 1 + rng.IntN(12) {
			a := s.Of(rng.Uint32N(uint32(n)))
			if rng.IntN(2) == 0 {
				a = s.Query(string(naive.Text(rng, alphabet, lengths[rng.IntN(len(lengths))])))
			}
			askers = append(askers, a)
			most = append(most, []float64{math.Inf(1), float64(rng.IntN(5)), a.Value(rng.Uint32N(uint32(n))), .5, -1}[rng.IntN(5)])
		}
		k := []int{1, 3, n, n + 1}[rng.IntN(4)]
		got := scan(s, askers, 0, uint32(n), k, most, 1+rng.Uint32N(uint32(n)))
		for i, a := range askers {
			var best Best
			best.Reset(Want{k, most[i]})
			for id := range uint32(n) {
				best.Add(Hit{a.Value(id), id})
			}
			if want := best.Sorted(); !slices.Equal(got[i], want) {
				t.Fatalf("query %d of %d, the first %d within %v: %v, not %v", i, len(askers), k, most[i], got[i], want)
			}
		}
	}
}
