package tests

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/levenshtein"
	"github.com/geniemq/geniemq/service/translate"
	"github.com/geniemq/geniemq/wire"
)

// modified changes so many of a title's characters, at places of their own: one becomes another letter, goes, or gets one beside it.
func modified(r *rand.Rand, title string, share float64) string {
	symbols := []rune(title)
	changed := make(map[int]bool)
	for _, at := range r.Perm(len(symbols))[:int(share*float64(len(symbols))+0.5)] {
		changed[at] = true
	}
	var out []rune
	for at, symbol := range symbols {
		letter := rune('a' + r.IntN(26))
		switch kind := r.IntN(3); {
		case !changed[at]:
			out = append(out, symbol)
		case kind == 0:
			out = append(out, letter)
		case kind == 1:
			out = append(out, symbol, letter)
		}
	}
	return string(out)
}

// TestModifiedTitles is Table VI of the GENIE paper on real titles: of 40 characters 10 to 40 % are modified, and the nearest title is looked
// for among K candidates. A hit is right when no title is nearer. With certify all are.
func TestModifiedTitles(t *testing.T) {
	if testing.Short() {
		t.Skip("quality does not depend on the race detector: go test without -short measures it")
	}
	t.Parallel()
	var headlines, papers []string
	for _, name := range []string{"clickbait_data.txt.gz", "non_clickbait_data.txt.gz"} {
		headlines = append(headlines, lines(t, data(t, "headlines", name))...)
	}
	for _, name := range []string{"ACM.csv.gz", "DBLP2.csv.gz"} {
		for _, row := range readCSV(t, data(t, "er_dblp_acm", name))[1:] {
			papers = append(papers, row[1])
		}
	}
	for name, titles := range map[string][]string{"headlines": headlines, "papers": papers} {
		t.Run(name, func(t *testing.T) { modifiedTitles(t, titles) })
	}
}

func modifiedTitles(t *testing.T, titles []string) {
	const queries = 250
	paper := map[float64]float64{0.1: 1, 0.2: 0.999, 0.3: 0.995, 0.4: 0.954} // at K = 32
	r := rand.New(rand.NewPCG(6, 6))                                         // the figures are of these queries
	a := newAsker(t, "name: titles\nkind: sequences\n", titles)
	var asked []string // of about 40 characters
	for _, title := range titles {
		if n := len([]rune(strings.TrimSpace(title))); n >= 39 && n <= 41 {
			asked = append(asked, strings.TrimSpace(title))
		}
	}
	for _, share := range []float64{0.1, 0.2, 0.3, 0.4} {
		var texts []string
		for range queries {
			texts = append(texts, modified(r, asked[r.IntN(len(asked))], share))
		}
		truth := a.nearest(texts, 32, true)
		for i := range 20 { // by brute force
			best := 1 << 30
			for _, title := range titles {
				best = min(best, levenshtein.Distance([]rune(texts[i]), []rune(strings.TrimSpace(title))))
			}
			if truth[i].Hits[0].Score != float64(best) || !truth[i].Exact {
				t.Fatalf("%q: %+v, the nearest is at %d", texts[i], truth[i], best)
			}
		}
		for _, k := range []int{8, 16, 32, 64, 128, 256} {
			right, certified := 0, 0
			for i, found := range a.nearest(texts, k, false) {
				near := len(found.Hits) > 0 && found.Hits[0].Score == truth[i].Hits[0].Score
				if near {
					right++
				}
				if found.Exact {
					certified++
					if !near || found.Hits[0] != truth[i].Hits[0] {
						t.Errorf("%q: certified %+v, nearer is %+v", texts[i], found.Hits, truth[i].Hits)
					}
				}
			}
			accuracy := float64(right) / queries
			t.Logf("%.0f %% modified, K %3d: right %.3f, certified %.3f", 100*share, k, accuracy, float64(certified)/queries)
			if want := paper[share]; k >= 32 && accuracy < want-0.5/queries {
				t.Errorf("%.0f %% modified, K %d: right %.3f, the paper has %v", 100*share, k, accuracy, want)
			}
		}
	}
}

// nearest looks for the nearest sequence of each text.
func (a *asker) nearest(texts []string, candidates int, certify bool) []gpuexec.Answer {
	a.t.Helper()
	plans, asked, answers := make([]gpuexec.Plan, len(texts)), make([]translate.Query, len(texts)), make([]gpuexec.Answer, len(texts))
	for i, text := range texts {
		q := wire.Query{K: 1, Text: text, Candidates: candidates, Certify: certify}
		if a.translator.Plan(&asked[i], &q); asked[i].Err != nil {
			a.t.Fatal(asked[i].Err)
		}
		plans[i] = asked[i].Plan
	}
	if err := a.searcher.Search(a.t.Context(), plans, answers, nil); err != nil {
		a.t.Fatal(err)
	}
	for i := range answers {
		if answers[i].Err != nil {
			a.t.Fatal(answers[i].Err)
		}
	}
	return answers
}
