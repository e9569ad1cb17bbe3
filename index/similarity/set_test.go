package similarity

import (
	"cmp"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

var measures = []Measure{Jaccard, Dice, Cosine, Containment}

// fraction is a measure by its definition, squared for cosine.
func fraction(m Measure, common, query, object *big.Int) *big.Rat {
	if common.Sign() == 0 {
		return new(big.Rat)
	}
	switch m {
	case Jaccard:
		union := new(big.Int).Add(query, object)
		return rat(common, union.Sub(union, common))
	case Dice:
		return rat(new(big.Int).Add(common, common), new(big.Int).Add(query, object))
	case Containment:
		return rat(common, query)
	default:
		return rat(new(big.Int).Mul(common, common), new(big.Int).Mul(query, object))
	}
}

// rounded is a fraction as it is ordered: rounded, but for cosine.
func rounded(m Measure, f *big.Rat) *big.Rat {
	if m == Cosine {
		return f
	}
	v, _ := f.Float64()
	return new(big.Rat).SetFloat64(v)
}

// TestScore compares values and order with math/big, for weights of up to 2^62. Fractions lie near each other now and then.
func TestScore(t *testing.T) {
	rng := seeded.Rand(t)
	for round := range short(20000) {
		top := uint(1 + rng.IntN(62))
		query := 1 + rng.Uint64()>>(64-top)
		for _, m := range measures {
			var s Set
			if err := s.Reset(m, nil, nil, query); err != nil {
				t.Fatal(err)
			}
			var scores [3]Score
			var want [3]*big.Rat
			var object, common uint64
			for i := range scores {
				if i == 0 || rng.IntN(3) == 0 {
					object = 1 + rng.Uint64()>>(64-top)
					common = rng.Uint64N(min(query, object) + 1)
				} else if common < min(query, object) {
					common++
				} else if object < 1<<62 {
					object++
				}
				scores[i] = s.Score(common, object)
				f := fraction(m, whole(common), whole(query), whole(object))
				want[i] = rounded(m, f)
				value, _ := f.Float64()
				if m == Cosine {
					value = math.Sqrt(value)
				}
				if got := s.Value(scores[i]); got != value || got > 1 {
					t.Fatalf("round %d: %v of I=%d Q=%d O=%d is %v, want %v", round, m, common, query, object, got, value)
				}
			}
			for i := range scores {
				for j := range scores {
					if got, w := scores[i].Compare(scores[j]), want[j].Cmp(want[i]); got != w {
						t.Fatalf("round %d: %v: %v and %v compare as %d, want %d", round, m, scores[i], scores[j], got, w)
					}
					if a, b := s.Value(scores[i]), s.Value(scores[j]); scores[i].Compare(scores[j]) < 0 && a < b {
						t.Fatalf("round %d: %v: a better score has the smaller value, %v and %v", round, m, a, b)
					}
				}
			}
		}
	}
}

// TestCommon compares with maps, for lists of every relation of lengths.
func TestCommon(t *testing.T) {
	rng := seeded.Rand(t)
	lengths := []int{0, 1, 2, 3, 10, 100, 2000}
	for round := range short(3000) {
		space := uint32(1 + rng.IntN(4000))
		q := randomTerms(rng, lengths[rng.IntN(len(lengths))], space)
		o := randomTerms(rng, lengths[rng.IntN(len(lengths))], space)
		var weights []uint32
		if rng.IntN(2) == 0 {
			for range q {
				weights = append(weights, 1+rng.Uint32N(255))
			}
		}
		var s Set
		total := uint64(len(q))*255 + 7
		if err := s.Reset(Jaccard, q, weights, total); err != nil {
			t.Fatal(err)
		}
		has := map[uint32]bool{}
		for _, term := range o {
			has[term] = true
		}
		want := uint64(0)
		for i, term := range q {
			if has[term] && weights == nil {
				want++
			} else if has[term] {
				want += uint64(weights[i])
			}
		}
		if got := s.Common(o); got != want {
			t.Fatalf("round %d: %v (%v) and %v have %d in common, want %d", round, q, weights, o, got, want)
		}
	}
}

func randomTerms(rng *rand.Rand, n int, space uint32) []uint32 {
	terms := make([]uint32, n)
	for i := range terms {
		terms[i] = rng.Uint32N(space)
		if rng.IntN(50) == 0 {
			terms[i] = math.MaxUint32 - terms[i]
		}
	}
	slices.Sort(terms)
	return slices.Compact(terms)
}

// TestSetCertificate: an index of some objects and columns is asked by count for K candidates, which are rescored. Where that is certified,
// the first k by (score, count, id) of all objects are the first k of the candidates. Objects that were not retrieved never
// exceed the bound.
func TestSetCertificate(t *testing.T) {
	rng := seeded.Rand(t)
	certified, equal, floats := map[Measure]int{}, map[Measure]int{}, 0
	for round := range short(40000) {
		m := measures[rng.IntN(len(measures))]
		words := 2 + rng.IntN(10)
		unit := 1 + rng.Uint32N(3)
		weights := make([]uint32, words)
		for i := range weights {
			weights[i] = 1
			if round%2 == 0 {
				weights[i] = 1 + rng.Uint32N(30)
			}
		}
		weigh := func(terms []uint32) (sum uint64) {
			for _, term := range terms {
				sum += uint64(weights[term])
			}
			return sum
		}
		query := randomSet(rng, words)
		var own []uint32
		for _, term := range query {
			own = append(own, weights[term])
		}
		unknown := uint64(rng.IntN(3)) * 7
		var s Set
		if err := s.Reset(m, query, own, weigh(query)+unknown); err != nil {
			t.Fatal(err)
		}
		type object struct {
			id, count uint32
			score     Score
			exact     *big.Rat
		}
		objects := make([]object, 2+rng.IntN(12))
		for id := range objects {
			terms := randomSet(rng, words)
			common, weight := s.Common(terms), weigh(terms)
			other := uint32(0)
			if rng.IntN(3) == 0 {
				other = rng.Uint32N(10) // of other columns
			}
			f := fraction(m, whole(common), whole(s.Total()), whole(weight))
			objects[id] = object{uint32(id), unit*uint32(common) + other, s.Score(common, weight), rounded(m, f)}
			if x := common; m == Cosine && x > 0 && float64(x)/math.Sqrt(float64(s.Total()*weight)) > math.Sqrt(float64(x)/float64(s.Total())) {
				floats++ // its own bound
			}
		}
		byCount := func(a, b object) int { return cmp.Or(-cmp.Compare(a.count, b.count), cmp.Compare(a.id, b.id)) }
		all := slices.Clone(objects)
		slices.SortFunc(all, func(a, b object) int { return cmp.Or(b.exact.Cmp(a.exact), byCount(a, b)) })
		slices.SortFunc(objects, byCount)
		most := 1 + rng.IntN(len(objects)-1) // K
		candidates, rest := slices.Clone(objects[:most]), objects[most:]
		x := s.Reach(candidates[most-1].count, unit)
		slices.SortFunc(candidates, func(a, b object) int { return cmp.Or(a.score.Compare(b.score), byCount(a, b)) })
		k := 1 + rng.IntN(most)
		for _, o := range rest {
			if x > 0 && s.Certified(o.score, x) {
				equal[m]++ // the bound is no larger than this score, which is not larger than the bound
			}
		}
		for _, o := range rest {
			bound := fraction(m, whole(x), whole(s.Total()), whole(max(x, 1)))
			switch m {
			case Dice:
				bound = rat(whole(2*x), whole(max(s.Total()+x, 1)))
			case Jaccard, Containment, Cosine:
				bound = rat(whole(x), whole(max(s.Total(), 1)))
			}
			if o.exact.Cmp(rounded(m, bound)) > 0 {
				t.Fatalf("round %d: %v: %v exceeds %v, which a count of %d proves", round, m, o.exact, bound, candidates[most-1].count)
			}
		}
		if !s.Certified(candidates[k-1].score, x) {
			continue
		}
		certified[m]++
		for i := range k {
			if all[i].id != candidates[i].id {
				t.Fatalf("round %d: %v, k %d, K %d: hit %d is %+v, and the certified one %+v", round, m, k, most, i, all[i], candidates[i])
			}
		}
	}
	t.Logf("certified: %v; so many objects score as much as the bound: %v; by floats %d would exceed their own", certified, equal, floats)
	for _, m := range measures {
		if certified[m] < short(400) || equal[m] == 0 {
			t.Errorf("%v: only %d certified, and %d score as much as the bound", m, certified[m], equal[m])
		}
	}
	if floats == 0 {
		t.Error("the test does not show that floats are not enough")
	}
}

func randomSet(rng *rand.Rand, words int) []uint32 {
	var terms []uint32
	mask := rng.Uint32()
	if rng.IntN(3) == 0 {
		mask &= rng.Uint32()
	}
	for i := range uint32(words) {
		if mask>>i&1 == 1 {
			terms = append(terms, i)
		}
	}
	return terms
}

func TestSetRefuses(t *testing.T) {
	var s Set
	for name, err := range map[string]error{
		"no measure":            s.Reset(0, nil, nil, 1),
		"another measure":       s.Reset(9, nil, nil, 1),
		"descending terms":      s.Reset(Dice, []uint32{2, 1}, nil, 2),
		"a term twice":          s.Reset(Dice, []uint32{1, 1}, nil, 2),
		"too few weights":       s.Reset(Dice, []uint32{1, 2}, []uint32{1}, 2),
		"less than its terms":   s.Reset(Dice, []uint32{1, 2}, []uint32{1, 2}, 2),
		"less than their count": s.Reset(Dice, []uint32{1, 2}, nil, 1),
		"too much":              s.Reset(Dice, nil, nil, MaxWeight+1),
	} {
		if err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	for _, m := range measures {
		if got, ok := ParseMeasure(m.String()); !ok || got != m {
			t.Errorf("%v is not found by its name", m)
		}
		if err := s.Reset(m, nil, nil, 0); err != nil {
			t.Errorf("an empty set: %v", err)
		}
		if v := s.Value(s.Score(0, 0)); v != 0 || !s.Certified(s.Score(0, 5), s.Reach(7, 1)) {
			t.Errorf("%v: an empty query scores %v, or is not certain of it", m, v)
		}
		if err := s.Reset(m, nil, nil, MaxWeight); err != nil {
			t.Error(err)
		}
		// What no index says.
		if v := s.Value(s.Score(math.MaxUint64, 3)); v != 1 {
			t.Errorf("%v: more in common than there is: %v", m, v)
		}
		if v := s.Value(s.Score(5, math.MaxUint64)); !(v >= 0 && v <= 1) {
			t.Errorf("%v: an object of all weight: %v", m, v)
		}
	}
	if _, ok := ParseMeasure("measure 7"); ok {
		t.Error("measure 7 is found")
	}
}

func TestSetDoesNotAllocate(t *testing.T) {
	rng := seeded.Rand(t)
	q, o, long := randomTerms(rng, 20, 1000), randomTerms(rng, 100, 1000), randomTerms(rng, 2000, 9000)
	var s Set
	if n := testing.AllocsPerRun(100, func() {
		s.Reset(Cosine, q, nil, 100)
		last := s.Score(s.Common(o), 300)
		if s.Score(s.Common(long), 1<<60).Compare(last) == 7 || s.Value(last) > 1 || s.Certified(last, 200) {
			t.Error("no")
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func BenchmarkCommon(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{10, 100, 10000} {
		b.Run(map[int]string{10: "10", 100: "100", 10000: "10000"}[n], func(b *testing.B) {
			q, o := randomTerms(rng, 10, 1<<16), randomTerms(rng, n, 1<<16)
			var s Set
			s.Reset(Jaccard, q, nil, 10)
			last := Score{}
			for b.Loop() {
				if score := s.Score(s.Common(o), uint64(n)); score.Compare(last) < 0 {
					last = score
				}
			}
		})
	}
}
