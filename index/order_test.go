package index_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// someTexts are texts of few words, some of them several times, and some of none.
func someTexts(random *rand.Rand, n int) []schema.Record {
	records := make([]schema.Record, n)
	for i := range records {
		var words []string
		for range random.IntN(12) {
			words = append(words, fmt.Sprintf("w%d", random.IntN(1+random.IntN(40))))
		}
		records[i] = schema.Record{Line: int64(i + 1), Cells: []schema.Cell{{Values: []string{strings.Join(words, " ") + " the"}}, {Values: []string{fmt.Sprint(i % 9)}}}}
	}
	return records
}

// TestDocumentsInOrder: documents whose terms are kept are put in the order of any measure of terms as records of the same texts are, with the same scores
// and proofs, by what the schema says or the query; and count as they did where nothing is kept.
func TestDocumentsInOrder(t *testing.T) {
	random := seeded.Rand(t)
	records := someTexts(random, 400)
	build := func(text string) (*index.Index, *index.Queries) {
		b := newBuilder(t, parseSchema(t, text))
		for i := range records {
			b.add(&records[i])
		}
		return b.open()
	}
	const columns = "columns: [{name: a, type: text%s}, {name: n, type: number, edges: exact}]"
	rx, rq := build(fmt.Sprintf("name: r\n"+columns, ""))
	px, pq := build(fmt.Sprintf("name: d\nkind: documents\n"+columns, ""))
	kx, kq := build(fmt.Sprintf("name: d\nkind: documents\n"+columns, ", keep: terms"))
	ox, oq := build(fmt.Sprintf("name: d\nkind: documents\nrescore: {by: bm25, column: a, candidates: 50}\n"+columns, ""))
	if ox.Schema().Columns[0].Keep != schema.KeepTerms || ox.Schema().Rescore.Candidates != 50 {
		t.Errorf("the file's schema is %+v", ox.Schema())
	}
	var plain, asked, kept, ordered []gpuexec.Plan
	plan := func(q *index.Queries, r index.Request, k int) gpuexec.Plan {
		made, err := q.Plan(new(postings.MatchQuery), &r)
		if err != nil {
			t.Fatal(err)
		}
		p := gpuexec.Plan{Family: made.Family, Query: made.Query, K: k, MinCount: 1}
		if made.Rescore != nil {
			p.Rescore, p.Certify = made.Rescore, k%2 == 0
		}
		return p
	}
	counted := 0
	for range 200 {
		var words []string
		for range 1 + random.IntN(5) {
			words = append(words, fmt.Sprintf("w%d", random.IntN(42)))
		}
		text := strings.Join(words, " ")
		by, k := []string{"jaccard", "dice", "cosine", "containment", "bm25"}[random.IntN(5)], 10+random.IntN(20)
		r := index.Request{Text: &text, Rescore: &index.Rescore{By: by, K: 10}}
		asked, kept = append(asked, plan(rq, r, k)), append(kept, plan(kq, r, k))
		if r.Rescore = nil; pq.Ordered(&r, 10) != 0 || r.Rescore != nil {
			t.Fatal("a schema without an order gives one")
		}
		plain = append(plain, plan(pq, r, k), plan(kq, r, k))
		if n := oq.Ordered(&r, 10); n != 50 || r.Rescore == nil || *r.Rescore != (index.Rescore{By: "bm25", Column: "a", K: 10}) {
			t.Fatalf("%d candidates, %+v", n, r.Rescore)
		}
		ordered = append(ordered, plan(oq, r, k))
		r.Rescore = &index.Rescore{By: "bm25", K: 10}
		asked = append(asked, plan(rq, r, k))
		kept = append(kept, plan(kq, r, k))
	}
	strip := func(answers []gpuexec.Answer) []gpuexec.Answer {
		for i := range answers {
			answers[i].Units, answers[i].Rescoring = 0, 0 // what it took
			counted += len(answers[i].Hits)
		}
		return answers
	}
	want, got := strip(search(t, rx, asked)), strip(search(t, kx, kept))
	if !reflect.DeepEqual(got, want) || counted < 1000 {
		t.Errorf("documents and records differ, or there are few hits: %d", counted)
	}
	byDefault := strip(search(t, ox, ordered))
	for i := range byDefault {
		if !reflect.DeepEqual(byDefault[i], want[2*i+1]) {
			t.Fatalf("by the schema %+v, by the query %+v", byDefault[i], want[2*i+1])
		}
	}
	var without, with []gpuexec.Plan
	for i := 0; i < len(plain); i += 2 {
		without, with = append(without, plain[i]), append(with, plain[i+1])
	}
	if !reflect.DeepEqual(strip(search(t, px, without)), strip(search(t, kx, with))) {
		t.Error("counts are others where terms are kept")
	}
	word := "w1"
	if _, err := pq.Plan(new(postings.MatchQuery), &index.Request{Text: &word, Rescore: &index.Rescore{By: "bm25", K: 1}}); err == nil || !strings.Contains(err.Error(), "keeps them of none") {
		t.Errorf("documents that keep nothing are ordered: %v", err)
	}
	// What does not ask the column is in the order of counts.
	five := column.NumberValue(5)
	for _, r := range []index.Request{{Conditions: []column.Condition{{Attr: "n", Value: &five}}}, {Total: true}, {Rescore: &index.Rescore{By: "dice", K: 1}}} {
		before := r.Rescore
		if n := oq.Ordered(&r, 10); n != 0 || r.Rescore != before {
			t.Errorf("%+v: %d", r, n)
		}
	}
}

// TestOrdersOfSchemas: what a schema may say of the order of hits.
func TestOrdersOfSchemas(t *testing.T) {
	const columns = "\ncolumns: [{name: a, type: text}, {name: n, type: number}, {name: s, type: string}, {name: p, type: payload}]"
	for text, want := range map[string]string{
		"rescore: {by: bm25, column: a}" + columns:                                                    "",
		"rescore: {by: edit, column: s, candidates: 65536}" + columns:                                 "",
		"kind: documents\nrescore: {by: dice, column: text}":                                          "",
		"kind: sets\nrescore: {by: jaccard, column: set}":                                             "",
		"kind: vectors\nrescore: {by: l2, column: vector}":                                            "",
		"rescore: {by: bm25, column: b}" + columns:                                                    `there is no column "b"`,
		"rescore: {by: count, column: a}" + columns:                                                   `by "count" is no measure: there are jaccard`,
		"rescore: {by: bm25, column: n}" + columns:                                                    "bm25 compares terms, and of this column the index keeps numbers",
		"rescore: {by: bm25, column: p}" + columns:                                                    "bm25 compares terms, and of this column the index keeps nothing",
		"rescore: {by: edit, column: a}" + columns:                                                    "edit compares texts, and of this column the index keeps terms",
		"rescore: {by: bm25}" + columns:                                                               "by and column are needed",
		"rescore: {by: bm25, column: a, candidates: 65537}" + columns:                                 "candidates 65537: must be 1 to 65536",
		"rescore: {by: bm25, column: a, k: 3}" + columns:                                              `unknown field "k": rescore has by, column, candidates`,
		"kind: sequences\nrescore: {by: edit, column: text}":                                          "always in the order of their edit distances",
		"kind: documents\ncolumns: [{name: a, type: text, keep: words}]":                              `keep "words" is unknown: texts of documents keep terms`,
		"kind: vectors\nrescore: {by: l2, column: v}\ncolumns: [{name: v, type: vector, keep: none}]": "l2 compares vectors, and of this column the index keeps nothing",
		"kind: rows\nrescore: {by: bm25, column: c}\ncolumns: [{name: c, type: category}]":            "of this column the index keeps nothing",
		"columns: [{name: a, type: text, keep: terms}]":                                               "keep belongs to type vector",
	} {
		s, err := index.Builtin().ParseSchema([]byte("name: n\n" + text))
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", text, err, want)
		case err == nil:
			stored, err := s.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if again, err := index.Builtin().ParseSchema(stored); err != nil || !reflect.DeepEqual(again, s.Clone()) {
				t.Errorf("%s\nis read as %+v, %v", stored, again, err)
			}
			copied := s.Clone()
			if copied.Rescore.By = "other"; s.Rescore.By == "other" {
				t.Error("a clone shares the order")
			}
		}
	}
}
