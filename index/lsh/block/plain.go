package block

import "math/bits"

// plainBuckets finds the buckets of three vectors in the four rows of a panel: out[v*4 + row].
func plainBuckets(out *[rows * vectors]int32, panel []float32, offsets *[rows]float32, x0, x1, x2 []float32) {
	for v, x := range [vectors][]float32{x0, x1, x2} {
		for row := range rows {
			var s [lanes]float32
			for i := 0; i < len(x); i += lanes {
				a, b := (*[lanes]float32)(panel[i*rows+row*lanes:]), (*[lanes]float32)(x[i:])
				s[0] += float32(a[0] * b[0])
				s[1] += float32(a[1] * b[1])
				s[2] += float32(a[2] * b[2])
				s[3] += float32(a[3] * b[3])
				s[4] += float32(a[4] * b[4])
				s[5] += float32(a[5] * b[5])
				s[6] += float32(a[6] * b[6])
				s[7] += float32(a[7] * b[7])
			}
			out[v*rows+row] = whole((((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))) + offsets[row])
		}
	}
}

// plainBins hashes the cells of four vectors in the eight grids of a panel, without the last step: out[v*8 + grid].
func plainBins(out *[binned * lanes]uint32, panel []float32, seeds *[lanes]uint32, x0, x1, x2, x3 []float32) {
	for v, x := range [binned][]float32{x0, x1, x2, x3} {
		hash := *seeds
		for i, e := range x {
			rates, offsets := (*[lanes]float32)(panel[i*2*lanes:]), (*[lanes]float32)(panel[i*2*lanes+lanes:])
			for j := range hash {
				hash[j] = mix(hash[j], uint32(whole(float32(e*rates[j])+offsets[j])))
			}
		}
		copy(out[v*lanes:], hash[:])
	}
}

// plainWithin counts in how many places lists are at most reach apart.
func plainWithin(a, b []uint32, reach uint32) (n uint32) {
	b = b[:len(a)]
	for i, x := range a {
		if d := int32(x) - int32(b[i]); max(d, -d) <= int32(reach) {
			n++
		}
	}
	return n
}

// whole rounds down. It is exact: a float32 of 2^23 or more is a whole number.
func whole(v float32) int32 {
	const least, most = -1 << 31, 1<<31 - 128
	v = max(least, min(most, v))
	i := int32(v)
	if float32(i) > v {
		i--
	}
	return i
}

// Murmur3 is MurmurHash3 (x86, 32 bits) of four bytes, little-endian.
func Murmur3(seed, word uint32) uint32 { return finish(mix(seed, word), 1) }

// mix takes in four bytes.
func mix(hash, word uint32) uint32 {
	hash ^= bits.RotateLeft32(word*0xcc9e2d51, 15) * 0x1b873593
	return bits.RotateLeft32(hash, 13)*5 + 0xe6546b64
}

// finish is the last step, of a hash of as many words.
func finish(hash uint32, words int) uint32 {
	hash ^= uint32(4 * words)
	hash = (hash ^ hash>>16) * 0x85ebca6b
	hash = (hash ^ hash>>13) * 0xc2b2ae35
	return hash ^ hash>>16
}
