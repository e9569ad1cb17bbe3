//go:build cuda

package device

import (
	"bufio"
	"compress/gzip"
	"context"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/index/verify"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestCUDAScan compares the hits of scans with the definition, and certified answers with the host's.
func TestCUDAScan(t *testing.T) {
	rng := seeded.Rand(t)
	e := openDevice(t, gpuexec.CUDAOptions{BatchMemory: 64 << 20})
	done, left := 0, 0
	for round := range scaled(40) {
		alphabet, texts, bases := verifyTexts(rng, round)
		ngram := 1 + rng.IntN(4)
		c := enginetest.SequenceCollection(t, texts, ngram)
		s := enginetest.LoadOn(t, e, c.Index)
		var plans []gpuexec.Plan
		var jobs []*run.ScanJob
		byDevice := func(job *run.ScanJob) bool { return len(matcherOf(s).resident.ScansOf([]*run.ScanJob{job})) > 0 }
		for n := 1 + rng.IntN(20); len(jobs) < n || !slices.ContainsFunc(jobs, byDevice); {
			text := enginetest.Misspelt(rng, bases[rng.IntN(len(bases))], rng.IntN(20)) + "a"
			if rng.IntN(20) == 0 {
				text = enginetest.RandomString(rng, alphabet, 2045+rng.IntN(8)) // around the longest pattern
			}
			jobs = append(jobs, scanFor(c.Index, ngram, []rune(text), []int{1, 2, 1 + rng.IntN(20), 500}[rng.IntN(4)],
				[]int{rng.IntN(10), rng.IntN(1 + len(text)), math.MaxInt32 - 1}[rng.IntN(3)], uint32(rng.IntN(4)*rng.IntN(4))))
			plan := c.SequencePlan(t, text, 1+rng.IntN(12), 1+rng.IntN(20), true)
			plan.MinCount = uint32(rng.IntN(3) * rng.IntN(3))
			plans = append(plans, plan)
		}
		if err := matcherOf(s).Scan(context.Background(), jobs, nil); err != nil {
			t.Fatal(err)
		}
		for i, job := range jobs {
			if job.Done != byDevice(job) {
				t.Fatalf("round %d job %d: done %v", round, i, job.Done)
			}
			if !job.Done {
				left++
				continue
			}
			done++
			var want []verify.Scored
			k := sequencesOf(job).Nearest().K
			for _, h := range enginetest.Nearest(texts, string(patternOf(job)), ngram, job.MinCount) {
				if int(h.Score) <= withinOf(job) && len(want) < k {
					want = append(want, verify.Scored(h))
				}
			}
			if !slices.Equal(job.Found, want) {
				t.Fatalf("round %d job %d, %d symbols, n %d, k %d, within %d, min count %d:\ngot  %v\nwant %v",
					round, i, len(patternOf(job)), ngram, k, withinOf(job), job.MinCount, job.Found, want)
			}
		}
		sameAsHost(t, c, s, plans)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d scans on the device, %d left to the host", done, left)
}

// TestCUDAScanWaves: several tiles, waves and pieces, on one device and spread over several. The lane has little memory.
func TestCUDAScanWaves(t *testing.T) {
	rng := seeded.Rand(t)
	texts := make([]string, 3*store.TileObjects+777)
	for i := range texts {
		texts[i] = enginetest.RandomString(rng, "abcdef", 1+rng.IntN(14))
	}
	c := enginetest.SequenceCollection(t, texts, 3)
	opts := gpuexec.CUDAOptions{Mode: gpuexec.DeviceCapacity, BatchMemory: 4 << 20, InFlight: 1}
	for _, e := range []gpuexec.Engine{openDevice(t, opts), openDeviceGroup(t, opts)} {
		s := enginetest.LoadOn(t, e, c.Index)
		var plans []gpuexec.Plan
		for i := range scaled(60) {
			text := enginetest.RandomString(rng, "abcdefg", 1+rng.IntN(12))
			if i%10 == 0 { // shares no gram with any: all are as good
				text = enginetest.RandomString(rng, "xyz", 1+rng.IntN(80))
			}
			plans = append(plans, c.SequencePlan(t, text, []int{1, 10, 100, 20_000}[rng.IntN(4)], 10, true))
		}
		sameAsHost(t, c, s, plans)
		jobs := make([]*run.ScanJob, len(plans))
		for i := range jobs {
			jobs[i] = &run.ScanJob{Rescorer: plans[i].Rescore.New(nil)}
		}
		if m := matcherOf(s); m != nil { // of the members of a group the same is true
			if err := m.Scan(context.Background(), jobs, nil); err != nil {
				t.Fatal(err)
			}
			for i := range jobs {
				if !jobs[i].Done {
					t.Errorf("scan %d was left to the host", i)
				}
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCUDAScanTimes measures certified answers whose scans the device does and the host, in turns; it runs with
// GENIEMQ_SCAN_TIMES=1. GENIEMQ_WORDS may name a gzipped list of words, one a line.
func TestCUDAScanTimes(t *testing.T) {
	if os.Getenv("GENIEMQ_SCAN_TIMES") != "1" {
		t.Skip("a measurement: GENIEMQ_SCAN_TIMES=1")
	}
	e := openDevice(t, gpuexec.CUDAOptions{})
	cores := runtime.GOMAXPROCS(0)
	t.Logf("%s, %d cores", e.Info().Device, cores)
	rng := rand.New(rand.NewPCG(1, 1))
	alphabet := "abcdefghijklmnopqrstuvwxyz '"
	families := func(objects, length, edits int) (texts []string) {
		bases := make([]string, objects/50)
		for i := range bases {
			bases[i] = enginetest.RandomString(rng, alphabet, length)
		}
		for range objects {
			texts = append(texts, enginetest.Misspelt(rng, bases[rng.IntN(len(bases))], rng.IntN(edits+1)))
		}
		return texts
	}
	for _, set := range []struct {
		name    string
		texts   []string
		queries int
		edits   int
	}{
		{"words", wordList(t), 1024, 2}, {"words", wordList(t), 1, 2}, {"titles, 40", families(300_000, 40, 10), 256, 20}, {"200 symbols", families(50_000, 200, 40), 64, 100},
	} {
		if len(set.texts) == 0 {
			continue
		}
		c := enginetest.SequenceCollection(t, set.texts, 3)
		s := onDevice(enginetest.LoadOn(t, e, c.Index))
		plans := make([]gpuexec.Plan, set.queries)
		for i := range plans {
			plans[i] = c.SequencePlan(t, enginetest.Misspelt(rng, set.texts[rng.IntN(len(set.texts))], set.edits)+"q", 10, 64, true)
		}
		farthest := s.resident.kernels.ScanFarthest
		var total, kernel [2][]float64
		var answers [2][]gpuexec.Answer
		var stagesOf [2]gpuexec.Trace
		for run := range 6 {
			way := run % 2
			if s.resident.kernels.ScanFarthest = farthest; way == 1 {
				s.resident.kernels.ScanFarthest = -1 // the host scans
			}
			answers[way] = make([]gpuexec.Answer, len(plans))
			start := time.Now()
			var stages gpuexec.Trace
			err := s.Search(context.Background(), plans, answers[way], &stages)
			if err != nil {
				t.Fatal(err)
			}
			if run > 1 {
				stagesOf[way] = stages
				total[way] = append(total[way], time.Since(start).Seconds()*1e3)
				kernel[way] = append(kernel[way], stages.Verify.Seconds()*1e3)
			}
		}
		s.resident.kernels.ScanFarthest = farthest
		for i := range plans {
			if !enginetest.SameHits(&answers[0][i], &answers[1][i]) {
				t.Fatal(difference(&answers[0][i], &answers[1][i]))
			}
		}
		jobs := make([]*run.ScanJob, len(plans))
		for i := range jobs {
			hits := answers[0][i].Hits
			jobs[i] = scanFor(c.Index, 3, enginetest.TextOf(&plans[i]), 10, int(hits[len(hits)-1].Score), 0)
		}
		var alone gpuexec.Trace
		if err := s.matcher.Scan(context.Background(), jobs, &alone); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d texts, %d queries: batch %.2f ms with the device's scan (device compares %.2f ms), %.2f with the host's; a scan for all queries, %.2f ms; stages %+v",
			set.name, len(set.texts), len(plans), total[0][0], kernel[0][0], total[1][0], alone.Verify.Seconds()*1e3, stagesOf[0])
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// wordList reads GENIEMQ_WORDS.
func wordList(t *testing.T) (words []string) {
	name := os.Getenv("GENIEMQ_WORDS")
	if name == "" {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(z); lines.Scan(); {
		if word := strings.TrimSpace(lines.Text()); word != "" && !strings.HasPrefix(word, "#") {
			words = append(words, word)
		}
	}
	return words
}
