package bench

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
)

// data returns the folder of the real data, or skips; in CI it must be there.
func data(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("GENIEMQ_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "shared", "data")
	}
	if _, err := os.Stat(folder); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the real data must be there in CI: %v", err)
		}
		t.Skipf("no real data: %v; set GENIEMQ_DATA to its folder", err)
	}
	return folder
}

// Every workload, small: the engine's answers equal brute force, and the measurement has the figures it promises.
func TestWorkloads(t *testing.T) {
	ctx := context.Background()
	sizes := map[string]int{"w1": 3_000, "w2": 2_000, "w3": 70_000, "w4": 100_000, "w4x100": 50_000}
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			w, err := New(ctx, name, Options{Objects: sizes[name], Queries: 40, Data: data(t)})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			engine := gpuexec.NewCPU(gpuexec.CPUOptions{Workers: 2})
			defer engine.Close()
			r, err := Engine(ctx, w, engine, EngineOptions{Runs: 1, Checks: 10, Baseline: 3, Scaling: true})
			if err != nil {
				t.Fatal(err)
			}
			if r.Checked != 10 || r.Mismatches != 0 || r.Baseline.Mismatches != 0 {
				t.Errorf("%d of %d checked answers differ from brute force, %d from the flat scan", r.Mismatches, r.Checked, r.Baseline.Mismatches)
			}
			if r.Scanned == 0 || r.TotalMs <= 0 || r.Postings == 0 || r.Baseline.ScanMs <= 0 || len(r.Scaling) != 2 {
				t.Errorf("figures are missing: %+v", r)
			}
		})
	}
}

// A check that cannot fail checks nothing.
func TestCheckFindsWrongAnswers(t *testing.T) {
	ctx := context.Background()
	w, err := New(ctx, "w3", Options{Objects: 5_000, Queries: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	engine := gpuexec.NewCPU(gpuexec.CPUOptions{})
	defer engine.Close()
	searcher, err := engine.Load(ctx, snapshot(w))
	if err != nil {
		t.Fatal(err)
	}
	defer searcher.Close()
	answers := make([]gpuexec.Answer, 1)
	if err := searcher.Search(ctx, w.Plans, answers); err != nil {
		t.Fatal(err)
	}
	if err := w.Check(0, answers[0]); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(hits []gpuexec.Hit) []gpuexec.Hit{
		"one hit less":     func(h []gpuexec.Hit) []gpuexec.Hit { return h[:len(h)-1] },
		"a wrong count":    func(h []gpuexec.Hit) []gpuexec.Hit { h[3].Count++; return h },
		"two hits swapped": func(h []gpuexec.Hit) []gpuexec.Hit { h[0], h[1] = h[1], h[0]; return h },
	} {
		spoiled := answers[0]
		spoiled.Hits = spoil(append([]gpuexec.Hit(nil), answers[0].Hits...))
		if w.Check(0, spoiled) == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
}

func TestPercentile(t *testing.T) {
	x := []float64{5, 1, 4, 2, 3}
	for p, want := range map[float64]float64{50: 3, 99: 5, 100: 5, 1: 1, 20: 1, 21: 2} {
		if got := percentile(x, p); got != want {
			t.Errorf("percentile %v = %v, want %v", p, got, want)
		}
	}
}
