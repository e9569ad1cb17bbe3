package gpuexec

import (
	"context"
	"time"

	"github.com/geniemq/geniemq/index"
)

// A matcher is the stage that engines differ in.
type matcher interface {
	// match finds, for every job, its best k objects among those with a count of at least minCount, and says
	// what it did in the job. The jobs are checked: their queries fit the index and counts fit 32 bits. An error means
	// that all jobs are void.
	match(ctx context.Context, jobs []*matchJob) error
	// scan compares texts, for the jobs that it can do: these are done. An error means that all jobs are void.
	scan(ctx context.Context, jobs []*scanJob) error
}

// matchJob is one query on its way through a matcher.
type matchJob struct {
	query    *index.Query
	k        int       // 1 to MaxK, at most the number of objects
	minCount uint32    // at least 1
	bound    uint32    // no object has a higher count
	text     []rune    // unless nil: the entries' texts will be compared with it
	nearest  int       // for so many hits
	deadline time.Time // a matcher that takes long may end the job with ErrDeadline then; zero: never

	entries []entry // the best k, the best one last; the memory is reused
	// distances are the edit distances to text, or -1, of the first entries, the best one first, where the matcher has compared
	// them; else empty.
	distances []int32
	err       error // concerns this job alone; entries mean nothing then
	// What the matcher adds to: postings scanned and entries that passed the Gate.
	postings, candidates uint64
}
