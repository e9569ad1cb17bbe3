package similarity

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Measure says how alike two weighted sets are. W sums the weights of a set's distinct words, I is W of the intersection.
type Measure uint8

const (
	Jaccard     Measure = iota + 1 // I / W(Q or O)
	Dice                           // 2 I / (W(Q) + W(O))
	Cosine                         // I / sqrt(W(Q) W(O))
	Containment                    // I / W(Q)
)

// String is the name that queries use.
func (m Measure) String() string {
	if m < Jaccard || m > Containment {
		return fmt.Sprintf("measure %d", uint8(m))
	}
	return [...]string{"jaccard", "dice", "cosine", "containment"}[m-Jaccard]
}

// ParseMeasure finds a measure by its name.
func ParseMeasure(name string) (Measure, bool) {
	for m := Jaccard; m <= Containment; m++ {
		if m.String() == name {
			return m, true
		}
	}
	return 0, false
}

// MaxWeight bounds the weight of a set, so that sums of two and their doubles are integers of 64 bits.
const MaxWeight = 1 << 62

// Set is a query's weighted set made ready for being compared with many objects' by a measure.
//
// An object is its terms, ascending, and their weight W(O), which an index stores. Words have the weights that the query says, since a
// word's weight is the same wherever it stands. W(Q) includes words that no object has; they have weight in the query and
// nothing to meet.
//
//	common := set.Common(terms)
//	score := set.Score(common, weight)
//
// # Order and value
//
// Scores are compared, and certificates given, by Compare: jaccard, dice and containment are one division of integers, rounded
// once, so that larger fractions never have smaller values, and those of equal value are equal. A cosine's root would be rounded twice and
// more: an object then exceeds the bound that its own count proves. So cosines are compared as the fractions I^2 / (W(Q) W(O)), exactly, in
// 192 bits; the root is taken of their value, for the report alone, in a way that keeps the order: the fraction rounded once, then its root
// rounded once.
//
// Nothing in common scores 0, and so does everything where the query weighs nothing, two empty sets too.
//
// The slices that Reset gets are kept and must not change.
type Set struct {
	measure Measure
	terms   []uint32
	weights []uint32
	total   uint64
}

// Score is how alike a query's set and an object's are. Only those of one Set can be compared. The zero value is that of sets with
// nothing in common.
type Score struct {
	value          float64 // but for cosine
	common, weight uint64  // of cosine; weight is not 0 where common is not
}

// Reset makes a set ready. terms ascend and none is there twice; weights are theirs, or nil: 1 each; total is W(Q), which
// includes what terms lacks because no object has it.
func (s *Set) Reset(m Measure, terms, weights []uint32, total uint64) error {
	*s = Set{}
	if m < Jaccard || m > Containment {
		return fmt.Errorf("%v is none", m)
	}
	if err := ascending(terms); err != nil {
		return err
	}
	sum := uint64(len(terms))
	if weights != nil {
		if len(weights) != len(terms) {
			return fmt.Errorf("%d weights of %d terms", len(weights), len(terms))
		}
		sum = 0
		for _, w := range weights {
			sum += uint64(w)
		}
	}
	if total < sum || total > MaxWeight {
		return fmt.Errorf("a set weighs %d, its terms %d: the most is 2^62", total, sum)
	}
	*s = Set{measure: m, terms: terms, weights: weights, total: total}
	return nil
}

var errOrder = errors.New("terms do not ascend, or one is there twice")

func ascending(terms []uint32) error {
	for i := 1; i < len(terms); i++ {
		if terms[i-1] >= terms[i] {
			return errOrder
		}
	}
	return nil
}

// Common returns I, of an object whose terms ascend. It costs as many steps as there are terms, or some for each of the shorter list if
// the other one is much longer.
func (s *Set) Common(object []uint32) uint64 {
	const longer = 16
	common := uint64(0)
	switch terms := s.terms; {
	case len(terms)*longer < len(object):
		for i, term := range terms {
			object = object[seek(object, term):]
			if len(object) > 0 && object[0] == term {
				common += s.weight(i)
			}
		}
	case len(object)*longer < len(terms):
		at := 0
		for _, term := range object {
			at += seek(terms[at:], term)
			if at < len(terms) && terms[at] == term {
				common += s.weight(at)
			}
		}
	default:
		for i, j := 0, 0; i < len(terms) && j < len(object); {
			a, b := terms[i], object[j]
			if a == b {
				common += s.weight(i)
			}
			if a <= b {
				i++
			}
			if b <= a {
				j++
			}
		}
	}
	return common
}

func (s *Set) weight(i int) uint64 {
	if s.weights == nil {
		return 1
	}
	return uint64(s.weights[i])
}

// seek returns the place of the first term of at least want, which is near the front as a rule.
func seek(terms []uint32, want uint32) int {
	step := 1
	for step <= len(terms) && terms[step-1] < want {
		step *= 2
	}
	// terms[step/2-1] is too small, if there is one.
	from, to := step/2, min(step, len(terms))
	at, _ := slices.BinarySearch(terms[from:to], want)
	return from + at
}

// Score returns the score of an object with W(O) = weight that has I = common.
func (s *Set) Score(common, weight uint64) Score {
	common = min(common, s.total)
	weight = min(max(weight, common), MaxWeight) // a damaged file must not make more than 1 of a score
	switch {
	case common == 0:
		return Score{}
	case s.measure == Jaccard:
		return Score{value: Ratio(common, s.total+weight-common)}
	case s.measure == Dice:
		return Score{value: Ratio(2*common, s.total+weight)}
	case s.measure == Containment:
		return Score{value: Ratio(common, s.total)}
	default:
		return Score{common: common, weight: weight}
	}
}

// Compare is negative when a is the better score, positive when b is, and 0 when they are equal.
func (a Score) Compare(b Score) int {
	switch {
	case a.value > b.value:
		return -1
	case a.value < b.value:
		return 1
	case a.common == 0 || b.common == 0:
		return int(min(b.common, 1)) - int(min(a.common, 1))
	case a == b:
		return 0
	}
	return -compareProducts(product(a.common, a.common), b.weight, product(b.common, b.common), a.weight)
}

// Key is what scores of one Set are ordered by: the less, the better. Scores with the same key are equal, but for cosine: there Compare
// decides, and the key is the fraction I^2 / W(O), rounded once, which keeps the order.
func (a Score) Key() float64 {
	const small = 1 << 26 // whose squares are float64s
	switch {
	case a.common == 0:
		return 0 - a.value // 0 where it is 0, and not -0
	case a.common < small && a.weight <= exact:
		return -(float64(a.common*a.common) / float64(a.weight))
	}
	return -ratio(product(a.common, a.common), wide{0, a.weight})
}

// Value is a score as it is reported, 0 to 1. A better score has no smaller value.
func (s *Set) Value(score Score) float64 {
	if s.measure != Cosine || score.common == 0 {
		return score.value
	}
	return math.Sqrt(ratio(product(score.common, score.common), product(s.total, score.weight)))
}

// Reach is x: the most that the words in common can weigh of an object whose count is at most count, where unit is the weight of the
// column. See the package's text for when it holds.
func (s *Set) Reach(count, unit uint32) uint64 { return min(uint64(count/max(unit, 1)), s.total) }

// Certified says that no object with at most x in common, by Reach, scores better than last, the score of the k-th hit:
//
//	jaccard and containment <= x / W(Q),  dice <= 2x / (W(Q) + x),  cosine^2 <= x / W(Q)
//
// Proof. I <= x, and I <= W(O). A union weighs at least W(Q). I <= W(O) gives 2I / (W(Q) + W(O)) <= 2I / (W(Q) + I), which grows with I; and
// I^2 / (W(Q) W(O)) <= I / W(Q). Rounding keeps the order.
func (s *Set) Certified(last Score, x uint64) bool {
	x = min(x, s.total)
	if s.measure != Cosine {
		return last.value >= s.bound(x)
	}
	// common^2 / (total weight) >= x / total
	return last.common > 0 && !product(last.common, last.common).less(product(x, last.weight)) || x == 0
}

// bound is the most that an object with at most x in common can score, but for cosine.
func (s *Set) bound(x uint64) float64 {
	if s.measure == Dice {
		return Ratio(2*x, s.total+x)
	}
	return Ratio(x, s.total)
}
