package enginetest

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/nearest"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// textPlan is a search for texts by edit distance; with a radius below 0 for the nearest alone.
func textPlan(t *testing.T, queries *index.Queries, text, method string, k int, radius float64) gpuexec.Plan {
	t.Helper()
	r := index.Request{Text: &text, Near: nearest.Near{K: k, Method: method}}
	if radius >= 0 {
		r.Near.Radius, r.Total = &radius, true
	}
	made, err := queries.Plan(new(postings.MatchQuery), &r)
	if err != nil {
		t.Fatal(err)
	}
	return gpuexec.Plan{Family: made.Family, Query: made.Query, K: max(1, made.Query.(*distance.Query).K)}
}

// TestLongTextsInTurns: a scan is interrupted in the middle of a pair of long texts, as often as the allowance says, and between objects. It goes on in other calls, on one engine and on parts of
// an index, and comes to the same, with the same work. How much work a scan is, an engine says itself: a device does not compare texts that are too long or too short for the radius, and the
// host counts them as compared.
func TestLongTextsInTurns(t *testing.T) {
	rng := seeded.Rand(t)
	all := engines(t)
	for _, size := range []int{30, store.TileObjects + 500} {
		if size > 100 && (testing.Short() || raced.Detector) {
			continue // several devices share more than a tile
		}
		base := RandomString(rng, "abcé", 1500)
		var texts []string
		for i := range size {
			switch {
			case i < 20:
				texts = append(texts, Misspelt(rng, base, rng.IntN(30)))
			default:
				texts = append(texts, RandomString(rng, "abc", rng.IntN(12)))
			}
		}
		c := SequenceCollection(t, texts, 3)
		queries, err := index.NewQueries(c.Index)
		if err != nil {
			t.Fatal(err)
		}
		plans := []gpuexec.Plan{
			textPlan(t, queries, Misspelt(rng, base, 10), "scan", 3, -1), textPlan(t, queries, Misspelt(rng, base, 10), "scan", 0, 40),
			textPlan(t, queries, "abcab", "scan", 5, 3), textPlan(t, queries, Misspelt(rng, base, 3), "auto", size, -1),
		}
		searchers := loadOnAll(t, all, c.Index)
		want := Search(t, searchers["one core"], plans)
		for name, s := range searchers {
			whole := Search(t, s, plans)
			for _, pace := range []gpuexec.Pace{{Call: 1, Grain: 3000}, {Plan: 1, Grain: 3000, Background: true}, {Call: time.Hour, Plan: time.Hour}} {
				got, calls := pacedSearch(t, rng, s, plans, pace)
				for i := range want {
					a, b, did := got[i].Value.(*distance.Answer), want[i].Value.(*distance.Answer), whole[i].Value.(*distance.Answer)
					if !SameHits(&got[i], &want[i]) || a.Within != b.Within || got[i].Exact != want[i].Exact || a.Distances != did.Distances || did.Distances > b.Distances {
						t.Fatalf("engine %s, %+v, plan %d:\ngot  %+v %+v\nwant %+v %+v\nwith the work %+v", name, pace, i, got[i], a, want[i], b, did)
					}
				}
				// A device that takes the scans is not interrupted.
				if !strings.HasPrefix(name, "CUDA") && pace.Call == 1 && calls < 100 || pace.Call > 1 && calls > len(plans) {
					t.Errorf("%s: %d calls for %d plans, each with 20 long texts: %+v", name, calls, len(plans), pace)
				}
			}
			closeSearcher(t, s)
		}
	}
}

// TestRadiusByGrams: what is within a radius is found by n-grams as by a scan, with far fewer comparisons; where counts prove nothing, a scan answers.
func TestRadiusByGrams(t *testing.T) {
	rng := seeded.Rand(t)
	for round := range 6 {
		n := 2 + round%3
		var texts []string
		for range 3000 {
			text := RandomString(rng, "abcdefghij", rng.IntN(20))
			texts = append(texts, text, Misspelt(rng, text, rng.IntN(4)))
		}
		texts = append(texts, "", strings.Repeat("ab", 60), strings.Repeat("a", 90))
		c := SequenceCollection(t, texts, n)
		queries, err := index.NewQueries(c.Index)
		if err != nil {
			t.Fatal(err)
		}
		var plans, scans []gpuexec.Plan
		for range 60 {
			text := Misspelt(rng, texts[rng.IntN(len(texts))], rng.IntN(3))
			radius, k := float64(rng.IntN(5)), []int{0, 1, 3, 1000}[rng.IntN(4)]
			plans = append(plans, textPlan(t, queries, text, "ngram", k, radius))
			scans = append(scans, textPlan(t, queries, text, "scan", k, radius))
		}
		s := LoadOn(t, engines(t)[0], c.Index)
		got, want := Search(t, s, plans), Search(t, s, scans)
		byGrams, compared := 0, uint64(0)
		for i := range got {
			a, b, q := got[i].Value.(*distance.Answer), want[i].Value.(*distance.Answer), plans[i].Query.(*distance.Query)
			if !SameHits(&got[i], &want[i]) || a.Within != b.Within || !a.Counted || !got[i].Exact || got[i].Total != want[i].Total {
				t.Fatalf("n %d, %q within %v, k %d: %v %+v, want %v %+v", n, q.Text, q.Radius, q.K, got[i].Hits, a, want[i].Hits, b)
			}
			if theta := len([]rune(q.Text)) + n - 1 - n*int(q.Radius); (a.Method == distance.Ngram) != (theta >= 1 && q.Text != "") {
				t.Errorf("n %d, %q within %v is answered by %s", n, q.Text, q.Radius, a.Method)
			}
			if a.Method == distance.Ngram {
				byGrams++
				compared += a.Distances
			}
		}
		if each := float64(compared) / float64(max(1, byGrams)); byGrams < 10 || each > float64(len(texts))/4 {
			t.Errorf("n %d: %d queries by n-grams compare %.0f of %d texts each", n, byGrams, each, len(texts))
		}
		closeSearcher(t, s)
	}
}

// TestPathsInTurns: a search by an access path or by n-grams is interrupted as often as the allowance says, after any node, cell, run or comparison. It goes
// on in other calls, with whatever other queries, and comes to the same.
func TestPathsInTurns(t *testing.T) {
	rng := seeded.Rand(t)
	w := RandomDistanceWorld(t, rng, raced.Of(1200, 200), true)
	queries, err := index.NewQueries(w.Index)
	if err != nil {
		t.Fatal(err)
	}
	var plans []gpuexec.Plan
	for range raced.Of(40, 10) {
		plans = append(plans, randomDistance(t, rng, w, queries).plan)
	}
	text := w.Places[0].Text + "abaa" // n-grams prove something of it
	at := index.Request{Point: &nearest.Point{Lat: 10, Lon: 20}, Near: nearest.Near{K: 10, Method: "tree"}}
	alone := []gpuexec.Plan{nearestPlan(t, queries, &at), textPlan(t, queries, text, "ngram", 10, 1)}
	at.Near.Method, at.Near.Fraction = "permutation", 0.5
	alone = append(alone, nearestPlan(t, queries, &at))
	if w.Metric != "hamming" {
		at = index.Request{Vector: w.Random(rng).Vector, Near: nearest.Near{K: 10, Method: "cells"}}
		alone = append(alone, nearestPlan(t, queries, &at))
	}
	inTurns(t, rng, w.Index, plans, alone)
}

// TestPathsOfLongTextsInTurns is TestPathsInTurns in the middle of a pair of long texts.
func TestPathsOfLongTextsInTurns(t *testing.T) {
	raced.Skip(t, "TestLongTextsInTurns shares the same memory")
	rng := seeded.Rand(t)
	base := RandomString(rng, "abcé", 700)
	var texts []string
	for i := range 80 {
		texts = append(texts, RandomString(rng, "abc", 1+rng.IntN(9)))
		if i < 12 {
			texts[i] = Misspelt(rng, base, rng.IntN(30))
		}
	}
	long := textsIndex(t, "index: [tree, permutation], tree: {capacity: 3, leaf: 4, bounds: pivot}, permutation: {permutants: 5, fraction: 0.3}", texts)
	queries, err := index.NewQueries(long)
	if err != nil {
		t.Fatal(err)
	}
	near := Misspelt(rng, base, 10)
	alone := []gpuexec.Plan{textPlan(t, queries, near, "tree", 5, -1), textPlan(t, queries, near, "permutation", 5, -1), textPlan(t, queries, near, "ngram", 5, 20)}
	inTurns(t, rng, long, nil, alone)
}

// inTurns asks plans in one go and in turns, and holds that those of alone are interrupted.
func inTurns(t *testing.T, rng *rand.Rand, x *index.Index, plans, alone []gpuexec.Plan) {
	t.Helper()
	for _, e := range engines(t)[:2] {
		s := LoadOn(t, e, x)
		same := func(plans []gpuexec.Plan, pace gpuexec.Pace) (calls int) {
			want := Search(t, s, plans)
			got, calls := pacedSearch(t, rng, s, plans, pace)
			for i := range want {
				a, b := got[i].Value.(*distance.Answer), want[i].Value.(*distance.Answer)
				named := plans[i].Query.(*distance.Query).Method != distance.Auto
				if !SameHits(&got[i], &want[i]) || !sameAnswer(a, b) || named && a.Method != "scan" && (a.Distances != b.Distances || a.Blocks != b.Blocks) {
					t.Fatalf("engine %s, %+v, %+v:\ngot  %v %+v\nwant %v %+v", e.name, pace, plans[i].Query, got[i].Hits, a, want[i].Hits, b)
				}
			}
			return calls
		}
		same(append(plans, alone...), gpuexec.Pace{Call: 1, Grain: 300})
		same(append(plans, alone...), gpuexec.Pace{Plan: 1, Grain: 100, Background: true})
		for i := range alone {
			if calls := same(alone[i:i+1], gpuexec.Pace{Call: 1, Grain: 1}); calls < 2 {
				t.Errorf("engine %s, %+v: %d calls, so that it was not interrupted", e.name, alone[i].Query, calls)
			}
		}
		closeSearcher(t, s)
	}
}

func nearestPlan(t *testing.T, queries *index.Queries, r *index.Request) gpuexec.Plan {
	t.Helper()
	made, err := queries.Plan(new(postings.MatchQuery), r)
	if err != nil {
		t.Fatal(err)
	}
	return gpuexec.Plan{Family: made.Family, Query: made.Query, K: max(1, made.Query.(*distance.Query).K)}
}

// textsIndex is an index of one column of texts.
func textsIndex(t *testing.T, options string, texts []string) *index.Index {
	t.Helper()
	s, err := index.Builtin().ParseSchema([]byte("{name: texts, columns: [{name: x, type: string, metric: edit, " + options + "}]}"))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := onebyone.NewObjects(s, index.BuilderOptions{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		if err := objects.Add(&schema.Record{Cells: []schema.Cell{{Values: []string{text}}}}); err != nil {
			t.Fatal(err)
		}
	}
	return OpenBuilt(t, objects.Builder)
}
