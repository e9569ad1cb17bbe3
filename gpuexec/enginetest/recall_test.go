package enginetest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/nearest"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestRecallBetween: the recall that is asked for is reached, and what is expected holds, for numbers of neighbours that were not measured, and of those that pass a filter. The objects lie in clusters of as many as the largest
// number that was, so ten neighbours and a hundred are easily found by comparing as many objects, and forty are not.
func TestRecallBetween(t *testing.T) {
	rng := seeded.Rand(t)
	const dims, clusters, objects, queries = 12, 100, 10_000, 400
	const slack = 0.07 // four deviations of means over 256 queries and over these
	centres := make([][dims]float64, clusters)
	for i := range centres {
		for j := range dims {
			centres[i][j] = rng.NormFloat64()
		}
	}
	draw := func(rng *rand.Rand) []float32 {
		v, c := make([]float32, dims), &centres[rng.IntN(clusters)]
		for j := range v {
			v[j] = float32(c[j] + .15*rng.NormFloat64())
		}
		return v
	}
	s, err := index.Builtin().ParseSchema(fmt.Appendf(nil, "{name: between, columns: [{name: v, type: vector, metric: l2, dims: %d, index: [cells, permutation]}, {name: tenth, type: category}, {name: fiftieth, type: category}]}", dims))
	if err != nil {
		t.Fatal(err)
	}
	made, err := onebyone.NewObjects(s, index.BuilderOptions{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	for i := range objects {
		cells := []schema.Cell{{Vector: draw(rng)}, {Values: []string{ClassName(i % 10)}}, {Values: []string{ClassName(i % 50)}}}
		if err := made.Add(&schema.Record{Cells: cells}); err != nil {
			t.Fatal(err)
		}
	}
	x := OpenBuilt(t, made.Builder)
	planner, err := index.NewQueries(x)
	if err != nil {
		t.Fatal(err)
	}
	on := LoadOn(t, cpu.New(gpuexec.CPUOptions{Workers: 2}), x)
	defer closeSearcher(t, on)
	seed := rng.Uint64()
	ask := func(filter []column.Condition, near nearest.Near) []gpuexec.Answer {
		rng := rand.New(rand.NewPCG(seed, 1))
		plans, answers := make([]gpuexec.Plan, queries), make([]gpuexec.Answer, queries)
		for i := range plans {
			made, err := planner.Plan(new(postings.MatchQuery), &index.Request{Vector: draw(rng), Near: near, Filter: filter})
			if err != nil {
				t.Fatal(err)
			}
			plans[i] = gpuexec.Plan{Family: made.Family, Query: made.Query, K: near.K}
		}
		if err := on.Search(t.Context(), plans, answers, nil); err != nil {
			t.Fatal(err)
		}
		return answers
	}
	class := column.StringValue(ClassName(0))
	for _, filter := range [][]column.Condition{nil, {{Attr: "tenth", Value: &class}}, {{Attr: "fiftieth", Value: &class}}} {
		for _, k := range []int{5, 10, 15, 30, 40, 60, 100} {
			truth := ask(filter, nearest.Near{K: k, Method: distance.Scan})
			for _, method := range []string{"cells", "permutation"} {
				found, expected, recall := 0, 0., .9
				for i, a := range ask(filter, nearest.Near{K: k, Method: method, Recall: recall}) {
					did := a.Value.(*distance.Answer)
					if expected += did.Recall / queries; did.Exact {
						expected += 1. / queries
					}
					for _, h := range a.Hits {
						if h.Score <= truth[i].Hits[k-1].Score {
							found++
						}
					}
				}
				share := float64(found) / float64(k*queries)
				what := fmt.Sprintf("filter %v: %s finds %.3f of %d neighbours, where %v was asked for and %.3f is expected", filter, method, share, k, recall, expected)
				if t.Log(what); share < recall-slack || share < expected-slack || expected == 0 && filter == nil {
					t.Error(what)
				}
			}
		}
	}
}
