package topk

import "slices"

// Gate is the Gate and the Hash Table of the paper's c-PQ (section III-C) for one query: entries with their final
// counts are offered to it, and it keeps the best k.
//
// # Why this is the ZipperArray and the AuditThreshold
//
// In the paper ZA[c] = min(k, objects whose count has reached c), AT is the smallest c with ZA[c] < k, only objects
// with a count >= AT pass, and in the end MC_k = AT - 1 (Theorem 3.1). ZA serves nothing but AT, and AT - 1 is the count
// of the k-th best object: k objects have reached it and fewer have reached AT. Here a tile is counted completely
// before its objects meet the gate. So the k-th best can be read from the entries themselves whenever they are cut
// to k, and ZA, which would be one more array of "count bound" words per query, need not exist. floor is the k-th best
// entry at the last cut, and A = count(floor) + 1 takes the place of AT: it is the smallest c that fewer than k of the
// entries then stored had reached. Between cuts it lags, which lets more pass but never fewer.
//
// # Nothing of the answer is lost
//
// An entry is dropped in two places: it does not exceed floor, or a cut removes it. In both cases k stored
// entries precede it in the total order, since floor was the k-th of k stored entries and entries are removed only
// when k others precede them. Entries do not change once offered, so "k precede it" stays true, and it is not among the
// k best. Objects with a count below minCount are excluded by the first floor. Note that this argument never asks in
// which order entries come: the result does not depend on scheduling.
//
// # Bound
//
// At most k + max(k, slack) entries are stored, for any k, and a cut is paid by the max(k, slack) entries that
// came since the last one: constant time per entry. At the end the k-th stored entry is the k-th best object, so its
// count is MC_k.
//
// # Few
//
// Up to ordered entries are kept in order, the best one first, and a better one takes the place of the last at once. Then floor never
// lags: fewer pass, and each costs less than its part of a cut.
type Gate struct {
	k       int
	limit   int     // entries before a cut
	floor   Entry   // what does not exceed this has no chance
	entries []Entry // in order if k is at most ordered
	Passed  uint64  // entries ever stored
}

// slack is the least room between cuts, so that they are rare.
const slack = 48

// ordered is up to which k entries are kept in order: to put one in its place takes a few moves.
const ordered = 32

// GateBytes is the most memory that a gate of k takes.
func GateBytes(k int) int64 {
	return 8 * int64(k+max(k, slack))
}

// Reset makes the gate empty, for the best k entries with counts of at least minCount, both at least 1.
func (g *Gate) Reset(k int, minCount uint32) {
	g.k = k
	g.limit = k + max(k, slack)
	g.floor = Entry(minCount)<<32 - 1
	g.entries = g.entries[:0]
	g.Passed = 0
}

// Threshold is A: the least count with which an object passes whose id is larger than all ids offered so far. It
// exceeds 32 bits when nothing can pass any more.
func (g *Gate) Threshold() uint64 {
	return uint64(g.floor>>32) + 1
}

// Offer stores an entry unless it is certain not to be among the best k. It reports whether the threshold rose.
func (g *Gate) Offer(e Entry) bool { return e > g.floor && g.store(e) }

// store is the part of Offer that few entries come to: so the rest is small enough to be inlined.
func (g *Gate) store(e Entry) bool {
	g.Passed++
	if g.k <= ordered {
		return g.insert(e)
	}
	if len(g.entries) == cap(g.entries) {
		g.entries = slices.Grow(g.entries, min(max(len(g.entries), slack), g.limit-len(g.entries)))
	}
	g.entries = append(g.entries, e)
	if len(g.entries) < g.limit {
		return false
	}
	before := g.floor >> 32
	g.cut()
	return g.floor>>32 != before
}

// insert is store where entries are kept in order.
func (g *Gate) insert(e Entry) bool {
	if g.entries == nil {
		g.entries = make([]Entry, 0, ordered)
	}
	if len(g.entries) < g.k {
		g.entries = append(g.entries, e)
	}
	place(g.entries, len(g.entries)-1, e)
	if len(g.entries) < g.k {
		return false
	}
	before := g.floor >> 32
	g.floor = max(g.floor, g.entries[g.k-1])
	return g.floor>>32 != before
}

// cut removes all but the best k.
func (g *Gate) cut() {
	if len(g.entries) > g.k {
		g.floor = max(g.floor, Keep(g.entries, g.k))
		g.entries = g.entries[:g.k]
	}
}

// Add offers all that another gate of the same query has stored.
func (g *Gate) Add(other *Gate) {
	passed := g.Passed + other.Passed
	for _, e := range other.entries {
		g.Offer(e)
	}
	g.Passed = passed // an entry passes once
}

// Finish appends the best k to dst, the best one last.
func (g *Gate) Finish(dst []Entry) []Entry {
	g.cut()
	start := len(dst)
	dst = append(dst, g.entries...)
	slices.Sort(dst[start:])
	return dst
}
