package bench

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/geniemq/geniemq/bench/workload"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
)

// BenchmarkFilterShares measures what filters cost on a core of the CPU engine: batches of 256 queries, each with a filter of its own, in turns
// with the same queries without, by the time of the core, so that a noisy machine matters less. It reports the time per query, and the median
// over the rounds of its ratio to that without filters. GENIEMQ_WORKLOAD is w6 or w6words, w6words if unset; GENIEMQ_OBJECTS 500,000 if unset.
//
//	go test ./bench -run '^$' -bench FilterShares -benchtime 15x
func BenchmarkFilterShares(b *testing.B) {
	name := cmp.Or(os.Getenv("GENIEMQ_WORKLOAD"), "w6words")
	objects, err := strconv.Atoi(cmp.Or(os.Getenv("GENIEMQ_OBJECTS"), "500000"))
	if err != nil {
		b.Fatalf("GENIEMQ_OBJECTS: %v", err)
	}
	shares := []float64{0, 0.5, 0.05, 0.001}
	engine := cpu.New(gpuexec.CPUOptions{Workers: 1})
	defer engine.Close()
	cache := b.TempDir()
	var searchers []gpuexec.Searcher
	var plans [][]gpuexec.Plan
	for _, share := range shares {
		w, err := workload.New(b.Context(), name, workload.Options{Objects: objects, Queries: 256, Filter: share, Cache: cache})
		if err != nil {
			b.Fatal(err)
		}
		defer w.Close()
		s, err := engine.Load(b.Context(), w.Index)
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		searchers, plans = append(searchers, s), append(plans, w.Plans)
	}
	answers := make([]gpuexec.Answer, len(plans[0]))
	search := func(i int) (microseconds float64) {
		before := coreTime(b)
		if err := searchers[i].Search(b.Context(), plans[i], answers, nil); err != nil {
			b.Fatal(err)
		}
		return (coreTime(b) - before) / float64(len(answers))
	}
	for i := range shares {
		search(i) // warms up
	}
	times := make([][]float64, len(shares))
	for b.Loop() {
		for i := range shares {
			times[i] = append(times[i], search(i))
		}
	}
	for i, share := range shares {
		ratios := make([]float64, len(times[i]))
		for round := range ratios {
			ratios[round] = times[i][round] / times[0][round]
		}
		b.ReportMetric(slices.Min(times[i]), fmt.Sprintf("us/query@%g", share))
		b.ReportMetric(median(ratios), fmt.Sprintf("of-unfiltered@%g", share))
	}
}

// coreTime is the time that cores have worked for this process, in microseconds.
func coreTime(b *testing.B) float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1000
}
