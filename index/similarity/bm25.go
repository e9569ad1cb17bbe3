package similarity

import (
	"fmt"
	"math"
	"slices"
)

// The parameters of BM25 that nearly everybody uses.
const (
	K1 = 1.2
	B  = 0.75
)

// BM25 is a query's words made ready for scoring many objects:
//
//	sum of idf(t) tf (k1+1) / (tf + k1 (1 - b + b length/mean)),  idf(t) = ln((2N+2) / (2 df(t) + 1))
//
// over the distinct words t that query and object share, tf being how often the object has it, and mean the mean length of all N
// objects. (Robertson and Zaragoza 2009; the idf is ln(1 + (N - df + 1/2) / (df + 1/2)), which is never negative.)
//
// Terms are added in ascending order, each product, quotient and sum is rounded by itself, and the logarithm is Ln: a score is the same
// on every machine.
//
// The slice of terms that Reset gets is kept and must not change.
type BM25 struct {
	terms []uint32
	gain  []float64 // idf (k1+1)
	mean  float64
}

// Collection is what BM25 has to know of all objects.
type Collection struct {
	Objects uint64 // N, those without a word too; at most MaxObjects
	Words   uint64 // the lengths of all objects together
}

// Reset makes a query ready: terms that ascend, and how many objects have each. Words that no object has are left out.
func (b *BM25) Reset(terms, frequencies []uint32, all Collection) error {
	b.terms, b.gain, b.mean = nil, slices.Grow(b.gain[:0], len(terms)), 1
	if len(terms) != len(frequencies) {
		return fmt.Errorf("%d terms and the frequencies of %d", len(terms), len(frequencies))
	}
	if all.Objects > MaxObjects {
		return fmt.Errorf("%d objects: at most 2^62 are possible", all.Objects)
	}
	if err := ascending(terms); err != nil {
		return err
	}
	for _, df := range frequencies {
		// More than all objects have no word.
		idf := max(0, Ln(Ratio(2*all.Objects+2, 2*uint64(df)+1)))
		b.gain = append(b.gain, float64(idf*(K1+1)))
	}
	if all.Words > 0 && all.Objects > 0 {
		b.mean = Ratio(all.Words, all.Objects)
	}
	b.terms = terms
	return nil
}

// Score returns the score of an object: its terms, which ascend, how often it has each, and its length in words.
func (b *BM25) Score(terms, times []uint32, length uint64) float64 {
	norm := b.Norm(length)
	times = times[:len(terms)]
	sum := 0.0
	for i, j := 0, 0; i < len(b.terms) && j < len(terms); {
		if len(terms)-j > 16*(len(b.terms)-i) {
			j += seek(terms[j:], b.terms[i])
			if j == len(terms) {
				break
			}
		}
		x, y := b.terms[i], terms[j]
		if x == y {
			sum += b.Term(i, times[j], norm)
		}
		if x <= y {
			i++
		}
		if y <= x {
			j++
		}
	}
	return sum
}

// Norm is k1 (1 - b + b length/mean), of an object of that length.
func (b *BM25) Norm(length uint64) float64 {
	return float64(K1 * float64((1-B)+float64(B*float64(float64(length)/b.mean))))
}

// Gain is what the i-th term adds at most: idf(t) (k1+1). With Mean it is all that who computes Norm and Term elsewhere has to know.
func (b *BM25) Gain(i int) float64 { return b.gain[i] }

// Mean is the mean length of all objects, 1 where none has a word.
func (b *BM25) Mean() float64 { return b.mean }

// Term is what the i-th term adds to the score of an object with that norm, which has it so many times. Who finds common terms by other means than
// Score adds them in ascending order.
func (b *BM25) Term(i int, times uint32, norm float64) float64 {
	tf := float64(times)
	return float64(float64(b.gain[i]*tf) / float64(tf+norm))
}

// Bound is what no object scores above whose count is at most count, where unit is the weight of the column and weights are those of the
// query's terms, nil: 1 each.
//
//	floor(count/unit) max(idf(t) (k1+1) / w(t))
//
// Proof. A word adds less than idf(t) (k1+1), as tf / (tf + norm) < 1, which is w(t) times at most the maximum; and the weights of the words in
// common are at most floor(count/unit). Each of n roundings of a sum makes it larger by at most 2^-53 of itself, and four more are in a
// term and in the bound; twice as much is added.
func (b *BM25) Bound(count, unit uint32, weights []uint32) float64 {
	most := 0.0
	for i, gain := range b.gain {
		if weights != nil {
			gain /= float64(max(weights[i], 1))
		}
		most = max(most, gain)
	}
	slack := float64(float64(len(b.gain)+4) * 0x1p-52)
	return float64(float64(float64(count/max(unit, 1))*most) * float64(1+slack))
}

// Ln is the natural logarithm of a positive, finite x, within one unit in the last place, and the same on every machine. It is that of
// FreeBSD's msun: x = 2^k (1+f), with f between sqrt(1/2)-1 and sqrt(2)-1, and a polynomial in s = f/(2+f).
func Ln(x float64) float64 {
	const (
		high = 6.93147180369123816490e-01
		low  = 1.90821492927058770002e-10
		l1   = 6.666666666666735130e-01
		l2   = 3.999999999940941908e-01
		l3   = 2.857142874366239149e-01
		l4   = 2.222219843214978396e-01
		l5   = 1.818357216161805012e-01
		l6   = 1.531383769920937332e-01
		l7   = 1.479819860511658591e-01
	)
	fraction, exponent := math.Frexp(x)
	if fraction < math.Sqrt2/2 {
		fraction *= 2
		exponent--
	}
	f, k := fraction-1, float64(exponent)
	s := f / (2 + f)
	s2 := float64(s * s)
	s4 := float64(s2 * s2)
	t1 := float64(s2 * float64(l1+float64(s4*float64(l3+float64(s4*float64(l5+float64(s4*l7)))))))
	t2 := float64(s4 * float64(l2+float64(s4*float64(l4+float64(s4*l6)))))
	half := float64(float64(0.5*f) * f)
	rest := float64(float64(s*float64(half+float64(t1+t2))) + float64(k*low))
	return float64(k*high) - float64(float64(half-rest)-f)
}
