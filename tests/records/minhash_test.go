package records

import (
	"math"
	"math/big"

	"github.com/cespare/xxhash/v2"
)

// hashes makes a condition count the hash functions that agree on two sets, as the essay of package minhash has them: a function ranks all elements by a
// number and takes of a set the first, which one of 8,192 keywords stands for.
func (q *condition) hashes(elements []any) {
	asked := make([]uint64, q.c.functions)
	for i := range asked {
		asked[i] = hashOf(elements, i)
		q.items = append(q.items, 1)
	}
	q.count = func(id int) (n uint64) {
		if len(q.c.values[id]) == 0 {
			return 0
		}
		for i, keyword := range asked {
			if hashOf(q.c.values[id], i) == keyword {
				n++
			}
		}
		return n
	}
}

// hashOf is the keyword of a set by the i-th function.
func hashOf(elements []any, i int) uint64 {
	function, least := finalised(uint64(i+1)*0x9e3779b97f4a7c15), uint64(math.MaxUint64)
	for _, e := range elements {
		least = min(least, finalised(xxhash.Sum64String(e.(string))^function))
	}
	product := new(big.Int).Mul(new(big.Int).SetUint64(finalised(least)), big.NewInt(8192))
	return product.Rsh(product, 64).Uint64()
}

// finalised is the finaliser of SplitMix64.
func finalised(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
