package gpuexec

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/encode"
	"github.com/geniemq/geniemq/index/load"
	"github.com/geniemq/geniemq/index/verify"
)

func sequenceCollection(t testing.TB, texts []string, ngram int) *collection {
	t.Helper()
	schema, err := index.ParseSchema(fmt.Appendf(nil, "name: texts\nkind: sequences\nngram: %d\n", ngram))
	if err != nil {
		t.Fatal(err)
	}
	b, err := index.NewBuilder(schema, encode.Attributes(schema), index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	objects := encode.NewObjects(schema, b)
	for _, text := range texts {
		rec := index.Record{Cells: make([]index.Cell, 1)}
		if text != "" {
			rec.Cells[0].Values = []string{text}
		}
		if err := objects.Add(&rec); err != nil {
			t.Fatal(err)
		}
	}
	c := &collection{schema: schema, index: openBuilt(t, b)}
	if c.queries, err = encode.NewQueries(c.index); err != nil {
		t.Fatal(err)
	}
	return c
}

// sequencePlan asks for the k nearest of a text, with candidates, as the service does.
func (c *collection) sequencePlan(t testing.TB, text string, k, candidates int, certify bool) Plan {
	t.Helper()
	plan := Plan{Match: MatchPlan{K: candidates, Verify: &SequencePlan{Text: []rune(text), K: k, Certify: certify}}}
	if err := c.queries.Text(&plan.Match.Query, text); err != nil {
		t.Fatal(err)
	}
	return plan
}

// nearest is the definition: all objects by (distance, count descending, id). An object without text has no grams.
func nearest(texts []string, query string, ngram int, minCount uint32) []Hit {
	var all []Hit
	for id, text := range texts {
		count := 0
		if text != "" {
			count = index.GramOverlap([]rune(query), []rune(text), ngram)
		}
		if uint32(count) >= minCount {
			all = append(all, Hit{ID: uint32(id), Count: uint32(count), Distance: int32(verify.EditDistance([]rune(query), []rune(text)))})
		}
	}
	slices.SortFunc(all, func(a, b Hit) int {
		return verify.Compare(verify.Hit{ID: a.ID, Count: a.Count, Distance: a.Distance}, verify.Hit{ID: b.ID, Count: b.Count, Distance: b.Distance})
	})
	return all
}

func randomString(rng *rand.Rand, alphabet string, length int) string {
	var b strings.Builder
	symbols := []rune(alphabet)
	for range length {
		b.WriteRune(symbols[rng.IntN(len(symbols))])
	}
	return b.String()
}

// misspelt changes a text in a few places.
func misspelt(rng *rand.Rand, text string, edits int) string {
	runes := []rune(text)
	for range edits {
		i := rng.IntN(len(runes) + 1)
		switch {
		case rng.IntN(3) == 0 || i == len(runes):
			runes = slices.Insert(runes, i, rune('a'+rng.IntN(4)))
		case rng.IntN(2) == 0:
			runes = slices.Delete(runes, i, i+1)
		default:
			runes[i] = 'é'
		}
	}
	return string(runes)
}

// TestSequencesAgainstBruteForce: certified answers are those of the definition, ids, counts, ties and all; answers
// that claim to be exact without certify too; the others are the best of the candidates.
func TestSequencesAgainstBruteForce(t *testing.T) {
	rng := newRand(t)
	exact, unsure := 0, 0
	for range 150 {
		var texts []string
		base := randomString(rng, "abcdé", 1+rng.IntN(20))
		for range rng.IntN(150) {
			switch rng.IntN(5) {
			case 0:
				texts = append(texts, randomString(rng, "abcdé", rng.IntN(20)))
			case 1:
				texts = append(texts, "")
			default:
				texts = append(texts, misspelt(rng, base, rng.IntN(6)))
			}
		}
		ngram := 1 + rng.IntN(4)
		c := sequenceCollection(t, texts, ngram)
		s := c.load(t, CPUOptions{Workers: 1 + rng.IntN(3)})
		var plans []Plan
		for range 20 {
			k := 1 + rng.IntN(12)
			plan := c.sequencePlan(t, misspelt(rng, base+"a", rng.IntN(3))+"b", k, 1+rng.IntN(20), rng.IntN(2) == 0)
			if rng.IntN(3) == 0 {
				plan.Match.MinCount = uint32(rng.IntN(6))
			}
			plans = append(plans, plan)
		}
		for i, a := range search(t, s, plans) {
			m := &plans[i].Match
			want := nearest(texts, string(m.Verify.Text), ngram, m.MinCount)
			candidates := slices.DeleteFunc(slices.Clone(want), func(h Hit) bool { return h.Count == 0 })
			want = want[:min(len(want), m.Verify.K)]
			if a.Err != nil {
				t.Fatal(a.Err)
			}
			if m.Verify.Certify && !a.Exact {
				t.Fatalf("plan %d asks for certainty and is not exact", i)
			}
			mck := uint32(0)
			if len(a.Hits) == m.Verify.K {
				mck = a.Hits[m.Verify.K-1].Count
			}
			if a.MCK != mck {
				t.Fatalf("plan %d: mc_k %d, want %d", i, a.MCK, mck)
			}
			if a.Exact {
				exact++
				if !slices.Equal(a.Hits, want) {
					t.Fatalf("plan %d, %q, n = %d, k = %d, K = %d, min count %d:\ngot  %v\nwant %v", i, string(m.Verify.Text), ngram, m.Verify.K, m.K, m.MinCount, a.Hits, want)
				}
				continue
			}
			unsure++
			slices.SortFunc(candidates, func(a, b Hit) int {
				if a.Count != b.Count {
					return int(b.Count) - int(a.Count)
				}
				return int(a.ID) - int(b.ID)
			})
			candidates = candidates[:min(len(candidates), max(m.K, m.Verify.K))]
			slices.SortFunc(candidates, func(a, b Hit) int {
				return verify.Compare(verify.Hit{ID: a.ID, Count: a.Count, Distance: a.Distance}, verify.Hit{ID: b.ID, Count: b.Count, Distance: b.Distance})
			})
			if !slices.Equal(a.Hits, candidates[:min(len(candidates), m.Verify.K)]) {
				t.Fatalf("plan %d: got %v, the best candidates are %v", i, a.Hits, candidates)
			}
		}
	}
	t.Logf("%d exact, %d unsure", exact, unsure)
	if exact < 300 || unsure < 100 {
		t.Error("one of the ways was hardly tested")
	}
}

// TestSequenceOutcomes walks through each way to an answer.
func TestSequenceOutcomes(t *testing.T) {
	texts := []string{"", "abcdefgh", "abcdefgx", "abcdxfgx", "zzzz"}
	for i := range 500 {
		texts = append(texts, fmt.Sprintf("abc%03ddef", i))
	}
	// Moving a part keeps the grams and costs distance; spread substitutions do the opposite.
	const long = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	for range 20 {
		texts = append(texts, long[4:]+long[:4])
	}
	texts = append(texts, "-BCDEFG-IJKLMN-PQRSTU-WXYZ01-3456789")
	c := sequenceCollection(t, texts, 3)
	s := c.load(t, CPUOptions{Workers: 2})
	certify := func(text string, k, candidates int) *Answer {
		plan := c.sequencePlan(t, text, k, candidates, true)
		a := search(t, s, []Plan{plan})[0]
		if want := nearest(texts, text, 3, 0); a.Err != nil || !a.Exact || !slices.Equal(a.Hits, want[:min(k, len(want))]) {
			t.Errorf("%q: got %+v, want %v", text, a, want[:min(k, len(want))])
		}
		return &a
	}
	once := func(text string, k, candidates int) uint64 {
		return search(t, s, []Plan{c.sequencePlan(t, text, k, candidates, false)})[0].Postings
	}
	if a := certify("abcdefgh", 1, 1); a.Postings != once("abcdefgh", 1, 1) {
		t.Error("an exact match was not certified at once")
	}
	if a := certify(long, 1, 2); a.Postings < 4*once(long, 1, 2) || a.Postings > 7*once(long, 1, 2) || a.Hits[0].Distance != 5 {
		t.Errorf("finding the near one behind 20 far ones with more grams should take K = 2, 4, 8, 16, 32: %+v", a)
	}
	certify("yyyy", 2, 10)        // shares a gram with none: scan
	certify("abc", 5, 5)          // theta <= 0: scan
	certify("abc250def", 505, 32) // k is the index: all objects, the blank one too
	certify("abc250def", 600, 600)
	if a := certify("abc250def", 300, 300); a.MCK == 0 || a.Verify <= 0 || a.Postings == 0 {
		t.Errorf("statistics are missing: %+v", a)
	}

	// What a sequence may not share with its neighbours in the batch: a panic.
	plans := []Plan{c.sequencePlan(t, "abcdefgh", 1, 8, true), c.sequencePlan(t, "abc1", 1, 8, true), c.sequencePlan(t, "zzz", 1, 8, true)}
	answers := make([]Answer, len(plans))
	p := &s.(*cpuSearcher).pipeline
	b := batch{pace: callPace{Pace: &Pace{}}}
	if err := p.begin(context.Background(), &b, plans, answers); err != nil {
		t.Fatal(err)
	}
	if err := p.matcher.match(context.Background(), b.round); err != nil {
		t.Fatal(err)
	}
	b.plans[1].sequence.plan = nil // it panics
	if err := p.verify(context.Background(), p.matcher, &b); err != nil {
		t.Fatal(err)
	}
	var panicked *PanicError
	if !errors.As(answers[1].Err, &panicked) || answers[0].Err != nil || answers[2].Err != nil || answers[0].Hits[0].Distance != 0 || answers[2].Hits[0].ID != 4 {
		t.Errorf("answers beside a panic: %+v", answers)
	}

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Search(ctx, plans, answers); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: %v", err)
	}
}

// comparedMatcher answers as a device does: with the same candidates for every query, and the distances of the first 32.
type comparedMatcher struct {
	entries   []entry
	distances []int32
}

func (m *comparedMatcher) match(_ context.Context, jobs []*matchJob) error {
	for _, job := range jobs {
		job.entries = append(job.entries[:0], m.entries[len(m.entries)-min(job.k, len(m.entries)):]...)
		job.distances = append(job.distances[:0], m.distances...)
	}
	return nil
}

func (m *comparedMatcher) scan(context.Context, []*scanJob) error { return nil }

// comparedBatch is a batch of sequences on a pipeline whose matcher costs next to nothing.
func comparedBatch(t testing.TB, size int) (*pipeline, []Plan) {
	t.Helper()
	rng := newRand(t)
	var texts []string
	for range 500 {
		texts = append(texts, randomString(rng, "abcdefgh", 8+rng.IntN(20)))
	}
	c := sequenceCollection(t, texts, 3)
	m := &comparedMatcher{distances: make([]int32, 32)}
	for id := range uint32(80) {
		m.entries = append(m.entries, newEntry(id/8, 80-id))
	}
	for i := range m.distances {
		m.distances[i] = int32(i)
	}
	plans := make([]Plan, size)
	for i := range plans {
		plans[i] = c.sequencePlan(t, texts[i%len(texts)], 10, 80, false)
	}
	return &pipeline{index: c.index, matcher: m, crew: newCrew(1)}, plans
}

// TestVerifyingDoesNotAllocate: what a batch of sequences allocates does not depend on how many they are.
func TestVerifyingDoesNotAllocate(t *testing.T) {
	p, plans := comparedBatch(t, 400)
	answers := make([]Answer, len(plans))
	allocations := func(plans []Plan) float64 {
		return testing.AllocsPerRun(20, func() {
			if err := p.Search(context.Background(), plans, answers[:len(plans)]); err != nil {
				t.Fatal(err)
			}
		})
	}
	all, few := allocations(plans), allocations(plans[:4])
	if len(answers[0].Hits) != 10 {
		t.Fatalf("%d hits", len(answers[0].Hits))
	}
	if !raceEnabled && all > few+20 { // a collection may empty the pools
		t.Errorf("%v allocations for %d queries, %v for 4", all, len(plans), few)
	}
}

// BenchmarkVerify is what a query costs between the matcher and its answer.
//
//	go test ./gpuexec -run '^$' -bench 'Verify$' -benchmem
func BenchmarkVerify(b *testing.B) {
	p, plans := comparedBatch(b, 1000)
	answers := make([]Answer, len(plans))
	for b.Loop() {
		if err := p.Search(context.Background(), plans, answers); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(plans)), "ns/query")
}

// BenchmarkTypos looks misspelt words up in the word list, k = 10 of 64 candidates, with and without certificate.
//
//	go test ./gpuexec -run '^$' -bench Typos -benchtime 1x
func BenchmarkTypos(b *testing.B) {
	c := loadCollection(b, "name: words\nkind: sequences\n", load.Options{Format: load.Text}, 1, wordsFile)
	rng := rand.New(rand.NewPCG(1, 1))
	for _, certify := range []bool{false, true} {
		var plans []Plan
		for range 1000 {
			word := c.records[rng.IntN(len(c.records))].Cells[0].Values[0]
			plans = append(plans, c.sequencePlan(b, misspelt(rng, word, 1+rng.IntN(2)), 10, 64, certify))
		}
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("certify=%v/workers=%d", certify, workers), func(b *testing.B) {
				s := c.load(b, CPUOptions{Workers: workers})
				answers := make([]Answer, len(plans))
				exact, postings, verified := 0, uint64(0), time.Duration(0)
				for range b.N {
					if err := s.Search(context.Background(), plans, answers); err != nil {
						b.Fatal(err)
					}
					for i := range answers {
						postings += answers[i].Postings
						verified += answers[i].Verify
						if answers[i].Exact {
							exact++
						}
					}
				}
				n := float64(b.N * len(plans))
				b.ReportMetric(float64(b.Elapsed().Microseconds())/n, "us/query")
				b.ReportMetric(float64(verified.Microseconds())/n, "verify-us/query")
				b.ReportMetric(float64(postings)/n, "postings/query")
				b.ReportMetric(float64(exact)/n, "exact")
			})
		}
	}
}

const wordsFile = "words/american-english-insane.gz"
