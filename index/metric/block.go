package metric

// Cutter is an Asker that can stop comparing once an object is too far.
type Cutter interface {
	Asker
	// ValuesTo is Values, but a value above most may be given as math.Inf(1).
	ValuesTo(lo, hi uint32, most float64, dst []float64)
}

// ValuesTo writes the values of the objects lo to hi-1. One that is above most may be given as math.Inf(1).
func ValuesTo(a Asker, lo, hi uint32, most float64, dst []float64) {
	if c, ok := a.(Cutter); ok {
		c.ValuesTo(lo, hi, most, dst)
		return
	}
	a.Values(lo, hi, dst)
}

// Block writes the values of the objects lo to hi-1 for many queries of one space, dst[query*(hi-lo) + object-lo]. Objects are read once for
// all, and memory is touched once for several queries. The askers are used meanwhile.
func Block(askers []Asker, lo, hi uint32, dst []float64) {
	if len(askers) == 0 {
		return
	}
	if b, ok := askers[0].(blocker); ok && b.block(askers, lo, hi, dst) {
		return
	}
	n := int(hi - lo)
	for i, a := range askers {
		a.Values(lo, hi, dst[i*n:(i+1)*n])
	}
}

// blocker is an Asker that compares others of its space together with itself.
type blocker interface {
	block(askers []Asker, lo, hi uint32, dst []float64) bool
}
