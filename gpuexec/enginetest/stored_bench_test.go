package enginetest

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/geniemq/geniemq/bench/workload"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/index/postings"
)

// storedMatcher answers with what a search has found before: the device costs nothing, and what is left of a call is the host's.
type storedMatcher struct {
	run.Matcher
	found map[any][]topk.Entry // by query
}

func (m storedMatcher) Match(_ context.Context, jobs []*run.Job, _ *gpuexec.Trace) error {
	for _, job := range jobs {
		entries := m.found[job.Query]
		job.Entries = append(job.Entries[:0], entries[max(0, len(entries)-job.K):]...)
	}
	return nil
}

func (m storedMatcher) Check(p *gpuexec.Plan) (uint32, error)                      { return 1 << 20, nil }
func (m storedMatcher) Scan(context.Context, []*run.ScanJob, *gpuexec.Trace) error { return nil }
func (m storedMatcher) Residence() run.Residence                                   { return run.Residence{} }

// BenchmarkStored is what whole calls take on the host, with all cores, of batches whose counting costs nothing: 1,024 queries of w3 with BM25 and
// Jaccard of 100 candidates, of w5 with distances, and of w3 by counts. GENIEMQ_OBJECTS is the number of objects, 100,000 if unset.
//
//	go test ./gpuexec/enginetest -run '^$' -bench Stored -cpu 1,2
func BenchmarkStored(b *testing.B) {
	objects, _ := strconv.Atoi(os.Getenv("GENIEMQ_OBJECTS"))
	if objects == 0 {
		objects = 100_000
	}
	for _, opts := range []struct {
		name string
		workload.Options
	}{
		{"w3", workload.Options{}},
		{"w3", workload.Options{IDF: true, IDFScale: 1, Rescore: "bm25", Candidates: 100}},
		{"w3", workload.Options{IDF: true, IDFScale: 1, Rescore: "jaccard", Candidates: 100}},
		{"w3", workload.Options{IDF: true, IDFScale: 1, Rescore: "bm25", Candidates: 100, K: 10}},
		{"w5", workload.Options{Candidates: 100}},
	} {
		opts.Objects = objects
		b.Run(fmt.Sprintf("%s/%s/k=%d", opts.name, opts.Rescore, opts.K), func(b *testing.B) {
			w, err := workload.New(b.Context(), opts.name, opts.Options)
			if err != nil {
				b.Fatal(err)
			}
			storedCalls(b, w)
		})
	}
}

func storedCalls(b *testing.B, w *workload.Workload) {
	m := storedMatcher{found: make(map[any][]topk.Entry)}
	engine := cpu.New(gpuexec.CPUOptions{})
	defer engine.Close()
	counted, err := engine.Load(b.Context(), w.Index)
	if err != nil {
		b.Fatal(err)
	}
	defer counted.Close()
	answers := make([]gpuexec.Answer, len(w.Plans))
	plans := make([]gpuexec.Plan, len(w.Plans))
	for i := range plans {
		plans[i] = gpuexec.Plan{Family: w.Plans[i].Family, Query: w.Plans[i].Query, K: w.Plans[i].Candidates()}
	}
	if err := counted.Search(b.Context(), plans, answers, nil); err != nil {
		b.Fatal(err)
	}
	candidates := 0
	for i, a := range answers {
		var entries []topk.Entry
		for j := len(a.Hits) - 1; j >= 0; j-- {
			entries = append(entries, topk.NewEntry(a.Hits[j].Count, a.Hits[j].ID))
		}
		m.found[plans[i].Query] = entries
		candidates += len(entries)
	}
	s := run.NewSearcher(w.Index, run.NewCrew(0), map[string]run.Matcher{postings.FamilyName: m}, gpuexec.Capacity{})
	var t gpuexec.Trace
	if err := s.Search(b.Context(), w.Plans, answers, nil); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var before, after syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	calls := 0
	for b.Loop() {
		calls++
		if err := s.Search(b.Context(), w.Plans, answers, &t); err != nil {
			b.Fatal(err)
		}
	}
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	b.ReportMetric(float64(after.Utime.Nano()+after.Stime.Nano()-before.Utime.Nano()-before.Stime.Nano())/float64(calls)/float64(candidates), "cpu-ns/candidate")
	for i := range answers {
		if answers[i].Err != nil || len(answers[i].Hits) == 0 {
			b.Fatalf("answer %d: %+v", i, answers[i])
		}
	}
}
