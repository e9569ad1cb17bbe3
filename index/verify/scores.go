package verify

import (
	"math"
	"slices"
	"time"

	"github.com/geniemq/geniemq/index/filter"
)

// Scores asks for objects in the order of a measure: of the words, vector, text or structure that they hold in one column (package forward),
// compared with the query's. Measures lists what there is, and makes one.
//
// # Order
//
// The best score first: distances ascending, similarities descending; then count descending, then id. Scores are compared as package
// similarity defines, some of them as exact fractions, and roots are taken of what is reported only. Objects without a vector, tree or graph
// come last, without a distance (infinite).
//
// # Certificates
//
// A measure knows what a count proves of the score of an object that was not retrieved, if the query's items on the column are one for each
// term, of weight Unit times the term's: what a count has of other columns only loosens it. An object of the same score follows all
// candidates in (count, id), so equality certifies. Where the items prove nothing, Unit is 0, and a scan of all objects
// decides. Vectors never have a certificate.
type Scores struct {
	measure  measure
	matching Matching
	k        int
}

// Matching says how objects match the query of a plan: of those that a scan finds, which were no candidates. It is safe for concurrent use.
type Matching interface {
	// Count is the match count of an object.
	Count(id uint32) uint32
}

// reused is what an earlier query left, if it is of this type, so that its memory is used again; or a new one.
func reused[T any](old any) *T {
	if t, ok := old.(*T); ok {
		return t
	}
	return new(T)
}

// measure is the query's side of a measure, made ready. It is shared and does not change.
type measure interface {
	// comparer returns one that has compared nothing, in the memory of an older one of the same measure or of any.
	comparer(old comparer) comparer
	// bytes is the memory of the query's side, cost what it takes to compare an object, in nanoseconds.
	bytes() int64
	cost() int64
	// certified says that no object of at most that count scores better than last. Equality suffices.
	certified(last *ranked, count uint32) bool
	// empty says that objects of count 0 score nothing and are no hits, so that fewer candidates than were asked for are all.
	empty() bool
	// report is the score as it is told.
	report(r *ranked) float64
}

// comparer compares objects with the query. It is for one goroutine.
type comparer interface {
	// block is how many objects it wants at a time: one, where each takes long.
	block() int
	// compare appends the objects with their scores, but may leave out those with a key above limit. It tells the meter of its work. An
	// error is the meter's, and nothing is lost by it: the same call goes on later.
	compare(dst []ranked, c []Candidate, limit float64, m *meter) ([]ranked, error)
}

// Wanted is the number of hits.
func (s *Scores) Wanted() int { return s.k }

// Bytes is the memory of what is asked for.
func (s *Scores) Bytes() int64 { return s.measure.bytes() }

// Work estimates the time that it takes to score so many candidates.
func (s *Scores) Work(candidates int) time.Duration {
	return time.Duration(min(float64(candidates)*float64(s.measure.cost()), math.MaxInt64/2))
}

// New returns a *ScoresRescorer.
func (s *Scores) New(old Rescorer) Rescorer {
	r, ok := old.(*ScoresRescorer)
	if !ok {
		r = new(ScoresRescorer)
	}
	r.begin(s)
	return r
}

// ScoresRescorer is the rescorer of Scores. It keeps its memory.
type ScoresRescorer struct {
	asked    *Scores
	comparer comparer
	meter    meter
	best     ranking
	next     int // candidates that are done with

	// Of a part: what the hits of the candidates were, which objects have to beat that were none.
	full   bool
	beaten ranked
	known  []uint32 // their ids, ascending

	block []Candidate
	out   []ranked
	keys  []float64 // of candidates that are known
	deal  deal
}

func (r *ScoresRescorer) begin(s *Scores) {
	r.asked = s
	r.comparer = s.measure.comparer(r.comparer)
	r.best.reset(s.k)
	r.next, r.known, r.full = 0, r.known[:0], false
	r.meter = meter{}
}

// paced makes r ask a pace in what it does from now on.
func (r *ScoresRescorer) paced(pace Pace, work int) {
	r.meter = meter{pace: pace, every: work}
	r.meter.left = r.meter.Most()
}

// Offer implements Rescorer.
func (r *ScoresRescorer) Offer(c []Candidate, known []Known, pace Pace, work int) error {
	r.paced(pace, work)
	by, _ := r.comparer.(knower)
	block := r.comparer.block()
	for r.next < len(c) {
		if r.meter.Stop() {
			return r.meter.take()
		}
		if r.Certified(c[r.next].Count) {
			return nil // of what follows none can be a hit
		}
		if n := min(knownRun(known, r.next), len(c)-r.next); by != nil && n >= min(block, len(c)-r.next) {
			r.takeKnown(by, c[r.next:r.next+n], known[r.next:r.next+n])
			r.next += n
			continue
		}
		some := c[r.next:min(r.next+block, len(c))]
		limit := math.Inf(1)
		if worst := r.best.worst(); worst != nil {
			limit = below(worst.key) // where scores are equal the earlier candidate precedes
		}
		if err := r.compare(some, limit); err != nil {
			return err
		}
		r.next += len(some)
	}
	return nil
}

// Take implements Taker.
func (r *ScoresRescorer) Take(hits []Scored, candidates int) {
	by := r.asked.measure.(orderer)
	r.best.entries = r.best.entries[:0]
	for i := range hits {
		r.best.entries = append(r.best.entries, by.ranked(&hits[i]))
	}
	r.best.form, r.next = inOrder, candidates
}

// compare scores candidates and keeps the best.
func (r *ScoresRescorer) compare(some []Candidate, limit float64) (err error) {
	if best := &r.best; len(some) <= best.room() {
		before := len(best.entries)
		best.form = asTheyCame
		if best.entries, err = r.comparer.compare(best.entries, some, limit, &r.meter); err != nil {
			best.entries = best.entries[:before]
		}
		return err
	}
	if r.out, err = r.comparer.compare(r.out[:0], some, limit, &r.meter); err != nil {
		return err
	}
	for i := range r.out {
		if o := &r.out[i]; r.best.form != heaped || o.key <= r.best.entries[0].key {
			r.best.keep(o)
		}
	}
	return nil
}

// Offered implements Rescorer.
func (r *ScoresRescorer) Offered() int { return r.next }

// Certified implements Rescorer.
func (r *ScoresRescorer) Certified(rest uint32) bool {
	if r.best.room() == 0 && r.best.form == asTheyCame {
		r.best.sorted() // which hits take anyway
	}
	return r.asked.certified(r.best.worst(), rest)
}

// certified: no object of at most that count comes before the last of the hits that are wanted, which is nil where these are fewer.
func (s *Scores) certified(last *ranked, rest uint32) bool {
	if last == nil {
		return rest == 0 && s.measure.empty()
	}
	return s.measure.certified(last, rest)
}

// Proven implements Ordering.
func (s *Scores) Proven(hits []Scored, rest uint32) bool {
	if len(hits) < s.k {
		return s.certified(nil, rest)
	}
	last := s.measure.(orderer).ranked(&hits[s.k-1])
	return s.certified(&last, rest)
}

// Certifiable implements Rescorer: a count of 0 would do.
func (r *ScoresRescorer) Certifiable() bool { return r.Certified(0) }

// Part implements Rescorer.
func (r *ScoresRescorer) Part(old Rescorer) Rescorer {
	part := r.asked.New(old).(*ScoresRescorer)
	part.next = r.next
	part.best.entries, part.best.form = append(part.best.entries, r.best.entries...), r.best.form
	if worst := r.best.worst(); worst != nil {
		part.full, part.beaten = true, *worst
	}
	for i := range r.best.entries {
		part.known = append(part.known, r.best.entries[i].id)
	}
	slices.Sort(part.known)
	return part
}

// scanWork is what it costs to pass over an object.
const scanWork = 1

// Scan implements Rescorer. An object that was no candidate has to score better than the last of their k best, since it follows
// them in (count, id). Counts are computed of those that do.
func (r *ScoresRescorer) Scan(lo, hi, minCount uint32, passing filter.Set, pace Pace, work int) (next uint32, err error) {
	r.paced(pace, work)
	block := r.comparer.block()
	for lo < hi {
		if r.meter.Stop() {
			return lo, r.meter.take()
		}
		r.block = r.block[:0]
		end := lo
		for ; end < hi && len(r.block) < block && end-lo < 64*uint32(block); end++ {
			if passing.Has(end) {
				r.block = append(r.block, Candidate{ID: end})
			}
		}
		r.meter.Did(scanWork * int(end-lo))
		if r.out, err = r.comparer.compare(r.out[:0], r.block, r.limit(), &r.meter); err != nil {
			return lo, err
		}
		for i := range r.out {
			r.found(&r.out[i], minCount)
		}
		lo = end
	}
	return hi, nil
}

// limit is the largest key of interest in a scan.
func (r *ScoresRescorer) limit() float64 {
	limit := math.Inf(1)
	if worst := r.best.worst(); worst != nil {
		limit = worst.key
	}
	if r.full {
		limit = min(limit, below(r.beaten.key))
	}
	return limit
}

// below is the largest key that is less than a key.
func below(key float64) float64 { return math.Nextafter(key, math.Inf(-1)) }

// found takes an object that a scan has scored.
func (r *ScoresRescorer) found(o *ranked, minCount uint32) {
	if r.full && better(o, &r.beaten) >= 0 {
		return
	}
	if worst := r.best.worst(); worst != nil && better(o, worst) > 0 {
		return
	}
	if _, known := slices.BinarySearch(r.known, o.id); known {
		return
	}
	if o.count = r.asked.matching.Count(o.id); o.count >= minCount {
		r.best.keep(o)
	}
}

// Join implements Rescorer.
func (r *ScoresRescorer) Join(part Rescorer) { r.best.join(part.(*ScoresRescorer).best.entries) }

// Add implements Rescorer. No device scans for these measures; what one finds is scored again.
func (r *ScoresRescorer) Add(found []Scored) {
	r.paced(nil, 0)
	for _, f := range found {
		r.out, _ = r.comparer.compare(r.out[:0], []Candidate{{f.ID, f.Count}}, math.Inf(1), &r.meter)
		r.best.join(r.out)
	}
}

// Hits implements Rescorer.
func (r *ScoresRescorer) Hits(dst []Scored) []Scored {
	best, measure := r.best.sorted(), r.asked.measure
	dst = slices.Grow(dst, len(best))
	for i := range best {
		dst = append(dst, Scored{ID: best[i].id, Count: best[i].count, Score: measure.report(&best[i])})
	}
	return dst
}

// ScanWork implements Rescorer.
func (r *ScoresRescorer) ScanWork() int64 { return math.MaxInt64 / 2 } // no device scans
