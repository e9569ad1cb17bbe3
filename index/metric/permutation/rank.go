package permutation

import (
	"math"
	"slices"
)

// ranker ranks permutants, with memory that it uses again.
type ranker struct{ keys []uint64 }

// rank writes the rank of each permutant: how many have a smaller value, or the same and a smaller number.
//
// It sorts whole numbers, which takes a third of sorting values with numbers: the bits of values, in their order, with the number in place of the last eight. What that brings
// out of order is next to each other, as are both zeros, and is put right by insertion.
func (r *ranker) rank(dst []byte, values []float64) {
	r.keys = r.keys[:0]
	for j, v := range values {
		key := math.Float64bits(v)
		if key>>63 > 0 {
			key = ^key
		} else {
			key |= 1 << 63
		}
		r.keys = append(r.keys, key&^0xff|uint64(j))
	}
	slices.Sort(r.keys)
	for i := range r.keys {
		own := uint8(r.keys[i])
		for ; i > 0; i-- {
			before := uint8(r.keys[i-1])
			if v, w := values[own], values[before]; v > w || v == w && own > before {
				break
			}
			r.keys[i] = r.keys[i-1]
		}
		r.keys[i] = uint64(own)
	}
	for rank, key := range r.keys {
		dst[uint8(key)] = uint8(rank)
	}
}

// distances is an inner loop: the rank distances of as many objects as dst has room for, whose ranks lie one after the other, from a packed query. m is the
// number of permutants.
type distances func(dst []uint32, ranks, packed []byte, m int)

// chunk is how many bytes an inner loop takes at a time. A packed query is its ranks, those of whole chunks first; where m is no multiple of a chunk (and at least
// one), there follow the last chunk's worth of ranks and a mask that leaves out of it what the whole chunks had.
const chunk = 32

func pack(dst, ranks []byte) []byte {
	m := len(ranks)
	if m < chunk || m%chunk == 0 {
		return append(dst, ranks...)
	}
	dst = append(dst, ranks[:m/chunk*chunk]...)
	fresh := chunk - m%chunk
	dst = append(dst, make([]byte, fresh)...)
	dst = append(dst, ranks[m-m%chunk:]...)
	dst = append(dst, make([]byte, fresh)...)
	for range m % chunk {
		dst = append(dst, 0xff)
	}
	return dst
}

// unpacked is element j of a packed query of m ranks.
func unpacked(packed []byte, j, m int) byte {
	if whole := m / chunk * chunk; m >= chunk && j >= whole {
		return packed[whole+chunk-m%chunk+j-whole]
	}
	return packed[j]
}

func plainFootrule(dst []uint32, ranks, packed []byte, m int) {
	var query [MaxPermutants]byte
	for j := range m {
		query[j] = unpacked(packed, j, m)
	}
	for i := range dst {
		own, sum := ranks[i*m:(i+1)*m], uint32(0)
		for j, q := range query[:m] {
			d := int32(own[j]) - int32(q)
			sum += uint32(max(d, -d))
		}
		dst[i] = sum
	}
}

func plainRho(dst []uint32, ranks, packed []byte, m int) {
	var query [MaxPermutants]byte
	for j := range m {
		query[j] = unpacked(packed, j, m)
	}
	for i := range dst {
		own, sum := ranks[i*m:(i+1)*m], uint32(0)
		for j, q := range query[:m] {
			d := int32(own[j]) - int32(q)
			sum += uint32(d * d)
		}
		dst[i] = sum
	}
}

// plain returns the loops in Go, which every machine has.
func plain(s Similarity) distances {
	if s == Footrule {
		return plainFootrule
	}
	return plainRho
}
