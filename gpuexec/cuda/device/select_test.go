//go:build cuda

package device

import (
	"context"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// longAnswers are numbers of hits around those that the device sorts at once, and merges in one round, two and more.
var longAnswers = []int{4095, 4096, 4097, 8191, 8192, 8193, 10_000, 16_385, 40_000, gpuexec.MaxK - 1, gpuexec.MaxK}

// TestCUDALongAnswers compares answers that the device merges with the CPU's, and such that fill the k places only in part.
func TestCUDALongAnswers(t *testing.T) {
	rng := seeded.Rand(t)
	e := openDevice(t, gpuexec.CUDAOptions{BatchMemory: 256 << 20})
	for _, objects := range []int{5000, store.TileObjects + 10_000, 3 * store.TileObjects} {
		wl := enginetest.Rows(objects)
		x := wl.Build(t)
		cpu, s := enginetest.LoadOn(t, cpu.New(gpuexec.CPUOptions{}), x), enginetest.LoadOn(t, e, x)
		for _, path := range []string{"tile", "sliced"} {
			plans := wl.Plans()[:scaled(100)]
			for i := range plans {
				plans[i].K = longAnswers[rng.IntN(len(longAnswers))]
				plans[i].MinCount = uint32(rng.IntN(5))
			}
			force(t, e, path)
			want, got := enginetest.Search(t, cpu, plans), enginetest.Search(t, s, plans)
			for i := range got {
				if !enginetest.SameHits(&got[i], &want[i]) {
					t.Fatalf("%d objects, path %s, k %d: %s", objects, path, plans[i].K, difference(&got[i], &want[i]))
				}
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCUDALongAnswersTimes measures batches of 1,024 queries for many hits; it runs with GENIEMQ_K_TIMES=1.
func TestCUDALongAnswersTimes(t *testing.T) {
	if os.Getenv("GENIEMQ_K_TIMES") != "1" {
		t.Skip("a measurement: GENIEMQ_K_TIMES=1")
	}
	e := openDevice(t, gpuexec.CUDAOptions{})
	wl := enginetest.Rows(980_000)
	s := enginetest.LoadOn(t, e, wl.Build(t))
	defer s.Close()
	t.Logf("%s, %d cores", e.Info().Device, runtime.GOMAXPROCS(0))
	for _, k := range []int{1000, 4096, 5000, 10_000, 65_536} {
		wl.K = k
		plans := wl.Plans()[:min(1024, 10_240_000/k)]
		answers := make([]gpuexec.Answer, len(plans))
		var totals []float64
		var stages gpuexec.Trace
		for run := range 7 {
			start := time.Now()
			stages = gpuexec.Trace{}
			if err := s.Search(context.Background(), plans, answers, &stages); err != nil {
				t.Fatal(err)
			}
			if run > 1 {
				totals = append(totals, time.Since(start).Seconds()*1e3)
			}
		}
		slices.Sort(totals)
		t.Logf("k %5d, %4d queries: batch %.2f ms; plan %v match %v select %v download %v", k, len(plans), totals[len(totals)/2],
			stages.Plan, stages.Match, stages.Select, stages.Download)
	}
}
