package tests

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/bench/workload"
	"github.com/geniemq/geniemq/wire"
)

// perHit are the numbers of candidates per hit whose figures docs/benchmarks/history/2026-11-23-candidates.md tells.
var perHit = []int{1, 2, 3, 4, 5, 6, 8, 16}

// heldCandidates measures which share of the first k by BM25 over all texts is among the objects of highest count, of as many as perHit says and, last, of those that a query has
// by default.
func heldCandidates(a *asker, texts []string, idf bool, ks []int) (shares [][]float64) {
	a.t.Helper()
	first := a.texts(texts, slices.Max(ks), object{"rescore": rankedBy, "certify": true, "idf": idf})
	counted := a.texts(texts, slices.Max(perHit)*slices.Max(ks), object{"idf": idf})
	for _, k := range ks {
		var own []float64
		for i := range len(perHit) + 1 {
			candidates := wire.DefaultCandidates(k)
			if i < len(perHit) {
				candidates = perHit[i] * k
			}
			share, queries := 0.0, 0
			for q := range texts {
				best := first[q][:min(k, len(first[q]))]
				if len(best) == 0 {
					continue // none of its words is there
				}
				queries++
				among := make(map[uint32]bool)
				for _, id := range counted[q][:min(candidates, len(counted[q]))] {
					among[id] = true
				}
				for _, id := range best {
					if among[id] {
						share += 1 / float64(len(best))
					}
				}
			}
			own = append(own, share/float64(queries))
		}
		shares = append(shares, own)
	}
	return shares
}

// TestCandidates: the candidates that a query has by default hold what BM25 would put first, whatever k is, where words weigh by how rare they are.
func TestCandidates(t *testing.T) {
	if testing.Short() {
		t.Skip("quality does not depend on the race detector: go test without -short measures it")
	}
	t.Parallel()
	const queries, least = 300, .96
	ks := []int{1, 10, 20, 50, 100, 200, 1000}
	var page strings.Builder
	measure := func(name string, a *asker, texts []string) {
		texts = slices.Clone(texts)
		r := rand.New(rand.NewPCG(1, 2)) // the figures are of these texts
		r.Shuffle(len(texts), func(i, j int) { texts[i], texts[j] = texts[j], texts[i] })
		texts = texts[:min(queries, len(texts))]
		weighed := []bool{true}
		if os.Getenv("GENIEMQ_FULL") != "" { // without weights nothing is promised: figures for a page
			weighed = append(weighed, false)
		}
		for _, idf := range weighed {
			for i, shares := range heldCandidates(a, texts, idf, ks) {
				fmt.Fprintf(&page, "| %s | %v | %d |", name, idf, ks[i])
				for _, share := range shares {
					fmt.Fprintf(&page, " %.3f |", share)
				}
				fmt.Fprintln(&page)
				if own := shares[len(perHit)]; idf && own < least {
					t.Errorf("%s: %d candidates hold %.4f of the first %d by BM25, want %v", name, wire.DefaultCandidates(ks[i]), own, ks[i], least)
				}
			}
		}
	}
	for _, c := range allCatalogues() {
		indexed, asked, _ := c.load(t)
		measure(c.name, newAsker(t, rankedText, indexed[c.columns[0][0]]), asked[c.columns[0][1]])
	}
	headlines, words, _ := headlinesByWords(t)
	measure("headlines", newAsker(t, rankedText, headlines), words)
	short, _ := labelled(t)
	measure("labels", newAsker(t, rankedText, short), short)
	w, err := workload.New(t.Context(), "w3", workload.Options{Objects: 200_000, Queries: queries, Rescore: "bm25"})
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	for i := range w.Queries {
		asked = append(asked, w.Queries[i].Text)
	}
	measure("W3", askerOf(t, w.Index), asked)
	t.Logf("share of the first k by BM25 among the candidates, %v for each hit and by default:\n%s", perHit, page.String())
}
