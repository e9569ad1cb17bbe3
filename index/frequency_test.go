package index_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestFrequency: a keyword's frequency is how many objects have it, in every layout, repeats or not, over several tiles.
func TestFrequency(t *testing.T) {
	random := seeded.Rand(t)
	for _, layout := range []string{"auto", "postings", "rare", "sliced"} {
		for _, repeats := range []bool{false, true} {
			if repeats && layout == "sliced" {
				continue
			}
			specs := []schema.AttributeSpec{{Name: "a", Type: schema.Text, Layout: layout}}
			b, err := onebyone.NewBuilder(schemaFor(t, schema.Rows), specs, index.BuilderOptions{})
			if err != nil {
				t.Fatal(err)
			}
			objects := make(map[string]uint32)
			n := random.IntN(300)
			if random.IntN(2) == 0 {
				n += store.TileObjects
			}
			for range n {
				word := "w" + strconv.Itoa(int(random.ExpFloat64()*9))
				objects[word]++
				b.AddString(0, word)
				if repeats && random.IntN(3) == 0 {
					b.AddString(0, word)
				}
				if err := b.EndObject("", nil, ""); err != nil {
					t.Fatal(err)
				}
			}
			data, err := b.Bytes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			x, err := index.OpenBytes(data)
			if err != nil {
				t.Fatal(err)
			}
			for word, want := range objects {
				keyword, _ := x.Lookup(0, word)
				if got := x.Frequency(0, keyword); got != want {
					t.Errorf("%s, repeats %v: %d objects have %s, want %d", layout, repeats, got, word, want)
				}
			}
		}
	}
}

// TestCountBound: no object counts more than the bound, which is not much more than what an object can reach: of words that weigh each their own, the
// heaviest that fit into one.
func TestCountBound(t *testing.T) {
	random := seeded.Rand(t)
	for range 300 {
		b, err := onebyone.NewBuilder(schemaFor(t, schema.Rows), []schema.AttributeSpec{{Name: "a", Type: schema.Text}}, index.BuilderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		most := 0
		distinct := random.IntN(2) == 0
		for range 1 + random.IntN(30) {
			var words []string
			for range random.IntN(7) {
				if word := string(rune('a' + random.IntN(9))); !distinct || !slices.Contains(words, word) {
					words = append(words, word)
					b.AddString(0, word)
				}
			}
			most = max(most, len(words))
			if err := b.EndObject("", nil, ""); err != nil {
				t.Fatal(err)
			}
		}
		data, err := b.Bytes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		x, err := index.OpenBytes(data)
		if err != nil {
			t.Fatal(err)
		}
		if distinct {
			x.SetDistinct(0)
		}
		if err := x.Validate(); err != nil {
			t.Fatal(err)
		}
		var q postings.MatchQuery
		keywords := x.Attribute(0).Keywords
		var weights []int
		for keyword := uint32(0); keyword < keywords; {
			width := 1 + random.Uint32N(3)
			weight := 1 + random.Uint32N(9)
			q.StartItem(0, weight)
			q.AddSpan(keyword, min(keyword+width, keywords))
			for range min(width, keywords-keyword) {
				weights = append(weights, int(weight))
			}
			keyword += width + random.Uint32N(2)
		}
		slices.Sort(weights)
		slices.Reverse(weights)
		reach := 0
		for _, w := range weights[:min(most, len(weights))] {
			reach += w
		}
		bound := x.CountBound(&q)
		if distinct && bound != uint64(reach) || !distinct && len(weights) > 0 && bound != uint64(weights[0]*most) {
			t.Errorf("the bound is %d; %v, of which an object has %d (distinct %v): %d", bound, weights, most, distinct, reach)
		}
		// Items that overlap are not taken together.
		q.Items = append(q.Items, q.Items...)
		if twice := x.CountBound(&q); twice != 2*bound {
			t.Errorf("twice the items have the bound %d, once %d", twice, bound)
		}
		worst := slices.Max(append(matchCounts(x, &q), 0))
		if worst > 2*bound {
			t.Errorf("an object counts %d, the bound is %d", worst, 2*bound)
		}
	}
	// What is said to be distinct and is not is found.
	b, err := onebyone.NewBuilder(schemaFor(t, schema.Rows), []schema.AttributeSpec{{Name: "a", Type: schema.Text}}, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b.AddString(0, "x")
	b.AddString(0, "x")
	if err := b.EndObject("", nil, ""); err != nil {
		t.Fatal(err)
	}
	data, err := b.Bytes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	x, err := index.OpenBytes(data)
	if err != nil {
		t.Fatal(err)
	}
	x.SetDistinct(0)
	if err := x.Validate(); err == nil || !strings.Contains(err.Error(), "has keyword 0 twice") {
		t.Errorf("a keyword twice: %v", err)
	}
	if bound := x.CountBound(&postings.MatchQuery{}); bound != 0 {
		t.Errorf("nothing has the bound %d", bound)
	}
}
