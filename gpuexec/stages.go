package gpuexec

import (
	"context"
	"time"
)

// Stages is where the time of a batch went on its engine, without what other batches of that moment took. What is left of
// the whole call is checking plans, waiting, and making hits.
type Stages struct {
	Plan     time.Duration // queries to what the kernels read, on the host and on the device
	Upload   time.Duration // of the queries
	Match    time.Duration // counting, and the Gate
	Select   time.Duration // the best k of what passed
	Verify   time.Duration // comparing texts on the device; what the host compares is in Answer.Verify
	Download time.Duration // of the answers
}

// A StageTimer is a Searcher that can tell the stages of a batch apart.
type StageTimer interface {
	// SearchStages is Search, and measures. Measuring may cost some microseconds.
	SearchStages(ctx context.Context, plans []Plan, answers []Answer) (Stages, error)
}
