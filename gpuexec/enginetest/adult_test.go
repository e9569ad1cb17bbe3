package enginetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/flatscan"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

func TestAdult(t *testing.T) {
	raced.Skip(t, raced.Data)
	c := LoadAdult(t, 1)
	if n := c.Index.Objects(); n != 48842 {
		t.Fatalf("%d objects, want 48,842", n)
	}
	rng := seeded.Rand(t)
	plans := c.AdultPlans(t, rng, 300, 0)
	for i := range plans {
		plans[i].K = []int{1, 10, 100, 5000}[rng.IntN(4)]
	}
	sameAsFlatScan(t, flatscan.New(c.Index.Lists), plans, Search(t, loadCPU(t, c.Index, gpuexec.CPUOptions{}), plans))
}

// BenchmarkAdult is workload W4, Adult times 20 with 1,024 queries and k = 100, on the CPU engine with 1 and all cores
// and on the flat scan (64 of the queries, one core). A sample is compared.
//
//	go test ./gpuexec/enginetest -run '^$' -bench Adult -benchtime 3x
func BenchmarkAdult(b *testing.B) {
	c := LoadAdult(b, 20)
	rng := rand.New(rand.NewPCG(1, 2))
	plans := c.AdultPlans(b, rng, 1024, 100)
	scanner := flatscan.New(c.Index.Lists)
	b.Run("flat", func(b *testing.B) {
		var stats flatscan.Stats
		queries := 0
		for range b.N {
			for i := range 64 {
				_, s := scanner.Search(nil, Query(&plans[i]), 100, 0)
				stats.Postings += s.Postings
				stats.Count += s.Count
				queries++
			}
		}
		b.ReportMetric(float64(b.Elapsed())/float64(queries), "ns/query")
		b.ReportMetric(float64(stats.Count)/float64(stats.Postings), "ns/posting-count")
		b.ReportMetric(float64(b.Elapsed())/float64(stats.Postings), "ns/posting")
	})
	for _, opts := range []gpuexec.CPUOptions{{Workers: 1}, {Workers: 2}} {
		b.Run(fmt.Sprintf("engine-%d", opts.Workers), func(b *testing.B) {
			s := loadCPU(b, c.Index, opts)
			answers := make([]gpuexec.Answer, len(plans))
			start := time.Now()
			postings := uint64(0)
			for range b.N {
				if err := s.Search(context.Background(), plans, answers, nil); err != nil {
					b.Fatal(err)
				}
				for i := range answers {
					postings += answers[i].Units
				}
			}
			took := float64(time.Since(start))
			b.ReportMetric(took/float64(b.N*len(plans)), "ns/query")
			b.ReportMetric(took/float64(postings), "ns/posting")
			sameAsFlatScan(b, scanner, plans[:8], answers[:8])
		})
	}
}
