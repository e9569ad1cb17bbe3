package similarity

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"sort"
)

//go:generate go run generate.go

// thresholds holds T(s,j) for s = 1..64 and j = 1..255, 12 bytes each, the least significant first, in the order of s and then j:
//
//	T(s,j) = ceil(2^32 e^((2j-1)/(2s))), or 2^96-1 if that is less
//
// They are the definition of weights, whatever generate.go would make of them on another day.
//
//go:embed idf.bin
var thresholds string

const (
	// MaxScale is the largest scale of IDF.
	MaxScale = 64
	// MaxIDF is the largest weight.
	MaxIDF = 255
	// MaxObjects bounds how many objects there can be, so that (2N+2) 2^32 stays below the largest threshold's multiples.
	MaxObjects = 1 << 62

	thresholdBytes = 12
)

// IDF gives words weights by how rare they are: an integer near s ln((2N+2) / (2 df + 1)), 1 to 255, where N objects are in the index and df of
// them have the word. s is the scale: with 16, the default, a word that a third of all objects have weighs 16, and steps are of 6 %; with 1 counts stay
// small. Words that no object has are rarest.
//
// # Why a table
//
// Weights enter counts, so they must be the same in every engine and on every machine, for as long as an index is answered from. A logarithm of float64s
// is rounded differently by different libraries, and s ln(r) lies near enough to a half often enough to show it. So the rounding is
// done by comparing integers:
//
//	w = max(1, the number of j in 1..255 with (2N+2) 2^32 >= T(s,j) (2 df + 1))
//
// T grows with j, so that j is found by halving. The product can have more than 128 bits and is compared in as many as it has.
type IDF struct {
	table string // of the scale
	top   uint64 // 2N+2
}

// NewIDF returns the weights of a scale, 1 to 64, in an index of so many objects.
func NewIDF(scale int, objects uint64) (IDF, error) {
	if scale < 1 || scale > MaxScale {
		return IDF{}, fmt.Errorf("a scale of %d: 1 to %d are possible", scale, MaxScale)
	}
	if objects > MaxObjects {
		return IDF{}, fmt.Errorf("%d objects: at most 2^62 are possible", objects)
	}
	const row = MaxIDF * thresholdBytes
	return IDF{table: thresholds[(scale-1)*row:][:row], top: 2*objects + 2}, nil
}

// Weight returns the weight of a word that df objects have.
func (f IDF) Weight(df uint64) uint32 {
	if df > MaxObjects || 2*df >= f.top {
		return 1 // nor is there such a word
	}
	left := wide{f.top >> 32, f.top << 32}
	// The first j, from 0, that is too large is the number of those that are not.
	j := sort.Search(MaxIDF, func(j int) bool {
		at := f.table[j*thresholdBytes:][:thresholdBytes]
		t := wide{uint64(binary.LittleEndian.Uint32([]byte(at[8:]))), binary.LittleEndian.Uint64([]byte(at))}
		hi, mid, lo := times(t, 2*df+1)
		return hi > 0 || left.less(wide{mid, lo})
	})
	return uint32(max(1, j))
}
