//go:build cuda

package neighbours

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/geniemq/geniemq/index"
	asked "github.com/geniemq/geniemq/index/nearest"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/real"
)

// BenchmarkCUDATexts measures scans of 663,473 words by edit distance, asked with two letters changed: the eight nearest, and all within a distance.
func BenchmarkCUDATexts(b *testing.B) {
	words := wordsOf(b)
	x := textsOf(b, words, "index: [scan]")
	for _, near := range []asked.Near{{K: 8}, {K: 1024, Radius: new(1.0)}, {K: 1024, Radius: new(2.0)}} {
		name := fmt.Sprintf("k=%d", near.K)
		if near.Radius != nil {
			name = fmt.Sprintf("radius=%g", *near.Radius)
		}
		near.Method = "scan"
		b.Run(name, func(b *testing.B) { measureColumn(b, "used", x, near.K, changed(words, 2, near)) })
	}
}

// BenchmarkCUDARanks measures searches by rank vectors of texts, of which a hundredth is compared: 86,016 words with two letters changed, and reads of 64 bases with three.
func BenchmarkCUDARanks(b *testing.B) {
	words := wordsOf(b)
	rng := rand.New(rand.NewPCG(3, 3))
	rng.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
	reads := make([]string, 100_000)
	for i := range reads {
		read := make([]byte, 64)
		for j := range read {
			read[j] = "ACGT"[rng.IntN(4)]
		}
		reads[i] = string(read)
	}
	for name, texts := range map[string][]string{"words": words[:86_016], "reads": reads} {
		for _, similarity := range []string{"rho", "footrule"} {
			b.Run(name+"/"+similarity, func(b *testing.B) {
				x := textsOf(b, texts, "index: [scan, permutation], permutation: {permutants: 64, similarity: "+similarity+"}")
				for _, method := range []string{"permutation", "scan"} {
					b.Run(method, func(b *testing.B) {
						for _, engine := range []string{"used", "untried", "host"} {
							measureColumn(b, engine, x, 2, changed(texts, 3, asked.Near{K: 2, Method: method}))
						}
					})
				}
			})
		}
	}
}

// BenchmarkCUDAGrams measures reads of 108 bases, ten of which lie over each base of a genome, within 8 changes of one that is asked for with three, by their 8-grams.
func BenchmarkCUDAGrams(b *testing.B) {
	n := 1_000_000
	if testing.Short() {
		n /= 100
	}
	rng := rand.New(rand.NewPCG(4, 4))
	genome, reads := make([]byte, 10*n), make([]string, n)
	for i := range genome {
		genome[i] = "ACGT"[rng.IntN(4)]
	}
	for i := range reads {
		from := rng.IntN(len(genome) - 108)
		reads[i] = string(genome[from : from+108])
	}
	x := textsOf(b, reads, "ngram: 8, index: [scan, ngram]")
	for _, name := range []string{"host", "used", "untried"} {
		measureColumn(b, name, x, 10, changed(reads, 3, asked.Near{K: 10, Radius: new(8.0), Method: "ngram"}))
	}
}

// textsOf is an index of texts.
func textsOf(b testing.TB, texts []string, paths string) *index.Index {
	b.Helper()
	spec, err := index.Builtin().ParseSchema([]byte("{name: texts, columns: [{name: w, type: string, " + paths + "}]}"))
	if err != nil {
		b.Fatal(err)
	}
	objects, err := index.NewObjects(spec, index.BuilderOptions{})
	if err != nil {
		b.Fatal(err)
	}
	next := 0
	if err := objects.AddAll(b.Context(), index.Source{Next: func(r *schema.Record) error {
		if next == len(texts) {
			return io.EOF
		}
		next++
		r.Cells = []schema.Cell{{Values: texts[next-1 : next]}}
		return nil
	}}); err != nil {
		b.Fatal(err)
	}
	file, err := objects.Bytes(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	x, err := index.OpenBytes(file)
	if err != nil {
		b.Fatal(err)
	}
	return x
}

// changed asks for one of the texts with so many symbols changed.
func changed(texts []string, changes int, near asked.Near) func(rng *rand.Rand) *index.Request {
	return func(rng *rand.Rand) *index.Request {
		text := []rune(texts[rng.IntN(len(texts))])
		from := []rune(texts[rng.IntN(len(texts))])
		for range changes {
			text[rng.IntN(len(text))] = from[rng.IntN(len(from))]
		}
		own := string(text)
		return &index.Request{Text: &own, Near: near}
	}
}

// wordsOf are the words of the list.
func wordsOf(b testing.TB) (words []string) {
	f, err := os.Open(real.File(b, "words/american-english-insane.gz"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	lines, err := gzip.NewReader(f)
	if err != nil {
		b.Fatal(err)
	}
	for s := bufio.NewScanner(lines); s.Scan(); {
		words = append(words, s.Text())
	}
	return words
}
