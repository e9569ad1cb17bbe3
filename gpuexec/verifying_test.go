package gpuexec

import (
	"context"
	"errors"
	"testing"
)

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

// TestPanicOfASequence: a sequence whose verification panics fails alone.
func TestPanicOfASequence(t *testing.T) {
	p, plans := comparedBatch(t, 3)
	answers := make([]Answer, len(plans))
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
	if !errors.As(answers[1].Err, &panicked) || answers[0].Err != nil || answers[2].Err != nil || len(answers[0].Hits) != 10 || len(answers[2].Hits) != 10 {
		t.Errorf("answers beside a panic: %+v", answers)
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
