//go:build cuda

package device

import (
	"context"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
)

// compared is how much a test has compared with another engine, and what the device did for it. A test says it in the end
// (report), and requires the kernels that it is about: equal answers prove nothing of a kernel that took no query.
type compared struct {
	indexes, batches, queries, hits int
	work                            gpuexec.Work // of the batches whose stages were told apart, every other one
}

// search is search, of a batch that will be compared.
func (c *compared) search(t testing.TB, s gpuexec.Searcher, plans []gpuexec.Plan) []gpuexec.Answer {
	t.Helper()
	answers := make([]gpuexec.Answer, len(plans))
	var err error
	if c.batches%2 == 0 {
		var stages gpuexec.Trace
		err = s.Search(context.Background(), plans, answers, &stages)
		c.work.Add(stages.Work)
	} else {
		err = s.Search(context.Background(), plans, answers, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.batches++
	c.queries += len(plans)
	for i := range answers {
		c.hits += len(answers[i].Hits)
	}
	return answers
}

func (c *compared) add(other compared) {
	c.indexes += other.indexes
	c.batches += other.batches
	c.queries += other.queries
	c.hits += other.hits
	c.work.Add(other.work)
}

// report says what was compared.
func (c *compared) report(t testing.TB) {
	t.Helper()
	w := &c.work
	t.Logf("compared: %d indexes, %d batches, %d queries, %d hits; of the batches that were measured %d queries by the (query, tile) kernel, %d by shared decode, %d by the bound",
		c.indexes, c.batches, c.queries, c.hits, w.TileQueries, w.SlicedQueries, w.BoundQueries)
}

// took checks that a kernel to which all queries were forced has taken some, and "tile", which can take all, every one.
func (c *compared) took(t testing.TB, path string) {
	t.Helper()
	w := &c.work
	if path == "tile" && (w.TileQueries == 0 || w.SlicedQueries+w.BoundQueries > 0) ||
		path == "sliced" && (w.SlicedQueries == 0 || w.SlicedRows == 0) || path == "bound" && (w.BoundQueries == 0 || w.BoundSteps == 0) {
		t.Errorf("path %q: the kernels did %+v", path, *w)
	}
}

// comparedBy is what was compared, by the path that was forced.
type comparedBy map[string]*compared

func (c comparedBy) add(path string, other compared) {
	if c[path] == nil {
		c[path] = &compared{}
	}
	c[path].add(other)
}

// sliced says that shared decode was taken where it was forced.
func (c comparedBy) sliced() bool {
	of := c["sliced"]
	return of != nil && of.work.SlicedQueries > 0 && of.work.SlicedRows > 0
}

// report says what was compared by all paths together, and checks that each was taken.
func (c comparedBy) report(t testing.TB, paths ...string) {
	t.Helper()
	var sum compared
	for _, of := range c {
		sum.add(*of)
	}
	sum.report(t)
	for _, path := range paths {
		if c[path] == nil {
			t.Errorf("path %q was not tried", path)
			continue
		}
		c[path].took(t, path)
	}
}
