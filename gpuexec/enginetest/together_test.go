package enginetest

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestCellsTogether: queries of cells with a recall, which are answered together, get what the column's searcher answers to each alone, with what it did.
func TestCellsTogether(t *testing.T) {
	rng := seeded.Rand(t)
	// In some worlds one cell holds most, so that no recall takes a share of the cells. One in some tens is such.
	joined := 0
	for world := 0; joined < 50 && world < 20; world++ {
		joined += cellsTogether(t, rng)
	}
	if joined < 50 {
		t.Errorf("%d queries are answered together", joined)
	}
}

func cellsTogether(t *testing.T, rng *rand.Rand) (joined int) {
	w := RandomDistanceWorld(t, rng, 1, true)
	for w.Metric == "hamming" {
		w = RandomDistanceWorld(t, rng, 1, true)
	}
	for range 1500 {
		p := w.Random(rng)
		for i := range p.Vector { // apart from each other, so that a recall takes some cells
			if w.Storage != "u8" {
				p.Vector[i] += float32(rng.IntN(16)) / 16
			} else {
				p.Vector[i] += float32(rng.IntN(200))
			}
		}
		if rng.IntN(9) == 0 {
			p.Vector = nil
		}
		w.Places = append(w.Places, p)
	}
	w.Build(t)
	queries, err := index.NewQueries(w.Index)
	if err != nil {
		t.Fatal(err)
	}
	var plans []gpuexec.Plan
	var batch []*distanceQuery
	for len(plans) < 300 {
		d := randomDistance(t, rng, w, queries)
		if d.column != "vector" {
			continue
		}
		d.query.Method, d.query.Recall, d.query.K, d.query.Total = "cells", []float64{.3, .6, .9}[rng.IntN(3)], 1+rng.IntN(20), false
		plans, batch = append(plans, gpuexec.Plan{Family: d.plan.Family, Query: d.query, K: d.query.K}), append(batch, d)
	}
	c := w.Index.Distances().Column("vector")
	all, err := c.Space()
	if err != nil {
		t.Fatal(err)
	}
	space, ids, err := c.Dense(all)
	if err != nil || ids == nil {
		t.Fatalf("all objects have a vector, or %v", err)
	}
	searcher, err := c.Path("cells").Bind(space)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range engines(t)[:1] {
		answers := make([]gpuexec.Answer, len(plans))
		s := LoadOn(t, e, w.Index)
		if err := s.Search(t.Context(), plans, answers, nil); err != nil {
			t.Fatal(err)
		}
		closeSearcher(t, s)
		for i, d := range batch {
			passing := uint32(0)
			for _, p := range w.Places {
				if d.passes(p.Class) {
					passing++
				}
			}
			did := distance.Answer{Method: "cells"}
			search, err := searcher.Begin(d.query, passing)
			if err != nil || answers[i].Err != nil {
				t.Fatal(err, answers[i].Err)
			}
			pass := func(i uint32) bool { return d.passes(w.Places[ids[i]].Class) }
			if d.filter < 0 && d.barred < 0 {
				pass = nil
			}
			search.Run(pass, metric.Until(t.Context()))
			hits := search.End(&did, nil)
			var want []gpuexec.Hit
			for _, h := range hits {
				want = append(want, gpuexec.Hit{ID: ids[h.ID], Score: h.Value})
			}
			got := answers[i].Value.(*distance.Answer)
			did.Predicted = got.Predicted // which is the planner's
			if searcher.(distance.Together).Joins(d.query) && !got.Exact {
				joined++
			}
			if !slices.Equal(answers[i].Hits, want) || !reflect.DeepEqual(*got, did) {
				t.Fatalf("%s %s, query %d, %+v: %v, %+v, not %v, %+v", w.Metric, w.Storage, i, d.query, answers[i].Hits, got, want, did)
			}
		}
	}
	return joined
}
