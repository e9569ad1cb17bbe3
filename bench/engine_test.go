package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/geniemq/geniemq/bench/workload"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/internal/testkit/raced"
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
	sizes := map[string]int{"w1": 3_000, "w1points": 3_000, "w2": 2_000, "w3": 70_000, "w4": 100_000, "w4x100": 50_000, "w5": 2_500, "w5sift": 2_500, "w6": 3_000, "w6words": 70_000, "w7": 70_000}
	for _, name := range raced.Of(workload.Names(), []string{"w1points", "w2", "w7"}) { // of objects with and without counts, in one tile and in two
		t.Run(name, func(t *testing.T) {
			w, err := workload.New(ctx, name, workload.Options{Objects: sizes[name], Queries: 40, Data: data(t)})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			engine := cpu.New(gpuexec.CPUOptions{Workers: 2})
			defer engine.Close()
			options := EngineOptions{Progress: silent, Runs: 1, Checks: 10, Baseline: 3, Scaling: true}
			if name == "w1points" { // which counts nothing that a flat scan could count
				options.Baseline = 0
			}
			r, err := Engine(ctx, w, engine, options)
			if err != nil {
				t.Fatal(err)
			}
			if name == "w1points" {
				if r.Checked != 10 || r.Mismatches != 0 || r.TotalMs <= 0 || len(r.Scaling) != 2 {
					t.Errorf("%d of %d checked answers differ from brute force: %+v", r.Mismatches, r.Checked, r)
				}
				return
			}
			if r.Checked != 10 || r.Mismatches != 0 || r.Baseline.Mismatches != 0 {
				t.Errorf("%d of %d checked answers differ from brute force, %d from the flat scan", r.Mismatches, r.Checked, r.Baseline.Mismatches)
			}
			if vectors := name == "w5" || name == "w5sift"; vectors != (r.Recall != nil) || vectors && *r.Recall < 0.8 {
				t.Errorf("recall %v", r.Recall)
			}
			if r.Scanned == 0 || r.TotalMs <= 0 || r.Postings == 0 || r.Baseline.ScanMs <= 0 || len(r.Scaling) != 2 {
				t.Errorf("figures are missing: %+v", r)
			}
		})
	}
}

// Filters and weights, too: each query's filter passes the share that was asked for, and brute force knows both.
func TestRefinedWorkloads(t *testing.T) {
	if testing.Short() {
		t.Skip("measures whole workloads: not when tests are to be short")
	}
	ctx := context.Background()
	engine := cpu.New(gpuexec.CPUOptions{Workers: 2})
	defer engine.Close()
	for _, c := range []struct {
		name string
		opts workload.Options
	}{
		{"w3", workload.Options{IDF: true}}, {"w3", workload.Options{IDF: true, IDFScale: 1}}, {"w6words", workload.Options{IDF: true, Filter: 0.5}}, {"w6", workload.Options{IDF: true, Filter: 0.05}},
		{"w6words", workload.Options{Filter: 0.05}}, {"w6words", workload.Options{Filter: 0.001}}, {"w7", workload.Options{IDF: true}},
		{"w3", workload.Options{Rescore: "bm25", IDF: true}}, {"w6words", workload.Options{Rescore: "cosine", Filter: 0.05, Candidates: 150}},
		{"w7", workload.Options{Rescore: "jaccard"}}, {"w7", workload.Options{Rescore: "dice", IDF: true}},
	} {
		c.opts.Objects, c.opts.Queries = 20_000, 20
		w, err := workload.New(ctx, c.name, c.opts)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Engine(ctx, w, engine, EngineOptions{Progress: silent, Runs: 1, Checks: 10})
		if err != nil || r.Mismatches > 0 {
			t.Errorf("%s %+v: %v, %d of %d checked answers differ from brute force", c.name, c.opts, err, r.Mismatches, r.Checked)
		}
		if c.opts.Filter > 0 {
			share := passing(t, w, engine)
			t.Logf("a filter of %v passes %v", c.opts.Filter, share)
			if share < 0.7*c.opts.Filter || share > 1.5*c.opts.Filter {
				t.Errorf("a filter of %v passes %v", c.opts.Filter, share)
			}
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	for name, opts := range map[string]workload.Options{"w3": {Filter: 0.5}, "w4": {IDF: true}, "w6": {Filter: 1.5}, "w1": {Rescore: "bm25"}, "w7": {Rescore: "l2"}} {
		if w, err := workload.New(ctx, name, opts); err == nil {
			t.Errorf("%s takes %+v", name, w.Options)
		}
	}
}

// passing is the share of the objects that passes the filters, on average.
func passing(t *testing.T, w *workload.Workload, engine gpuexec.Engine) float64 {
	t.Helper()
	searcher, err := engine.Load(t.Context(), w.Index)
	if err != nil {
		t.Fatal(err)
	}
	defer searcher.Close()
	total := uint64(0)
	for i := range w.Plans {
		queryOf(&w.Plans[i]).Total = true
	}
	answers := make([]gpuexec.Answer, len(w.Plans))
	if _, err := searchAll(t.Context(), searcher, w.Plans, answers); err != nil {
		t.Fatal(err)
	}
	for i := range answers {
		total += answers[i].Total
	}
	return float64(total) / float64(len(answers)) / float64(w.Options.Objects)
}

// A neighbour that is missed lowers the recall, and a wrong distance is noticed.
func TestRecall(t *testing.T) {
	w, err := workload.New(t.Context(), "w5", workload.Options{Objects: 300, Queries: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	engine := cpu.New(gpuexec.CPUOptions{})
	defer engine.Close()
	searcher, err := engine.Load(t.Context(), w.Index)
	if err != nil {
		t.Fatal(err)
	}
	defer searcher.Close()
	answers := make([]gpuexec.Answer, 1)
	if err := searcher.Search(t.Context(), w.Plans, answers, nil); err != nil {
		t.Fatal(err)
	}
	a := answers[0]
	share, ok := w.Recall([]int{0}, []gpuexec.Answer{a})
	if !ok || share < 0.8 || w.Check(0, a) != nil {
		t.Errorf("recall %v, %v", share, w.Check(0, a))
	}
	a.Hits = a.Hits[1:]
	if less, _ := w.Recall([]int{0}, []gpuexec.Answer{a}); less > share-0.09 {
		t.Errorf("without its first hit: recall %v, with it %v", less, share)
	}
	a.Hits[2].Score += 0.01
	if w.Check(0, a) == nil {
		t.Error("a wrong distance is not noticed")
	}
}

// A check that cannot fail checks nothing.
func TestCheckFindsWrongAnswers(t *testing.T) {
	ctx := context.Background()
	w, err := workload.New(ctx, "w3", workload.Options{Objects: 5_000, Queries: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	engine := cpu.New(gpuexec.CPUOptions{})
	defer engine.Close()
	searcher, err := engine.Load(ctx, w.Index)
	if err != nil {
		t.Fatal(err)
	}
	defer searcher.Close()
	answers := make([]gpuexec.Answer, 1)
	if err := searcher.Search(ctx, w.Plans, answers, nil); err != nil {
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

// spoiled is an engine that goes wrong from its nth batch on.
type spoiled struct {
	gpuexec.Engine
	from  int64
	spoil func(a *gpuexec.Answer)
}

type spoiledSearcher struct {
	gpuexec.Searcher
	engine  *spoiled
	batches atomic.Int64
}

func (e *spoiled) Load(ctx context.Context, s gpuexec.Source, replaced ...gpuexec.Source) (gpuexec.Searcher, error) {
	searcher, err := e.Engine.Load(ctx, s, replaced...)
	return &spoiledSearcher{Searcher: searcher, engine: e}, err
}

func (s *spoiledSearcher) Search(ctx context.Context, plans []gpuexec.Plan, answers []gpuexec.Answer, t *gpuexec.Trace) error {
	err := s.Searcher.Search(ctx, plans, answers, t)
	if s.batches.Add(1) >= s.engine.from && err == nil {
		s.engine.spoil(&answers[0])
	}
	return err
}

// The runs that are measured are checked, those of callers too, and not the one before them alone.
func TestEngineFindsWrongRuns(t *testing.T) {
	ctx := context.Background()
	w, err := workload.New(ctx, "w3", workload.Options{Objects: 2_000, Queries: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	cpu := cpu.New(gpuexec.CPUOptions{})
	defer cpu.Close()
	const runs = 3
	for name, spoil := range map[string]func(a *gpuexec.Answer){
		"one hit less":  func(a *gpuexec.Answer) { a.Hits = a.Hits[:len(a.Hits)-1] },
		"a wrong count": func(a *gpuexec.Answer) { a.Hits[3].Count++ },
		"an error":      func(a *gpuexec.Answer) { a.Err = errors.New("a test") },
	} {
		for _, x := range []struct {
			from          int64
			callers, want int
		}{{1, 0, 1}, {3, 0, 1}, {1 + runs, 0, 1}, {2 + runs, 0, 0}, {2 + runs, 2, 1}, {1000, 2, 0}} {
			engine := &spoiled{Engine: cpu, from: x.from, spoil: spoil}
			r, err := Engine(ctx, w, engine, EngineOptions{Progress: silent, Runs: runs, Checks: 4, Callers: x.callers})
			if err != nil {
				t.Fatal(err)
			}
			if r.Checked != 4 || r.Mismatches != x.want {
				t.Errorf("%s from batch %d on, %d callers: %d mismatches of %d, want %d", name, x.from, x.callers, r.Mismatches, r.Checked, x.want)
			}
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

// Ctrl-C ends brute force with the query that it is at.
func TestEndedChecks(t *testing.T) {
	w, err := workload.New(context.Background(), "w3", workload.Options{Objects: 100, Queries: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	engine := cpu.New(gpuexec.CPUOptions{})
	defer engine.Close()
	ctx, cancel := context.WithCancel(context.Background())
	var late atomic.Bool
	w.Reference = func(i, _, _ int, _ func(id, count uint32)) {
		cancel()
		if i > 0 {
			late.Store(true)
		}
	}
	if r, err := Engine(ctx, w, engine, EngineOptions{Progress: silent, Checks: 3}); !errors.Is(err, context.Canceled) || late.Load() {
		t.Errorf("%+v, %v; another query was checked: %v", r, err, late.Load())
	}
}
