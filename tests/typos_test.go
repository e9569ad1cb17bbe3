package tests

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/open"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/levenshtein"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/verify"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
)

// typo is a misspelling and the word that was meant.
type typo struct{ wrong, right string }

// readTypos reads a file of the Birkbeck form: "$word", then its misspellings, one per line, in some files followed by a
// count. Spaces are written as underscores.
func readTypos(t testing.TB, path string) []typo {
	var typos []typo
	right := ""
	for _, line := range lines(t, path) {
		if word, ok := strings.CutPrefix(line, "$"); ok {
			right = strings.ReplaceAll(word, "_", " ")
			continue
		}
		if right == "?" { // nobody could tell what was meant
			continue
		}
		wrong, _, _ := strings.Cut(line, " ")
		typos = append(typos, typo{strings.ReplaceAll(wrong, "_", " "), right})
	}
	return typos
}

// Misspelt words against a dictionary of 663,473, as sequences: how often the word that was meant is found, how often
// the answer is certain, and that certain answers are what a comparison with every word gives. The whole corpus runs
// with GENIEMQ_FULL=1; otherwise every 30th misspelling.
func TestTypos(t *testing.T) {
	ctx := context.Background()
	dictionary := lines(t, data(t, "words", "american-english-insane.gz"))
	every := 30
	if os.Getenv("GENIEMQ_FULL") != "" {
		every = 1
	}

	spec, err := index.Builtin().ParseSchema([]byte("name: words\nkind: sequences\n"))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	objects, err := onebyone.NewObjects(spec, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rec := schema.Record{Cells: []schema.Cell{{Values: make([]string, 1)}}}
	for i, word := range dictionary {
		rec.Line, rec.Cells[0].Values[0] = int64(i+1), word
		if err := objects.Add(&rec); err != nil {
			t.Fatal(err)
		}
	}
	file, err := objects.Bytes(ctx)
	if err != nil {
		t.Fatal(err)
	}
	x, err := index.OpenBytes(file)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	t.Logf("%d words built in %v, %d bytes", x.Objects(), time.Since(start).Round(time.Millisecond), x.Size())

	engine, err := open.Engine(gpuexec.Auto, gpuexec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	t.Logf("engine %s on %s", engine.Info().Kind, engine.Info().Device)
	searcher, err := engine.Load(ctx, x)
	if err != nil {
		t.Fatal(err)
	}
	defer searcher.Close()
	queries, err := index.NewQueries(x)
	if err != nil {
		t.Fatal(err)
	}

	for _, corpus := range []struct {
		file  string
		floor float64 // of right words in the top 10
	}{{"missp.dat.gz", 0.4}, {"holbrook-missp.dat", 0.3}} {
		all := readTypos(t, data(t, "typos", corpus.file))
		var typos []typo
		for i := 0; i < len(all); i += every {
			typos = append(typos, all[i])
		}
		for _, certify := range []bool{false, true} {
			const k = 10
			plans := make([]gpuexec.Plan, len(typos))
			for i, typo := range typos {
				plans[i].K = 8 * k // the default of a query
				query := new(postings.MatchQuery)
				plans[i].Family, plans[i].Query, plans[i].Certify = postings.FamilyName, query, certify
				plans[i].Rescore = &verify.Nearest{Texts: x, NGram: x.Schema().NGram, Text: []rune(typo.wrong), K: k}
				if _, err := queries.Plan(query, &index.Request{Text: &typo.wrong, Quiet: true}); err != nil {
					t.Fatal(err)
				}
			}
			answers := make([]gpuexec.Answer, len(plans))
			start := time.Now()
			for lo := 0; lo < len(plans); lo += 1024 {
				hi := min(lo+1024, len(plans))
				if err := searcher.Search(ctx, plans[lo:hi], answers[lo:hi], nil); err != nil {
					t.Fatal(err)
				}
			}
			took := time.Since(start)

			top1, top10, exact, checked := 0, 0, 0, 0
			for i, a := range answers {
				if a.Err != nil {
					t.Fatalf("%q: %v", typos[i].wrong, a.Err)
				}
				rank := slices.IndexFunc(a.Hits, func(h gpuexec.Hit) bool { return dictionary[h.ID] == typos[i].right })
				if rank == 0 {
					top1++
				}
				if rank >= 0 {
					top10++
				}
				if !a.Exact {
					if certify {
						t.Errorf("%q was to be certified and is not", typos[i].wrong)
					}
					continue
				}
				exact++
				if i%(1+len(answers)/8) == 0 { // every word of the dictionary is compared
					checked++
					checkNearest(t, dictionary, []rune(typos[i].wrong), a.Hits)
				}
			}
			n := float64(len(answers))
			t.Logf("%s, certify %v: %d misspellings, right word first %.1f %%, in the top 10 %.1f %%, certain %.1f %% (%d compared with every word), %.2f ms per query",
				corpus.file, certify, len(answers), 100*float64(top1)/n, 100*float64(top10)/n, 100*float64(exact)/n, checked,
				took.Seconds()*1000/n)
			if checked == 0 {
				t.Error("no certain answer was checked")
			}
			// Much of the corpora is far from its target ("o" for accordingly), and the dictionary is full of rare
			// words that are nearer: the floors only notice when something breaks.
			if float64(top10)/n < corpus.floor {
				t.Errorf("the right word is in the top 10 of %d of %d only", top10, len(answers))
			}
		}
	}
}

// checkNearest compares hits with the distances of all words.
func checkNearest(t *testing.T, dictionary []string, query []rune, hits []gpuexec.Hit) {
	t.Helper()
	all := make([]int, len(dictionary))
	for i, word := range dictionary {
		all[i] = levenshtein.Distance(query, []rune(word))
	}
	for _, h := range hits {
		if int(h.Score) != all[h.ID] {
			t.Errorf("%q: %q is at distance %d, the hit says %v", string(query), dictionary[h.ID], all[h.ID], h.Score)
		}
	}
	slices.Sort(all)
	for i, h := range hits {
		if int(h.Score) != all[i] {
			t.Errorf("%q: hit %d is at distance %v, the true one at %d", string(query), i, h.Score, all[i])
		}
	}
}
