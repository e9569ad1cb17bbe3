package metric

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/geniemq/geniemq/index/metric/bound"
	"github.com/geniemq/geniemq/index/metric/sums"
)

// alone is the memory of an asker for sieving rows for one query: as they lie, without the panels and lengths that many queries share.
type alone struct {
	narrowOf Asker
	narrow   []float32 // its elements
	size     float64   // its norm, not less
	kept     []uint8   // four rows to a byte
	some     []uint32  // numbers of rows that are kept
}

// of narrows a query.
func (w *alone) of(o Asker, q sums.Query, norm float64) {
	if w.narrowOf != o {
		w.narrowOf, w.narrow, w.size = o, sums.Narrow(w.narrow, q), norm
	}
}

// alone drops rows for one query, and compares the others.
func (p *pass[E]) alone(i int) {
	a := p.a
	if p.n < sums.Fours || !a.keep(p.askers[i].(*vectorAsker[E]), p.n, p.limits[i]) {
		a.dense = append(a.dense, i)
		return
	}
	kept := a.kept[:(p.n+sums.Fours-1)/sums.Fours]
	count := 0
	for at := 0; at < len(kept); at += 8 { // its memory is a multiple of 8
		count += bits.OnesCount64(binary.LittleEndian.Uint64(a.kept[at:]))
	}
	if count*dense > p.n {
		a.dense = append(a.dense, i)
		return
	}
	a.some = a.some[:0]
	for at, set := range kept {
		for ; set != 0; set &= set - 1 {
			a.some = append(a.some, uint32(at*sums.Fours+bits.TrailingZeros8(set)))
		}
	}
	p.compareSome(i)
}

// compareSome compares the rows that were kept with a query.
func (p *pass[E]) compareSome(query int) {
	a, some := p.a, p.a.some
	if len(some) == 0 {
		return
	}
	a.values = slices.Grow(a.values[:0], len(some))[:len(some)]
	a.compareRows(p.askers[query].(*vectorAsker[E]), some, a.values)
	limit := p.limits[query]
	for i, v := range a.values {
		if v <= limit {
			p.found(query, p.first+some[i], v)
			limit = p.limits[query]
		}
	}
}

// keep finds which of n rows that were prepared are kept for a query, and reports whether any can be dropped. Package bound has the proofs: of angles for norms from 2^-50 to 2^50, and
// rows beyond are kept whatever they are.
func (a *vectorAsker[E]) keep(o *vectorAsker[E], n int, most float64) bool {
	dims := a.space.dims
	if !(most < math.MaxFloat64) || bound.FusedGamma(dims) > 0x1p-8 {
		return false
	}
	bytes := (n + sums.Fours - 1) / sums.Fours
	if len(a.kept) < bytes {
		a.alone.kept = make([]uint8, (bytes+7)&^7)
	}
	clear(a.kept[bytes&^7 : (bytes+7)&^7])
	a.alone.of(o, o.query, bound.Up(o.norm, dims))
	rows := a.wide[:n*dims]
	if !a.space.angles() {
		a.KeepNear(a.narrow, rows, dims, bound.Squares(most, dims), a.kept)
		return true
	}
	if most >= 1 || !(a.size >= 0x1p-50 && a.size < 0x1p50) {
		return false
	}
	a.KeepAngles(a.narrow, rows, dims, bound.Angle(most, dims, a.size), a.kept)
	return true
}
