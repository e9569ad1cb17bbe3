package verify

import (
	"container/heap"
	"math"
	"slices"
	"time"
	"unsafe"

	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/levenshtein"
	"github.com/geniemq/geniemq/index/ngram"
)

// Texts gives the texts of the objects 0 to Objects()-1, and their size. An index.Index of sequences is one.
type Texts interface {
	Objects() uint32
	Text(id uint32) string
	TextBytes() int64
}

// Nearest asks for the sequences nearest to a text by edit distance, which is their score. The query of its plan is the
// ordered n-grams of Text with weight 1; a gram that the index does not know may be left out.
type Nearest struct {
	Texts Texts  // of the index that is asked
	NGram int    // the length of its grams, at least 1
	Text  []rune // must not change
	K     int    // hits, at least 1
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
	if n.Texts == nil {
		return time.Duration(int64(candidates) * text)
	}
	objects := int64(n.Texts.Objects())
	symbols := n.Texts.TextBytes() / max(1, objects)
	return time.Duration(min(int64(candidates), objects) * (text + block*int64(len(n.Text)/64+1)*symbols))
}

// New returns a *SequenceRescorer.
func (n *Nearest) New(old Rescorer) Rescorer {
	r, ok := old.(*SequenceRescorer)
	if !ok {
		r = new(SequenceRescorer)
	}
	r.nearest = n
	r.pattern.Reset(n.Text)
	r.overlap.reset()
	r.best, r.next = r.best[:0], 0
	r.within = r.radius() - 1
	return r
}

// SequenceRescorer finds the k nearest sequences of one query, a Nearest. The package comment has the rules and their proofs. Its hits, all
// along, are the best of what it was offered or has scanned. It keeps its memory.
type SequenceRescorer struct {
	nearest *Nearest
	pattern levenshtein.Pattern
	meter   meter
	overlap gramOverlap
	runes   []rune

	best   worstFirst // the k best so far
	next   int        // candidates already looked at
	within int        // Within
}

// Nearest is what is asked for.
func (r *SequenceRescorer) Nearest() *Nearest { return r.nearest }

// Within is the largest distance at which an object that was no candidate can be a hit: less than tau of the candidates,
// for where distances are equal they precede by count or id. Without k hits there is no bound.
func (r *SequenceRescorer) Within() int { return r.within }

// paced makes r ask pace in all that it does from now on, after so much work (0: PaceWork).
func (r *SequenceRescorer) paced(pace Pace, work int) *meter {
	m := &r.meter
	*m = meter{pace: pace, every: work}
	m.left = m.Most()
	r.pattern.Meter = m
	return m
}

// Offer implements Rescorer.
func (r *SequenceRescorer) Offer(candidates []Candidate, known []Known, pace Pace, work int) error {
	defer func() { r.within = r.radius() - 1 }()
	m := r.paced(pace, work)
	for ; r.next < len(candidates); r.next++ {
		if m.Stop() {
			return m.take()
		}
		c := candidates[r.next]
		if r.Certified(c.Count) {
			return nil
		}
		// Only a smaller distance helps: with an equal one the earlier candidate precedes.
		bound := r.radius() - 1
		if r.next < len(known) && known[r.next] != Unknown {
			if d := known[r.next].Score(); d <= float64(bound) {
				r.keep(Scored{ID: c.ID, Count: c.Count, Score: d})
			}
			continue
		}
		d, ok := r.distance(r.nearest.Texts.Text(c.ID), bound)
		if r.pattern.Paused() {
			return m.take()
		}
		if ok {
			r.keep(Scored{ID: c.ID, Count: c.Count, Score: float64(d)})
		}
	}
	return nil
}

// Offered implements Rescorer.
func (r *SequenceRescorer) Offered() int { return r.next }

// Certified implements Rescorer. With the count of the last of K candidates, or 0 when fewer than K objects came back, this is
// the certificate of the whole answer.
func (r *SequenceRescorer) Certified(rest uint32) bool { return int64(rest) < r.threshold() }

// Certifiable implements Rescorer: some count can certify the answer.
func (r *SequenceRescorer) Certifiable() bool { return r.threshold() > 0 }

// threshold is theta of the package comment: objects with a smaller match count are certain not to be hits. It is
// at most 0 when no count can certify the answer.
func (r *SequenceRescorer) threshold() int64 {
	if len(r.best) < r.nearest.K {
		return math.MinInt64
	}
	n := int64(r.nearest.NGram)
	return int64(len(r.nearest.Text)) + n - 1 - n*(int64(r.radius())-1)
}

// Part implements Rescorer: a rescorer of the same query with the same hits.
func (r *SequenceRescorer) Part(old Rescorer) Rescorer {
	part := r.nearest.New(old).(*SequenceRescorer)
	part.best = append(part.best, r.best...)
	part.next, part.within = r.next, r.within
	return part
}

// Scan implements Rescorer.
func (r *SequenceRescorer) Scan(lo, hi, minCount uint32, passing filter.Set, pace Pace, work int) (next uint32, err error) {
	m, texts := r.paced(pace, work), r.nearest.Texts
	known := make([]uint32, len(r.best))
	for i, h := range r.best {
		known[i] = h.ID
	}
	slices.Sort(known)
	for id := lo; id < hi; id++ {
		if m.Stop() {
			return id, m.take()
		}
		if !passing.Has(id) {
			m.Did(1)
			continue
		}
		text := texts.Text(id)
		d, ok := r.distance(text, min(r.within, r.radius()))
		if r.pattern.Paused() {
			return id, m.take()
		}
		if !ok {
			continue
		}
		if _, found := slices.BinarySearch(known, id); found {
			continue
		}
		m.Did(overlapWork * len(text))
		count := r.overlap.count(r.nearest.Text, text, r.nearest.NGram, &r.runes)
		if count >= minCount {
			r.keep(Scored{ID: id, Count: count, Score: float64(d)})
		}
	}
	return hi, nil
}

// Join implements Rescorer.
func (r *SequenceRescorer) Join(part Rescorer) { r.Add(part.(*SequenceRescorer).best) }

// Add implements Rescorer, with the first k of all objects with a distance of at most Within, or of a part of them.
func (r *SequenceRescorer) Add(found []Scored) {
	all := append(r.best, found...)
	slices.SortFunc(all, Compare)
	all = slices.Compact(all)
	all = all[:min(len(all), r.nearest.K)]
	slices.Reverse(all) // descending: a heap
	r.best = all
}

// Hits implements Rescorer.
func (r *SequenceRescorer) Hits(dst []Scored) []Scored {
	start := len(dst)
	dst = append(dst, r.best...)
	slices.SortFunc(dst[start:], Compare)
	return dst
}

// ScanWork implements Rescorer: a lane takes 64 symbols of the text, and lanes are a power of two.
func (r *SequenceRescorer) ScanWork() int64 {
	return r.nearest.Texts.TextBytes() * int64(1+len(r.nearest.Text)/64) * 2
}

// radius is tau: the distance of the k-th best, without bound before there are k.
func (r *SequenceRescorer) radius() int {
	if len(r.best) < r.nearest.K {
		return math.MaxInt32
	}
	return int(r.best[0].Score)
}

// distance is the length filter in bytes, which needs no decoding (a code point is 1 to 4 bytes), then the
// bounded comparison, which begins with the length filter in code points.
func (r *SequenceRescorer) distance(text string, bound int) (int, bool) {
	r.meter.Did(textWork)
	if len(text) < r.pattern.Len()-bound || len(text) > 4*(r.pattern.Len()+bound) {
		return 0, false
	}
	r.meter.Did(len(text)) // reading it, and comparing a short pattern; a long one counts for itself
	return r.pattern.DistanceString(text, bound, &r.runes)
}

// keep puts a hit among the k best unless k others precede it.
func (r *SequenceRescorer) keep(h Scored) {
	if len(r.best) < r.nearest.K {
		r.best = append(r.best, h)
		heap.Fix(&r.best, len(r.best)-1)
	} else if Compare(h, r.best[0]) < 0 {
		r.best[0] = h
		heap.Fix(&r.best, 0)
	}
}

// worstFirst is a heap.Interface. It grows by append, which takes no memory for an interface of each hit.
type worstFirst []Scored

func (h worstFirst) Len() int           { return len(h) }
func (h worstFirst) Less(i, j int) bool { return Compare(h[i], h[j]) > 0 }
func (h worstFirst) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h worstFirst) Push(any)           { panic("not used") }
func (h worstFirst) Pop() any           { panic("not used") }

// gramOverlap computes match counts of one query with many texts without the index. Since the grams are
// ordered (a repeated gram is another keyword), the size of the multiset intersection is the number of the
// text's ordered grams that the query has.
type gramOverlap struct {
	ready bool
	query map[string]struct{} // keys of the query's ordered grams
	grams ngram.Scanner
}

func (o *gramOverlap) reset() { o.ready = false }

func (o *gramOverlap) count(query []rune, text string, n int, runes *[]rune) uint32 {
	if !o.ready {
		o.ready = true
		if o.query == nil {
			o.query = make(map[string]struct{}, len(query)+n)
		}
		clear(o.query)
		for o.grams.Reset(query, n); o.grams.Next(); {
			o.query[string(o.grams.Key())] = struct{}{}
		}
	}
	*runes = levenshtein.AppendRunes((*runes)[:0], text)
	count := uint32(0)
	for o.grams.Reset(*runes, n); o.grams.Next(); {
		if _, ok := o.query[string(o.grams.Key())]; ok {
			count++
		}
	}
	return count
}
