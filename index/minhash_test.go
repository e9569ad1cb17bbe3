package index_test

import (
	"math"
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

// jaccard is the similarity of two sets, ascending ones.
func jaccard(a, b []string) float64 {
	both := 0
	for _, e := range a {
		if _, ok := slices.BinarySearch(b, e); ok {
			both++
		}
	}
	return float64(both) / float64(max(1, len(a)+len(b)-both))
}

// Market baskets by MinHash: of random pairs c/m is within the bound of a fixed pair as often as that says, of hits within the bound of selected ones, and
// rescored by Jaccard's similarity the candidates are in its order, by brute force.
func TestMinHashBaskets(t *testing.T) {
	const m, delta = 128, .06
	x, q, records := loadAll(t, "name: baskets\nkind: sets\ncolumns: [{name: s, type: set, split: ' ', minhash: 128}]", "sets_fimi/mushroom.dat.gz",
		load.Options{Format: load.Text})
	if err := x.Validate(); err != nil {
		t.Fatal(err)
	}
	random := seeded.Rand(t)
	sets := make([][]string, len(records))
	for id := range records {
		sets[id] = slices.Compact(slices.Sorted(slices.Values(records[id].Cells[0].Values)))
	}
	const asked, k = 60, 100
	var plans []gpuexec.Plan
	var queries []*postings.MatchQuery
	var made []index.Plan
	var own []int
	for i := range 2 * asked {
		id := random.IntN(len(sets))
		r := &index.Request{}
		for _, e := range sets[id] {
			r.Set = append(r.Set, column.StringValue(e))
		}
		plan := gpuexec.Plan{K: k}
		if i >= asked {
			r.Rescore, plan.K = &index.Rescore{By: "jaccard", K: 10}, 80
		}
		query := new(postings.MatchQuery)
		p, err := q.Plan(query, r)
		if err != nil || len(p.Estimates) != 1 || !p.Estimates[0].Alone {
			t.Fatalf("%+v, %v", p, err)
		}
		plan.Family, plan.Query, plan.Rescore = p.Family, p.Query, p.Rescore
		plans, queries, made, own = append(plans, plan), append(queries, query), append(made, p), append(own, id)
	}
	answers := search(t, x, plans)
	counter := single.Counter{Lists: x.Lists}
	off, pairs := 0, 0
	for i := range asked {
		for _, hit := range answers[i].Hits {
			similarity, bound := q.Estimate(&made[i].Estimates[0], queries[i], hit.ID, hit.Count)
			if j := jaccard(sets[own[i]], sets[hit.ID]); math.Abs(similarity-j) > bound {
				t.Errorf("object %d and hit %d: J %.3f, estimated %.3f within %.3f", own[i], hit.ID, j, similarity, bound)
			}
		}
		counter.Query = queries[i]
		for range 30 {
			id := uint32(random.IntN(len(sets)))
			similarity, _ := q.Estimate(&made[i].Estimates[0], queries[i], id, counter.Count(id))
			pairs++
			if math.Abs(similarity-jaccard(sets[own[i]], sets[id])) > math.Sqrt(math.Log(2/delta)/(2*m)) {
				off++
			}
		}
	}
	// Hoeffding's bound is far from tight: a share of .06 would be a fault of the functions.
	if share := float64(off) / float64(pairs); share > delta {
		t.Errorf("%.3f of %d random pairs are off by more than the bound", share, pairs)
	}
	for i := asked; i < 2*asked; i++ {
		plain := search(t, x, []gpuexec.Plan{{Family: plans[i].Family, Query: plans[i].Query, K: 80}})[0].Hits
		best := slices.Clone(plain)
		slices.SortStableFunc(best, func(a, b gpuexec.Hit) int {
			ja, jb := jaccard(sets[own[i]], sets[a.ID]), jaccard(sets[own[i]], sets[b.ID])
			switch {
			case ja > jb:
				return -1
			case ja < jb:
				return 1
			}
			return 0 // they are in the order of counts and ids
		})
		for rank, hit := range answers[i].Hits {
			if hit.ID != best[rank].ID || hit.Score != jaccard(sets[own[i]], sets[hit.ID]) {
				t.Fatalf("object %d, rank %d: %+v, want %d with %v", own[i], rank, hit, best[rank].ID, jaccard(sets[own[i]], sets[best[rank].ID]))
			}
		}
		if answers[i].Exact {
			t.Error("an answer by hash functions is certified")
		}
	}
}

// Sets by hash functions beside sets by elements: folded, stored, missing, and what they do not take.
func TestMinHashColumns(t *testing.T) {
	s := parseSchema(t, "name: a\ncolumns:\n- {name: s, type: set, minhash: 64, fold: true, store: true}\n- {name: e, type: set}")
	cell := func(values ...string) schema.Cell { return schema.Cell{Values: values} }
	x, q := learn(t, s, []schema.Record{
		{Cells: []schema.Cell{cell("A", "b", "B"), cell("x")}}, {Cells: []schema.Cell{cell(), cell("y")}}, {Cells: []schema.Cell{cell("c"), cell("x", "y")}},
	})
	set := func(values ...string) (all []column.Value) {
		for _, v := range values {
			all = append(all, column.StringValue(v))
		}
		return all
	}
	if _, err := q.Plan(new(postings.MatchQuery), &index.Request{Set: set("x")}); err == nil || !strings.Contains(err.Error(), "several columns of sets (s, e)") {
		t.Errorf("two columns of sets: %v", err)
	}
	query := new(postings.MatchQuery)
	a := column.StringValue("a")
	if _, err := q.Plan(query, &index.Request{Conditions: []column.Condition{{Attr: "s", Value: &a}}}); err != nil || len(query.Items) != 64 {
		t.Fatalf("%d items, %v", len(query.Items), err)
	}
	// {a} and {a,b} agree where a comes first: on about half of the functions.
	hits := search(t, x, []gpuexec.Plan{{Family: postings.FamilyName, Query: query, K: 3}})[0].Hits
	if len(hits) != 1 || hits[0].ID != 0 || hits[0].Count < 12 || hits[0].Count > 52 {
		t.Errorf("%v", hits)
	}
	if _, err := q.Plan(query, &index.Request{Filter: []column.Condition{{Attr: "s", Value: &a}}}); err == nil {
		t.Error("filters look for elements that are not there")
	}
	for text, want := range map[string]string{"minhash: -1": "minhash -1: must be", "minhash: 65537": "minhash 65537", "minhash: 5, idf: true": "hash functions know no elements",
		"minhash: 5, layout: rare": "layout rare is for"} {
		_, err := index.Builtin().ParseSchema([]byte("name: a\ncolumns: [{name: s, type: set, " + text + "}]"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	_, err := index.Builtin().ParseSchema([]byte("name: a\ncolumns: [{name: s, type: text, minhash: 4}]"))
	if err == nil || !strings.Contains(err.Error(), "minhash belongs to type set") {
		t.Errorf("minhash of texts: %v", err)
	}
}
