//go:build cuda

package device

import (
	"context"
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
	"github.com/geniemq/geniemq/index/levenshtein"
	"github.com/geniemq/geniemq/index/verify"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// verifyAlphabets has symbols of one byte on the device and of two, of all lengths in UTF-8.
func verifyAlphabets() []string {
	var many strings.Builder
	for r := rune('a'); r < 'a'+2000; r++ {
		many.WriteRune(r)
	}
	return []string{"a", "acgt", "abcdefghijklmnopqrstuvwxyz '", "aäöüßé検索файл𝄞\U0010ffff", many.String()}
}

var verifyLengths = []int{0, 1, 2, 31, 32, 33, 40, 63, 64, 65, 100, 127, 128, 129, 200, 257, 400, 513, 1000, 1025, 2040}

// verifyTexts makes some texts, of which most are misspelt bases: in each round of other symbols and lengths, now and then some
// that are longer than the device compares.
func verifyTexts(rng *rand.Rand, round int) (alphabet string, texts, bases []string) {
	alphabet = verifyAlphabets()[round%5]
	lengths := verifyLengths[:len(verifyLengths)/(1+round%3)]
	bases = make([]string, 8)
	for i := range bases {
		bases[i] = enginetest.RandomString(rng, alphabet, lengths[rng.IntN(len(lengths))])
	}
	for range 1 + rng.IntN(600) {
		switch rng.IntN(6) {
		case 0:
			texts = append(texts, enginetest.RandomString(rng, alphabet, lengths[rng.IntN(len(lengths))]))
		case 1:
			texts = append(texts, "")
		default:
			texts = append(texts, enginetest.Misspelt(rng, bases[rng.IntN(len(bases))], rng.IntN(30)))
		}
	}
	if round%7 == 0 {
		texts = append(texts, enginetest.RandomString(rng, alphabet, 4096), enginetest.RandomString(rng, alphabet, 4097)+bases[0], enginetest.RandomString(rng, alphabet, 3000)+bases[1])
	}
	return alphabet, texts, bases
}

// TestCUDAVerify compares every distance that the device computes, and the answers, with the host's.
func TestCUDAVerify(t *testing.T) {
	rng := seeded.Rand(t)
	e := openDevice(t, gpuexec.CUDAOptions{BatchMemory: 64 << 20})
	compared, left := 0, 0
	least := 1000 * scaled(40) / 40
	for round := 0; round < scaled(40) || compared < least && round < 1000; round++ {
		alphabet, texts, bases := verifyTexts(rng, round)
		ngram := 1 + rng.IntN(4)
		c := enginetest.SequenceCollection(t, texts, ngram)
		var plans []gpuexec.Plan
		n := 1 + rng.IntN(40)
		if round == 0 {
			n = 40 // enough for a reduced run
		}
		for range n {
			text := enginetest.Misspelt(rng, bases[rng.IntN(len(bases))], rng.IntN(20))
			if text == "" {
				text = "a"
			}
			if rng.IntN(20) == 0 {
				text = enginetest.RandomString(rng, alphabet, 2045+rng.IntN(8)) // around the longest pattern
			}
			k := []int{1, 2, 31, 32, 33, 100, 1000}[rng.IntN(7)]
			plan := c.SequencePlan(t, text, 1+rng.IntN(12), k, rng.IntN(4) == 0)
			if rng.IntN(5) == 0 { // without verification, in the same batch
				plan.Rescore = nil
			}
			plans = append(plans, plan)
		}
		s := enginetest.LoadOn(t, e, c.Index)
		own, skipped := compareDistances(t, matcherOf(s), texts, plans)
		compared, left = compared+own, left+skipped
		sameAsHost(t, c, s, plans)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d distances of the device, %d left to the host", compared, left)
	if compared < least {
		t.Error("hardly any distance was compared")
	}
}

// compareDistances matches the plans and checks what distances come back.
func compareDistances(t *testing.T, s *matcher, texts []string, plans []gpuexec.Plan) (compared, left int) {
	t.Helper()
	jobs := make([]run.Job, len(plans))
	var list []*run.Job
	for i := range plans {
		m := &plans[i]
		bound, err := s.lists.CheckQuery(plans[i].Query, nil)
		if err != nil {
			t.Fatal(err)
		}
		jobs[i] = run.Job{Query: enginetest.Query(m), K: min(m.K, len(texts)), MinCount: 1, Bound: bound}
		if m.Rescore != nil {
			jobs[i].Rescore = &verify.Nearest{Texts: m.Rescore.(*verify.Nearest).Texts, NGram: 3, Text: enginetest.TextOf(m), K: 1 + i%40}
		}
		if bound > 0 {
			list = append(list, &jobs[i])
		}
	}
	if err := s.Match(context.Background(), list, nil); err != nil {
		t.Fatal(err)
	}
	for _, job := range list {
		if !compares(s.resident, job) {
			if len(job.Known) != 0 {
				t.Fatal("distances that no one asked for")
			}
			continue
		}
		want := min(len(job.Entries), max(32, 2*nearestOf(job).K))
		if len(job.Known) != want || !slices.IsSorted(job.Entries) {
			t.Fatalf("%d distances of %d entries, sorted: %v", len(job.Known), len(job.Entries), slices.IsSorted(job.Entries))
		}
		for i := range job.Known {
			e := job.Entries[len(job.Entries)-1-i]
			text := []rune(texts[e.ID()])
			want, got := verify.KnownScore(float64(levenshtein.Distance(nearestOf(job).Text, text))), job.Known[i]
			if len(text) > 4096 {
				want = verify.Unknown
				left++
			}
			if got != want {
				t.Fatalf("entry %d of %d, lengths %d and %d: distance %v, want %v", i, len(job.Entries), len(nearestOf(job).Text), len(text), got, want)
			}
			compared++
		}
	}
	return compared, left
}

// sameAsHost compares the answers with those of the CPU engine.
func sameAsHost(t *testing.T, c *enginetest.Collection, s gpuexec.Searcher, plans []gpuexec.Plan) {
	t.Helper()
	want, got := enginetest.Search(t, loadHost(t, c.Index, gpuexec.CPUOptions{Workers: 2}), plans), enginetest.Search(t, s, plans)
	for i := range got {
		if !enginetest.SameHits(&got[i], &want[i]) {
			t.Fatalf("plan %d (%+v): %s", i, plans[i].Rescore, difference(&got[i], &want[i]))
		}
	}
}

// TestCUDAVerifyMany has so many candidates that the device merges the answers it sorts.
func TestCUDAVerifyMany(t *testing.T) {
	rng := seeded.Rand(t)
	texts := make([]string, 12_000)
	for i := range texts {
		texts[i] = enginetest.RandomString(rng, "abc", 1+rng.IntN(40))
	}
	c := enginetest.SequenceCollection(t, texts, 2)
	s := enginetest.LoadOn(t, openDevice(t, gpuexec.CUDAOptions{}), c.Index)
	defer s.Close()
	var plans []gpuexec.Plan
	for range 5 {
		plans = append(plans, c.SequencePlan(t, enginetest.RandomString(rng, "abc", 30), 10, 4000+rng.IntN(3000), false))
	}
	compareDistances(t, matcherOf(s), texts, plans)
	sameAsHost(t, c, s, plans)
}

// TestCUDAVerifyElsewhere: where the texts are not on the device the host compares.
func TestCUDAVerifyElsewhere(t *testing.T) {
	rng := seeded.Rand(t)
	texts := make([]string, 3000)
	for i := range texts {
		texts[i] = enginetest.RandomString(rng, "abcdef", 1+rng.IntN(40))
	}
	c := enginetest.SequenceCollection(t, texts, 2)
	e := openDevice(t, gpuexec.CUDAOptions{})
	e.(*Engine).limits.PartBytes = 1 << 20
	s := enginetest.LoadOn(t, e, c.Index)
	defer s.Close()
	if matcherOf(s).resident.Texts != nil {
		t.Fatal("the texts of a streamed index are on the device")
	}
	var plans []gpuexec.Plan
	for range 20 {
		plans = append(plans, c.SequencePlan(t, enginetest.RandomString(rng, "abcdef", 30), 10, 100, false))
	}
	sameAsHost(t, c, s, plans)
}

// TestCUDAVerifyTimes measures verification on the device and on the host, in turns; it runs with GENIEMQ_VERIFY_TIMES=1.
// Times are medians for a batch of 1,024 queries: the whole call, and of it verification (the device's kernel; the host's
// time summed over cores, divided by their number).
func TestCUDAVerifyTimes(t *testing.T) {
	if os.Getenv("GENIEMQ_VERIFY_TIMES") != "1" {
		t.Skip("a measurement: GENIEMQ_VERIFY_TIMES=1")
	}
	e := openDevice(t, gpuexec.CUDAOptions{})
	cores := runtime.GOMAXPROCS(0)
	t.Logf("%s, %d cores", e.Info().Device, cores)
	alphabet := "abcdefghijklmnopqrstuvwxyz '"
	for _, c := range []struct {
		objects, length int
		edits           int
		alphabet        string
	}{{600_000, 10, 2, alphabet}, {300_000, 40, 8, alphabet}, {100_000, 200, 40, alphabet}, {20_000, 1000, 200, alphabet}, {300_000, 40, 8, verifyAlphabets()[4]}} {
		rng := rand.New(rand.NewPCG(1, uint64(c.length)))
		bases := make([]string, max(1, c.objects/50))
		for i := range bases {
			bases[i] = enginetest.RandomString(rng, c.alphabet, c.length)
		}
		texts := make([]string, c.objects)
		for i := range texts {
			texts[i] = enginetest.Misspelt(rng, bases[rng.IntN(len(bases))], rng.IntN(c.edits+1))
		}
		collection := enginetest.SequenceCollection(t, texts, 3)
		s := onDevice(enginetest.LoadOn(t, e, collection.Index))
		resident := s.resident.Texts
		for _, k := range []int{1, 10} {
			for _, candidates := range []int{32, 256, 1000} {
				plans := make([]gpuexec.Plan, 1024)
				for i := range plans {
					plans[i] = collection.SequencePlan(t, enginetest.Misspelt(rng, texts[rng.IntN(len(texts))], c.edits/2), k, candidates, false)
				}
				var total, verified [2][]float64
				var answers [2][]gpuexec.Answer
				for run := range 2 * 9 {
					way := run % 2
					if s.resident.Texts = resident; way == 1 {
						s.resident.Texts = nil
					}
					answers[way] = make([]gpuexec.Answer, len(plans))
					start := time.Now()
					var stages gpuexec.Trace
					err := s.Search(context.Background(), plans, answers[way], &stages)
					took := time.Since(start)
					if err != nil {
						t.Fatal(err)
					}
					host := time.Duration(0)
					for i := range answers[way] {
						host += answers[way][i].Rescoring
					}
					if run >= 4 {
						total[way] = append(total[way], took.Seconds()*1e3)
						verified[way] = append(verified[way], (stages.Verify+host/time.Duration(cores)).Seconds()*1e3)
						if way == 0 && run == 16 {
							t.Logf("   device kernel %.4f ms, host's part %.4f ms of cores", stages.Verify.Seconds()*1e3, host.Seconds()*1e3)
						}
						if way == 1 && run == 17 {
							t.Logf("   host %.4f ms of cores", host.Seconds()*1e3)
						}
					}
				}
				s.resident.Texts = resident
				for i := range plans {
					if !enginetest.SameHits(&answers[0][i], &answers[1][i]) {
						t.Fatal(difference(&answers[0][i], &answers[1][i]))
					}
				}
				for way := range 2 {
					slices.Sort(total[way])
					slices.Sort(verified[way])
				}
				middle := len(total[0]) / 2
				t.Logf("length %4d, %3d symbols, k %2d, K %4d: verify device %.3f ms, host %.3f ms; batch %.3f, %.3f ms",
					c.length, resident.Symbols.Count, k, candidates, verified[0][middle], verified[1][middle], total[0][middle], total[1][middle])
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// compares is true when the candidates of a job are compared on the device.
func compares(r *resident, job *run.Job) bool {
	n, ok := job.Rescore.(*verify.Nearest)
	return ok && r.Texts.Compares(n, r.kernels.MaxPattern)
}
