package permutation

import "math/bits"

// candidate is an object and its rank distance from the query.
type candidate struct{ distance, id uint32 }

// selection keeps the first objects in the order of (rank distance, id), of those that it is told of by ascending ids. It gathers up to twice as many and then
// cuts: a histogram of distances says which distance is the last. So no object is sorted, and few are looked at twice.
type selection struct {
	first   int // how many it keeps
	entries []candidate
	// below is a distance that an object has to have less than: the last one's, once as many as wanted are known. Later objects at it have larger ids.
	below uint64
	cuts  int
	bins  [1 << binBits]uint32
}

// binBits is how many bits of a distance a histogram tells apart: distances have at most 24, so two histograms find one exactly.
const binBits = 12

func (s *selection) reset(first int) {
	s.first, s.entries, s.below, s.cuts = first, s.entries[:0], 1<<32, 0
}

// add takes in objects from number id on, of which only those are told of that pass.
func (s *selection) add(id uint32, distances []uint32, pass func(uint32) bool) {
	below := s.below
	for i, d := range distances {
		if uint64(d) < below && (pass == nil || pass(id+uint32(i))) {
			s.entries = append(s.entries, candidate{d, id + uint32(i)})
		}
	}
	if len(s.entries) >= 2*s.first+len(s.bins) {
		s.cut()
	}
}

// cut drops what is not among the first, and keeps the order of ids.
func (s *selection) cut() {
	if len(s.entries) <= s.first {
		return
	}
	s.cuts++
	all := uint32(0)
	for _, e := range s.entries {
		all |= e.distance
	}
	shift := max(0, bits.Len32(all)-binBits)
	bin, left := s.bin(s.first, func(d uint32) (uint32, bool) { return d >> shift, true })
	last := bin << shift
	if shift > 0 {
		within := uint32(1)<<shift - 1
		fine, rest := s.bin(left, func(d uint32) (uint32, bool) { return d & within, d>>shift == bin })
		last, left = last|fine, rest
	}
	// All objects before the last distance are kept, and the first of those at it.
	kept := s.entries[:0]
	for _, e := range s.entries {
		if e.distance > last || e.distance == last && left == 0 {
			continue
		}
		if e.distance == last {
			left--
		}
		kept = append(kept, e)
	}
	s.entries, s.below = kept, uint64(last)
}

// bin counts distances by the bins that of says and returns the bin in which object number first is, in the order of bins, and what number it has there (from 1).
func (s *selection) bin(first int, of func(d uint32) (uint32, bool)) (bin uint32, number int) {
	clear(s.bins[:])
	for _, e := range s.entries {
		if b, ok := of(e.distance); ok {
			s.bins[b]++
		}
	}
	for int(s.bins[bin]) < first {
		first -= int(s.bins[bin])
		bin++
	}
	return bin, first
}
