package bench

import (
	"context"
	"slices"
	"sync"

	"github.com/geniemq/geniemq/bench/workload"
	"github.com/geniemq/geniemq/gpuexec"
)

// checks are queries spread over a batch whose answers are held against brute force once, and against what was found
// right then in every run after: brute force takes too long to repeat.
type checks struct {
	queries []int
	right   [][]gpuexec.Hit // of each query

	mu    sync.Mutex
	wrong []bool // of each query, in any run
}

// newChecks compares the answers of so many queries with brute force.
func newChecks(ctx context.Context, w *workload.Workload, answers []gpuexec.Answer, n int) (*checks, error) {
	c := new(checks)
	step := max(1, len(answers)/n)
	for i := 0; i < len(answers) && len(c.queries) < n; i += step {
		if err := ctx.Err(); err != nil { // brute force over millions takes seconds
			return nil, err
		}
		c.queries = append(c.queries, i)
		c.right = append(c.right, slices.Clone(answers[i].Hits)) // the next run reuses the memory
		c.wrong = append(c.wrong, w.Check(i, answers[i]) != nil)
	}
	return c, nil
}

// compare holds another run's answers against those that were found right: an engine gives a query the same hits each
// time. Callers may compare at the same time.
func (c *checks) compare(answers []gpuexec.Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for j, i := range c.queries {
		if answers[i].Err != nil || !slices.Equal(answers[i].Hits, c.right[j]) {
			c.wrong[j] = true
		}
	}
}

// mismatches is how many of the queries had a wrong answer in any run.
func (c *checks) mismatches() (n int) {
	for _, wrong := range c.wrong {
		if wrong {
			n++
		}
	}
	return n
}
