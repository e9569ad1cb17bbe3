package gpuexec

import (
	"time"

	"github.com/geniemq/geniemq/index"
)

// PlanKind says which member of a Plan holds.
type PlanKind uint8

// PlanMatch plans count matches: Plan.Match holds.
const PlanMatch PlanKind = 0

// Plan is a query that an engine can execute, a tagged union: Kind says which member holds.
type Plan struct {
	Kind  PlanKind
	Match MatchPlan

	// Deadline is when the plan is of no use any longer: its answer is ErrDeadline then, and others go on. Zero: never.
	Deadline time.Time
	// Work bounds the time of a core for comparing texts, over all calls: beyond, the answer is ErrWork. 0: no bound.
	Work time.Duration
	// Unfinished is that of the plan's last answer, to go on with it. nil begins.
	Unfinished Unfinished
}

// MaxK is the largest k of a plan.
const MaxK = 65536

// MatchPlan asks for the K objects with the highest match counts.
type MatchPlan struct {
	Query index.Query
	// K is the number of hits, 1 to MaxK. With Verify it is the number of candidates that are verified (at
	// least Verify.K are).
	K int
	// MinCount excludes objects with a lower match count. 0 and 1 are the same without Verify, since an object with
	// count 0 is no hit. With Verify, 0 admits objects that share no gram with the query, as far as they are seen:
	// a certified answer may hold such.
	MinCount uint32
	// Verify asks for the nearest sequences. Query must then be the ordered n-grams of Verify.Text with weight 1;
	// a gram that the index does not know may be left out.
	Verify *SequencePlan
}

// SequencePlan asks for the sequences nearest to Text by edit distance.
type SequencePlan struct {
	Text []rune
	K    int // hits, 1 to MaxK
	// Certify doubles the candidates until the answer is certain, and ends in a scan of all texts where that
	// cannot come true or costs more. Without it the answer says by Exact whether it is certain.
	Certify bool
}

// Answer is the result of one plan.
type Answer struct {
	// Hits in their total order: (count descending, id ascending), of sequences (distance ascending, count descending,
	// id ascending).
	Hits []Hit
	// MCK is the count of the K-th hit, 0 when there are fewer: MC_k = AuditThreshold - 1 (Theorem 3.1).
	MCK uint32
	// Exact: the hits are certain to be the first K of all objects in the total order.
	Exact bool
	// Err is nil, ErrDeadline, ErrWork, or a *PlanError, a *PanicError or a *DeviceError that concerns this plan alone; Hits is
	// empty then.
	Err error
	// Unfinished is what the plan has come to when the call's allowance was spent (Pace). There is no answer yet then, only
	// the work so far. nil: this is the answer.
	Unfinished Unfinished

	// Postings is the work of counting: the postings of the query's items, each counted once, whether it was scanned or found on
	// planes. They are the same in every layout and engine, but for tiles that an engine leaves out because no object there can
	// be a hit any more: the CUDA engine does so once K objects have the highest count that is possible.
	Postings   uint64
	Candidates uint64        // entries that passed the Gate; depends on layouts and on how the work was split
	Verify     time.Duration // time spent comparing texts, summed over workers and calls
}

// Hit is one object of an answer.
type Hit struct {
	ID, Count  uint32
	Distance   int32 // edit distance; NoDistance where it does not apply
	Similarity float32
}

// NoDistance is the Distance of a hit that was not verified.
const NoDistance = -1
