package verify

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// naiveDistance is the textbook matrix, two rows of it.
func naiveDistance(a, b []rune) int {
	prev, cur := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i, r := range a {
		cur[0] = i + 1
		for j, s := range b {
			cost := 1
			if r == s {
				cost = 0
			}
			cur[j+1] = min(prev[j]+cost, prev[j+1]+1, cur[j]+1)
		}
		prev, cur = cur, prev
	}
	return prev[len(b)]
}

// alphabets mixes symbols of one byte, of Latin-1, of two to four bytes and the largest code point.
var alphabets = [][]rune{
	[]rune("ab"),
	[]rune("acgt"),
	[]rune("abcdefghijklmnopqrstuvwxyz '"),
	[]rune("aäöüßé"),
	[]rune("ab検索файл𝄞\U0010ffff"),
}

func randomText(rng *rand.Rand, alphabet []rune, length int) []rune {
	text := make([]rune, length)
	for i := range text {
		text[i] = alphabet[rng.IntN(len(alphabet))]
	}
	return text
}

// edited returns text after the given number of random edits, so that its distance is at most that.
func edited(rng *rand.Rand, alphabet, text []rune, edits int) []rune {
	out := append([]rune(nil), text...)
	for range edits {
		i := rng.IntN(len(out) + 1)
		switch op := rng.IntN(3); {
		case op == 0 || len(out) == 0 || i == len(out):
			out = append(out[:i], append([]rune{alphabet[rng.IntN(len(alphabet))]}, out[i:]...)...)
		case op == 1:
			out = append(out[:i], out[i+1:]...)
		default:
			out[i] = alphabet[rng.IntN(len(alphabet))]
		}
	}
	return out
}

// newRand is seeded by GENIEMQ_SEED, which a failed test names, else anew.
func newRand(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("GENIEMQ_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("GENIEMQ_SEED: %v", err)
		}
	}
	t.Logf("seed %d (GENIEMQ_SEED=%[1]d repeats it)", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func TestEditDistanceKnown(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"saturday", "sunday", 3},
		{"intention", "execution", 5}, {"größe", "grosse", 3}, {"検索", "検閲", 1}, {"ab", "ba", 2},
	} {
		if got := EditDistance([]rune(c.a), []rune(c.b)); got != c.want {
			t.Errorf("EditDistance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// TestPatternAgainstMatrix compares with the textbook algorithm for lengths around the block borders, near and
// far pairs, every relation of the bound to the distance, on a Pattern that is used again and again.
func TestPatternAgainstMatrix(t *testing.T) {
	rng := newRand(t)
	lengths := []int{0, 1, 2, 5, 31, 62, 63, 64, 65, 66, 100, 127, 128, 129, 190, 193, 257, 400}
	var p Pattern
	var runes []rune
	for round := range 6000 {
		alphabet := alphabets[rng.IntN(len(alphabets))]
		a := randomText(rng, alphabet, lengths[rng.IntN(len(lengths))])
		var b []rune
		if rng.IntN(4) == 0 {
			b = randomText(rng, alphabet, lengths[rng.IntN(len(lengths))])
		} else {
			b = edited(rng, alphabet, a, rng.IntN(2+rng.IntN(40)))
		}
		want := naiveDistance(a, b)
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
	rng := newRand(t)
	a, b := randomText(rng, alphabets[4], 150), string(randomText(rng, alphabets[4], 160))
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
		want := naiveDistance(x, y)
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
			text := randomText(rng, alphabets[2], c.length)
			var p Pattern
			p.Reset(text)
			other := string(edited(rng, alphabets[2], text, c.bound/2))
			for b.Loop() {
				p.DistanceString(other, c.bound, nil)
			}
		})
	}
}
