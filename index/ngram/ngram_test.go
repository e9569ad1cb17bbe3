package ngram

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/naive"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// plainGrams is the definition: pad, cut, number the repeats.
func plainGrams(text []rune, n int) []string {
	var padded []rune
	for i := 0; i < n-1; i++ {
		padded = append(padded, SentinelBase+rune(i))
	}
	padded = append(padded, text...)
	for i := 0; i < n-1; i++ {
		padded = append(padded, SentinelBase+rune(n-1+i))
	}
	seen := map[string]int{}
	var grams []string
	for i := 0; i+n <= len(padded); i++ {
		g := fmt.Sprint(padded[i : i+n])
		grams = append(grams, fmt.Sprint(g, seen[g]))
		seen[g]++
	}
	return grams
}

func TestGramScanner(t *testing.T) {
	random := seeded.Rand(t)
	var s Scanner
	for range 3000 {
		n := 1 + random.IntN(8)
		text := []rune(randomText(random) + randomText(random) + randomText(random))
		if random.IntN(50) == 0 {
			text = slices.Repeat([]rune("ab"), 500)
		}
		want := plainGrams(text, n)
		if len(want) != len(text)+n-1 {
			t.Fatalf("%q has %d %d-grams, want |S| + n - 1", string(text), len(want), n)
		}
		var got []string
		keys := map[string]bool{}
		for s.Reset(text, n); s.Next(); {
			gram, occurrence := s.Gram()
			got = append(got, fmt.Sprint(fmt.Sprint(gram), occurrence))
			if key := string(s.Key()); keys[key] {
				t.Fatalf("%q: two %d-grams have the key %q", string(text), n, key)
			} else {
				keys[key] = true
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q, n = %d:\n got %v\nwant %v", string(text), n, got, want)
		}
	}
}

// TestGramKeyIsUnique checks that keys of different ordered n-grams differ, for symbols at the ends of each
// length of their encoding.
func TestGramKeyIsUnique(t *testing.T) {
	symbols := []rune{0, 'a', 0x7F, 0x80, 0x7FF, 0x800, 0xFFFD, 0xFFFF, 0x10000, 0x10FFFF, SentinelBase, SentinelBase + 13}
	occurrences := []uint32{0, 1, 2, 127, 128, 1 << 20}
	seen := map[string]string{}
	for _, a := range symbols {
		for _, b := range symbols {
			for _, o := range occurrences {
				key, name := string(AppendKey(nil, []rune{a, b}, o)), fmt.Sprint(a, b, o)
				if other, ok := seen[key]; ok {
					t.Fatalf("%s and %s have the key %q", name, other, key)
				}
				seen[key] = name
			}
		}
	}
	if key := AppendKey(nil, []rune("abc"), 0); string(key) != "abc" {
		t.Errorf("the key of abc is %q", key)
	}
}

// TestGramOverlap checks Lemma 5.1 on random pairs: the ordered n-grams two strings share are as many as the sum of the
// smaller numbers of occurrences.
func TestGramOverlap(t *testing.T) {
	random := seeded.Rand(t)
	for range 3000 {
		n := 1 + random.IntN(8)
		a := []rune(randomText(random) + randomText(random))
		b := []rune(randomText(random) + randomText(random))
		in := map[string]bool{}
		for _, g := range plainGrams(a, n) {
			in[g] = true
		}
		want := 0
		for _, g := range plainGrams(b, n) {
			if in[g] {
				want++
			}
		}
		if got := naive.GramOverlap(a, b, n); got != want {
			t.Fatalf("%q, %q, n = %d: overlap %d, want %d", string(a), string(b), n, got, want)
		}
	}
}

func TestGramScannerAllocatesNothing(t *testing.T) {
	var s Scanner
	text := []rune("a generic inverted index")
	scan := func() {
		for s.Reset(text, 3); s.Next(); {
			s.Key()
		}
	}
	scan()
	if n := testing.AllocsPerRun(100, scan); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func randomText(random *rand.Rand) string {
	letters := []rune("abcdeé€𝄞")
	s := make([]rune, random.IntN(6))
	for i := range s {
		s[i] = letters[random.IntN(len(letters))]
	}
	return string(s)
}
