package levenshtein

import (
	"fmt"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/generated"
	"github.com/geniemq/geniemq/internal/testkit/naive"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// Every kernel gives the distances of the textbook algorithm, of lanes of every width, full or not, used again and again.
func TestLanesAreTheMatrix(t *testing.T) {
	rng := seeded.Rand(t)
	for _, k := range Kernels() {
		l := newLanes(k)
		for range 1500 {
			bits := []int{16, 32, 64}[rng.IntN(3)]
			alphabet := naive.Alphabets()[rng.IntN(len(naive.Alphabets()))]
			var texts [][]rune
			l.Reset(bits)
			for range 1 + rng.IntN(LanesOf(bits)) {
				n := []int{1, bits/2 + 1, bits - 1, bits, 1 + rng.IntN(bits)}[rng.IntN(5)]
				text := naive.Text(rng, alphabet, n)
				if len(texts) > 0 && rng.IntN(3) == 0 {
					text = naive.Edited(rng, alphabet, texts[0], rng.IntN(4))
				}
				if len(text) == 0 || len(text) > bits {
					continue
				}
				texts = append(texts, text)
				l.Add(string(text))
			}
			for range 3 {
				text := naive.Text(rng, alphabet, []int{1, 2, 15, 16, 17, 31, 63, 64}[rng.IntN(8)])
				if len(texts) > 0 && rng.IntN(2) == 0 {
					text = naive.Edited(rng, alphabet, texts[rng.IntN(len(texts))], rng.IntN(5))
				}
				q, ok := NewQuery(text)
				if ok != (len(text) > 0 && len(text) <= MostLanes) {
					t.Fatalf("%d symbols: %v", len(text), ok)
				}
				if !ok {
					continue
				}
				got := make([]int, len(texts))
				l.Distances(q, got)
				for i := range texts {
					if want := naive.EditDistance(texts[i], text); got[i] != want {
						t.Fatalf("%s, lane %d of %d of %d bits: %q and %q: %d, not %d", k.Name, i, len(texts), bits, string(texts[i]), string(text), got[i], want)
					}
				}
			}
		}
	}
}

// As many different symbols as fit: each lane has its own.
func TestLanesOfManySymbols(t *testing.T) {
	for _, k := range Kernels() {
		l := newLanes(k)
		for _, bits := range []int{16, 32, 64, 16} {
			l.Reset(bits)
			var texts [][]rune
			for i := range LanesOf(bits) {
				var text []rune
				for j := range bits {
					text = append(text, rune(0x4e00+7*(i*bits+j)))
				}
				texts = append(texts, text)
				l.Add(string(text))
			}
			got := make([]int, len(texts))
			for i, text := range texts {
				q, _ := NewQuery(text)
				l.Distances(q, got)
				for j, d := range got {
					if want := map[bool]int{true: 0, false: bits}[i == j]; d != want {
						t.Fatalf("%s, %d bits: text %d and %d: %d, not %d", k.Name, bits, i, j, d, want)
					}
				}
			}
		}
	}
}

func TestAssemblyIsCurrent(t *testing.T) { generated.Assembly(t, "levenshtein", "lanes_amd64.s") }

// BenchmarkLanes is one query and full lanes, of texts that are there, and of texts that are put into them each time.
func BenchmarkLanes(b *testing.B) {
	rng := seeded.Rand(b)
	for _, bits := range []int{16, 32, 64} {
		n := bits * 9 / 16
		text := naive.Text(rng, naive.Alphabets()[0], n)
		q, _ := NewQuery(text)
		texts := make([]string, LanesOf(bits))
		for i := range texts {
			texts[i] = string(naive.Text(rng, naive.Alphabets()[0], n))
		}
		for _, k := range Kernels() {
			for _, again := range []bool{false, true} {
				b.Run(fmt.Sprintf("%d/%s/again=%v", bits, k.Name, again), func(b *testing.B) {
					l, dst := newLanes(k), make([]int, len(texts))
					put := func() {
						l.Reset(bits)
						for _, s := range texts {
							l.Add(s)
						}
					}
					put()
					for b.Loop() {
						if again {
							put()
						}
						l.Distances(q, dst)
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(texts)), "ns/pair")
				})
			}
		}
		b.Run(fmt.Sprintf("%d/pattern", bits), func(b *testing.B) {
			var p Pattern
			p.Reset(text)
			var runes []rune
			for b.Loop() {
				for _, s := range texts {
					p.DistanceString(s, 1<<30, &runes)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(texts)), "ns/pair")
		})
	}
}
