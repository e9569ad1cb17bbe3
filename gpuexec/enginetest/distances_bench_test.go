package enginetest

import (
	"fmt"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/nearest"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// BenchmarkDistances is a scan of 100,000 vectors of 32 elements, whole batches at a time.
//
//	go test ./gpuexec/enginetest -run '^$' -bench 'Distances$'
func BenchmarkDistances(b *testing.B) {
	rng := seeded.Rand(b)
	const n, dims = 100_000, 32
	for _, storage := range []string{"f32", "u8"} {
		s, err := index.Builtin().ParseSchema(fmt.Appendf(nil, `{name: x, columns: [{name: v, type: vector, metric: l2, storage: %s, dims: %d}]}`, storage, dims))
		if err != nil {
			b.Fatal(err)
		}
		objects, err := onebyone.NewObjects(s, index.BuilderOptions{})
		if err != nil {
			b.Fatal(err)
		}
		random := func() []float32 {
			v := make([]float32, dims)
			for i := range v {
				v[i] = float32(rng.IntN(256))
			}
			return v
		}
		for range n {
			if err := objects.Add(&schema.Record{Cells: []schema.Cell{{Vector: random()}}}); err != nil {
				b.Fatal(err)
			}
		}
		x := OpenBuilt(b, objects.Builder)
		queries, err := index.NewQueries(x)
		if err != nil {
			b.Fatal(err)
		}
		on := LoadOn(b, cpu.New(gpuexec.CPUOptions{}), x)
		for _, size := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/%d queries", storage, size), func(b *testing.B) {
				plans := make([]gpuexec.Plan, size)
				for i := range plans {
					made, err := queries.Plan(new(postings.MatchQuery), &index.Request{Vector: random(), Near: nearest.Near{K: 10}})
					if err != nil {
						b.Fatal(err)
					}
					plans[i] = gpuexec.Plan{Family: made.Family, Query: made.Query, K: 10}
				}
				answers := make([]gpuexec.Answer, size)
				for b.Loop() {
					if err := on.Search(b.Context(), plans, answers, nil); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size*n), "ns/distance")
			})
		}
	}
}
