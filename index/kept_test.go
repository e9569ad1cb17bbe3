package index_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/forward"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestKept builds records, some of which are refused half-way, and compares what is kept of each object with the record: words with how often
// they occur, numbers, strings. The keywords of kept terms are those of the lists.
func TestKept(t *testing.T) {
	random := seeded.Rand(t)
	s, err := index.Builtin().ParseSchema([]byte(`
name: kept
key: id
columns:
- {name: title, type: text, stop_words: none}
- {name: price, type: number}
- {name: name, type: string}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range raced.Of([]int{1, 300, store.TileObjects + 50}, []int{300}) {
		o, err := onebyone.NewObjects(s, index.BuilderOptions{Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		var kept []*schema.Record
		for i := range n {
			rec := &schema.Record{Key: fmt.Sprint("k", i), Cells: make([]schema.Cell, 3)}
			if random.IntN(20) == 0 && i > 0 {
				rec.Key = fmt.Sprint("k", 0) // is there
			}
			var words []string
			for range random.IntN(6) {
				words = append(words, fmt.Sprint("w", random.IntN(50)))
			}
			if random.IntN(40) == 0 {
				words = append(words, fmt.Sprint("rare", i), fmt.Sprint("rare", i))
			}
			if words != nil {
				rec.Cells[0].Values = []string{strings.Join(words, " ")}
			}
			if random.IntN(3) > 0 {
				rec.Cells[1].Values = []string{fmt.Sprint(i)}
				rec.Cells[2].Values = []string{fmt.Sprint("name ", i)}
			}
			err := o.Add(rec)
			if refused := (*index.RecordError)(nil); errors.As(err, &refused) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, rec)
		}
		data, err := o.Bytes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		x, err := index.OpenBytes(data)
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Validate(); err != nil {
			t.Fatal(err)
		}
		title, price, name := x.Forward().Column("title"), x.Forward().Column("price"), x.Forward().Column("name")
		for id, rec := range kept {
			want, got := make(map[string]uint32), make(map[string]uint32)
			for _, cell := range rec.Cells[0].Values {
				for _, w := range strings.Fields(cell) {
					want[w]++
				}
			}
			row := termsOf(title, uint32(id))
			for i, term := range row.Keywords {
				got[x.KeywordName(0, term)] = row.Frequency(i)
				if title.Frequency(term) != x.Frequency(0, term) {
					t.Fatalf("%d objects have %q, or %d", title.Frequency(term), x.KeywordName(0, term), x.Frequency(0, term))
				}
			}
			if !maps.Equal(want, got) {
				t.Fatalf("object %d has words %v, not %v", id, got, want)
			}
			var numbers []string
			for _, v := range price.Numbers(uint32(id)) {
				numbers = append(numbers, fmt.Sprint(v))
			}
			if !slices.Equal(numbers, rec.Cells[1].Values) || name.Text(uint32(id)) != strings.Join(rec.Cells[2].Values, "") {
				t.Fatalf("object %d has %v and %q, not %v", id, numbers, name.Text(uint32(id)), rec.Cells)
			}
		}
	}
}

// termsOf are the terms that a column keeps of an object.
func termsOf(c *forward.Column, id uint32) forward.Row {
	t := c.TermsTile(int(id / store.TileObjects))
	return t.Row(&t.Records[id%store.TileObjects])
}
