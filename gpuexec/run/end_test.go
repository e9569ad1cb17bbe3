package run

import (
	"context"
	"reflect"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/postings"
)

// endingMatcher has every other job, or all but some, answered there and then.
type endingMatcher struct {
	comparedMatcher
	ends func(n int) bool
}

func (m *endingMatcher) Match(ctx context.Context, jobs []*Job, t *gpuexec.Trace) error {
	if err := m.comparedMatcher.Match(ctx, jobs, t); err != nil {
		return err
	}
	for n, job := range jobs {
		if m.ends(n) {
			job.Then.End(ctx, nil)
		}
	}
	return nil
}

// TestEnded: who makes the answers, and when, does not matter, in calls of any size after each other; and between calls a batch points to nothing.
func TestEnded(t *testing.T) {
	p, plans := comparedBatch(t, 64)
	compared := p.matchers[0].(*comparedMatcher)
	for i := range plans {
		if i%3 > 0 { // the others are rescored
			plans[i].Rescore, plans[i].K = nil, 1+i%7
		}
	}
	plans[4].K = 0 // which is refused
	want := make([]gpuexec.Answer, len(plans))
	if err := p.Search(t.Context(), plans, want, nil); err != nil {
		t.Fatal(err)
	}
	m := &endingMatcher{comparedMatcher: *compared}
	own := NewSearcher(p.source, NewCrew(3), map[string]Matcher{postings.FamilyName: m}, gpuexec.Capacity{})
	for _, ends := range []func(n int) bool{func(int) bool { return true }, func(n int) bool { return n%2 == 0 }, func(int) bool { return false }} {
		m.ends = ends
		for _, size := range []int{64, 5, 33, 64} {
			answers := make([]gpuexec.Answer, size)
			if err := own.Search(t.Context(), plans[:size], answers, nil); err != nil {
				t.Fatal(err)
			}
			for i := range answers {
				answers[i].Rescoring = want[i].Rescoring // a time
				if !reflect.DeepEqual(answers[i], want[i]) {
					t.Errorf("plan %d of %d: %+v, not %+v", i, size, answers[i], want[i])
				}
			}
			b := own.batches.Get()
			for i := range b.plans[:cap(b.plans)] {
				j := &b.plans[:cap(b.plans)][i]
				if m := &j.match; j.plan != nil || j.answer != nil || j.batch != nil || j.rescoring != nil || m.Query != nil || m.Then != nil || m.Best != nil || m.Rescore != nil {
					t.Fatalf("job %d of a batch that is over points to something: %+v", i, j)
				}
			}
			own.batches.Put(b)
		}
	}
}
