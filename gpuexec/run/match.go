// Package run is what all engines share. A batch passes these stages:
//
//	plans -> check -> match -> verify -> answers
//
// Match is what engines differ in: a Matcher finds for each query the best k objects by match count. The rest is Pipeline: the
// validation of plans, the verification of sequences and the doubling of candidates until an answer is certified. So a new
// engine is a matcher and a loader. Crew is the cores that all of it runs on.
package run

import (
	"context"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/index"
)

// A matcher is the stage that engines differ in.
type Matcher interface {
	// match finds, for every job, its best k objects among those with a count of at least minCount, and says
	// what it did in the job. The jobs are checked: their queries fit the index and counts fit 32 bits. An error means
	// that all jobs are void. t may be nil.
	Match(ctx context.Context, jobs []*Job, t *gpuexec.Trace) error
	// scan compares texts, for the jobs that it can do: these are done. An error means that all jobs are void.
	Scan(ctx context.Context, jobs []*ScanJob, t *gpuexec.Trace) error
}

// matchJob is one query on its way through a matcher.
type Job struct {
	Query    *index.Query
	K        int       // 1 to MaxK, at most the number of objects
	MinCount uint32    // at least 1
	Bound    uint32    // no object has a higher count
	Text     []rune    // unless nil: the entries' texts will be compared with it
	Nearest  int       // for so many hits
	Deadline time.Time // a matcher that takes long may end the job with ErrDeadline then; zero: never

	Entries []topk.Entry // the best k, the best one last; the memory is reused
	// distances are the edit distances to text, or -1, of the first entries, the best one first, where the matcher has compared
	// them; else empty.
	Distances []int32
	Err       error // concerns this job alone; entries mean nothing then
	// What the matcher adds to: postings scanned and entries that passed the Gate.
	Postings, Candidates uint64
}
