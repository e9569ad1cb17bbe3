package enginetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/forward"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/verify"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
)

const termsSchema = `
name: terms
columns:
- {name: title, type: text, stop_words: none}
- {name: tags, type: set}
- {name: body, type: text, stop_words: none}
`

// TermsIndex is an index of texts and sets: short ones, ones of a word many times, and bodies of many words.
func TermsIndex(t testing.TB, rng *rand.Rand, n int) *index.Index {
	t.Helper()
	records := make([]*schema.Record, n)
	words := func(vocabulary, most int) []string {
		some := make([]string, rng.IntN(most+1))
		for i := range some {
			some[i] = fmt.Sprintf("w%d", min(rng.IntN(vocabulary), rng.IntN(vocabulary)))
		}
		return some
	}
	cell := func(some []string) schema.Cell {
		if len(some) == 0 {
			return schema.Cell{}
		}
		return schema.Cell{Values: []string{strings.Join(some, " ")}}
	}
	for i := range n {
		rec := &schema.Record{Cells: []schema.Cell{cell(words(40, 9)), {Values: words(20, 5)}, {}}}
		switch rng.IntN(30) {
		case 0: // frequencies of a byte, and of a word
			rec.Cells[0] = cell(slices.Repeat([]string{"w1", "w2"}, 1+rng.IntN(400)))
		case 1:
			rec.Cells[0] = cell(words(2000, 300))
		}
		if n < 1000 || i%100 == 0 {
			rec.Cells[2] = cell(words(3000, 400))
		}
		records[i] = rec
	}
	return termsIndexOf(t, records)
}

func termsIndexOf(t testing.TB, records []*schema.Record) *index.Index {
	t.Helper()
	s, err := index.Builtin().ParseSchema([]byte(termsSchema))
	if err != nil {
		t.Fatal(err)
	}
	o, err := onebyone.NewObjects(s, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range records {
		if err := o.Add(rec); err != nil {
			t.Fatal(err)
		}
	}
	data, err := o.Bytes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	x, err := index.OpenBytes(data)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// LongTermsIndex is an index of n objects with some of three words, but for one, which has so many words that no other object has.
func LongTermsIndex(t testing.TB, rng *rand.Rand, n, words int) *index.Index {
	t.Helper()
	records := make([]*schema.Record, n)
	for i := range records {
		some := make([]string, 1+rng.IntN(6))
		for j := range some {
			some[j] = []string{"a0", "a1", "a2"}[rng.IntN(3)]
		}
		records[i] = &schema.Record{Cells: []schema.Cell{{Values: []string{strings.Join(some, " ")}}, {}, {}}}
	}
	many := make([]string, words)
	for i := range many {
		many[i] = fmt.Sprintf("z%d", i)
	}
	records[rng.IntN(n)] = &schema.Record{Cells: []schema.Cell{{Values: []string{strings.Join(many, " ")}}, {}, {}}}
	return termsIndexOf(t, records)
}

// AskTerms asks a column by a measure of terms. Now and then that is more than a device takes.
func AskTerms(t testing.TB, rng *rand.Rand, column *forward.Column) *verify.Scores {
	t.Helper()
	m := verify.FindMeasure([]string{"jaccard", "dice", "cosine", "containment", "bm25"}[rng.IntN(5)])
	hits := []int{1 + rng.IntN(300), 1 + rng.IntN(300), 1000 + rng.IntN(50)}[rng.IntN(3)]   // around the most that a device puts in order
	a := verify.Asked{Column: column, K: hits, IDF: rng.IntN(2) == 0, Unknown: rng.IntN(3)} // of no unit: counts are of other items
	most := []int{0, 1, 8, 40, 256, 257}[rng.IntN(6)]
	for term := range column.Keywords {
		if len(a.Terms) < most && rng.IntN(3) > 0 {
			a.Terms = append(a.Terms, term)
		}
	}
	s, err := m.New(&a)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
