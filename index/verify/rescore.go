package verify

import (
	"cmp"
	"math"
	"time"

	"github.com/geniemq/geniemq/index/filter"
)

// Rescore asks for another order of a plan's candidates than that of their counts: by a score that is computed of each. It says
// what to score by, and is shared by all that work on the plan; the state is a Rescorer. A device that can help with a
// certain Rescore recognises it by its type.
type Rescore interface {
	// Wanted is the number of hits that are asked for.
	Wanted() int
	// Bytes is the memory of what is asked for.
	Bytes() int64
	// Work estimates what it takes a core to score so many candidates.
	Work(candidates int) time.Duration
	// New returns a rescorer that has seen no candidate, in the memory of an older one of the same kind; old may be nil, or of
	// another kind.
	New(old Rescorer) Rescorer
}

// Candidate is an object that a match-count search returned.
type Candidate struct {
	ID, Count uint32
}

// Scored is an object with its score.
type Scored struct {
	ID, Count uint32
	Score     float64
}

// Compare is the total order of objects whose score is a distance: distance ascending, count descending, id ascending.
// A batch of 1,024 queries asks it a hundred thousand times, so it looks no further than it must.
func Compare(a, b Scored) int {
	switch {
	case a.Score < b.Score:
		return -1
	case a.Score > b.Score:
		return 1
	case a.Count != b.Count:
		return cmp.Compare(b.Count, a.Count)
	}
	return cmp.Compare(a.ID, b.ID)
}

// Known is what was computed of a candidate elsewhere, on a device, in place of comparing it here. It is as its Rescore wants it: of texts
// and of BM25 the score (KnownScore), of sets what of them meets (KnownSets). What becomes of it, the Rescorer decides alone.
type Known uint64

// Unknown is of a candidate that was not compared elsewhere. It is no score's: as a float it is no number, and no set weighs as much.
const Unknown Known = math.MaxUint64

// KnownScore is a score as a float.
func KnownScore(score float64) Known { return Known(math.Float64bits(score)) }

// Score is that of KnownScore.
func (k Known) Score() float64 { return math.Float64frombits(uint64(k)) }

// Sets is what the intersection of two sets weighs, and what the object does.
func (k Known) Sets() (common, weight uint32) { return uint32(k >> 32), uint32(k) }

// Ordering is a Rescore whose order a device can make.
type Ordering interface {
	Rescore
	// Proven is what a rescorer that took these hits would say, which are all that are wanted or all that there are, the best one first: no object with a count of
	// at most rest that follows all candidates can be a hit.
	Proven(hits []Scored, rest uint32) bool
}

// Taker is a Rescorer of an Ordering.
type Taker interface {
	Rescorer
	// Take is Offer for a rescorer that has seen no candidate, of candidates that are so many, whose hits are known, the best one first. The memory remains the
	// caller's.
	Take(hits []Scored, candidates int)
}

// Rescorer is the state of one plan: the best hits so far of all candidates that were offered or scanned. It owns the order of
// hits, and what is certain of objects that it has not seen. It is for one goroutine at a time.
//
// Offer and Scan are a lot of work. They ask their Pace again and again, and stop with its error where they are; the same call
// goes on later, with the same outcome.
type Rescorer interface {
	// Offer scores candidates, which are in the order of counts (count descending, id ascending). A later call passes a longer
	// list that begins with the earlier one, and goes on where that ended. known are those of the first candidates that were
	// compared elsewhere, Unknown where not.
	Offer(c []Candidate, known []Known, pace Pace, work int) error
	// Offered is how many of the candidates are done with.
	Offered() int
	// Certified: no object with a count of at most rest that follows all candidates can be a hit.
	Certified(rest uint32) bool
	// Certifiable: more candidates can make the answer certain.
	Certifiable() bool
	// Part is a rescorer for a share of a scan, which Join ends; in the memory of old, as New.
	Part(old Rescorer) Rescorer
	// Scan scores those of the objects lo to hi-1 that pass and have a count of at least minCount. It returns the object to go on with.
	Scan(lo, hi, minCount uint32, passing filter.Set, pace Pace, work int) (next uint32, err error)
	// Join adds the hits of a part.
	Join(part Rescorer)
	// Add adds hits that a device's scan has found.
	Add(found []Scored)
	// Hits appends the hits to dst, the best one first.
	Hits(dst []Scored) []Scored
	// ScanWork is what a device has to do to scan all objects: bytes to read, times the lanes that read each.
	ScanWork() int64
}
