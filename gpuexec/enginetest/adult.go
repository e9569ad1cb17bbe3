package enginetest

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/bench/workload"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/load"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
)

func LoadAdult(t testing.TB, copies int) *Collection { return loadAdultIn(t, "auto", copies) }

// loadAdultIn is loadAdult with all attributes in a layout.
func loadAdultIn(t testing.TB, layout string, copies int) *Collection {
	spec := strings.NewReplacer("number}", "number, layout: "+layout+"}", "category}", "category, layout: "+layout+"}").Replace(workload.AdultSchema)
	return LoadCollection(t, spec, load.Options{Format: load.CSV}, copies, "adult/adult.data.gz", "adult/adult.test.gz")
}

// adultQuery asks for a row: numbers within 50 buckets either way, categories as they are (design section 8, W4).
func (c *Collection) adultQuery(t testing.TB, rec *schema.Record) postings.MatchQuery {
	t.Helper()
	var conditions []column.Condition
	attr := 0
	for i, col := range c.schema.Columns {
		if col.Type == schema.SkipColumn {
			continue
		}
		a := &c.Index.Attributes()[attr]
		attr++
		if len(rec.Cells[i].Values) == 0 {
			continue
		}
		value := rec.Cells[i].Values[0]
		condition := column.Condition{Attr: a.Name}
		if col.Type == schema.NumberColumn {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			bucket, _ := a.Bucket(v)
			low := column.NumberValue(max(0, float64(bucket)-50))
			high := column.NumberValue(min(float64(a.Keywords)-1, float64(bucket)+50))
			condition.Min, condition.Max, condition.Bucket = &low, &high, true
		} else {
			v := column.StringValue(value)
			condition.Value = &v
		}
		conditions = append(conditions, condition)
	}
	var q postings.MatchQuery
	if _, err := c.Queries.Plan(&q, &index.Request{Conditions: conditions, Quiet: true}); err != nil {
		t.Fatal(err)
	}
	return q
}

func (c *Collection) AdultPlans(t testing.TB, rng *rand.Rand, n, k int) []gpuexec.Plan {
	plans := make([]gpuexec.Plan, n)
	for i := range plans {
		query := c.adultQuery(t, &c.Records[rng.IntN(len(c.Records))])
		plans[i] = gpuexec.Plan{Family: postings.FamilyName, Query: &query, K: k}
	}
	return plans
}
