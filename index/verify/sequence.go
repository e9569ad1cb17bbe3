package verify

import (
	"cmp"
	"math"
	"slices"

	"github.com/geniemq/geniemq/index/ngram"
)

// Candidate is an object that a match-count search returned.
type Candidate struct {
	ID, Count uint32
}

// Hit is a verified object.
type Hit struct {
	ID, Count uint32
	Distance  int32 // edit distance to the query
}

// Compare is the total order of verified hits: distance ascending, count descending, id ascending.
func Compare(a, b Hit) int {
	if c := cmp.Compare(a.Distance, b.Distance); c != 0 {
		return c
	}
	if c := cmp.Compare(b.Count, a.Count); c != 0 {
		return c
	}
	return cmp.Compare(a.ID, b.ID)
}

// Texts gives the texts of the objects 0 to Objects()-1. An index.Index of sequences is one.
type Texts interface {
	Objects() uint32
	Text(id uint32) string
}

// Verifier finds the k nearest sequences of one query; the package comment has the rules and their proofs. Its
// life is: Reset, Verify with the candidates, and while the answer is not Certified either Verify again with
// more candidates or Scan; then Hits. The zero value needs Reset first. It keeps its memory and is for one
// goroutine at a time.
type Verifier struct {
	text []rune
	k, n int

	pattern Pattern
	overlap gramOverlap
	runes   []rune

	best   []Hit // the k best so far, a heap with the worst on top
	next   int   // candidates already looked at
	within int   // Within
}

// Reset begins a new query: the k nearest of text, where sequences are indexed by ngram-grams. text must stay
// unchanged until the next Reset; k and ngram are at least 1.
func (v *Verifier) Reset(text []rune, k, ngram int) {
	v.text, v.k, v.n = text, k, ngram
	v.pattern.Reset(text)
	v.overlap.reset()
	v.best = v.best[:0]
	v.next = 0
	v.within = v.radius() - 1
}

// Paced makes v ask pace in all that it does from now on, after so much work (0: PaceWork). At first nobody is
// asked.
func (v *Verifier) Paced(pace Pace, work int) {
	v.pattern.meter = meter{pace: pace, every: work}
	v.pattern.meter.left = v.pattern.meter.most()
}

// Verify compares the query with the candidates, which are in the order of match counts (count descending, id
// ascending). A later call passes a longer list that begins with the earlier one and goes on where that
// ended. It returns the error of the pace, and only that; then a call with the same list goes on where this one stopped.
//
// Where distances were computed elsewhere, on a GPU say, known has those of the first candidates: exact ones, or negative
// for those to be computed here. It may be nil. The outcome is the same.
func (v *Verifier) Verify(texts Texts, candidates []Candidate, known []int32) error {
	defer func() { v.within = v.radius() - 1 }()
	m := &v.pattern.meter
	for ; v.next < len(candidates); v.next++ {
		if m.due() && m.ask() {
			return m.take()
		}
		c := candidates[v.next]
		if v.Certified(c.Count) {
			return nil
		}
		// Only a smaller distance helps: with an equal one the earlier candidate precedes.
		bound := v.radius() - 1
		if v.next < len(known) && known[v.next] >= 0 {
			if d := known[v.next]; int(d) <= bound {
				v.keep(Hit{ID: c.ID, Count: c.Count, Distance: d})
			}
			continue
		}
		d, ok := v.distance(texts.Text(c.ID), bound)
		if v.pattern.paused.next > 0 {
			return m.take()
		}
		if ok {
			v.keep(Hit{ID: c.ID, Count: c.Count, Distance: int32(d)})
		}
	}
	return nil
}

// Compared is how many of the candidates Verify is done with.
func (v *Verifier) Compared() int { return v.next }

// Certified reports whether no object with a match count of at most count can precede the k best so far, if
// it also follows all candidates seen so far in the order of match counts. With the count of the last of K
// candidates, or 0 when fewer than K objects came back, this is the certificate of the whole answer.
func (v *Verifier) Certified(count uint32) bool {
	return int64(count) < v.Threshold()
}

// Threshold is theta of the package comment: objects with a smaller match count are certain not to be hits. It is
// at most 0 when no count can certify the answer.
func (v *Verifier) Threshold() int64 {
	if len(v.best) < v.k {
		return math.MinInt64
	}
	n := int64(v.n)
	return int64(len(v.text)) + n - 1 - n*(int64(v.best[0].Distance)-1)
}

// Within is the largest distance at which an object that was no candidate can be a hit: less than tau of the candidates,
// for where distances are equal they precede by count or id. Without k hits there is no bound.
func (v *Verifier) Within() int { return v.within }

// Scan compares the query with the objects lo to hi-1 whatever their match count, except those with less than
// minCount. After scanning all objects the hits are exact. It returns the object to go on with, which is hi unless the pace
// stopped it, and the error of the pace, and only that.
//
// To scan ranges in parallel give each its own Verifier that Seed copied from this one, and Join them.
func (v *Verifier) Scan(texts Texts, lo, hi, minCount uint32) (next uint32, err error) {
	known := make([]uint32, len(v.best))
	for i, h := range v.best {
		known[i] = h.ID
	}
	slices.Sort(known)
	m := &v.pattern.meter
	for id := lo; id < hi; id++ {
		if m.due() && m.ask() {
			return id, m.take()
		}
		text := texts.Text(id)
		d, ok := v.distance(text, min(v.within, v.radius()))
		if v.pattern.paused.next > 0 {
			return id, m.take()
		}
		if !ok {
			continue
		}
		if _, found := slices.BinarySearch(known, id); found {
			continue
		}
		m.did(overlapWork * len(text))
		count := v.overlap.count(v.text, text, v.n, &v.runes)
		if count >= minCount {
			v.keep(Hit{ID: id, Count: count, Distance: int32(d)})
		}
	}
	return hi, nil
}

// Seed makes v a verifier of the same query as from with the same hits.
func (v *Verifier) Seed(from *Verifier) {
	v.Reset(from.text, from.k, from.n)
	v.best = append(v.best, from.best...)
	v.next, v.within = from.next, from.within
}

// Join adds the hits of a verifier of the same query.
func (v *Verifier) Join(other *Verifier) { v.Add(other.best) }

// Add adds hits of the same query that were found elsewhere: for a scan, the first k of all objects with a distance of at
// most Within, or of a part of them.
func (v *Verifier) Add(hits []Hit) {
	all := append(v.best, hits...)
	slices.SortFunc(all, Compare)
	all = slices.Compact(all)
	all = all[:min(len(all), v.k)]
	slices.Reverse(all) // descending: a heap
	v.best = all
}

// Hits appends the hits to dst in their total order.
func (v *Verifier) Hits(dst []Hit) []Hit {
	start := len(dst)
	dst = append(dst, v.best...)
	slices.SortFunc(dst[start:], Compare)
	return dst
}

// radius is tau: the distance of the k-th best, without bound before there are k.
func (v *Verifier) radius() int {
	if len(v.best) < v.k {
		return math.MaxInt32
	}
	return int(v.best[0].Distance)
}

// distance is the length filter in bytes, which needs no decoding (a code point is 1 to 4 bytes), then the
// bounded comparison, which begins with the length filter in code points.
func (v *Verifier) distance(text string, bound int) (int, bool) {
	v.pattern.meter.did(textWork)
	if len(text) < v.pattern.Len()-bound || len(text) > 4*(v.pattern.Len()+bound) {
		return 0, false
	}
	v.pattern.meter.did(len(text)) // reading it, and comparing a short pattern; a long one counts for itself
	return v.pattern.DistanceString(text, bound, &v.runes)
}

// keep puts a hit among the k best unless k others precede it.
func (v *Verifier) keep(h Hit) {
	b := v.best
	if len(b) < v.k {
		b = append(b, h)
		for i := len(b) - 1; i > 0; {
			parent := (i - 1) / 2
			if Compare(b[i], b[parent]) <= 0 {
				break
			}
			b[i], b[parent] = b[parent], b[i]
			i = parent
		}
		v.best = b
		return
	}
	if Compare(h, b[0]) >= 0 {
		return
	}
	b[0] = h
	for i := 0; ; {
		worst := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(b); child++ {
			if Compare(b[child], b[worst]) > 0 {
				worst = child
			}
		}
		if worst == i {
			return
		}
		b[i], b[worst] = b[worst], b[i]
		i = worst
	}
}

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
	*runes = AppendRunes((*runes)[:0], text)
	count := uint32(0)
	for o.grams.Reset(*runes, n); o.grams.Next(); {
		if _, ok := o.query[string(o.grams.Key())]; ok {
			count++
		}
	}
	return count
}
