package verify_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index/forward"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/index/verify"
)

// titles is a column of objects with so many words each, of a vocabulary of which some are frequent.
func titles(b *testing.B, objects, words int) *forward.Column {
	b.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	s := &schema.Schema{Columns: []schema.Column{{Name: "title"}}}
	builder, err := forward.NewBuilder(s, []schema.KeptSpec{{Form: schema.KeptTerms, IDFScale: 16}}, 0, nil)
	if err != nil {
		b.Fatal(err)
	}
	names := make([]string, 100_000)
	for i := range names {
		names[i] = fmt.Sprintf("word%06d", i)
	}
	values := make([]schema.Values, 1)
	for range objects {
		v := &values[0]
		v.Reset()
		for range words/2 + r.IntN(words) {
			f := r.Float64()
			v.Strings = append(v.Strings, names[int(f*f*f*float64(len(names)))])
		}
		slices.Sort(v.Strings)
		v.Strings = slices.Compact(v.Strings)
		if r.IntN(4) == 0 {
			for range v.Strings {
				v.Frequencies = append(v.Frequencies, uint32(1+r.IntN(2)))
			}
		}
		if err := builder.Add(values); err != nil {
			b.Fatal(err)
		}
	}
	draft, err := builder.Finish(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	data, err := store.Memory(b.Context(), uint32(objects), []store.Draft{draft})
	if err != nil {
		b.Fatal(err)
	}
	var c *forward.Column
	_, err = store.OpenBytes(data, forward.Family{}.Sections(), func(f *store.File) error {
		x, err := forward.Family{}.Open(f, s)
		if err == nil {
			c = x.(*forward.Forward).Column("title")
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// BenchmarkScores is the time per candidate of queries whose candidates lie anywhere among two million titles.
func BenchmarkScores(b *testing.B) {
	const objects, candidates, k = 2_000_000, 64, 10
	c := titles(b, objects, 9)
	r := rand.New(rand.NewPCG(3, 4))
	for _, name := range []string{"jaccard", "cosine", "bm25"} {
		for _, idf := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/idf=%v", name, idf), func(b *testing.B) {
				m := verify.FindMeasure(name)
				type query struct {
					scores *verify.Scores
					c      []verify.Candidate
				}
				queries := make([]query, 4096)
				for i := range queries {
					q := &queries[i]
					for range candidates {
						q.c = append(q.c, verify.Candidate{ID: r.Uint32N(objects), Count: 1000})
					}
					row := termsOf(c, q.c[0].ID)
					var err error
					a := &verify.Asked{Column: c, K: k, Terms: row.Keywords, IDF: idf, Unknown: 1, Unit: 1}
					if q.scores, err = m.New(a); err != nil {
						b.Fatal(err)
					}
				}
				var rescorer verify.Rescorer
				var hits []verify.Scored
				b.ReportAllocs()
				b.ResetTimer()
				for i := range b.N {
					q := &queries[i%len(queries)]
					rescorer = q.scores.New(rescorer)
					if err := rescorer.Offer(q.c, nil, nil, 0); err != nil {
						b.Fatal(err)
					}
					hits = rescorer.Hits(hits[:0])
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/candidates, "ns/candidate")
			})
		}
	}
}

// BenchmarkCandidates is the time per candidate of queries like those of W3, of titles that a core's caches hold and of others: 17 words of a
// vocabulary whose frequencies fall, queries of 12 words, 100 candidates; of these the first 10 are hits, or all. Of known ones a device has computed
// the scores; of ordered ones the order too.
func BenchmarkCandidates(b *testing.B) {
	for _, objects := range []uint32{20_000, 2_000_000} {
		c := titles(b, int(objects), 17)
		for _, name := range []string{"jaccard", "cosine", "bm25"} {
			for _, k := range []int{10, 100} {
				b.Run(fmt.Sprintf("objects=%d/%s/k=%d", objects, name, k), func(b *testing.B) { scoreCandidates(b, c, verify.FindMeasure(name), 100, k, false) })
			}
			if name == "bm25" {
				for _, candidates := range []int{100, 800} {
					b.Run(fmt.Sprintf("objects=%d/%s/k=100/known=%d", objects, name, candidates), func(b *testing.B) {
						scoreCandidates(b, c, verify.FindMeasure(name), candidates, 100, true)
					})
					b.Run(fmt.Sprintf("objects=%d/%s/k=100/ordered=%d", objects, name, candidates), func(b *testing.B) { takeHits(b, c, candidates, 100) })
				}
			}
		}
	}
}

func scoreCandidates(b *testing.B, c *forward.Column, m *verify.Measure, candidates, k int, known bool) {
	const words = 12
	r := rand.New(rand.NewPCG(3, 4))
	type query struct {
		scores *verify.Scores
		c      []verify.Candidate
		known  []verify.Known
	}
	queries := make([]query, 1024)
	for i := range queries {
		q := &queries[i]
		a := verify.Asked{Column: c, K: k, IDF: true} // of no unit: all are compared
		for j := range candidates {
			id := r.Uint32N(c.AllObjects())
			q.c = append(q.c, verify.Candidate{ID: id, Count: uint32(1 + (candidates-j)/4)})
			if row := termsOf(c, id); len(a.Terms) < words && len(row.Keywords) > 0 {
				a.Terms = append(a.Terms, row.Keywords[r.IntN(min(4, len(row.Keywords)))]) // frequent ones: others have them too
			}
		}
		slices.SortFunc(q.c, func(a, b verify.Candidate) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.ID, b.ID)) })
		slices.Sort(a.Terms)
		a.Terms = slices.Compact(a.Terms)
		var err error
		if q.scores, err = m.New(&a); err != nil {
			b.Fatal(err)
		}
		for j := range q.c {
			if !known {
				break
			}
			one := q.scores.New(nil)
			if err := one.Offer(q.c[j:j+1], nil, nil, 0); err != nil {
				b.Fatal(err)
			}
			q.known = append(q.known, verify.KnownScore(one.Hits(nil)[0].Score))
		}
	}
	var rescorer verify.Rescorer
	var hits []verify.Scored
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		q := &queries[i%len(queries)]
		rescorer = q.scores.New(rescorer)
		if err := rescorer.Offer(q.c, q.known, nil, 0); err != nil {
			b.Fatal(err)
		}
		hits = rescorer.Hits(hits[:0])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(candidates), "ns/candidate")
}

// takeHits is what is left to the host of candidates that a device puts in order.
func takeHits(b *testing.B, c *forward.Column, candidates, k int) {
	r := rand.New(rand.NewPCG(3, 4))
	queries := make([][]verify.Scored, 1024)
	for i := range queries {
		for j := range k {
			candidate := verify.Candidate{ID: r.Uint32N(c.AllObjects()), Count: r.Uint32N(12)}
			queries[i] = append(queries[i], verify.Scored{ID: candidate.ID, Count: candidate.Count, Score: float64(k - j)})
		}
	}
	scores, err := verify.FindMeasure("bm25").New(&verify.Asked{Column: c, K: k, IDF: true, Terms: []uint32{1, 2, 3}})
	if err != nil {
		b.Fatal(err)
	}
	var rescorer verify.Rescorer
	var hits []verify.Scored
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		rescorer = scores.New(rescorer)
		rescorer.(verify.Taker).Take(queries[i%len(queries)], candidates)
		hits = rescorer.Hits(hits[:0])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(candidates), "ns/candidate")
}

// BenchmarkMeasure is what it takes to make a query's side ready.
func BenchmarkMeasure(b *testing.B) {
	c := titles(b, 100_000, 9)
	for _, name := range []string{"jaccard", "bm25"} {
		b.Run(name, func(b *testing.B) {
			m := verify.FindMeasure(name)
			b.ReportAllocs()
			for i := range b.N {
				row := termsOf(c, uint32(i%100_000))
				if _, err := m.New(&verify.Asked{Column: c, K: 10, Terms: row.Keywords, IDF: true, Unit: 1}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// termsOf are the terms that a column keeps of an object.
func termsOf(c *forward.Column, id uint32) forward.Row {
	t := c.TermsTile(int(id / store.TileObjects))
	return t.Row(&t.Records[id%store.TileObjects])
}
