package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
)

// ThroughputResult is what an engine does when callers overlap, as the service's executors do. A caller runs the
// whole batch of the workload again and again.
type ThroughputResult struct {
	Callers          int     `json:"callers"`
	Batches          int     `json:"batches"`
	BatchesPerSecond float64 `json:"batches_per_s"`
	QueriesPerSecond float64 `json:"queries_per_s"`
	LatencyMs        float64 `json:"latency_ms"` // of a batch among others
	LatencyP99Ms     float64 `json:"latency_p99_ms"`
}

// throughput runs batches from so many callers, as many for each as a single measurement does. The rate is that of the
// batches that ended while all callers were at work: without the first of each, and without the last of each. The answers
// of each caller's last batch are compared, when the rate is over for it.
func throughput(ctx context.Context, s gpuexec.Searcher, plans []gpuexec.Plan, callers, runs int, checks *checks) (*ThroughputResult, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	total := callers * (runs + 2)
	var begun atomic.Int64
	var mu sync.Mutex
	var ends []time.Time // in ascending order
	var latencies []float64
	var working sync.WaitGroup
	for range callers {
		working.Go(func() {
			answers := make([]gpuexec.Answer, len(plans))
			ran := false
			for begun.Add(1) <= int64(total) {
				start := time.Now()
				if err := searchAll(ctx, s, plans, answers); err != nil {
					cancel(err)
					return
				}
				ran = true
				mu.Lock()
				ends = append(ends, time.Now())
				latencies = append(latencies, milliseconds(time.Since(start)))
				mu.Unlock()
			}
			if ran { // the others may have taken all batches
				checks.compare(answers)
			}
		})
	}
	working.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	first, last := callers-1, total-callers // when this many have ended the last begins
	latencies = latencies[first+1 : last]
	r := &ThroughputResult{Callers: callers, Batches: last - 1 - first}
	r.BatchesPerSecond = float64(r.Batches) / ends[last-1].Sub(ends[first]).Seconds()
	r.QueriesPerSecond = r.BatchesPerSecond * float64(len(plans))
	r.LatencyMs, r.LatencyP99Ms = median(latencies), percentile(latencies, 99)
	return r, nil
}
