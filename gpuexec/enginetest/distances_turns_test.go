package enginetest

import (
	"strings"
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/nearest"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/store"
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
		if size > 100 && (testing.Short() || RaceEnabled) {
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
				if name != "CUDA" && pace.Call == 1 && calls < 100 || pace.Call > 1 && calls > len(plans) {
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
