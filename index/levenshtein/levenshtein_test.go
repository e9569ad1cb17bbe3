package levenshtein

import (
	"math/rand/v2"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/naive"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

func TestKnown(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"saturday", "sunday", 3},
		{"intention", "execution", 5}, {"größe", "grosse", 3}, {"検索", "検閲", 1}, {"ab", "ba", 2},
	} {
		if got := Distance([]rune(c.a), []rune(c.b)); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// TestPatternAgainstMatrix compares with the textbook algorithm for lengths around the block borders, near and
// far pairs, every relation of the bound to the distance, on a Pattern that is used again and again.
func TestPatternAgainstMatrix(t *testing.T) {
	rng := seeded.Rand(t)
	lengths := []int{0, 1, 2, 5, 31, 62, 63, 64, 65, 66, 100, 127, 128, 129, 190, 193, 257, 400}
	var p Pattern
	var runes []rune
	for round := range 6000 {
		alphabet := naive.Alphabets()[rng.IntN(len(naive.Alphabets()))]
		a := naive.Text(rng, alphabet, lengths[rng.IntN(len(lengths))])
		var b []rune
		if rng.IntN(4) == 0 {
			b = naive.Text(rng, alphabet, lengths[rng.IntN(len(lengths))])
		} else {
			b = naive.Edited(rng, alphabet, a, rng.IntN(2+rng.IntN(40)))
		}
		want := naive.EditDistance(a, b)
		p.Reset(a)
		for _, bound := range []int{-1, 0, 1, want - 2, want - 1, want, want + 1, want + 2, want + rng.IntN(70), len(a) + len(b), 1 << 40} {
			for form := range 2 {
				var got int
				var ok bool
				if form == 0 {
					got, ok = p.Distance(b, bound)
				} else {
					got, ok = p.DistanceString(string(b), bound, &runes)
				}
				if ok != (want <= bound) || ok && got != want {
					t.Fatalf("round %d form %d: distance of %q and %q with bound %d: got %d %v, want %d", round, form, string(a), string(b), bound, got, ok, want)
				}
			}
		}
	}
}

func TestPatternDoesNotAllocate(t *testing.T) {
	rng := seeded.Rand(t)
	a, b := naive.Text(rng, naive.Alphabets()[4], 150), string(naive.Text(rng, naive.Alphabets()[4], 160))
	var p Pattern
	var runes []rune
	if n := testing.AllocsPerRun(100, func() {
		p.Reset(a)
		p.DistanceString(b, 200, &runes)
	}); n != 0 {
		t.Errorf("%v allocations a comparison, want none", n)
	}
}

func FuzzPattern(f *testing.F) {
	f.Add("kitten", "sitting", 3)
	f.Add("", "", 0)
	f.Add("größe\xff", "検索", -1)
	f.Fuzz(func(t *testing.T, a, b string, bound int) {
		if len(a)*len(b) > 1<<20 {
			t.Skip()
		}
		x, y := []rune(a), []rune(b)
		want := naive.EditDistance(x, y)
		var p Pattern
		p.Reset(x)
		if got, ok := p.DistanceString(b, bound, nil); ok != (want <= bound) || ok && got != want {
			t.Fatalf("distance of %q and %q with bound %d: got %d %v, want %d", a, b, bound, got, ok, want)
		}
	})
}

func BenchmarkDistance(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct {
		name          string
		length, bound int
	}{{"word", 9, 3}, {"title", 40, 8}, {"title-unbounded", 40, 100}, {"page", 2000, 20}, {"page-unbounded", 2000, 2000}} {
		b.Run(c.name, func(b *testing.B) {
			text := naive.Text(rng, naive.Alphabets()[2], c.length)
			var p Pattern
			p.Reset(text)
			other := string(naive.Edited(rng, naive.Alphabets()[2], text, c.bound/2))
			for b.Loop() {
				p.DistanceString(other, c.bound, nil)
			}
		})
	}
}
