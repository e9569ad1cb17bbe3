package enginetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/load"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestGenieStatic checks the answers that are known of GENIE's own sample files. A list of ids without counts, or
// counts alone, is checked as far as it goes.
func TestGenieStatic(t *testing.T) {
	all := engines(t)
	type pair = [2]uint32 // object id, count
	for _, file := range []struct {
		name    string
		bag     bool
		radius  uint32
		queries [][]pair
	}{
		{"sift_20.csv", false, 0, [][]pair{{{0, 5}, {4, 2}}, {{1, 5}}, {{2, 5}}}},
		{"sift_20.csv", false, 1, [][]pair{{{0, 5}, {4, 2}, {11, 2}}}},
		{"sift_1k.csv.gz", false, 0, [][]pair{
			{{0, 128}, {4, 35}, {11, 24}, {30, 23}, {506, 21}},
			{{1, 128}, {5, 30}, {294, 18}, {348, 18}, {210, 17}},
			{{2, 128}, {28, 15}, {505, 15}, {590, 15}},
		}},
		{"tweets_20.csv", true, 0, [][]pair{{{0, 17}, {11, 17}}, {{1, 14}}, {{2, 18}}}},
		{"tweets_4k.csv.gz", true, 0, [][]pair{{{0, 17}, {11, 17}, {21, 17}, {31, 17}, {41, 17}}, {{1, 14}}, {{2, 18}}}},
	} {
		w := NumberRows(t, "genie_static/"+file.name, file.bag)
		for _, s := range loadOnAll(t, all, w.Index) {
			for row, want := range file.queries {
				plan := w.RowPlan(uint32(row), file.radius, 5)
				a := Search(t, s, []gpuexec.Plan{plan})[0]
				if all, _ := w.Search(&plan); a.Err != nil || !slices.Equal(a.Hits, all) {
					t.Errorf("%s, query %d: got %v, brute force %v (%v)", file.name, row, a.Hits, all, a.Err)
				}
				for i, p := range want {
					if i >= len(a.Hits) || a.Hits[i].ID != p[0] || a.Hits[i].Count != p[1] {
						t.Errorf("%s, radius %d, query %d: got %v, known is %v", file.name, file.radius, row, a.Hits, want)
						break
					}
				}
				// After the known ones of tweets_4k come 5s and 7s.
				if next := map[int]uint32{1: 5, 2: 7}[row]; file.name == "tweets_4k.csv.gz" && next != 0 && a.Hits[1].Count != next {
					t.Errorf("%s, query %d: the second count is %d, known is %d", file.name, row, a.Hits[1].Count, next)
				}
			}
			closeSearcher(t, s)
		}
	}
}

// TestTypos looks real misspellings up in a word list and compares every certified answer with an exhaustive scan by
// the plain matrix-free distance, on a sample, and logs how often the right word is found.
func TestTypos(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	c := LoadCollection(t, "name: words\nkind: sequences\n", load.Options{Format: load.Text}, 1, WordsFile)
	s := loadCPU(t, c.Index, gpuexec.CPUOptions{})
	var typos, right []string
	correct := ""
	for _, line := range ReadLines(t, "typos/missp.dat.gz") {
		if word, ok := strings.CutPrefix(line, "$"); ok {
			correct = word
			continue
		}
		typos, right = append(typos, strings.ReplaceAll(line, "_", " ")), append(right, correct)
	}
	rng := seeded.Rand(t)
	const sample, compared = 400, 6
	var plans []gpuexec.Plan
	var targets []string
	for range sample {
		i := rng.IntN(len(typos))
		plans = append(plans, c.SequencePlan(t, typos[i], 10, 80, len(plans) < compared))
		targets = append(targets, right[i])
	}
	first, ten, exact := 0, 0, 0
	for i, a := range Search(t, s, plans) {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		for rank, h := range a.Hits {
			if c.Index.Text(h.ID) == targets[i] {
				ten++
				if rank == 0 {
					first++
				}
			}
		}
		if a.Exact {
			exact++
		}
		if i >= compared && !a.Exact || i >= 5*compared {
			continue
		}
		v := plans[i].Rescore.New(nil)
		if _, err := v.Scan(0, c.Index.Objects(), 0, nil, nil, 0); err != nil {
			t.Fatal(err)
		}
		for rank, want := range v.Hits(nil) {
			if got := a.Hits[rank]; got.ID != want.ID || got.Count != want.Count || got.Score != want.Score {
				t.Fatalf("%q, rank %d: got %v, an exhaustive scan finds %v", string(TextOf(&plans[i])), rank, got, want)
			}
		}
	}
	t.Logf("of %d typos: right word first %.1f %%, in the top 10 %.1f %%, exact %.1f %%",
		sample, 100*float64(first)/sample, 100*float64(ten)/sample, 100*float64(exact)/sample)
}

// TestTiesAcrossTiles has far more objects at one count than k, in several tiles, so that ties are cut within and across
// tiles, with weights that need counters of every width.
func TestTiesAcrossTiles(t *testing.T) {
	raced.Skip(t, "ties are values, and TestEngineAcrossTiles has tiles")
	rng := rand.New(rand.NewPCG(3, 3))
	w := &World{Vocabulary: []uint32{4}}
	for id := range 3*store.TileObjects + 5 {
		keywords := []uint32{0}
		if rng.IntN(1000) == 0 {
			keywords = append(keywords, 1)
		}
		if id%store.TileObjects == store.TileObjects-1 {
			keywords = append(keywords, 2, 2, 2)
		}
		w.Objects = append(w.Objects, [][]uint32{keywords})
	}
	w.Build(t)
	for _, weight := range []uint32{1, 3, 60, 10_000, postings.MaxWeight} {
		for _, k := range Rounds([]int{1, 3, 4, 100, 5000, 64512, gpuexec.MaxK}) {
			var plan gpuexec.Plan
			plan.K = k
			Query(&plan).StartItem(0, weight)
			Query(&plan).AddSpan(0, 3)
			t.Run(fmt.Sprintf("weight=%d/k=%d", weight, k), func(t *testing.T) {
				for _, workers := range []int{1, 3} {
					CheckAnswers(t, w, []gpuexec.Plan{plan}, Search(t, loadCPU(t, w.Index, gpuexec.CPUOptions{Workers: workers}), []gpuexec.Plan{plan}))
				}
			})
		}
	}
}
