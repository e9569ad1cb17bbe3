//go:build cuda

package neighbours_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/index"
	asked "github.com/geniemq/geniemq/index/nearest"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
)

// BenchmarkCUDAColumns measures scans of random vectors, by metric and size: milliseconds of a batch on the device and in all, on both engines. The second with the
// radius of nobody: what is compared exactly is all.
func BenchmarkCUDAColumns(b *testing.B) {
	for _, c := range []struct {
		metric     string
		dims, k, n int
	}{{"l2", 300, 8, 200_000}, {"cosine", 128, 10, 200_000}, {"l1", 32, 8, 200_000}, {"l1", 282, 8, 100_000}, {"l2", 8, 8, 1_000_000}} {
		x := randomColumn(b, c.metric, c.dims, c.n)
		engines := map[string]gpuexec.Engine{"cuda": openDevice(b, gpuexec.CUDAOptions{Untried: true}), "cpu": cpu.New(gpuexec.CPUOptions{})}
		rng := rand.New(rand.NewPCG(2, 2))
		planner, err := index.NewQueries(x)
		if err != nil {
			b.Fatal(err)
		}
		for name, e := range engines {
			s, err := e.Load(b.Context(), x)
			if err != nil {
				b.Fatal(err)
			}
			for _, queries := range []int{1, 32, 512, 1024, 4096} {
				if name == "cpu" && queries > 1024 {
					continue
				}
				plans, answers := make([]gpuexec.Plan, queries), make([]gpuexec.Answer, queries)
				for i := range plans {
					made, err := planner.Plan(new(postings.MatchQuery), &index.Request{Vector: randomVector(rng, c.dims), Near: asked.Near{K: c.k, Method: "scan"}})
					if err != nil {
						b.Fatal(err)
					}
					plans[i] = gpuexec.Plan{Family: made.Family, Query: made.Query, K: c.k}
				}
				b.Run(fmt.Sprintf("%s/%s/%dx%d/k=%d/queries=%d", name, c.metric, c.n, c.dims, c.k, queries), func(b *testing.B) {
					var stages time.Duration
					for b.Loop() {
						var t gpuexec.Trace
						if err := s.Search(b.Context(), plans, answers, &t); err != nil {
							b.Fatal(err)
						}
						stages += t.Match
					}
					b.ReportMetric(float64(stages)/1e6/float64(b.N), "device-ms/op")
					b.ReportMetric(float64(b.Elapsed())/1e6/float64(b.N), "ms/op")
				})
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func randomVector(rng *rand.Rand, dims int) []float32 {
	v := make([]float32, dims)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

// randomColumn is an index of random vectors.
func randomColumn(b *testing.B, metric string, dims, n int) *index.Index {
	b.Helper()
	spec, err := index.Builtin().ParseSchema(fmt.Appendf(nil, "{name: columns, columns: [{name: v, type: vector, metric: %s, dims: %d, index: [scan]}]}", metric, dims))
	if err != nil {
		b.Fatal(err)
	}
	objects, err := index.NewObjects(spec, index.BuilderOptions{})
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range n {
		if err := objects.Add(&schema.Record{Cells: []schema.Cell{{Vector: randomVector(rng, dims)}}}); err != nil {
			b.Fatal(err)
		}
	}
	file, err := objects.Builder.Bytes(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	x, err := index.OpenBytes(file)
	if err != nil {
		b.Fatal(err)
	}
	return x
}
