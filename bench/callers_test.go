package bench

import (
	"context"
	"testing"

	"github.com/geniemq/geniemq/bench/workload"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
)

func TestThroughput(t *testing.T) {
	ctx := context.Background()
	w, err := workload.New(ctx, "w3", workload.Options{Objects: 2000, Queries: 20, K: 5})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	engine := cpu.New(gpuexec.CPUOptions{})
	defer engine.Close()
	r, err := Engine(ctx, w, engine, EngineOptions{Progress: silent, Runs: 5, Checks: 1, Callers: 3})
	if err != nil {
		t.Fatal(err)
	}
	p := r.Throughput
	if p == nil || p.Callers != 3 || p.Batches < 3 || p.BatchesPerSecond <= 0 || p.QueriesPerSecond != 20*p.BatchesPerSecond || p.LatencyP99Ms < p.LatencyMs {
		t.Errorf("%+v", p)
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	searcher, err := engine.Load(context.Background(), w.Index)
	if err != nil {
		t.Fatal(err)
	}
	defer searcher.Close()
	if r, err := throughput(ctx, searcher, w.Plans, 2, 3, new(checks)); err == nil {
		t.Errorf("an ended context: %+v", r)
	}
}
