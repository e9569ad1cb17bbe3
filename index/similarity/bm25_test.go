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

// bigLn is the natural logarithm: Newton's steps with bigExp, from what math says.
func bigLn(x float64) *big.Float {
	y := float().SetFloat64(math.Log(x))
	for range 5 {
		// y += 2 (x - e^y) / (x + e^y)
		e, v := bigExp(y), float().SetFloat64(x)
		step := float().Quo(float().Sub(v, e), float().Add(v, e))
		y.Add(y, step.Mul(step, float().SetInt64(2)))
	}
	return y
}

// TestLn: within one unit in the last place, and exactly 0 for 1.
func TestLn(t *testing.T) {
	rng := seeded.Rand(t)
	worst := 0.0
	for range short(1000) {
		x := math.Exp(rng.Float64() * 45)
		if rng.IntN(3) == 0 {
			x = 1 + rng.Float64()*math.Pow(2, -float64(rng.IntN(50)))
		}
		got := Ln(x)
		want := bigLn(x)
		near, _ := want.Float64()
		ulp := math.Nextafter(near, math.Inf(1)) - near
		off, _ := float().Sub(float().SetFloat64(got), want).Float64()
		worst = max(worst, math.Abs(off)/ulp)
	}
	t.Logf("at most %.3f units", worst)
	if worst > 1 {
		t.Errorf("%v units in the last place", worst)
	}
	if Ln(1) != 0 || Ln(2) != math.Ln2 {
		t.Errorf("Ln(1) is %v, Ln(2) %v", Ln(1), Ln(2))
	}
}

// corpus is some objects, as lists of terms with their frequencies.
type corpus struct {
	terms, times [][]uint32
	lengths      []uint64
	df           []uint32
	all          Collection
}

func randomCorpus(rng *rand.Rand, objects, words int) *corpus {
	c := &corpus{df: make([]uint32, words), all: Collection{Objects: uint64(objects)}}
	for range objects {
		terms := randomSet(rng, words)
		times := make([]uint32, len(terms))
		length := uint64(0)
		for i, term := range terms {
			times[i] = 1 + rng.Uint32N(1+rng.Uint32N(9))
			if rng.IntN(200) == 0 {
				times[i] = math.MaxUint32
			}
			length += uint64(times[i])
			c.df[term]++
		}
		if rng.IntN(4) == 0 {
			length = uint64(rng.IntN(1000)) // stop words are no terms
		}
		c.terms, c.times, c.lengths = append(c.terms, terms), append(c.times, times), append(c.lengths, length)
		c.all.Words += length
	}
	return c
}

// formula is BM25 as papers have it, in float64s and in the order of terms.
func (c *corpus) formula(query []uint32, object int) float64 {
	n := float64(c.all.Objects)
	mean := float64(c.all.Words) / n
	sum := 0.0
	for _, term := range query {
		i, ok := slices.BinarySearch(c.terms[object], term)
		if !ok {
			continue
		}
		tf, df := float64(c.times[object][i]), float64(c.df[term])
		idf := math.Log(1 + (n-df+0.5)/(df+0.5))
		sum += idf * tf * (K1 + 1) / (tf + K1*(1-B+B*float64(c.lengths[object])/mean))
	}
	return sum
}

// TestBM25 compares with the formula, and certificates with all objects: what was not retrieved never exceeds the bound.
func TestBM25(t *testing.T) {
	rng := seeded.Rand(t)
	var b BM25
	certified, near := 0, 0.0
	for round := range short(20000) {
		c := randomCorpus(rng, 2+rng.IntN(14), 1+rng.IntN(12))
		query := randomSet(rng, len(c.df))
		unit := 1 + rng.Uint32N(3)
		scale := []int{1, 16}[rng.IntN(2)]
		idf, err := NewIDF(scale, c.all.Objects)
		if err != nil {
			t.Fatal(err)
		}
		var df, weights []uint32
		for _, term := range query {
			df = append(df, c.df[term])
			weights = append(weights, idf.Weight(uint64(c.df[term])))
		}
		if err := b.Reset(query, df, c.all); err != nil {
			t.Fatal(err)
		}
		plain := rng.IntN(3) == 0
		if plain {
			weights = nil
		}
		type object struct {
			id, count uint32
			score     float64
		}
		var objects []object
		for i := range c.terms {
			score := b.Score(c.terms[i], c.times[i], c.lengths[i])
			if want := c.formula(query, i); math.Abs(score-want) > 1e-12*want {
				t.Fatalf("round %d: %v, want %v", round, score, want)
			}
			var s Set
			if err := s.Reset(Jaccard, query, weights, MaxWeight); err != nil {
				t.Fatal(err)
			}
			objects = append(objects, object{uint32(i), unit * uint32(s.Common(c.terms[i])), score})
		}
		for _, o := range objects {
			bound := b.Bound(o.count+rng.Uint32N(unit), unit, weights)
			if o.score > bound {
				t.Fatalf("round %d: an object scores %v, and its count %d proves %v", round, o.score, o.count, bound)
			}
			if bound > 0 {
				near = max(near, o.score/bound)
			}
		}
		byCount := func(a, b object) int { return cmp.Or(-cmp.Compare(a.count, b.count), cmp.Compare(a.id, b.id)) }
		byScore := func(a, b object) int { return cmp.Or(-cmp.Compare(a.score, b.score), byCount(a, b)) }
		slices.SortFunc(objects, byCount)
		most := 1 + rng.IntN(len(objects)-1)
		candidates, all := slices.Clone(objects[:most]), slices.Clone(objects)
		slices.SortFunc(candidates, byScore)
		slices.SortFunc(all, byScore)
		k := 1 + rng.IntN(most)
		if candidates[k-1].score < b.Bound(objects[most-1].count, unit, weights) {
			continue
		}
		certified++
		if !slices.Equal(all[:k], candidates[:k]) {
			t.Fatalf("round %d: %v are certified, and %v are right", round, candidates[:k], all[:k])
		}
	}
	t.Logf("%d certified; the nearest score to a bound is %.12f of it", certified, near)
	if certified < short(1000) || near < 0.999 {
		t.Error("the test shows too little")
	}
}

// TestBM25Orders: terms are added as they ascend, whatever way the lists are met in.
func TestBM25Orders(t *testing.T) {
	rng := seeded.Rand(t)
	for range short(500) {
		query := randomTerms(rng, 1+rng.IntN(20), 5000)
		object := randomTerms(rng, 1+rng.IntN(4000), 5000)
		df, times := make([]uint32, len(query)), make([]uint32, len(object))
		for i := range df {
			df[i] = rng.Uint32N(1000)
		}
		for i := range times {
			times[i] = 1 + rng.Uint32N(5)
		}
		var b BM25
		if err := b.Reset(query, df, Collection{Objects: 1000, Words: 70000}); err != nil {
			t.Fatal(err)
		}
		length, mean := 123.0, 70.0 // variables: constants are not rounded on the way
		norm := float64(K1 * float64((1-B)+float64(B*float64(length/mean))))
		want := 0.0
		for i, term := range query {
			if j, ok := slices.BinarySearch(object, term); ok {
				tf := float64(times[j])
				want += float64(float64(b.gain[i]*tf) / float64(tf+norm))
			}
		}
		if got := b.Score(object, times, 123); got != want {
			t.Fatalf("%v, want %v", got, want)
		}
	}
}

func TestBM25Edges(t *testing.T) {
	var b BM25
	for name, err := range map[string]error{
		"terms without frequencies": b.Reset([]uint32{1}, nil, Collection{}),
		"descending terms":          b.Reset([]uint32{2, 1}, []uint32{1, 1}, Collection{Objects: 3}),
		"too many objects":          b.Reset(nil, nil, Collection{Objects: MaxObjects + 1}),
	} {
		if err == nil {
			t.Errorf("%s are taken", name)
		}
	}
	// An index without words, without objects, and frequencies that cannot be.
	for _, all := range []Collection{{}, {Objects: 5}, {Words: 5}, {Objects: MaxObjects, Words: math.MaxUint64}} {
		if err := b.Reset([]uint32{1, 2}, []uint32{0, math.MaxUint32}, all); err != nil {
			t.Fatal(err)
		}
		if s := b.Score([]uint32{1, 2}, []uint32{1, math.MaxUint32}, math.MaxUint64); math.IsNaN(s) || s < 0 || math.IsInf(s, 0) {
			t.Errorf("%+v: %v", all, s)
		}
		if bound := b.Bound(math.MaxUint32, 0, []uint32{0, 0}); math.IsNaN(bound) || math.IsInf(bound, 0) {
			t.Errorf("%+v: a bound of %v", all, bound)
		}
	}
}

func BenchmarkBM25(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	query, object := randomTerms(rng, 10, 500), randomTerms(rng, 100, 500)
	df, times := make([]uint32, len(query)), make([]uint32, len(object))
	var s BM25
	s.Reset(query, df, Collection{Objects: 1000, Words: 70000})
	b.ReportAllocs()
	for b.Loop() {
		s.Score(object, times, 100)
	}
}
