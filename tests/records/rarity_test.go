package records

import "math/big"

// rarities are weights by how few of so many objects have a value: the largest j up to 255, and at least 1, for which
//
//	(2N+2) 2^32 >= T_j (2 df + 1),  T_j = ceil(2^32 e^((2j-1)/(2s)))
//
// computed with 500 bits, from the definition.
type rarities struct {
	objects    int
	thresholds []*big.Int
}

func newRarities(scale, objects int) *rarities {
	const bits = 500
	number := func(v int64) *big.Float { return new(big.Float).SetPrec(bits).SetInt64(v) }
	// e^(1/(2s)) by its series, and e^(1/s), the step from one threshold to the next.
	x := new(big.Float).SetPrec(bits).Quo(number(1), number(int64(2*scale)))
	e, term := number(1), number(1)
	for n := int64(1); n < 200; n++ {
		term.Mul(term, x).Quo(term, number(n))
		e.Add(e, term)
	}
	step := new(big.Float).SetPrec(bits).Mul(e, e)
	power := new(big.Float).SetPrec(bits).Mul(e, number(1<<32))
	r := &rarities{objects: objects}
	for range 255 {
		floor, exact := power.Int(nil)
		if exact != big.Exact {
			floor.Add(floor, big.NewInt(1)) // it is never whole
		}
		r.thresholds = append(r.thresholds, floor)
		power.Mul(power, step)
	}
	return r
}

func (r *rarities) weight(holders int) uint64 {
	have := new(big.Int).Lsh(big.NewInt(int64(2*r.objects+2)), 32)
	weight := uint64(0)
	for _, threshold := range r.thresholds {
		if have.Cmp(new(big.Int).Mul(threshold, big.NewInt(int64(2*holders+1)))) < 0 {
			break
		}
		weight++
	}
	return max(1, weight)
}
