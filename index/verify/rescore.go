package verify

import (
	"math"
	"time"
	"unsafe"
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

// Scored is an object with its score.
type Scored struct {
	ID, Count uint32
	Score     float64
}

// Rescorer is the state of one plan: the best hits so far of all candidates that were offered or scanned. It owns the order of
// hits, and what is certain of objects that it has not seen. It is for one goroutine at a time.
//
// Offer and Scan are a lot of work. They ask their Pace again and again, and stop with its error where they are; the same call
// goes on later, with the same outcome.
type Rescorer interface {
	// Offer scores candidates, which are in the order of counts (count descending, id ascending). A later call passes a longer
	// list that begins with the earlier one, and goes on where that ended. known are the scores of the first candidates that were
	// computed elsewhere, NaN where not.
	Offer(c []Candidate, known []float64, pace Pace, work int) error
	// Offered is how many of the candidates are done with.
	Offered() int
	// Certified: no object with a count of at most rest that follows all candidates can be a hit.
	Certified(rest uint32) bool
	// Certifiable: more candidates can make the answer certain.
	Certifiable() bool
	// Part is a rescorer for a share of a scan, which Join ends; in the memory of old, as New.
	Part(old Rescorer) Rescorer
	// Scan scores the objects lo to hi-1 with a count of at least minCount. It returns the object to go on with.
	Scan(lo, hi, minCount uint32, pace Pace, work int) (next uint32, err error)
	// Join adds the hits of a part.
	Join(part Rescorer)
	// Add adds hits that a device's scan has found.
	Add(found []Scored)
	// Hits appends the hits to dst, the best one first.
	Hits(dst []Scored) []Scored
	// ScanWork is what a device has to do to scan all objects: bytes to read, times the lanes that read each.
	ScanWork() int64
}

// Nearest asks for the sequences nearest to a text by edit distance, which is their score. The query of its plan is the
// ordered n-grams of Text with weight 1; a gram that the index does not know may be left out.
type Nearest struct {
	Texts Texts  // of the index that is asked
	NGram int    // the length of its grams
	Text  []rune // must not change
	K     int    // hits
}

// Wanted is K.
func (n *Nearest) Wanted() int { return n.K }

// Bytes is the size of the text.
func (n *Nearest) Bytes() int64 { return int64(cap(n.Text)) * int64(unsafe.Sizeof(rune(0))) }

// Work counts the blocks of 64 symbols of the text for each symbol of an average candidate.
func (n *Nearest) Work(candidates int) time.Duration {
	const (
		text  = 50 // nanoseconds
		block = 5
	)
	symbols := int64(0)
	if sized, ok := n.Texts.(sizedTexts); ok {
		objects := int64(n.Texts.Objects())
		candidates, symbols = int(min(int64(candidates), objects)), sized.TextBytes()/max(1, objects)
	}
	return time.Duration(int64(candidates) * (text + block*int64(len(n.Text)/64+1)*symbols))
}

// New returns a *SequenceRescorer.
func (n *Nearest) New(old Rescorer) Rescorer {
	r := reuse(old)
	r.nearest = n
	r.verifier.Reset(n.Text, n.K, n.NGram)
	return r
}

func reuse(old Rescorer) *SequenceRescorer {
	if r, ok := old.(*SequenceRescorer); ok {
		return r
	}
	return new(SequenceRescorer)
}

// SequenceRescorer is the rescorer of a Nearest: a Verifier with its texts.
type SequenceRescorer struct {
	nearest  *Nearest
	verifier Verifier
	known    []int32
	hits     []Hit
}

// Nearest is what is asked for.
func (r *SequenceRescorer) Nearest() *Nearest { return r.nearest }

// Within is the largest distance at which an object that was not offered can be a hit.
func (r *SequenceRescorer) Within() int { return r.verifier.Within() }

// Offer implements Rescorer.
func (r *SequenceRescorer) Offer(c []Candidate, known []float64, pace Pace, work int) error {
	r.known = r.known[:0]
	for _, d := range known {
		if math.IsNaN(d) {
			d = -1
		}
		r.known = append(r.known, int32(d))
	}
	r.verifier.Paced(pace, work)
	return r.verifier.Verify(r.nearest.Texts, c, r.known)
}

// Offered implements Rescorer.
func (r *SequenceRescorer) Offered() int { return r.verifier.Compared() }

// Certified implements Rescorer.
func (r *SequenceRescorer) Certified(rest uint32) bool { return r.verifier.Certified(rest) }

// Certifiable implements Rescorer: some count can certify the answer.
func (r *SequenceRescorer) Certifiable() bool { return r.verifier.Threshold() > 0 }

// Part implements Rescorer.
func (r *SequenceRescorer) Part(old Rescorer) Rescorer {
	part := reuse(old)
	part.nearest = r.nearest
	part.verifier.Seed(&r.verifier)
	return part
}

// Scan implements Rescorer.
func (r *SequenceRescorer) Scan(lo, hi, minCount uint32, pace Pace, work int) (next uint32, err error) {
	r.verifier.Paced(pace, work)
	return r.verifier.Scan(r.nearest.Texts, lo, hi, minCount)
}

// Join implements Rescorer.
func (r *SequenceRescorer) Join(part Rescorer) { r.verifier.Join(&part.(*SequenceRescorer).verifier) }

// Add implements Rescorer.
func (r *SequenceRescorer) Add(found []Scored) {
	r.hits = r.hits[:0]
	for _, h := range found {
		r.hits = append(r.hits, Hit{ID: h.ID, Count: h.Count, Distance: int32(h.Score)})
	}
	r.verifier.Add(r.hits)
}

// Hits implements Rescorer.
func (r *SequenceRescorer) Hits(dst []Scored) []Scored {
	r.hits = r.verifier.Hits(r.hits[:0])
	for _, h := range r.hits {
		dst = append(dst, Scored{ID: h.ID, Count: h.Count, Score: float64(h.Distance)})
	}
	return dst
}

// sizedTexts are texts that know their size.
type sizedTexts interface{ TextBytes() int64 }

// ScanWork implements Rescorer: a lane takes 64 symbols of the text.
func (r *SequenceRescorer) ScanWork() int64 {
	bytes := int64(r.nearest.Texts.Objects())
	if sized, ok := r.nearest.Texts.(sizedTexts); ok {
		bytes = sized.TextBytes()
	}
	return bytes * int64(1+len(r.nearest.Text)/64) * 2 // lanes are a power of two
}
