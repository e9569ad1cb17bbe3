package similarity

import (
	"encoding/binary"
	"math"
	"math/big"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

const digits = 700 // bits of what is computed here

func float() *big.Float { return new(big.Float).SetPrec(digits) }

// bigExp is e^x by the series of x/2^k, squared k times: another way than that of generate.go.
func bigExp(x *big.Float) *big.Float {
	k := max(0, x.MantExp(nil)+8)
	small := float().SetMantExp(x, -k)
	sum, term := float().SetInt64(1), float().SetInt64(1)
	for n := int64(1); term.Sign() != 0 && term.MantExp(nil) > -digits; n++ {
		term.Mul(term, small)
		term.Quo(term, float().SetInt64(n))
		sum.Add(sum, term)
	}
	for range k {
		sum.Mul(sum, sum)
	}
	return sum
}

func threshold(scale, j int) *big.Int {
	at := thresholds[((scale-1)*MaxIDF+j-1)*thresholdBytes:][:thresholdBytes]
	return wide{uint64(binary.LittleEndian.Uint32([]byte(at[8:]))), binary.LittleEndian.Uint64([]byte(at))}.big()
}

// TestThresholds: the table is what its definition says, for every scale and weight.
func TestThresholds(t *testing.T) {
	if len(thresholds) != MaxScale*MaxIDF*thresholdBytes {
		t.Fatalf("the table has %d bytes", len(thresholds))
	}
	most := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 96), big.NewInt(1))
	for scale := 1; scale <= MaxScale; scale++ {
		for j := 1; j <= MaxIDF; j++ {
			if testing.Short() && scale != 1 && scale != 16 && (scale+j)%7 > 0 {
				continue
			}
			x := float().Quo(float().SetInt64(int64(2*j-1)), float().SetInt64(int64(2*scale)))
			e := bigExp(x)
			want, _ := float().SetMantExp(e, 32).Int(nil)
			want.Add(want, big.NewInt(1)) // it is never whole
			if want.Cmp(most) > 0 {
				want = most
			}
			if got := threshold(scale, j); got.Cmp(want) != 0 {
				t.Fatalf("T(%d,%d) is %v, want %v", scale, j, got, want)
			}
		}
	}
}

// definedWeight counts thresholds, as the definition has it.
func definedWeight(scale int, objects, df uint64) uint32 {
	left := new(big.Int).Lsh(whole(objects), 1)
	left.Add(left, big.NewInt(2)).Lsh(left, 32)
	d := new(big.Int).Lsh(whole(df), 1)
	d.Add(d, big.NewInt(1))
	w := uint32(0)
	for j := 1; j <= MaxIDF; j++ {
		if left.Cmp(new(big.Int).Mul(threshold(scale, j), d)) >= 0 {
			w++
		}
	}
	return max(1, w)
}

// TestIDF compares with the definition for sizes of every order, at frequencies of every order and on both sides of where a weight changes.
func TestIDF(t *testing.T) {
	rng := seeded.Rand(t)
	seen := map[uint32]bool{}
	for round := range short(1500) {
		scale := []int{1, 16, MaxScale, 1 + rng.IntN(MaxScale)}[rng.IntN(4)]
		objects := rng.Uint64N(MaxObjects) >> rng.IntN(62)
		if round < 4 {
			objects = []uint64{0, 1, MaxObjects, 1 << 32}[round]
		}
		idf, err := NewIDF(scale, objects)
		if err != nil {
			t.Fatal(err)
		}
		check := func(df uint64) uint32 {
			got := idf.Weight(df)
			if want := definedWeight(scale, objects, df); got != want {
				t.Fatalf("round %d: scale %d, %d of %d objects: %d, want %d", round, scale, df, objects, got, want)
			}
			seen[got] = true
			return got
		}
		check(0)
		check(objects)
		df := rng.Uint64N(objects+1) >> rng.IntN(64)
		check(df)
		// The last frequency that has at least this weight, and the next.
		lo, hi := df, objects+1
		for w := idf.Weight(df); hi-lo > 1; {
			if mid := lo + (hi-lo)/2; idf.Weight(mid) >= w {
				lo = mid
			} else {
				hi = mid
			}
		}
		check(lo)
		check(lo + 1)
	}
	if !seen[1] || !seen[MaxIDF] {
		t.Error("neither the smallest nor the largest weight was met")
	}
	idf, _ := NewIDF(16, 100)
	for _, df := range []uint64{101, 1 << 33, 1<<63 - 1, 1 << 63, math.MaxUint64} {
		if w := idf.Weight(df); w != 1 {
			t.Errorf("a word that %d of 100 objects have weighs %d", df, w)
		}
	}
	for _, scale := range []int{-1, 0, MaxScale + 1} {
		if _, err := NewIDF(scale, 1); err == nil {
			t.Errorf("scale %d is taken", scale)
		}
	}
	if _, err := NewIDF(1, MaxObjects+1); err == nil {
		t.Error("more than 2^62 objects are taken")
	}
}

// TestIDFIsALogarithm: weights are s ln((2N+2)/(2df+1)) rounded, to what 32 bits behind the point can say.
func TestIDFIsALogarithm(t *testing.T) {
	rng := seeded.Rand(t)
	for range short(200000) {
		scale := 1 + rng.IntN(MaxScale)
		objects := 1 + rng.Uint64N(1<<40)>>rng.IntN(40)
		df := rng.Uint64N(objects+1) >> rng.IntN(40)
		idf, err := NewIDF(scale, objects)
		if err != nil {
			t.Fatal(err)
		}
		x := float64(scale) * math.Log(float64(2*objects+2)/float64(2*df+1))
		x = min(max(x, 1), MaxIDF)
		if w := float64(idf.Weight(df)); math.Abs(w-x) > 0.5+1e-7 {
			t.Fatalf("scale %d, %d of %d objects: %v, and the logarithm is %v", scale, df, objects, w, x)
		}
	}
}

func BenchmarkIDF(b *testing.B) {
	idf, _ := NewIDF(16, 10_000_000)
	b.ReportAllocs()
	df := uint64(0)
	for b.Loop() {
		idf.Weight(df)
		df = (df*7 + 1) % 10_000_000
	}
}
