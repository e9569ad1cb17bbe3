package index_test

import (
	"cmp"
	"compress/gzip"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/load"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/postings/single"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// basket is what a set of the retail baskets has in common with another.
type basket struct {
	id     uint32
	common int
	score  float64 // Jaccard's similarity
}

// shared counts by hand what a basket has in common with each.
func shared(sets [][]string, of []string) []basket {
	within := map[string]bool{}
	for _, e := range of {
		within[e] = true
	}
	all := make([]basket, len(sets))
	for id, set := range sets {
		n := 0
		for _, e := range set {
			if within[e] {
				n++
			}
		}
		all[id] = basket{uint32(id), n, float64(n) / float64(max(1, len(of)+len(set)-n))}
	}
	return all
}

// TestRetailBaskets asks the 88,162 retail baskets for baskets.
func TestRetailBaskets(t *testing.T) {
	if testing.Short() {
		t.Skip("88,162 sets, twice")
	}
	exact, eq, records := loadAll(t, "name: e\nkind: sets", "sets_fimi/retail.dat.gz", load.Options{Format: load.Text})
	hashed, hq, _ := loadAll(t, "name: h\nkind: sets\ncolumns: [{name: set, type: set, split: ' ', minhash: 128}]", "sets_fimi/retail.dat.gz", load.Options{Format: load.Text})
	if len(records) < 88_000 || int(exact.Objects()) != len(records) || exact.Objects() != hashed.Objects() {
		t.Fatalf("%d records, %d and %d objects", len(records), exact.Objects(), hashed.Objects())
	}
	sets := make([][]string, len(records))
	for id := range records {
		sets[id] = slices.Compact(slices.Sorted(slices.Values(records[id].Cells[0].Values)))
	}
	checkSets(t, sets, exact, hashed, eq, hq)
}

// checkSets asks for sets: what is in common counts exactly, in the total order; certified answers by Jaccard's similarity are those of all sets; and by MinHash the estimates are within their
// bounds, of hits and of random pairs. All by comparing with every set.
func checkSets(t *testing.T, sets [][]string, exact, hashed *index.Index, eq, hq *index.Queries) {
	t.Helper()
	const m, k, asked, delta = 128, 10, 40, .06
	random := seeded.Rand(t)
	var questions [][]string
	for len(questions) < asked {
		q := slices.Clone(sets[random.IntN(len(sets))])
		random.Shuffle(len(q), func(i, j int) { q[i], q[j] = q[j], q[i] })
		if q = q[:len(q)-random.IntN(len(q)/2+1)]; random.IntN(2) == 0 {
			q = append(q, "no such good")
		}
		if len(q) > 1 {
			slices.Sort(q)
			questions = append(questions, slices.Compact(q))
		}
	}
	plan := func(q *index.Queries, set []string, rescore bool) (gpuexec.Plan, *postings.MatchQuery, index.Plan) {
		r := &index.Request{}
		for _, e := range set {
			r.Set = append(r.Set, column.StringValue(e))
		}
		p := gpuexec.Plan{K: k, MinCount: 1}
		if rescore {
			r.Rescore, p.K, p.Certify = &index.Rescore{By: "jaccard", K: k}, 80, true
		}
		query := new(postings.MatchQuery)
		made, err := q.Plan(query, r)
		if err != nil {
			t.Fatal(err)
		}
		p.Family, p.Query, p.Rescore = made.Family, made.Query, made.Rescore
		return p, query, made
	}
	var counted, certified, estimated []gpuexec.Plan
	var queries []*postings.MatchQuery
	var made []index.Plan
	for _, set := range questions {
		c, _, _ := plan(eq, set, false)
		s, _, _ := plan(eq, set, true)
		h, query, p := plan(hq, set, false)
		counted, certified, estimated = append(counted, c), append(certified, s), append(estimated, h)
		queries, made = append(queries, query), append(made, p)
	}
	byCount, byScore, byHash := search(t, exact, counted), search(t, exact, certified), search(t, hashed, estimated)
	counter := single.Counter{Lists: hashed.Lists}
	off, pairs := 0, 0
	for i, set := range questions {
		all := shared(sets, set)
		ranked := slices.DeleteFunc(slices.Clone(all), func(b basket) bool { return b.common == 0 })
		slices.SortFunc(ranked, func(a, b basket) int { return cmp.Or(cmp.Compare(b.common, a.common), cmp.Compare(a.id, b.id)) })
		var want []gpuexec.Hit
		for _, b := range ranked[:min(k, len(ranked))] {
			want = append(want, gpuexec.Hit{ID: b.id, Count: uint32(b.common)})
		}
		if !slices.Equal(byCount[i].Hits, want) {
			t.Fatalf("%q: %v, want %v", set, byCount[i].Hits, want)
		}
		slices.SortFunc(ranked, func(a, b basket) int {
			return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.common, a.common), cmp.Compare(a.id, b.id))
		})
		want = want[:0]
		for _, b := range ranked[:min(k, len(ranked))] {
			want = append(want, gpuexec.Hit{ID: b.id, Count: uint32(b.common), Score: b.score})
		}
		if !byScore[i].Exact || !slices.Equal(byScore[i].Hits, want) {
			t.Fatalf("%q by Jaccard's similarity: exact %v, %v, want %v", set, byScore[i].Exact, byScore[i].Hits, want)
		}
		for _, hit := range byHash[i].Hits {
			if s, bound := hq.Estimate(&made[i].Estimates[0], queries[i], hit.ID, hit.Count); math.Abs(s-all[hit.ID].score) > bound {
				t.Errorf("%q and hit %d: J %.3f, estimated %.3f within %.3f", set, hit.ID, all[hit.ID].score, s, bound)
			}
		}
		counter.Query = queries[i]
		for _, b := range ranked[:min(50, len(ranked))] { // those with something in common: of most pairs nothing is, and nothing agrees
			s, _ := hq.Estimate(&made[i].Estimates[0], queries[i], b.id, counter.Count(b.id))
			if pairs++; math.Abs(s-b.score) > math.Sqrt(math.Log(2/delta)/(2*m)) {
				off++
			}
		}
	}
	t.Logf("%d of %d pairs are off by more than the bound of a fixed pair", off, pairs)
	if pairs < 20*asked || float64(off)/float64(pairs) > delta {
		t.Errorf("%d of %d pairs are off by more than the bound of a fixed pair", off, pairs)
	}
}

// TestShortTexts asks 59,258 short texts, as sets of their words, for texts: as baskets, and how often the most similar other one, by Jaccard's similarity and by MinHash, has the same label.
func TestShortTexts(t *testing.T) {
	if testing.Short() {
		t.Skip("59,258 sets, twice")
	}
	var sets [][]string
	var labels []string
	var records []schema.Record
	for _, name := range [][2]string{{"Biomedical.txt.gz", "Biomedical_label.txt"}, {"GoogleNews.txt.gz", "GoogleNews_LABEL.txt"},
		{"SearchSnippets.txt.gz", "SearchSnippets_label.txt"}, {"StackOverflow.txt.gz", "StackOverflow_label.txt"}} {
		of := linesOf(t, "shortdocs_labelled/"+name[1])
		for i, text := range linesOf(t, "shortdocs_labelled/"+name[0]) {
			words := slices.Compact(slices.Sorted(slices.Values(strings.Fields(text))))
			sets, labels = append(sets, words), append(labels, name[0]+of[i])
			records = append(records, schema.Record{Cells: []schema.Cell{{Values: words}}})
		}
	}
	exact, eq := buildRecords(t, parseSchema(t, "name: e\nkind: sets"), records)
	hashed, hq := buildRecords(t, parseSchema(t, "name: h\nkind: sets\ncolumns: [{name: set, type: set, minhash: 128}]"), records)
	checkSets(t, sets, exact, hashed, eq, hq)

	own := rand.New(rand.NewPCG(1, 2)).Perm(len(sets))[:2000] // the same each time
	agree := map[string]int{}
	for way, on := range map[string]struct {
		x *index.Index
		q *index.Queries
	}{"jaccard": {exact, eq}, "minhash": {hashed, hq}} {
		var plans []gpuexec.Plan
		for _, id := range own {
			r := &index.Request{}
			for _, word := range sets[id] {
				r.Set = append(r.Set, column.StringValue(word))
			}
			p := gpuexec.Plan{K: 2, MinCount: 1}
			if way == "jaccard" {
				r.Rescore, p.K = &index.Rescore{By: "jaccard", K: 2}, 80
			}
			made, err := on.q.Plan(new(postings.MatchQuery), r)
			if err != nil {
				t.Fatal(err)
			}
			p.Family, p.Query, p.Rescore = made.Family, made.Query, made.Rescore
			plans = append(plans, p)
		}
		for i, a := range search(t, on.x, plans) {
			for _, h := range a.Hits {
				if h.ID != uint32(own[i]) {
					if labels[h.ID] == labels[own[i]] {
						agree[way]++
					}
					break
				}
			}
		}
	}
	t.Logf("of %d texts the most similar other one has the label in %.3f by Jaccard's similarity, %.3f by MinHash", len(own), float64(agree["jaccard"])/2000, float64(agree["minhash"])/2000)
	if agree["jaccard"] < 1440 || agree["minhash"] < 1420 {
		t.Errorf("the most similar other text has the label of %v of %d", agree, len(own))
	}
}

// linesOf are those of a file.
func linesOf(t *testing.T, name string) []string {
	t.Helper()
	f, err := os.Open(dataFile(t, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := io.Reader(f)
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(strings.ReplaceAll(strings.ReplaceAll(string(text), "\r\n", "\n"), "\r", "\n"), "\n"), "\n")
}
