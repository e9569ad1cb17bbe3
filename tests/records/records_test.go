package records

import (
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/gpuexec/group"
	"github.com/geniemq/geniemq/gpuexec/open"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/wire"
)

// engine is one that is compared.
type engine struct {
	gpuexec.Engine
	name string
}

// engines are the CPU engine, alone and in groups, and the CUDA engine where there is one; with GENIEMQ_REQUIRE_CUDA=1 there must be.
func engines(t *testing.T) []engine {
	t.Helper()
	crew := run.NewCrew(2)
	all := []engine{
		{cpu.New(gpuexec.CPUOptions{Workers: 2}), "CPU"},
		{group.New([]*run.Engine{cpu.On(crew), cpu.On(crew), cpu.On(crew)}, gpuexec.DeviceCapacity, crew), "capacity"},
		{group.New([]*run.Engine{cpu.On(crew), cpu.On(crew)}, gpuexec.DeviceReplica, crew), "replicas"},
	}
	e, err := open.Engine(gpuexec.CUDA, gpuexec.Options{CUDA: gpuexec.CUDAOptions{BatchMemory: 256 << 20, Workers: 2, Untried: true}})
	switch {
	case err == nil:
		all = append(all, engine{e, "CUDA"})
	case !errors.Is(err, gpuexec.ErrNoCUDA) || os.Getenv("GENIEMQ_REQUIRE_CUDA") == "1":
		t.Fatal(err)
	default:
		t.Logf("not on CUDA: %v", err)
	}
	t.Cleanup(func() {
		for _, e := range all {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return all
}

// random is the source of a test; it prints its seed, and GENIEMQ_SEED repeats one.
func random(t *testing.T) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(seeded.Seed(t), 12)) // repeated with the same GENIEMQ_ROUNDS only
}

// rounds is a number of rounds, times GENIEMQ_ROUNDS percent.
func rounds(t *testing.T, n int) int {
	t.Helper()
	if testing.Short() {
		n = max(1, n/10)
	}
	if text := os.Getenv("GENIEMQ_ROUNDS"); text != "" {
		percent, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		n = max(1, n*percent/100)
	}
	return n
}

// TestRecords: the answers to random queries of random records of random schemas are those of the model, on every engine to the byte.
// GENIEMQ_ROUNDS=10000 asks some hundred thousand.
func TestRecords(t *testing.T) {
	r, all := random(t), engines(t)
	seen := make(map[string]int)
	for round := range rounds(t, 150) {
		objects := r.IntN(120)
		switch {
		case round%10 == 9:
			objects = 500 + r.IntN(500)
		case round%100 == 50:
			objects = store.TileObjects + r.IntN(500)
		}
		w := newWorld(t, r, objects)
		var asked []*query
		for range 40 {
			if objects >= store.TileObjects && len(asked) == 5 {
				break
			}
			q := w.random()
			refusal := w.encode(q)
			if q.refused != (refusal != nil) || refusal != nil && refusal.Code != wire.BadRequest {
				t.Fatalf("refused: %v, want %v\n%s\n%s", refusal, q.refused, w.schema, q.json)
			}
			if !q.refused {
				asked = append(asked, q)
			}
			note(seen, q)
		}
		w.compare(all, asked)
		if err := w.x.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Log(seen)
	for _, what := range []string{"answered", "refused", "filter alone", "total", "rescored", "certified", "exact by count", "nearest vectors", "nearest trees", "nearest graphs", "matched", "explained", "of hash functions", "present or missing"} {
		if seen[what] == 0 && !testing.Short() {
			t.Errorf("no query was %s", what)
		}
	}
}

func note(seen map[string]int, q *query) {
	for what, is := range map[string]bool{
		"answered": !q.refused, "refused": q.refused, "filter alone": q.asked == nil && q.filters, "total": q.total, "rescored": q.rescore != nil,
		"certified": q.certify, "exact by count": q.rescore != nil && !q.certify && q.want.Exact, "hits": len(q.want.Hits) > 0,
		"matched": q.matched && len(q.want.Hits) > 0, "explained": q.explained && len(q.want.Hits) > 0,
		"of hash functions":  slices.ContainsFunc(q.asked, func(is *condition) bool { return is.c.functions > 0 && !is.presence }) && len(q.want.Hits) > 0,
		"present or missing": slices.ContainsFunc(q.asked, func(is *condition) bool { return is.presence }) && len(q.want.Hits) > 0,
		"nearest trees":      q.rescore != nil && q.rescore.is.tree != nil && len(q.want.Hits) > 0,
		"nearest graphs":     q.rescore != nil && q.rescore.is.graph != nil && len(q.want.Hits) > 0,
		"nearest vectors":    q.rescore != nil && q.rescore.is.vector != nil && len(q.want.Hits) > 0,
	} {
		if is {
			seen[what]++
		}
	}
}

// compare asks all engines.
func (w *world) compare(all []engine, asked []*query) {
	w.t.Helper()
	plans := make([]gpuexec.Plan, len(asked))
	for i, q := range asked {
		plans[i] = q.plan.Plan
	}
	for _, e := range all {
		s, err := e.Load(w.t.Context(), w.x)
		if err != nil {
			w.t.Fatal(err)
		}
		answers := make([]gpuexec.Answer, len(asked))
		for batch := range slices.Chunk(indices(len(asked)), max(1, s.Capacity().BatchPlans)) {
			lo, hi := batch[0], batch[len(batch)-1]+1
			if err := s.Search(w.t.Context(), plans[lo:hi], answers[lo:hi], nil); err != nil {
				w.t.Fatal(err)
			}
		}
		for i, q := range asked {
			w.check(q, e.name, &answers[i])
		}
		if err := s.Close(); err != nil {
			w.t.Fatal(err)
		}
	}
}

func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
