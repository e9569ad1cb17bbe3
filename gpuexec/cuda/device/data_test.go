//go:build cuda

package device

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/load"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// Both engines answer the same queries on every real data set and agree to the byte:
// hits, counts, distances, MC_k, certainty.
func TestCUDAOnData(t *testing.T) {
	for _, set := range []struct {
		name  string
		plans func(t *testing.T, rng *rand.Rand) (*index.Index, []gpuexec.Plan)
	}{
		{"adult", func(t *testing.T, rng *rand.Rand) (*index.Index, []gpuexec.Plan) {
			c := enginetest.LoadAdult(t, 1)
			return c.Index, c.AdultPlans(t, rng, 2000, 1)
		}},
		{"adult x 20", func(t *testing.T, rng *rand.Rand) (*index.Index, []gpuexec.Plan) {
			c := enginetest.LoadAdult(t, 20)
			return c.Index, c.AdultPlans(t, rng, 1024, 1)
		}},
		{"dblp_acm", documentsOf("er_dblp_acm/ACM.csv.gz", "er_dblp_acm/DBLP2.csv.gz", "title")},
		{"abt_buy", documentsOf("er_abt_buy/Abt.csv.gz", "er_abt_buy/Buy.csv.gz", "name")},
		{"typos", typosOf(2000, false)},
		{"typos, certified", typosOf(300, true)},
		{"sift_20", genieSample("sift_20.csv", false)},
		{"sift_1k", genieSample("sift_1k.csv.gz", false)},
		{"tweets_20", genieSample("tweets_20.csv", true)},
		{"tweets_4k", genieSample("tweets_4k.csv.gz", true)},
	} {
		t.Run(set.name, func(t *testing.T) {
			e := openDevice(t, gpuexec.CUDAOptions{})
			rng := seeded.Rand(t)
			x, plans := set.plans(t, rng)
			for i := range plans {
				if plans[i].Rescore == nil {
					plans[i].K = []int{1, 10, 100, 5000}[rng.IntN(4)]
				}
			}
			want := enginetest.Search(t, enginetest.LoadOn(t, cpu.New(gpuexec.CPUOptions{}), x), plans)
			s := enginetest.LoadOn(t, e, x)
			defer s.Close()
			got, hits := enginetest.Search(t, s, plans), 0
			for i := range got {
				hits += len(got[i].Hits)
				if !enginetest.SameHits(&got[i], &want[i]) {
					t.Fatalf("query %d: %s", i, difference(&got[i], &want[i]))
				}
			}
			t.Logf("%d objects, %d queries, %d hits: equal", x.Objects(), len(plans), hits)
		})
	}
}

// documentsOf indexes a column of one catalogue and asks with that of the other.
func documentsOf(indexed, asked, column string) func(t *testing.T, rng *rand.Rand) (*index.Index, []gpuexec.Plan) {
	return func(t *testing.T, _ *rand.Rand) (*index.Index, []gpuexec.Plan) {
		schema := "name: catalogue\nkind: documents\nkey: id\ncolumns: [{name: " + column + ", type: text}]\n"
		latin := load.Options{Encoding: "latin1"}
		c := enginetest.LoadCollection(t, schema, latin, 1, indexed)
		var plans []gpuexec.Plan
		for _, record := range enginetest.LoadCollection(t, schema, latin, 1, asked).Records {
			var plan gpuexec.Plan
			text := strings.Join(record.Cells[0].Values, " ")
			if _, err := c.Queries.Plan(enginetest.Query(&plan), &index.Request{Text: &text, Quiet: true}); err != nil {
				continue // an empty name
			}
			plans = append(plans, plan)
		}
		return c.Index, plans
	}
}

func typosOf(n int, certify bool) func(t *testing.T, rng *rand.Rand) (*index.Index, []gpuexec.Plan) {
	return func(t *testing.T, rng *rand.Rand) (*index.Index, []gpuexec.Plan) {
		c := enginetest.LoadCollection(t, "name: words\nkind: sequences\n", load.Options{Format: load.Text}, 1, enginetest.WordsFile)
		var typos []string
		for _, line := range enginetest.ReadLines(t, "typos/missp.dat.gz") {
			if !strings.HasPrefix(line, "$") {
				typos = append(typos, strings.ReplaceAll(line, "_", " "))
			}
		}
		plans := make([]gpuexec.Plan, n)
		for i := range plans {
			plans[i] = c.SequencePlan(t, typos[rng.IntN(len(typos))], 10, 80, certify)
		}
		return c.Index, plans
	}
}

func genieSample(name string, bag bool) func(t *testing.T, rng *rand.Rand) (*index.Index, []gpuexec.Plan) {
	return func(t *testing.T, _ *rand.Rand) (*index.Index, []gpuexec.Plan) {
		w := enginetest.NumberRows(t, "genie_static/"+name, bag)
		plans := make([]gpuexec.Plan, min(len(w.Objects), 1000))
		for i := range plans {
			plans[i] = w.RowPlan(uint32(i), uint32(i%2), 1)
		}
		return w.Index, plans
	}
}
