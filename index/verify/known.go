package verify

import "math/bits"

// knower is a comparer of a measure that a device can compute.
type knower interface {
	// keys appends the keys of what was computed elsewhere, all of it known.
	keys(dst []float64, known []Known) []float64
	// known appends an object with what was computed of it.
	known(dst []ranked, c Candidate, known Known) []ranked
}

// orderer is a measure whose order a device can make.
type orderer interface {
	// ranked is a hit that was scored elsewhere.
	ranked(hit *Scored) ranked
}

// knownTogether is how many candidates are dealt with at a time, at most, that are known.
const knownTogether = 4096

// knownRun is how many of the candidates from one on are known one after the other.
func knownRun(known []Known, from int) (n int) {
	if from >= len(known) {
		return 0
	}
	known = known[from:min(from+knownTogether, len(known))]
	for ; n < len(known) && known[n] != Unknown; n++ {
	}
	return n
}

// takeKnown keeps the best of candidates that are known. There are eight for each hit as a rule, and looking at one takes longer than computing it
// took the device, if each is held against the hits so far. So keys alone are dealt to buckets, and what can be a hit by its bucket is put in order, which is
// little more than k.
func (r *ScoresRescorer) takeKnown(by knower, some []Candidate, known []Known) {
	r.meter.Did(len(some))
	best := &r.best
	best.form = asTheyCame
	if len(some) <= best.room() {
		for i := range some {
			best.entries = by.known(best.entries, some[i], known[i])
		}
		return
	}
	r.keys = by.keys(r.keys[:0], known[:len(some)])
	scale := r.deal.among(r.keys, best.k)
	for i, key := range r.keys {
		if r.deal.bucket(key, scale) <= r.deal.last {
			best.entries = by.known(best.entries, some[i], known[i])
		}
	}
	best.cut()
}

// deal are keys dealt to buckets, to know which are among the least.
type deal struct {
	least float64
	last  int32 // bucket of these
	sizes [buckets]uint32
}

// among finds the buckets that have the n least keys, and returns what bucket takes.
func (d *deal) among(keys []float64, n int) (scale float64) {
	d.least, d.last = keys[0], buckets
	most := keys[0]
	for _, key := range keys {
		if key < d.least {
			d.least = key
		}
		if key > most {
			most = key
		}
	}
	used := min(buckets, 2<<bits.Len(uint(len(keys))))
	scale = scaleOf(d.least, most, used)
	if scale == 0 || n >= len(keys) {
		return 0
	}
	sizes := d.sizes[:used]
	clear(sizes)
	for _, key := range keys {
		sizes[d.bucket(key, scale)]++
	}
	for d.last = 0; n > int(sizes[d.last]); d.last++ {
		n -= int(sizes[d.last])
	}
	return scale
}

// bucket is that of a key. Rounding keeps the order: a key that is not less has no lower bucket.
func (d *deal) bucket(key, scale float64) int32 { return int32((key - d.least) * scale) }
