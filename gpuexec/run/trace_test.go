package run

import (
	"context"
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
)

// TestHostTrace: the steps of a call follow each other, so that they are all of its time and no more, and each has its own.
func TestHostTrace(t *testing.T) {
	p, plans := comparedBatch(t, 200)
	for i := range plans {
		if i%2 == 0 {
			plans[i].Rescore = nil
		}
	}
	answers := make([]gpuexec.Answer, len(plans))
	var trace gpuexec.Trace
	const calls = 20
	start := time.Now()
	for range calls {
		if err := p.Search(context.Background(), plans, answers, &trace); err != nil {
			t.Fatal(err)
		}
	}
	elapsed := time.Since(start)
	h := trace.Host
	for name, step := range map[string]time.Duration{"check": h.Check, "match": h.Match, "answer": h.Answer, "rescore": h.Rescore} {
		if step <= 0 {
			t.Errorf("%s took %v", name, step)
		}
	}
	if sum := h.Check + h.Match + h.Answer + h.Rescore; sum > elapsed {
		t.Errorf("the steps took %v of %v", sum, elapsed)
	}
	if h.Plan != 0 || h.Encode != 0 || h.Decode != 0 || trace.Sum() != 0 {
		t.Errorf("a matcher that tells nothing gave %+v", trace)
	}
}
