package index_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/ngram"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/naive"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// keywords returns the names of all keywords of an attribute.
func keywords(x *index.Index, attr int) []string {
	var names []string
	for kw := range x.Attributes()[attr].Keywords {
		names = append(names, x.KeywordName(attr, kw))
	}
	return names
}

func TestWords(t *testing.T) {
	const from = "{name: n, kind: documents, stop_words: none}"
	for _, c := range []struct {
		text string
		want string // ascending
	}{
		{"Generic Inverted Index, on the GPU!", "generic gpu index inverted on the"},
		{"a a A a", "a"},
		{"don't can’t it's", "can’t don't it's"},
		{"foo_bar 3.14 1,234 C++ #1 x-ray", "1 1,234 3.14 c foo_bar ray x"},
		{"ＦＵＬＬ ﬁne Ⅳ x²", "2 fine full iv x"},
		{"Sony™ 3½ ©", "1⁄2 3 sony"},
		{"Straße ÄRGER İ", "i̇ straße ärger"},
		{"ΟΔΟΣ οδός", "οδος οδός"},
		{"東京 カタカナ ｶﾀｶﾅ", "カタカナ 京 東"},
		{"😀 -- ... \t\n", ""},
		{"русский язык", "русский язык"},
		{"हिन्दी ไทย", "हिन्दी ท ย ไ"}, // UAX #29 leaves Thai to dictionaries: each letter is a word
	} {
		x, q := textIndex(t, from, c.text)
		want := strings.Fields(c.want)
		slices.Sort(want)
		if got := keywords(x, 0); !slices.Equal(got, want) {
			t.Errorf("%q: words %q, want %q", c.text, got, want)
		}
		if len(want) == 0 {
			continue
		}
		// The text finds itself, in whatever case or normal form it is asked for.
		for _, asked := range []string{c.text, norm.NFD.String(c.text), norm.NFC.String(c.text), c.text + " " + c.text} {
			var query postings.MatchQuery
			if err := askText(q, &query, asked); err != nil {
				t.Fatal(err)
			}
			checkQuery(t, x, &query)
			if got := matchCounts(x, &query)[0]; got != uint64(len(want)) {
				t.Errorf("%q asked as %q: count %d, want %d", c.text, asked, got, len(want))
			}
		}
	}
}

func TestStopWords(t *testing.T) {
	x, q := textIndex(t, "{name: n, kind: documents, columns: [{name: a, type: text}]}", "The index and THE gpu", "of the")
	if got := keywords(x, 0); !slices.Equal(got, []string{"gpu", "index"}) {
		t.Errorf("english: %q", got)
	}
	var query postings.MatchQuery
	if err := askText(q, &query, "and the of"); err != nil {
		t.Fatal(err)
	}
	if len(query.Spans) != 0 || len(top(matchCounts(x, &query), 9)) != 0 {
		t.Errorf("stop words match: %v", query)
	}
	x, _ = textIndex(t, "{name: n, kind: documents, stop_words: [Ärger, GPU]}", "ÄRGER the gpu index")
	if got := keywords(x, 0); !slices.Equal(got, []string{"index", "the"}) {
		t.Errorf("own list: %q", got)
	}
}

func TestSeveralTextColumns(t *testing.T) {
	from := parseSchema(t, `
name: n
kind: documents
columns:
  - {name: year, type: number, edges: exact}
  - {name: title, type: text, store: true}
  - {name: note, type: payload}
  - {name: body, type: text}
`)
	b := newBuilder(t, from)
	b.add(&schema.Record{Cells: []schema.Cell{
		{Values: []string{"1999"}}, {Values: []string{"Blue <sky>", "sea"}}, {JSON: json.RawMessage(`{"x" : [1, 2]}`)}, {Values: []string{"blue water"}}}})
	b.add(&schema.Record{Cells: []schema.Cell{{}, {}, {}, {Values: []string{"sky"}}}})
	x, q := b.open()
	var query postings.MatchQuery
	if err := askText(q, &query, "blue sky"); err != nil {
		t.Fatal(err)
	}
	checkQuery(t, x, &query)
	if got := top(matchCounts(x, &query), 9); !slices.Equal(got, []hit{{0, 3}, {1, 1}}) {
		t.Errorf("hits %v", got)
	}
	if got := string(x.Payload(0)); got != `{"title":["Blue <sky>","sea"],"note":{"x":[1,2]}}` {
		t.Errorf("payload %s", got)
	}
	if got := x.Payload(1); got != nil {
		t.Errorf("payload %s", got)
	}
	if err := q.Conditions(&query, []column.Condition{{Attr: "year", Value: number(1999)}, {Attr: "body", Value: text("BLUE")}}); err != nil {
		t.Fatal(err)
	}
	if got := top(matchCounts(x, &query), 9); !slices.Equal(got, []hit{{0, 2}}) {
		t.Errorf("hits %v", got)
	}
	wantRefusal(t, q.Conditions(&query, []column.Condition{{Attr: "body", Value: text("blue sky")}}), `"body"`, "2 words", "use text")
	wantRefusal(t, q.Conditions(&query, []column.Condition{{Attr: "body", Value: text("!")}}), "no word")
	wantRefusal(t, q.Conditions(&query, []column.Condition{{Attr: "note", Value: text("x")}}), "stored but not indexed")
}

// Example 5.1 of the paper: S = aabaab has the ordered 3-grams (aab,0) (aba,0) (baa,0) (aab,1); padding adds
// two on either side.
func TestOrderedGramsExample51(t *testing.T) {
	x, q := textIndex(t, "{name: n, kind: sequences, ngram: 3}", "aabaab")
	for _, c := range []struct {
		gram       string
		occurrence uint32
		want       bool
	}{{"aab", 0, true}, {"aba", 0, true}, {"baa", 0, true}, {"aab", 1, true}, {"aab", 2, false}, {"aba", 1, false}, {"bab", 0, false}} {
		key := ngram.AppendKey(nil, []rune(c.gram), c.occurrence)
		if _, ok := x.Lookup(0, string(key)); ok != c.want {
			t.Errorf("(%s,%d) found %v, want %v", c.gram, c.occurrence, ok, c.want)
		}
	}
	if got := x.Attributes()[0].Keywords; got != 4+4 {
		t.Errorf("%d keywords, want 4 and 4 with padding", got)
	}
	if x.Text(0) != "aabaab" {
		t.Errorf("text %q", x.Text(0))
	}
	var query postings.MatchQuery
	if err := askText(q, &query, "aabaab"); err != nil {
		t.Fatal(err)
	}
	if got := matchCounts(x, &query)[0]; got != 8 {
		t.Errorf("count %d, want 8", got)
	}
}

// Lemma 5.1: the match count of a query is the overlap of the n-gram multisets, on random strings over an alphabet
// so small that grams repeat. Object 0 is missing and must never match.
func TestSequencesCountGramOverlap(t *testing.T) {
	seed := seeded.Seed(t)
	random := rand.New(rand.NewPCG(seed, 51))
	alphabets := [][]rune{[]rune("ab"), []rune("aä語😀"), []rune("Aa b\u0301")}
	word := func() string {
		alphabet := alphabets[random.IntN(len(alphabets))]
		runes := make([]rune, 1+random.IntN(20))
		for i := range runes {
			runes[i] = alphabet[random.IntN(len(alphabet))]
		}
		return string(runes)
	}
	for n := 1; n <= schema.MaxNGram; n++ {
		from := parseSchema(t, "{name: n, kind: sequences}")
		from.NGram = n
		b := newBuilder(t, from)
		b.add(&schema.Record{Cells: []schema.Cell{{}}})
		texts := []string{""}
		for range 50 {
			texts = append(texts, word())
			b.add(&schema.Record{Cells: []schema.Cell{{Values: texts[len(texts)-1:]}}})
		}
		x, q := b.open()
		for range 50 {
			asked := word()
			var query postings.MatchQuery
			err := askText(q, &query, asked)
			if strings.TrimSpace(asked) == "" {
				wantRefusal(t, err, "empty")
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			checkQuery(t, x, &query)
			for id, got := range matchCounts(x, &query) {
				want := naive.GramOverlap([]rune(asked), []rune(texts[id]), n)
				if id == 0 {
					want = 0
				}
				if got != uint64(want) {
					t.Errorf("seed %d: n %d: %q and %q: count %d, want %d", seed, n, asked, texts[id], got, want)
				}
			}
		}
	}
}

func TestTextErrors(t *testing.T) {
	var query postings.MatchQuery
	_, documents := textIndex(t, "{name: docs, kind: documents}", "x")
	_, sequences := textIndex(t, "{name: seqs, kind: sequences}", "x")
	_, rows := textIndex(t, "{name: table, kind: rows, columns: [{name: a, type: category}]}", "x")
	for _, q := range []*index.Queries{documents, sequences} {
		wantRefusal(t, askText(q, &query, ""), "text is empty")
		wantRefusal(t, askText(q, &query, " \t\n"), "text is empty")
		wantRefusal(t, askText(q, &query, "M\xfcnchen"), "not valid UTF-8")
	}
	if err := askText(documents, &query, "!!"); err != nil {
		t.Errorf("a text without words is a query without hits, not an error: %v", err)
	}
	wantRefusal(t, askText(rows, &query, "x"), "index table holds rows", "use row or items")
	wantRefusal(t, sequences.Conditions(&query, []column.Condition{{Attr: "text", Value: text("x")}}), "use text")
}

func TestTextRecordErrors(t *testing.T) {
	for kind, want := range map[string]string{"documents": "not valid UTF-8", "sequences": "not valid UTF-8"} {
		b := newBuilder(t, parseSchema(t, "{name: n, kind: "+kind+"}"))
		err := b.objects.Add(&schema.Record{Line: 7, Cells: []schema.Cell{{Values: []string{"a\xff"}}}})
		var bad *index.RecordError
		if !errors.As(err, &bad) || bad.Line != 7 || bad.Column != "text" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	b := newBuilder(t, parseSchema(t, "{name: n, kind: sequences}"))
	if err := b.objects.Add(&schema.Record{Cells: []schema.Cell{{Values: []string{"a", "b"}}}}); err == nil || !strings.Contains(err.Error(), "list of 2") {
		t.Error(err)
	}
	if err := b.objects.Add(&schema.Record{}); err == nil {
		t.Error("a record without the schema's cells was accepted")
	}
	if b.objects.Objects() != 0 {
		t.Errorf("%d objects", b.objects.Objects())
	}
}

// Queries is shared by all goroutines of a service; run with -race.
func TestQueriesConcurrently(t *testing.T) {
	texts := []string{"blue sky", "grüner Wald", "ROTES Meer", "blue sea sky"}
	_, q := textIndex(t, "{name: n, kind: documents}", texts...)
	want := make([]postings.MatchQuery, len(texts))
	for i := range texts {
		if err := askText(q, &want[i], texts[i]); err != nil {
			t.Fatal(err)
		}
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			var query postings.MatchQuery
			for i := range 400 {
				if err := askText(q, &query, texts[i%len(texts)]); err != nil {
					t.Error(err)
				}
				if !slices.Equal(query.Spans, want[i%len(texts)].Spans) {
					t.Errorf("%q: %v, want %v", texts[i%len(texts)], query.Spans, want[i%len(texts)].Spans)
				}
			}
		})
	}
	group.Wait()
}

// askText makes dst the query for a text, and for nothing else.
func askText(q *index.Queries, dst *postings.MatchQuery, text string) error {
	_, err := q.Plan(dst, &index.Request{Text: &text, Quiet: true})
	return err
}
