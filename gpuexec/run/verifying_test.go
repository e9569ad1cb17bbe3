package run

import (
	"context"
	"errors"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/verify"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// comparedMatcher answers as a device does: with the same candidates for every query, and the distances of the first 32.
type comparedMatcher struct {
	entries   []topk.Entry
	distances []verify.Known
}

func (m *comparedMatcher) Check(*gpuexec.Plan) (uint32, error) { return 10, nil }
func (m *comparedMatcher) Cost(*gpuexec.Plan) int64            { return 1 }
func (m *comparedMatcher) Residence() Residence                { return Residence{Parts: 1, Form: "none"} }
func (m *comparedMatcher) Close() error                        { return nil }

func (m *comparedMatcher) Match(_ context.Context, jobs []*Job, _ *gpuexec.Trace) error {
	for _, job := range jobs {
		job.Entries = append(job.Entries[:0], m.entries[len(m.entries)-min(job.K, len(m.entries)):]...)
		job.Known = append(job.Known[:0], m.distances...)
	}
	return nil
}

func (m *comparedMatcher) Scan(context.Context, []*ScanJob, *gpuexec.Trace) error { return nil }

// comparedBatch is a batch of sequences on a searcher whose matcher costs next to nothing.
func comparedBatch(t testing.TB, size int) (*Searcher, []gpuexec.Plan) {
	t.Helper()
	rng := seeded.Rand(t)
	var texts []string
	for range 500 {
		texts = append(texts, enginetest.RandomString(rng, "abcdefgh", 8+rng.IntN(20)))
	}
	c := enginetest.SequenceCollection(t, texts, 3)
	m := &comparedMatcher{distances: make([]verify.Known, 32)}
	for id := range uint32(80) {
		m.entries = append(m.entries, topk.NewEntry(id/8, 80-id))
	}
	for i := range m.distances {
		m.distances[i] = verify.KnownScore(float64(i))
	}
	plans := make([]gpuexec.Plan, size)
	for i := range plans {
		plans[i] = c.SequencePlan(t, texts[i%len(texts)], 10, 80, false)
	}
	return NewSearcher(c.Index, NewCrew(1), map[string]Matcher{postings.FamilyName: m}, gpuexec.Capacity{}), plans
}

// TestVerifyingDoesNotAllocate: what a batch of sequences allocates does not depend on how many they are.
func TestVerifyingDoesNotAllocate(t *testing.T) {
	p, plans := comparedBatch(t, 400)
	answers := make([]gpuexec.Answer, len(plans))
	allocations := func(plans []gpuexec.Plan) float64 {
		return testing.AllocsPerRun(20, func() {
			if err := p.Search(context.Background(), plans, answers[:len(plans)], nil); err != nil {
				t.Fatal(err)
			}
		})
	}
	all, few := allocations(plans), allocations(plans[:4])
	if len(answers[0].Hits) != 10 {
		t.Fatalf("%d hits", len(answers[0].Hits))
	}
	if !raced.Detector && all > few+20 { // a collection may empty the pools
		t.Errorf("%v allocations for %d queries, %v for 4", all, len(plans), few)
	}
}

// panicking asks for a rescorer that there is not.
type panicking struct{ verify.Rescore }

func (panicking) New(verify.Rescorer) verify.Rescorer { panic("boom") }

// TestPanicOfASequence: a sequence whose verification panics fails alone.
func TestPanicOfASequence(t *testing.T) {
	p, plans := comparedBatch(t, 3)
	answers := make([]gpuexec.Answer, len(plans))
	plans[1].Rescore = panicking{plans[1].Rescore}
	if err := p.Search(context.Background(), plans, answers, nil); err != nil {
		t.Fatal(err)
	}
	var panicked *gpuexec.PanicError
	if !errors.As(answers[1].Err, &panicked) || answers[0].Err != nil || answers[2].Err != nil || len(answers[0].Hits) != 10 || len(answers[2].Hits) != 10 {
		t.Errorf("answers beside a panic: %+v", answers)
	}
}

// BenchmarkVerify is what a query costs between the matcher and its answer.
//
//	go test ./gpuexec/run -run '^$' -bench 'Verify$' -benchmem
func BenchmarkVerify(b *testing.B) {
	p, plans := comparedBatch(b, 1000)
	answers := make([]gpuexec.Answer, len(plans))
	for b.Loop() {
		if err := p.Search(context.Background(), plans, answers, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(plans)), "ns/query")
}
