package enginetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/flatscan"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/ngram"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/postings/single"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/similarity"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/index/verify"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

const mixedSchema = `
name: mixed
columns:
- {name: title, type: text, stop_words: none}
- {name: tags, type: set}
- {name: name, type: string, ngram: 2}
- {name: brand, type: category}
`

// mixedIndex is an index of random records.
func mixedIndex(t testing.TB, rng *rand.Rand, n int) *index.Index {
	t.Helper()
	s, err := index.Builtin().ParseSchema([]byte(mixedSchema))
	if err != nil {
		t.Fatal(err)
	}
	o, err := onebyone.NewObjects(s, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	some := func(names string, most int) (values []string) {
		all := strings.Fields(names)
		for range rng.IntN(most + 1) {
			values = append(values, all[min(rng.IntN(len(all)), rng.IntN(len(all)))])
		}
		return values
	}
	for range n {
		rec := &schema.Record{Cells: make([]schema.Cell, 4)}
		if words := some("red green blue fast slow old new big small shoe hat", 8); words != nil {
			rec.Cells[0].Values = []string{strings.Join(words, " ")}
		}
		rec.Cells[1].Values = some("a b c d e f g", 4)
		if rng.IntN(5) > 0 {
			rec.Cells[2].Values = []string{RandomString(rng, "abc", 1+rng.IntN(7))}
		}
		rec.Cells[3].Values = some("x y z", 1)
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
	if err := x.Validate(); err != nil {
		t.Fatal(err)
	}
	return x
}

// mixedPlan asks one column by a measure, and another beside it.
func mixedPlan(t testing.TB, rng *rand.Rand, x *index.Index) (gpuexec.Plan, *verify.Measure, verify.Asked) {
	t.Helper()
	names := []string{"jaccard", "dice", "cosine", "containment", "bm25", "edit"}
	m := verify.FindMeasure(names[rng.IntN(len(names))])
	a := verify.Asked{K: 1 + rng.IntN(12), Unit: uint32(1 + rng.IntN(3))}
	query := new(postings.MatchQuery)
	if m.Name == "edit" {
		a.Column, a.Text, a.NGram = x.Forward().Column("name"), RandomString(rng, "abc", 1+rng.IntN(7)), 2
		askGrams(x, query, &a)
	} else {
		a.Column, a.IDF = x.Forward().Column([]string{"title", "tags"}[rng.IntN(2)]), rng.IntN(2) == 0
		askTerms(t, rng, x, query, &a)
	}
	brand := attribute(x, "brand")
	if keywords := x.Attribute(brand).Keywords; keywords > 0 {
		if rng.IntN(2) == 0 {
			query.StartItem(uint32(brand), uint32(1+rng.IntN(3)))
			query.AddSpan(0, 1)
		}
		if rng.IntN(3) == 0 {
			query.Filter = new(filter.Filter)
			query.Filter.StartGroup(rng.IntN(2) == 0)
			query.Filter.StartClause(uint32(brand))
			query.Filter.AddSpan(0, min(2, keywords))
		}
	}
	a.Matching = &single.Counter{Lists: x.Lists, Query: query}
	p := gpuexec.Plan{Family: postings.FamilyName, Query: query, K: a.K + rng.IntN(20), Certify: rng.IntN(3) > 0, MinCount: uint32(rng.IntN(3))}
	if m.Overlap {
		p.MinCount = max(1, p.MinCount)
	}
	s, err := m.New(&a)
	if err != nil {
		t.Fatal(err)
	}
	p.Rescore = s
	return p, m, a
}

// askTerms asks for words or elements, an item each.
func askTerms(t testing.TB, rng *rand.Rand, x *index.Index, query *postings.MatchQuery, a *verify.Asked) {
	t.Helper()
	terms := strings.Fields("red green blue fast slow old new big small shoe hat what")
	if a.Column.Name == "tags" {
		terms = strings.Fields("a b c d e f g h")
	}
	for _, i := range rng.Perm(len(terms))[:1+rng.IntN(5)] {
		if found, ok := x.Lookup(attribute(x, a.Column.Name), terms[i]); ok {
			a.Terms = append(a.Terms, found)
		} else {
			a.Unknown++
		}
	}
	slices.Sort(a.Terms)
	idf, err := similarity.NewIDF(a.Column.IDFScale, uint64(x.Objects()))
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Terms) == 0 { // or it would be nothing but a filter
		query.StartItem(uint32(attribute(x, a.Column.Name)), 1)
	}
	for _, term := range a.Terms {
		weight := uint32(1)
		if a.IDF {
			weight = idf.Weight(uint64(a.Column.Frequency(term)))
		}
		query.StartItem(uint32(attribute(x, a.Column.Name)), a.Unit*weight)
		query.AddSpan(term, term+1)
	}
}

// askGrams asks for the grams of a string, in one item.
func askGrams(x *index.Index, query *postings.MatchQuery, a *verify.Asked) {
	var known []uint32
	var grams ngram.Scanner
	for grams.Reset([]rune(a.Text), a.NGram); grams.Next(); {
		if keyword, ok := x.Lookup(attribute(x, a.Column.Name), string(grams.Key())); ok {
			known = append(known, keyword)
		}
	}
	slices.Sort(known)
	query.StartItem(uint32(attribute(x, a.Column.Name)), a.Unit)
	for _, keyword := range known {
		query.AddSpan(keyword, keyword+1)
	}
}

// attribute is the position of an attribute.
func attribute(x *index.Index, name string) int {
	return slices.IndexFunc(x.Attributes(), func(a postings.Attribute) bool { return a.Name == name })
}

// exhaustive is the answer by definition: every object that passes, counted by a flat scan, in the measure's order.
func exhaustive(t testing.TB, x *index.Index, p *gpuexec.Plan, m *verify.Measure, a verify.Asked) []gpuexec.Hit {
	t.Helper()
	query := p.Query.(*postings.MatchQuery)
	scanner := flatscan.New(x.Lists)
	passing, _ := scanner.Search(nil, &postings.MatchQuery{Filter: orAll(query.Filter)}, int(x.Objects()), 0)
	counted, _ := scanner.Search(nil, query, int(x.Objects()), 1)
	var all []verify.Candidate
	seen := make(map[uint32]bool)
	for _, h := range counted {
		all = append(all, verify.Candidate{ID: h.ID, Count: h.Count})
		seen[h.ID] = true
	}
	for _, h := range passing {
		if !seen[h.ID] {
			all = append(all, verify.Candidate{ID: h.ID})
		}
	}
	all = slices.DeleteFunc(all, func(c verify.Candidate) bool { return c.Count < p.MinCount })
	if len(all) == 0 {
		return nil
	}
	a.K = len(all)
	s, err := m.New(&a)
	if err != nil {
		t.Fatal(err)
	}
	r := s.New(nil)
	if err := r.Offer(all, nil, nil, 0); err != nil {
		t.Fatal(err)
	}
	var hits []gpuexec.Hit
	for _, h := range r.Hits(nil) {
		hits = append(hits, gpuexec.Hit(h))
	}
	return hits
}

func orAll(f *filter.Filter) *filter.Filter {
	if f == nil {
		return new(filter.Filter)
	}
	return f
}

// TestMeasures asks records by words, sets and strings, filtered or not, through every engine: what is certified is the answer by definition,
// with certify every answer is, and calls that are interrupted change nothing.
func TestMeasures(t *testing.T) {
	rng := seeded.Rand(t)
	all := engines(t)
	exact, scans := 0, 0
	for round := range Rounds(make([]struct{}, 40)) {
		size := 1 + rng.IntN(400)
		if round%20 == 0 && !raced.Detector {
			size = store.TileObjects + rng.IntN(300)
		}
		x := mixedIndex(t, rng, size)
		searchers := loadOnAll(t, all, x)
		var plans []gpuexec.Plan
		var want [][]gpuexec.Hit
		var asked []string
		for range 1 + rng.IntN(20) {
			p, m, a := mixedPlan(t, rng, x)
			plans = append(plans, p)
			want = append(want, exhaustive(t, x, &p, m, a))
			asked = append(asked, fmt.Sprintf("%s of %q, k %d of %d, min count %d, certify %v, %+v", m.Name, a.Column.Name, a.K, p.K, p.MinCount, p.Certify, a))
		}
		first := Search(t, searchers["one core"], plans)
		for i := range plans {
			truth := want[i][:min(len(want[i]), plans[i].Wanted())]
			if first[i].Err != nil || plans[i].Certify && !first[i].Exact {
				t.Fatalf("%s: %+v", asked[i], first[i])
			}
			if first[i].Exact {
				exact++
				if !slices.Equal(first[i].Hits, truth) {
					t.Fatalf("%s of %d objects:\n%v\nshould be\n%v", asked[i], size, first[i].Hits, truth)
				}
			}
			if plans[i].Certify && len(truth) > 0 {
				scans++
			}
		}
		for name, s := range searchers {
			again := Search(t, s, plans)
			paced, _ := pacedSearch(t, rng, s, plans, gpuexec.Pace{Call: 1, Grain: 1 + rng.IntN(50)})
			for i := range plans {
				for _, got := range []gpuexec.Answer{again[i], paced[i]} {
					if !slices.Equal(got.Hits, first[i].Hits) || got.Exact != first[i].Exact || got.MCK != first[i].MCK || got.Err != nil {
						t.Fatalf("%s, on %s:\n%+v\nnot\n%+v", asked[i], name, got, first[i])
					}
				}
			}
		}
	}
	t.Logf("%d exact answers, %d with certify", exact, scans)
}
