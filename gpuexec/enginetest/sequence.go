package enginetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/levenshtein"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/verify"
	"github.com/geniemq/geniemq/internal/testkit/naive"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
)

func SequenceCollection(t testing.TB, texts []string, grams int) *Collection {
	t.Helper()
	spec, err := index.Builtin().ParseSchema(fmt.Appendf(nil, "name: texts\nkind: sequences\nngram: %d\n", grams))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := onebyone.NewObjects(spec, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		rec := schema.Record{Cells: make([]schema.Cell, 1)}
		if text != "" {
			rec.Cells[0].Values = []string{text}
		}
		if err := objects.Add(&rec); err != nil {
			t.Fatal(err)
		}
	}
	c := &Collection{schema: spec, Index: OpenBuilt(t, objects.Builder)}
	if c.Queries, err = index.NewQueries(c.Index); err != nil {
		t.Fatal(err)
	}
	return c
}

// SequencePlan asks for the k nearest of a text, with candidates, as the service does.
func (c *Collection) SequencePlan(t testing.TB, text string, k, candidates int, certify bool) gpuexec.Plan {
	t.Helper()
	plan := gpuexec.Plan{K: candidates, Certify: certify,
		Rescore: &verify.Nearest{Texts: c.Index, NGram: c.schema.NGram, Text: []rune(text), K: k}}
	if _, err := c.Queries.Plan(Query(&plan), &index.Request{Text: &text, Quiet: true}); err != nil {
		t.Fatal(err)
	}
	return plan
}

// Nearest is the definition: all objects by (distance, count descending, id). An object without text has no grams.
func Nearest(texts []string, query string, grams int, minCount uint32) []gpuexec.Hit {
	var all []gpuexec.Hit
	for id, text := range texts {
		count := 0
		if text != "" {
			count = naive.GramOverlap([]rune(query), []rune(text), grams)
		}
		if uint32(count) >= minCount {
			all = append(all, gpuexec.Hit{ID: uint32(id), Count: uint32(count), Score: float64(levenshtein.Distance([]rune(query), []rune(text)))})
		}
	}
	slices.SortFunc(all, Nearer)
	return all
}

// Nearer is the order of hits by distance.
func Nearer(a, b gpuexec.Hit) int {
	return verify.Compare(verify.Scored(a), verify.Scored(b))
}

func RandomString(rng *rand.Rand, alphabet string, length int) string {
	var b strings.Builder
	symbols := []rune(alphabet)
	for range length {
		b.WriteRune(symbols[rng.IntN(len(symbols))])
	}
	return b.String()
}

// Misspelt changes a text in a few places.
func Misspelt(rng *rand.Rand, text string, edits int) string {
	runes := []rune(text)
	for range edits {
		i := rng.IntN(len(runes) + 1)
		switch {
		case rng.IntN(3) == 0 || i == len(runes):
			runes = slices.Insert(runes, i, rune('a'+rng.IntN(4)))
		case rng.IntN(2) == 0:
			runes = slices.Delete(runes, i, i+1)
		default:
			runes[i] = 'é'
		}
	}
	return string(runes)
}
