//go:build cuda

package neighbours

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/geniemq/geniemq/index"
	asked "github.com/geniemq/geniemq/index/nearest"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
	"github.com/geniemq/geniemq/internal/testkit/real"
)

// BenchmarkCUDATexts measures scans of 663,473 words by edit distance, asked with two letters changed: the eight nearest, and all within a distance.
func BenchmarkCUDATexts(b *testing.B) {
	words := wordsOf(b)
	spec, err := index.Builtin().ParseSchema([]byte("{name: words, columns: [{name: w, type: string, index: [scan]}]}"))
	if err != nil {
		b.Fatal(err)
	}
	objects, err := onebyone.NewObjects(spec, index.BuilderOptions{})
	if err != nil {
		b.Fatal(err)
	}
	for _, word := range words {
		if err := objects.Add(&schema.Record{Cells: []schema.Cell{{Values: []string{word}}}}); err != nil {
			b.Fatal(err)
		}
	}
	file, err := objects.Builder.Bytes(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	x, err := index.OpenBytes(file)
	if err != nil {
		b.Fatal(err)
	}
	for _, near := range []asked.Near{{K: 8}, {K: 1024, Radius: new(1.0)}, {K: 1024, Radius: new(2.0)}} {
		name := fmt.Sprintf("k=%d", near.K)
		if near.Radius != nil {
			name = fmt.Sprintf("radius=%g", *near.Radius)
		}
		b.Run(name, func(b *testing.B) {
			measureColumn(b, "used", x, near.K, func(rng *rand.Rand) *index.Request {
				word := []rune(words[rng.IntN(len(words))])
				for range 2 {
					word[rng.IntN(len(word))] = rune('a' + rng.IntN(26))
				}
				text := string(word)
				own := near
				own.Method = "scan"
				return &index.Request{Text: &text, Near: own}
			})
		})
	}
}

// wordsOf are the words of the list.
func wordsOf(b *testing.B) (words []string) {
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
