package lsh

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// What is counted of each query and object is what a comparison of all keywords counts, to the last bit, however objects come.
func TestMeasurementIsOfPairs(t *testing.T) {
	rng := seeded.Rand(t)
	rounds := 24
	if testing.Short() {
		rounds = 8
	}
	for round := range rounds {
		p := some(rng, Families()[round%4])
		p.Dim, p.Functions, p.Centre, p.Reach = 1+rng.IntN(6), 1+rng.IntN(60), nil, 0
		if p.Family != Cosine && rng.IntN(2) == 0 {
			p.Buckets = 2 + rng.IntN(1<<(1+rng.IntN(20))) // few: two that a query asks are often the same
		}
		f := must(t, p)
		centres := normal(rng, (1+rng.IntN(20))*p.Dim, 3)
		n := 100 + rng.IntN(400)
		if round%5 == 0 {
			n += atOnce
		}
		objects, queries := clusters(rng, centres, p.Dim, n), clusters(rng, centres, p.Dim, 1+rng.IntN(8))
		if rng.IntN(2) == 0 { // ties
			for i := range objects {
				objects[i] = float32(int(objects[i]))
			}
		}
		measures := Measures{Neighbours: []int{1 + rng.IntN(10), 1}, Candidates: []int{10 + rng.IntN(50)}, Reaches: []int{0}}
		if p.Family.reaches() {
			measures.Reaches = rng.Perm(9)[:1+rng.IntN(5)]
		}
		m := distinct([]int{p.Functions, 1 + rng.IntN(p.Functions), 1 + rng.IntN(p.Functions)})
		x, err := newMeasurement(f, queries, measures, m)
		if err != nil {
			t.Fatal(err)
		}
		keywords := hash(t, f, objects)
		for first := 0; first < n; {
			end := min(n, first+1+rng.IntN(3*atOnce/2))
			x.Add(keywords[first*p.Functions:end*p.Functions], objects[first*p.Dim:end*p.Dim], 1+rng.IntN(4))
			first = end
		}
		want := compared(t, x, f, queries, objects, keywords)
		for q := range x.tallies {
			got, want := &x.tallies[q], &want[q]
			if !slices.Equal(got.matches, want.matches) || !slices.EqualFunc(got.histogram, want.histogram, slices.Equal) {
				t.Fatalf("%+v, reaches %v, %v functions, query %d: matches %v, not %v", p, measures.Reaches, m, q, got.matches, want.matches)
			}
			if !slices.EqualFunc(got.nearest.first(), want.nearest.first(), func(a, b scored) bool {
				return a.score == b.score && a.id == b.id && slices.Equal(a.places, b.places)
			}) {
				t.Fatalf("%+v, reaches %v, %v functions, query %d: the nearest are %v, not %v", p, measures.Reaches, m, q, got.nearest.entries, want.nearest.entries)
			}
		}
	}
}

// compared is what a measurement finds, by comparing each keyword that queries ask with that of each object.
func compared(t *testing.T, x *Measurement, f *Functions, queries, objects []float32, keywords []uint32) []tally {
	t.Helper()
	all, s, functions := make([]tally, len(x.tallies)), newScratch(x.sums), f.parameters.Functions
	for q := range all {
		own := &all[q]
		own.point, own.nearest.limit = x.tallies[q].point, x.tallies[q].nearest.limit
		var counts [][]uint32 // per way and object
		for _, m := range x.m {
			for _, reach := range x.measures.Reaches {
				reached, err := f.WithReach(reach)
				if err != nil {
					t.Fatal(err)
				}
				p := &reached.parameters
				asked := make([]uint32, functions*p.Asked())
				if err := reached.HashQueries(asked, queries[q*p.Dim:(q+1)*p.Dim], 1); err != nil {
					t.Fatal(err)
				}
				of := make([]uint32, x.objects)
				for id := range of {
					for i, keyword := range keywords[id*functions:][:m] {
						if slices.ContainsFunc(asked[i*p.Asked():(i+1)*p.Asked()], func(k uint32) bool {
							lo, hi := p.Span(k)
							return lo <= keyword && keyword < hi
						}) {
							of[id]++
						}
					}
				}
				counts = append(counts, of)
				own.matches, own.histogram = append(own.matches, 0), append(own.histogram, make([]uint32, m+1))
			}
		}
		s.score(x.family, own.point, objects, x.dim)
		for id, score := range s.scores {
			places := make([]place, len(counts))
			for way, of := range counts {
				places[way] = place{of[id], own.histogram[way][of[id]]}
				own.matches[way] += uint64(of[id])
				own.histogram[way][of[id]]++
			}
			own.nearest.add(scored{score, uint32(id), places})
		}
	}
	return all
}

// BenchmarkMeasure measures clusters, by what cores work per query, object and function.
func BenchmarkMeasure(b *testing.B) {
	const dim, n, functions = 32, 1 << 15, 256
	rng := rand.New(rand.NewPCG(1, 0))
	centres := normal(rng, 200*dim, 3)
	objects, queries := clusters(rng, centres, dim, n), clusters(rng, centres, dim, 200)
	for _, p := range []Parameters{{Family: L1, Width: 20, Reach: 2, Rehash: true}, {Family: Laplacian, Width: 110, Rehash: true}, {Family: Cosine}} {
		p.Dim, p.Functions = dim, functions
		if _, err := p.Fit(objects[:fitted*dim], 2); err != nil {
			b.Fatal(err)
		}
		f := must(b, p)
		keywords := hash(b, f, objects)
		b.Run(p.Family.String(), func(b *testing.B) {
			x, err := NewMeasurement(f, queries, Measures{[]int{10}, []int{80}, distinct([]int{0, p.Reach / 2, p.Reach})})
			if err != nil {
				b.Fatal(err)
			}
			before := spent()
			for b.Loop() {
				x.objects = 0
				x.Add(keywords, objects, 2)
			}
			b.ReportMetric((spent()-before)/float64(b.N)*1e9/200/n/functions, "core-ns/comparison")
			b.ReportMetric(x.load(len(x.measures.Reaches)-1)/functions/float64(b.N), "agree")
		})
	}
}
