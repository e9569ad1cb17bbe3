package gpuexec

import (
	"time"

	"github.com/geniemq/geniemq/index/verify"
)

// MaxK is the largest number of hits, and of candidates, of a plan.
const MaxK = 65536

// Plan is a query that an engine can execute: it asks for the K objects with the highest match counts, or for those with the
// best scores.
type Plan struct {
	// Family is that of the structure which is asked.
	Family string
	// Query is what the structure is asked, a pointer to what its family says (*index.Query for postings). It must not change.
	Query any
	// K is the number of hits, 1 to MaxK. With Rescore it is the number of candidates that are scored (at least as many as
	// hits are wanted).
	K int
	// MinCount excludes objects with a lower match count. 0 and 1 are the same without Rescore, since an object with
	// count 0 is no hit, unless the query is a filter alone: that takes 0 only, and neither Rescore nor Certify. With Rescore, 0 admits objects that match nothing of the query, as far as they are seen:
	// a certified answer may hold such.
	MinCount uint32
	// Rescore asks for the order of scores. nil: that of counts.
	Rescore verify.Rescore
	// Certify doubles the candidates until an answer by scores is certain, and ends in a scan of all objects where that
	// cannot come true or costs more. Without it the answer says by Exact whether it is certain.
	Certify bool

	// Deadline is when the plan is of no use any longer: its answer is ErrDeadline then, and others go on. Zero: never.
	Deadline time.Time
	// Work bounds the time of a core for rescoring, over all calls: beyond, the answer is ErrWork. 0: no bound.
	Work time.Duration
	// Unfinished is that of the plan's last answer, to go on with it. nil begins.
	Unfinished Unfinished
}

// Candidates is the number of candidates that a plan begins with: K, but at least as many as hits are wanted.
func (p *Plan) Candidates() int { return max(p.K, p.Wanted()) }

// Wanted is the number of hits that are asked for.
func (p *Plan) Wanted() int {
	if p.Rescore != nil {
		return p.Rescore.Wanted()
	}
	return p.K
}

// Answer is the result of one plan.
type Answer struct {
	// Hits in their total order: (count descending, id ascending), or that of the plan's rescorer.
	Hits []Hit
	// MCK is the count of the last hit that was asked for, 0 when there are fewer. In an answer by counts of K hits it is MC_k =
	// AuditThreshold - 1 (Theorem 3.1).
	MCK uint32
	// Exact: the hits are certain to be the first of all objects in the total order.
	Exact bool
	// Scored: the hits have scores.
	Scored bool
	// Total is the number of objects that pass the query's filter, all objects without one, whatever their counts are: of queries that
	// ask for it. Rescoring and min_count change nothing about it.
	Total uint64
	// Value is what a family answers beside hits; nil for postings.
	Value any
	// Err is nil, ErrDeadline, ErrWork, or a *refusal.Error of package index/refusal, a *PanicError or a *DeviceError that concerns this plan alone; Hits is
	// empty then.
	Err error
	// Unfinished is what the plan has come to when the call's allowance was spent (Pace). There is no answer yet then, only
	// the work so far. nil: this is the answer.
	Unfinished Unfinished

	// Units is the work of matching, in what the family counts. Of postings it is the postings of the query's items, each
	// counted once, whether it was scanned or found on planes. They are the same in every layout and engine, but for tiles that an
	// engine leaves out because no object there can be a hit any more: the CUDA engine does so once K objects have the highest
	// count that is possible.
	Units      uint64
	Candidates uint64        // entries that passed the Gate; depends on layouts and on how the work was split
	Rescoring  time.Duration // time spent rescoring, or computing distances, on the host's cores, summed over workers and calls
}

// Hit is one object of an answer: its position in the source, its count and, with Answer.Scored, its score; of sequences that is
// the edit distance.
type Hit = verify.Scored
