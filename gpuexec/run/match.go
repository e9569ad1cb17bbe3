// Package run is what all engines share. A batch passes these stages:
//
//	plans -> check -> match -> rescore -> answers
//
// Match is what engines differ in: a Matcher finds for each query the best k objects by match count. The rest is Searcher: the
// validation of plans, rescoring, and the doubling of candidates until an answer is certified. So a new kind of structure is
// a Matcher and a Loader for each engine, and a new engine is a host for these. Crew is the cores that all of it runs on, Budget
// the memory of a device.
package run

import (
	"context"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/verify"
)

// Matcher is one structure of a source, or a range of its tiles, on one engine. Its methods may be called concurrently, but for
// Close, which comes last. It need not protect itself from panics of a job, but one in Match or Scan fails the whole batch.
type Matcher interface {
	// Check says whether the structure can execute a plan, and returns what no object's count exceeds. The error is the fault
	// of who asked. K, MinCount and Rescore are checked already.
	Check(p *gpuexec.Plan) (bound uint32, err error)
	// Match finds, for every job, its best K objects among those with a count of at least MinCount, and says
	// what it did in the job. The jobs are checked: their queries fit the structure and counts fit 32 bits. An error means
	// that all jobs are void. t may be nil.
	Match(ctx context.Context, jobs []*Job, t *gpuexec.Trace) error
	// Scan scores objects, for the jobs that it can do: these are done. An error means that all jobs are void.
	Scan(ctx context.Context, jobs []*ScanJob, t *gpuexec.Trace) error
	// Cost is that of gpuexec.Searcher, also of plans that Check refuses.
	Cost(p *gpuexec.Plan) int64
	// Residence says how the structure lies on its device.
	Residence() Residence
	// Close gives the structure's memory back.
	Close() error
}

// Filtering is a query that may have a filter. Only families whose matchers are Passers have such queries.
type Filtering interface {
	// Filtering says that it has one, that it asks for nothing else (the hits are the first objects that pass), and that it asks for
	// Job.Total: then it is matched even where no count can be a hit's.
	Filtering() (filtered, only, total bool)
}

// Passer is a matcher whose queries may have filters.
type Passer interface {
	// Passing returns which of the matcher's objects pass the filter of a query that was checked; the first object of its first tile is
	// that of the first bit. It is asked on the way to a scan of all objects on the host.
	Passing(ctx context.Context, query Filtering) (filter.Set, error)
}

// Joiner is a matcher of a family with an order of its own (Job.Ranked), which knows how answers of several ranges of tiles become one.
type Joiner interface {
	// Join makes the answer of a job of those of its copies, each of which was matched on a range of tiles.
	Join(job *Job, parts []*Job)
}

// Residence is how a structure lies on its device; gpuexec.Capacity says what the fields mean.
type Residence struct {
	IndexBytes, DeviceBytes int64
	Parts                   int
	Form                    string
}

// Job is one query on its way through a matcher.
type Job struct {
	Query    any            // Plan.Query
	K        int            // 1 to MaxK, at most the number of objects
	MinCount uint32         // at least 1
	Bound    uint32         // no object has a higher count
	Rescore  verify.Rescore // unless nil: the entries will be scored so; a matcher that can may begin with it
	Deadline time.Time      // a matcher that takes long may end the job with ErrDeadline then; zero: never
	Work     time.Duration  // Plan.Work, for a matcher whose work nothing else bounds: it ends the job with ErrWork beyond; 0: no bound

	Entries []topk.Entry // the best K, the best one last; the memory is reused
	Total   uint64       // Answer.Total, where the query wants it
	// Known is what the matcher has computed of the first entries, the best one first, for their scores: Unknown of those that it
	// has not, empty where it has none.
	Known []verify.Known
	// Orderable, with Rescore: a matcher that scores all candidates may put them in the order of scores too. Then the job is Ordered: Best are the hits among
	// the Found candidates, the best one first, of which the last by count has Least, and there are no Entries. The memory is that of the answer's hits.
	Orderable, Ordered bool
	Best               []gpuexec.Hit
	Found              int
	Least              uint32
	// Hits, with Ranked, are the answer of a family that orders objects otherwise than by counts, in its order, with scores; the memory is reused.
	// There are no Entries then. Approximate: they are not certain to be the first of all objects.
	Hits                []gpuexec.Hit
	Ranked, Approximate bool

	// Spent is the time of cores that a Ranked job has taken, in all calls. Postponed: it is not done, since the allowance of the call is spent (gpuexec.Pace), and is for
	// another call. Begun is what it has come to then, which that call gets; nil: nothing.
	Spent     time.Duration
	Postponed bool
	Begun     Begun

	Value any   // Answer.Value
	Spare any   // an earlier Answer.Value, whose memory may be taken for this one; nil: there is none
	Err   error // concerns this job alone; entries mean nothing then
	// What the matcher adds to: the work done, and entries that passed the Gate.
	Units, Candidates uint64

	// Then, unless nil, makes the answer of the job. A matcher that has read the entries on some core may have it do so there and then.
	Then Ender
}

// An Ender makes the answer of a job that is matched. Who owns the job does that when Match returns. Where answers are long, and come from a device, half of the time that
// this takes is waking cores once more and fetching entries into their caches, so a matcher may do it while they are there.
type Ender interface {
	// EndWork estimates what End takes, in nanoseconds of a core, of a job with so many entries of which so many are known; of one that is Ordered, entries
	// are its hits at most.
	EndWork(entries, known int) int
	// End makes the answer if it is no more than that. A matcher calls it once, when nothing of the job changes any more, and looks at the job no more: it may be empty
	// then. shift may be nil: then there is no seat to give up.
	End(ctx context.Context, shift *Shift)
}

// Begun is what a matcher keeps of a job that it was interrupted at. A matcher of the same structure goes on with it, on whatever engine.
type Begun interface {
	// Left estimates how much more time of a core it takes.
	Left() time.Duration
}

// A ScanJob asks for the best of all objects that a matcher holds: what is left of a plan where no number of candidates
// can certify an answer.
type ScanJob struct {
	Query    any             // Plan.Query: of its objects only those that pass its filter are sought
	Rescorer verify.Rescorer // what is sought, and what was found so far; only to be read
	MinCount uint32          // 0 admits objects that match nothing

	Found []verify.Scored // the first of the rescorer's order, so many as are wanted
	Done  bool            // Found holds; a matcher that cannot do the job leaves it to the host's cores
}
