package near

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/geniemq/geniemq/bench/sets"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/internal/testkit/real"
)

// BenchmarkCities is the whole engine around a search of cities15000, one core, batches of 1,024: checking, choosing, the search, answers and accounts. BenchmarkCities of index/metric/descent is
// the search alone, and docs/benchmarks/ckdtree.py another's.
func BenchmarkCities(b *testing.B) {
	folder := filepath.Dir(filepath.Dir(real.File(b, "cities15000/cities15000.txt.gz")))
	engine := cpu.New(gpuexec.CPUOptions{Workers: 1})
	defer engine.Close()
	const asked = 1024
	o := Options{Options: sets.Options{Folder: folder, Asked: asked}, Batch: asked, Runs: 1, Workers: 1, Engine: engine}
	err := o.with(b.Context(), "cities", "index: [tree]", func(l *loaded) error {
		for _, k := range []int{1, 10, 100} {
			b.Run(fmt.Sprintf("k=%d", k), func(b *testing.B) {
				b.ReportAllocs()
				plans, answers := make([]gpuexec.Plan, asked), make([]gpuexec.Answer, asked)
				for i := range plans {
					made, err := l.plan(l.set.Asked[i%len(l.set.Asked)], &Question{K: k})
					if err != nil {
						b.Fatal(err)
					}
					plans[i] = gpuexec.Plan{Family: made.Family, Query: made.Query, K: k}
				}
				least := time.Duration(math.MaxInt64)
				for b.Loop() {
					began := processor()
					if err := l.on.Search(b.Context(), plans, answers, nil); err != nil {
						b.Fatal(err)
					}
					least = min(least, processor()-began)
				}
				b.ReportMetric(float64(least)/asked, "processor-ns/query") // the least of all rounds
			})
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}
