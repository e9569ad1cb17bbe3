package gpuexec

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec/flatscan"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/encode"
	"github.com/geniemq/geniemq/index/load"
)

const adultSchema = `
name: adult
kind: rows
header: false
missing: ["", "?"]
columns:
- {name: age, type: number}
- {name: workclass, type: category}
- {name: fnlwgt, type: number}
- {name: education, type: category}
- {name: education-num, type: number}
- {name: marital-status, type: category}
- {name: occupation, type: category}
- {name: relationship, type: category}
- {name: race, type: category}
- {name: sex, type: category}
- {name: capital-gain, type: number}
- {name: capital-loss, type: number}
- {name: hours-per-week, type: number}
- {name: native-country, type: category}
- {name: class, type: skip}
`

func loadAdult(t testing.TB, copies int) *collection { return loadAdultIn(t, "auto", copies) }

// loadAdultIn is loadAdult with all attributes in a layout.
func loadAdultIn(t testing.TB, layout string, copies int) *collection {
	schema := strings.NewReplacer("number}", "number, layout: "+layout+"}", "category}", "category, layout: "+layout+"}").Replace(adultSchema)
	return loadCollection(t, schema, load.Options{Format: load.CSV}, copies, "adult/adult.data.gz", "adult/adult.test.gz")
}

// adultQuery asks for a row: numbers within 50 buckets either way, categories as they are (design section 8, W4).
func (c *collection) adultQuery(t testing.TB, rec *index.Record) index.Query {
	t.Helper()
	var conditions []encode.Condition
	attr := 0
	for i, column := range c.schema.Columns {
		if column.Type == index.SkipColumn {
			continue
		}
		a := &c.index.Attributes()[attr]
		attr++
		if len(rec.Cells[i].Values) == 0 {
			continue
		}
		value := rec.Cells[i].Values[0]
		condition := encode.Condition{Attr: a.Name}
		if column.Type == index.NumberColumn {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			bucket, _ := a.Bucket(v)
			low := encode.NumberValue(max(0, float64(bucket)-50))
			high := encode.NumberValue(min(float64(a.Keywords)-1, float64(bucket)+50))
			condition.Min, condition.Max, condition.Bucket = &low, &high, true
		} else {
			v := encode.StringValue(value)
			condition.Value = &v
		}
		conditions = append(conditions, condition)
	}
	var q index.Query
	if err := c.queries.Conditions(&q, conditions); err != nil {
		t.Fatal(err)
	}
	return q
}

func (c *collection) adultPlans(t testing.TB, rng *rand.Rand, n, k int) []Plan {
	plans := make([]Plan, n)
	for i := range plans {
		plans[i].Match = MatchPlan{Query: c.adultQuery(t, &c.records[rng.IntN(len(c.records))]), K: k}
	}
	return plans
}

// sameAsFlatScan compares answers with the plain scan.
func sameAsFlatScan(t testing.TB, scanner *flatscan.Scanner, plans []Plan, answers []Answer) {
	t.Helper()
	for i := range plans {
		m := &plans[i].Match
		want, stats := scanner.Search(nil, &m.Query, m.K, m.MinCount)
		got := make([]flatscan.Hit, len(answers[i].Hits))
		for j, h := range answers[i].Hits {
			got[j] = flatscan.Hit{ID: h.ID, Count: h.Count}
		}
		if answers[i].Err != nil || !slices.Equal(got, want) {
			t.Fatalf("query %d: got %v, want %v (error %v)", i, got, want, answers[i].Err)
		}
		// A query whose count bound is below its least count need not be scanned.
		if answers[i].Postings != stats.Postings && len(want) > 0 {
			t.Fatalf("query %d: %d postings scanned, there are %d", i, answers[i].Postings, stats.Postings)
		}
	}
}

func TestAdult(t *testing.T) {
	c := loadAdult(t, 1)
	if n := c.index.Objects(); n != 48842 {
		t.Fatalf("%d objects, want 48,842", n)
	}
	rng := newRand(t)
	plans := c.adultPlans(t, rng, 300, 0)
	for i := range plans {
		plans[i].Match.K = []int{1, 10, 100, 5000}[rng.IntN(4)]
	}
	sameAsFlatScan(t, flatscan.New(c.index), plans, search(t, c.load(t, CPUOptions{}), plans))
}

// BenchmarkAdult is workload W4, Adult times 20 with 1,024 queries and k = 100, on the CPU engine with 1 and all cores
// and on the flat scan (64 of the queries, one core). A sample is compared.
//
//	go test ./gpuexec -run '^$' -bench Adult -benchtime 3x
func BenchmarkAdult(b *testing.B) {
	c := loadAdult(b, 20)
	rng := rand.New(rand.NewPCG(1, 2))
	plans := c.adultPlans(b, rng, 1024, 100)
	scanner := flatscan.New(c.index)
	b.Run("flat", func(b *testing.B) {
		var stats flatscan.Stats
		queries := 0
		for range b.N {
			for i := range 64 {
				_, s := scanner.Search(nil, &plans[i].Match.Query, 100, 0)
				stats.Postings += s.Postings
				stats.Count += s.Count
				stats.Sort += s.Sort
				queries++
			}
		}
		b.ReportMetric(float64(stats.Count+stats.Sort)/float64(queries), "ns/query")
		b.ReportMetric(float64(stats.Count)/float64(stats.Postings), "ns/posting-count")
		b.ReportMetric(float64(stats.Count+stats.Sort)/float64(stats.Postings), "ns/posting")
	})
	for _, opts := range []CPUOptions{{Workers: 1}, {Workers: 2}, {Workers: 1, NibbleCounters: true}} {
		b.Run(fmt.Sprintf("engine-%d-nibbles-%v", opts.Workers, opts.NibbleCounters), func(b *testing.B) {
			s := c.load(b, opts)
			answers := make([]Answer, len(plans))
			start := time.Now()
			postings := uint64(0)
			for range b.N {
				if err := s.Search(context.Background(), plans, answers); err != nil {
					b.Fatal(err)
				}
				for i := range answers {
					postings += answers[i].Postings
				}
			}
			took := float64(time.Since(start))
			b.ReportMetric(took/float64(b.N*len(plans)), "ns/query")
			b.ReportMetric(took/float64(postings), "ns/posting")
			sameAsFlatScan(b, scanner, plans[:8], answers[:8])
		})
	}
}
