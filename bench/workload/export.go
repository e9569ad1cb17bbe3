package workload

import (
	"context"
	"fmt"

	"github.com/geniemq/geniemq/bench/export"
	"github.com/geniemq/geniemq/gpuexec"
)

// vectors are what a workload is about: those of w5 and w5sift, and those that w1's signatures are hashes of.
type vectors struct {
	objects int
	object  func(dst []float32, id int) []float32 // by several goroutines at a time
	queries [][]float32
}

// Export writes vectors, queries and answers for other programs. Only w1, w5 and w5sift have vectors.
func (w *Workload) Export(ctx context.Context, dir string, answers []gpuexec.Answer) error {
	if w.vectors == nil || len(w.vectors.queries) == 0 {
		return fmt.Errorf("workload %s has no vectors to export", w.Name)
	}
	v := export.Vectors{
		Name: w.Name, Metric: "l2", Seed: w.Options.Seed, Dims: len(w.vectors.queries[0]), Objects: w.vectors.objects, Object: w.vectors.object, Queries: w.vectors.queries,
		K: w.Options.K, Answer: export.Hits(answers),
	}
	return v.Write(ctx, dir)
}
