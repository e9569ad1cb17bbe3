package index_test

import (
	"fmt"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/postings/single"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestCounter counts objects one by one in every layout, and compares with the lists of a Decoder.
func TestCounter(t *testing.T) {
	random := seeded.Rand(t)
	for range 12 {
		m := &model{specs: []schema.AttributeSpec{
			{Name: "text", Type: schema.Text}, {Name: "number", Type: schema.Number, Buckets: 7}, {Name: "ordinal", Type: schema.Ordinal, Keywords: 50},
		}}
		for id := range 1 + random.IntN(2500) {
			o := modelObject{values: make([][]any, 3), key: fmt.Sprint(id)}
			for range random.IntN(2) * random.IntN(4) {
				o.values[0] = append(o.values[0], fmt.Sprint("w", random.IntN(1+random.IntN(60))))
			}
			if random.IntN(3) > 0 {
				o.values[1] = []any{float64(random.IntN(100))}
				o.values[2] = []any{uint32(random.IntN(50))}
			}
			m.objects = append(m.objects, o)
		}
		for _, layout := range []schema.Layout{schema.LayoutPostings, schema.LayoutSliced, schema.LayoutRare} {
			x := m.inLayout(t, layout)
			for range 5 {
				q := new(postings.MatchQuery)
				for range 1 + random.IntN(4) {
					attr := random.IntN(3)
					q.StartItem(uint32(attr), uint32(1+random.IntN(9)))
					for lo := uint32(0); lo < x.Attribute(attr).Keywords; {
						hi := min(lo+1+random.Uint32N(4), x.Attribute(attr).Keywords)
						if random.IntN(3) == 0 {
							q.AddSpan(lo, hi)
						}
						lo = hi + 1
					}
				}
				checkCounter(t, x, q)
			}
		}
	}
}

func checkCounter(t *testing.T, x *index.Index, q *postings.MatchQuery) {
	t.Helper()
	want := make([]uint32, x.Objects())
	var decoder postings.Decoder
	for _, item := range q.Items {
		for tile := range x.Tiles() {
			lists := decoder.Postings(x.Lists, tile, int(item.Attr))
			for _, s := range q.ItemSpans(item) {
				for _, local := range lists.Run(s.Lo, s.Hi) {
					want[tile*64512+int(local)] += item.Weight
				}
			}
		}
	}
	c := &single.Counter{Lists: x.Lists, Query: q}
	for id, n := range want {
		if got := c.Count(uint32(id)); got != n {
			t.Fatalf("object %d counts %d, not %d, of %+v in %v", id, got, n, q, x.Attributes())
		}
	}
	if c.Count(x.Objects()) != 0 {
		t.Error("an object that is not there counts")
	}
}
