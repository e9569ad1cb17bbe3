//go:build cuda

package neighbours

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/index"
	asked "github.com/geniemq/geniemq/index/nearest"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestCUDAMemoryOfWords: 1,024 searches of words have the same answers in whatever memory a batch has, by every way that there is, together and alone.
func TestCUDAMemoryOfWords(t *testing.T) {
	rng := seeded.Rand(t)
	words, queries := wordsOf(t), 1024
	if testing.Short() { // emulated devices take minutes for all of them
		rng.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
		words, queries = words[:2000], 40
	}
	x := textsOf(t, words, "index: [scan, tree], ngram: 3")
	planner, err := index.NewQueries(x)
	if err != nil {
		t.Fatal(err)
	}
	for _, near := range []asked.Near{{K: 8, Method: "scan"}, {K: 1024, Radius: new(2.0), Method: "scan"}, {K: 8, Method: "tree"}, {K: 1024, Radius: new(1.0), Method: "tree"}, {K: 1024, Radius: new(1.0), Method: "ngram"}} {
		n := queries
		if near.Method == "tree" && os.Getenv("GENIEMQ_FULL") == "" { // which takes a thousand times as long as a scan
			n = min(n, 64)
		}
		ask, plans := changed(words, 2, near), make([]gpuexec.Plan, n)
		for i := range plans {
			made, err := planner.Plan(new(postings.MatchQuery), ask(rand.New(rand.NewPCG(uint64(i), 5))))
			if err != nil {
				t.Fatal(err)
			}
			plans[i] = gpuexec.Plan{Family: made.Family, Query: made.Query, K: near.K}
		}
		way := fmt.Sprintf("%s, k = %d", near.Method, near.K)
		want := make([]gpuexec.Answer, n)
		if err := enginetest.LoadOn(t, cpu.New(gpuexec.CPUOptions{}), x).Search(t.Context(), plans, want, nil); err != nil {
			t.Fatal(err)
		}
		for _, memory := range []int64{1 << 20, 16 << 20, 1 << 30} {
			s := enginetest.LoadOn(t, openEngine(t, gpuexec.CUDAOptions{BatchMemory: memory, Untried: true}), x)
			got, trace, began := make([]gpuexec.Answer, n), gpuexec.Trace{}, time.Now()
			if err := s.Search(t.Context(), plans, got, &trace); err != nil {
				t.Fatal(err)
			}
			took := time.Since(began)
			alone := time.Now()
			if err := s.Search(t.Context(), plans[:1], got[:1], nil); err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, %4d MiB: %d of %d queries on the device, %v there, %v in all; one alone %v", way, memory>>20, trace.Work.BytesQueries, n, trace.Match, took, time.Since(alone))
			for i := range got {
				if got[i].Err != nil || !slices.Equal(got[i].Hits, want[i].Hits) {
					t.Fatalf("%s, %d MiB, query %d: %v %v, want %v", way, memory>>20, i, got[i].Hits, got[i].Err, want[i].Hits)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
