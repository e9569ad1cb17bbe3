package enginetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
)

// recordsToFilter is one of records: six categories of few values, two numbers, and words. Its last attribute has a value per thousand objects at
// random, for filters of any selectivity that no other attribute goes with.
func recordsToFilter(tb testing.TB, objects int) (x *index.Index, vocabulary []uint32) {
	spec, err := index.Builtin().ParseSchema(RowsSchema)
	if err != nil {
		tb.Fatal(err)
	}
	vocabulary = []uint32{2, 7, 16, 41, 67, 120, 1024, 1024, 20_000, 1000}
	var specs []schema.AttributeSpec
	for a, v := range vocabulary {
		s := schema.AttributeSpec{Name: "a" + strconv.Itoa(a), Type: schema.Ordinal, Keywords: v, Layout: "auto"}
		specs = append(specs, s)
	}
	b, err := onebyone.NewBuilder(spec, specs, index.BuilderOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(7, 7))
	for range objects {
		for a, v := range vocabulary {
			n := 1
			if v == 20_000 {
				n = 8 // words
			}
			for range n {
				kw := rng.Uint32N(v)
				if a < len(vocabulary)-1 {
					kw = min(kw, rng.Uint32N(v))
				}
				if err := b.AddOrdinal(a, kw); err != nil {
					tb.Fatal(err)
				}
			}
		}
		if err := b.EndObject("", nil, ""); err != nil {
			tb.Fatal(err)
		}
	}
	return OpenBuilt(tb, b.Builder), vocabulary
}

// BenchmarkFilters measures what filters cost, on every engine: batches of 1,024 queries of ten items without a filter, and with filters
// that pass a share of the objects: one for all, and a filter for each query. GENIEMQ_OBJECTS is the number of objects, 500,000 if unset.
//
//	GENIEMQ_OBJECTS=5000000 go test -tags cuda ./gpuexec/enginetest -run '^$' -bench Filters -benchtime 5x
func BenchmarkFilters(b *testing.B) {
	objects := 500_000
	if text := os.Getenv("GENIEMQ_OBJECTS"); text != "" {
		var err error
		if objects, err = strconv.Atoi(text); err != nil {
			b.Fatalf("GENIEMQ_OBJECTS: %v", err)
		}
	}
	x, vocabulary := recordsToFilter(b, objects)
	last := uint32(len(vocabulary) - 1)
	share := func(permille, from uint32) *filter.Filter {
		f := &filter.Filter{}
		f.StartGroup(false)
		f.StartClause(last)
		if permille < 1000 {
			from %= 1000 - permille
		} else {
			from = 0
		}
		f.AddSpan(from, from+permille)
		return f
	}
	for _, e := range engines(b) {
		if e.name != "one core" && e.name != "CUDA" {
			continue
		}
		s := LoadOn(b, e, x)
		for _, permille := range []uint32{0, 1000, 500, 50, 1} { // 0: none
			for _, each := range []bool{false, true} {
				if permille == 0 && each {
					continue
				}
				b.Run(fmt.Sprintf("%s/permille=%d/each=%v", e.name, permille, each), func(b *testing.B) {
					rng := rand.New(rand.NewPCG(1, 1))
					n := 1024
					if e.name != "CUDA" {
						n = 64
					}
					plans := make([]gpuexec.Plan, n)
					for i := range plans {
						p := &plans[i]
						p.K = 100
						q := Query(p)
						for a, v := range vocabulary[:last] {
							q.StartItem(uint32(a), 1)
							kw := min(rng.Uint32N(v), rng.Uint32N(v))
							q.AddSpan(kw, min(v, kw+1+v/50))
						}
						if permille > 0 {
							if q.Filter = share(permille, 0); each {
								q.Filter = share(permille, rng.Uint32N(1000))
							}
						}
					}
					answers := make([]gpuexec.Answer, n)
					for b.Loop() {
						if err := s.Search(context.Background(), plans, answers, nil); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "us/query")
				})
			}
		}
		closeSearcher(b, s)
	}
}
