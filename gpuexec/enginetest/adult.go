package enginetest

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/encode"
	"github.com/geniemq/geniemq/index/load"
	"github.com/geniemq/geniemq/index/postings"
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

func LoadAdult(t testing.TB, copies int) *Collection { return loadAdultIn(t, "auto", copies) }

// loadAdultIn is loadAdult with all attributes in a layout.
func loadAdultIn(t testing.TB, layout string, copies int) *Collection {
	schema := strings.NewReplacer("number}", "number, layout: "+layout+"}", "category}", "category, layout: "+layout+"}").Replace(adultSchema)
	return LoadCollection(t, schema, load.Options{Format: load.CSV}, copies, "adult/adult.data.gz", "adult/adult.test.gz")
}

// adultQuery asks for a row: numbers within 50 buckets either way, categories as they are (design section 8, W4).
func (c *Collection) adultQuery(t testing.TB, rec *index.Record) index.Query {
	t.Helper()
	var conditions []encode.Condition
	attr := 0
	for i, column := range c.schema.Columns {
		if column.Type == index.SkipColumn {
			continue
		}
		a := &c.Index.Attributes()[attr]
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
	if err := c.Queries.Conditions(&q, conditions); err != nil {
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
