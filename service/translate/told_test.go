package translate

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/internal/testkit/jsonlines"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestFewerAreOfThose: an explanation that is told with fewer entries tells only such as it told before, so that nothing more is looked up, and says the same of them.
func TestFewerAreOfThose(t *testing.T) {
	rng := seeded.Rand(t)
	x, err := index.OpenBytes(jsonlines.Build(t, "{name: n, columns: [{name: v, type: vector, functions: 40}, {name: a, type: text}, {name: b, type: category}, {name: c, type: category}, {name: d, type: category}]}",
		`{"v":[1,2],"a":"red old shoes","b":"x","c":"y","d":"z"}`+"\n"+`{"v":[7,1],"a":"red hat","b":"y","c":"y","d":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	e, err := New("n", x, 0)
	if err != nil {
		t.Fatal(err)
	}
	longer := 0
	for range 200 {
		var m postings.MatchQuery
		hits := []gpuexec.Hit{{ID: 0, Count: 1 << 20}, {ID: 1, Count: 1 << 20}}
		for range 1 + rng.IntN(150) {
			attr := rng.IntN(len(x.Attributes()))
			keywords := x.Attribute(attr).Keywords
			item := postings.Item{Attr: uint32(attr), Weight: 1 + rng.Uint32N(2), First: uint32(len(m.Spans))}
			for range 1 + rng.IntN([]int{1, 4, 400}[rng.IntN(3)]) {
				lo := rng.Uint32N(keywords)
				m.Spans = append(m.Spans, postings.Span{Lo: lo, Hi: lo + 1})
				item.Count++
			}
			m.Items = append(m.Items, item)
		}
		l := e.lookUp(&m, hits)
		var all Explanation
		l.explain(&all, maxExplainedItems)
		items, counts := len(all.Items), len(all.Items)*len(hits)
		if len(l.items) != items || len(l.counts) != counts {
			t.Fatalf("%d entries and %d of hits are kept of %d and %d", len(l.items), len(l.counts), items, counts)
		}
		for most := uint32(maxExplainedItems / 2); most > 0; most /= 2 {
			var fewer, afresh Explanation
			l.explain(&fewer, most)
			if len(l.items) != items || len(l.counts) != counts {
				t.Fatalf("%d items: with %d entries %d are looked up that were not before", len(m.Items), most, len(l.items)-items)
			}
			e.lookUp(&m, hits).explain(&afresh, most)
			told, err := json.Marshal(fewer)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := json.Marshal(afresh); err != nil || string(again) != string(told) {
				t.Fatalf("told again with %d entries:\n%s\nand at once:\n%s", most, told, again)
			}
			if len(fewer.Items) < len(all.Items) {
				longer++
			}
		}
	}
	if longer == 0 {
		t.Error("no explanation was told with fewer entries")
	}
}

// TestClippedCharacters: a long name is cut between characters.
func TestClippedCharacters(t *testing.T) {
	for i := range 4 {
		name := strings.Repeat("x", i) + strings.Repeat("学", 60)
		if got := clipped(name); !utf8.ValidString(got) || len(got) > maxName+len("…") || !strings.HasPrefix(name, strings.TrimSuffix(got, "…")) {
			t.Errorf("%d: %q", i, got)
		}
	}
	if got := clipped("short"); got != "short" {
		t.Errorf("%q", got)
	}
}
