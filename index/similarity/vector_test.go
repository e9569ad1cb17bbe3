package similarity

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index/metric/sums"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

var metrics = []Metric{L2, L1, IP, Angular}

// defined is a sum of terms in the one order, as the definition says it.
func defined(n int, term func(i int) float64) float64 {
	var s [8]float64
	for i := range n {
		s[i%8] = float64(s[i%8] + term(i))
	}
	a, b, c, d := float64(s[0]+s[1]), float64(s[2]+s[3]), float64(s[4]+s[5]), float64(s[6]+s[7])
	ab, cd := float64(a+b), float64(c+d)
	return float64(ab + cd)
}

func definedKey[E Element](m Metric, q, o []E) float64 {
	switch m {
	case L2:
		return defined(len(q), func(i int) float64 { d := float64(q[i]) - float64(o[i]); return float64(d * d) })
	case L1:
		return defined(len(q), func(i int) float64 { return math.Abs(float64(q[i]) - float64(o[i])) })
	}
	dot := defined(len(q), func(i int) float64 { return float64(float64(q[i]) * float64(o[i])) })
	if m == IP {
		return 0 - dot
	}
	qq := defined(len(q), func(i int) float64 { return float64(float64(q[i]) * float64(q[i])) })
	oo := defined(len(q), func(i int) float64 { return float64(float64(o[i]) * float64(o[i])) })
	if qq == 0 || oo == 0 {
		return 0
	}
	return 0 - float64(float64(dot*math.Abs(dot))/float64(qq*oo))
}

// truth is a distance in many more bits.
func truth[E Element](m Metric, q, o []E) float64 {
	sum, qq, oo := float(), float(), float()
	for i := range q {
		a, b := float().SetFloat64(float64(q[i])), float().SetFloat64(float64(o[i]))
		qq.Add(qq, float().Mul(a, a))
		oo.Add(oo, float().Mul(b, b))
		term := float().Sub(a, b)
		switch m {
		case L2:
			term.Mul(term, term)
		case L1:
			term.Abs(term)
		default:
			term.Mul(a, b)
		}
		sum.Add(sum, term)
	}
	if m == L2 {
		sum.Sqrt(sum)
	}
	v, _ := sum.Float64()
	if m == Angular {
		if sum.Sign() == 0 {
			return math.Pi / 2
		}
		c, _ := float().Quo(sum, float().Sqrt(qq.Mul(qq, oo))).Float64()
		return math.Acos(c)
	}
	return v
}

func testVectors[E Element](t *testing.T, rng *rand.Rand, element func() E) {
	for round := range short(1500) {
		n := rng.IntN(40)
		if rng.IntN(10) == 0 {
			n = rng.IntN(1000)
		}
		q, o := make([]E, n), make([]E, n)
		for i := range q {
			q[i], o[i] = element(), element()
			if rng.IntN(2) == 0 {
				o[i] = q[i]
			}
		}
		for _, m := range metrics {
			var v Vector
			v.Reset(m, Widen(nil, q))
			key := Key(&v, o)
			if want := definedKey(m, q, o); key != want || math.Signbit(key) != math.Signbit(want) {
				t.Fatalf("round %d: %v of %v and %v has the key %v, want %v", round, m, q, o, key, want)
			}
			compared(t, &v, o, key)
			got, want := m.Report(key), truth(m, q, o)
			// Angles near 0 and pi are no more precise than the square of a cosine.
			slack := map[Metric]float64{L2: 1e-12 * want, L1: 1e-12 * want, IP: 1e-12 * big2(q, o), Angular: 1e-7}[m]
			if m == Angular && want > 0.1 && want < 3 {
				slack = 1e-13
			}
			if !(math.Abs(got-want) <= slack) {
				t.Fatalf("round %d: %v of %v and %v is %v, want %v", round, m, q, o, got, want)
			}
		}
	}
}

// compared holds what every kind of machine finds, of two vectors beside each other, against their keys.
func compared[E Element](t *testing.T, v *Vector, o []E, key float64) {
	n := len(o)
	if n == 0 {
		return
	}
	kernels := sums.All()
	for i := range kernels {
		c := newComparer(&kernels[i])
		rows, got, want := make([]float32, 2*n), make([]float64, 2), [2]float64{key, key}
		switch o := any(o).(type) {
		case []float32:
			copy(rows, o)
			halves := make([]sums.Half, n)
			for i, e := range o {
				halves[i], _ = sums.ToHalf(float32(math.Remainder(float64(e), 60_000)))
			}
			c.Halves(rows[n:], halves)
			want[1] = Key(v, rows[n:])
		case []uint8:
			c.Bytes(rows[:n], o)
			c.Bytes(rows[n:], o)
		}
		c.Keys(got, v, rows)
		if math.Float64bits(got[0]) != math.Float64bits(want[0]) || math.Float64bits(got[1]) != math.Float64bits(want[1]) {
			t.Fatalf("%s: %v of %v and %v has the keys %v, want %v", kernels[i].Name, v.metric, v.query, rows, got, want)
		}
	}
}

// big2 is what an inner product would be if nothing was taken away.
func big2[E Element](q, o []E) (sum float64) {
	for i := range q {
		sum += math.Abs(float64(q[i]) * float64(o[i]))
	}
	return sum
}

// TestVectors: keys are those of the definition to the bit, and what is reported is right, for every length around the eights.
func TestVectors(t *testing.T) {
	rng := seeded.Rand(t)
	t.Run("float32", func(t *testing.T) { testVectors(t, rng, func() float32 { return float32(rng.NormFloat64()) }) })
	t.Run("wild", func(t *testing.T) {
		testVectors(t, rng, func() float32 { return float32(math.Ldexp(rng.NormFloat64(), rng.IntN(60)-30)) })
	})
	t.Run("uint8", func(t *testing.T) { testVectors(t, rng, func() uint8 { return uint8(rng.Uint32()) }) })
}

// TestVectorEdges: the largest and smallest elements neither overflow nor vanish, a vector is at no angle to itself, and one that is 0 at
// a right one.
func TestVectorEdges(t *testing.T) {
	vector := func(n int, e float32) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = e
		}
		return v
	}
	for _, e := range []float32{math.MaxFloat32, math.SmallestNonzeroFloat32, 1} {
		a, b := vector(1<<16, e), vector(1<<16, -e)
		for _, m := range metrics {
			var v Vector
			v.Reset(m, Widen(nil, a))
			far, near := Key(&v, b), Key(&v, a)
			if math.IsInf(far, 0) || math.IsNaN(far) || !(far > near) {
				t.Errorf("%v of %v: %v to itself, %v to its negative", m, e, near, far)
			}
			if d := m.Report(near); m == Angular && d != 0 || m == Angular && m.Report(far) != math.Pi {
				t.Errorf("%v: angles %v and %v", e, d, m.Report(far))
			}
		}
	}
	var v Vector
	v.Reset(Angular, Widen(nil, vector(3, 0)))
	if key := Key(&v, vector(3, 1)); key != 0 || Angular.Report(key) != math.Pi/2 {
		t.Errorf("a query of 0 has the key %v", key)
	}
	v.Reset(Angular, Widen(nil, vector(3, 1)))
	if key := Key(&v, vector(3, 0)); key != 0 {
		t.Errorf("an object of 0 has the key %v", key)
	}
	v.Reset(IP, Widen(nil, []float32{1, 0}))
	if key := Key(&v, []float32{0, 1}); math.Signbit(key) || math.Signbit(IP.Report(key)) {
		t.Error("a right angle has the inner product -0")
	}
	if i := NotFinite([]float32{0, math.MaxFloat32, float32(math.Inf(-1))}); i != 2 {
		t.Errorf("the infinite element is %d", i)
	}
	if i := NotFinite([]float32{float32(math.NaN())}); i != 0 {
		t.Errorf("the NaN is %d", i)
	}
	if i := NotFinite([]float32{0, -1, math.MaxFloat32}); i != -1 {
		t.Errorf("element %d is not finite", i)
	}
	for _, m := range metrics {
		if got, ok := ParseMetric(m.String()); !ok || got != m || m.Similarity() != (m == IP) {
			t.Errorf("%v is not found by its name", m)
		}
	}
	if _, ok := ParseMetric("metric 0"); ok {
		t.Error("metric 0 is found")
	}
}

// TestAngle: the arc is right wherever the key is, beyond 1 too, where rounding can bring it.
func TestAngle(t *testing.T) {
	rng := seeded.Rand(t)
	for range short(100000) {
		c := 2*rng.Float64() - 1
		want := math.Acos(c)
		if got := Angular.Report(-c * math.Abs(c)); math.Abs(got-want) > 1e-15+1e-15/math.Sqrt(1-c*c) {
			t.Fatalf("the arc of %v is %v, want %v", c, got, want)
		}
	}
	if Angular.Report(-1.0000001) != 0 || Angular.Report(1.0000001) != math.Pi {
		t.Errorf("beyond 1: %v and %v", Angular.Report(-1.0000001), Angular.Report(1.0000001))
	}
}

// TestSameEverywhere pins what must be the same bytes on every machine and under every setting of the compiler, such as GOAMD64=v3 and arm64,
// where it fuses.
func TestSameEverywhere(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	h := fnv.New64a()
	add := func(v float64) {
		for b := math.Float64bits(v); b > 0; b >>= 8 {
			h.Write([]byte{byte(b)})
		}
	}
	for range 2000 {
		x := float64(1+rng.IntN(1<<40)) / float64(1+rng.IntN(1<<20))
		add(Ln(x))
		add(angle(2*float64(rng.IntN(1<<30))/(1<<30) - 1))
		q, o := make([]float32, 37), make([]float32, 37)
		for i := range q {
			q[i] = float32(math.Ldexp(float64(rng.IntN(1<<24)), -rng.IntN(40)))
			o[i] = float32(math.Ldexp(float64(rng.IntN(1<<24)), -rng.IntN(40)))
		}
		for _, m := range metrics {
			var v Vector
			v.Reset(m, Widen(nil, q))
			add(m.Report(Key(&v, o)))
		}
		var b BM25
		query, object := []uint32{1, 2, 3, 5, 8}, []uint32{1, 3, 4, 8}
		times, df := make([]uint32, 4), make([]uint32, 5)
		for i := range df {
			df[i] = rng.Uint32N(900)
		}
		for i := range times {
			times[i] = 1 + rng.Uint32N(9)
		}
		if err := b.Reset(query, df, Collection{Objects: 1000, Words: 77777}); err != nil {
			t.Fatal(err)
		}
		add(b.Score(object, times, rng.Uint64N(500)))
		add(b.Bound(rng.Uint32N(500), 3, nil))
		n, d := rng.Uint64(), rng.Uint64()|1
		add(Ratio(n, d))
	}
	if got, want := h.Sum64(), uint64(0x70407c1659cb3ab0); got != want {
		t.Errorf("the sum of all is %#x, want %#x", got, want)
	}
}

// TestNeverFused: in the code for arm64, whose compiler fuses wherever Go lets it, no product is added without being rounded.
func TestNeverFused(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles for another architecture")
	}
	// The test binary, because functions for elements of one type or another are compiled where they are used.
	build := exec.Command("go", "test", "-c", "-gcflags=-S", "-o", filepath.Join(t.TempDir(), "arm64.test"), ".")
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0", "GOFLAGS=")
	code, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", build, err, code)
	}
	for _, file := range []string{"sums.go", "bm25.go", "angle.go"} {
		if !regexp.MustCompile(file + `:\d+\)\s+FMULD\s`).Match(code) {
			t.Fatalf("no product of %s is found in the code", file)
		}
	}
	fused := regexp.MustCompile(`\sFN?M(ADD|SUB)[DS]\s`)
	for line := range strings.Lines(string(code)) {
		if fused.MatchString(line) && !strings.Contains(line, "_test.go") {
			t.Errorf("fused: %s", line)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	q, o, bytes := make([]float64, 100), make([]float32, 100), make([]uint8, 100)
	var b BM25
	terms, times := []uint32{1, 2, 3}, []uint32{1, 1, 1}
	if err := b.Reset(terms, times, Collection{Objects: 10, Words: 30}); err != nil {
		t.Fatal(err)
	}
	idf, err := NewIDF(16, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var vectors []Vector
	for _, m := range metrics {
		var v Vector
		v.Reset(m, q)
		vectors = append(vectors, v)
	}
	c, rows, keys := NewComparer(), make([]float32, 200), make([]float64, 2)
	c.Keys(keys, &vectors[len(vectors)-1], rows)
	if n := testing.AllocsPerRun(50, func() {
		for i, m := range metrics {
			v := &vectors[i]
			m.Report(Key(v, o))
			m.Report(Key(v, bytes))
			c.Bytes(rows[100:], bytes)
			c.Keys(keys, v, rows)
		}
		b.Reset(terms, times, Collection{Objects: 10, Words: 30})
		b.Score(terms, times, 3)
		idf.Weight(5)
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func BenchmarkKey(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	q, o, bytes := make([]float64, 128), make([]float32, 128), make([]uint8, 128)
	for i := range q {
		q[i], o[i], bytes[i] = rng.Float64(), rng.Float32(), uint8(rng.Uint32())
	}
	for _, m := range metrics {
		var v Vector
		v.Reset(m, q)
		b.Run(m.String()+"/float32", func(b *testing.B) {
			for b.Loop() {
				Key(&v, o)
			}
		})
		b.Run(m.String()+"/uint8", func(b *testing.B) {
			for b.Loop() {
				Key(&v, bytes)
			}
		})
		c, rows, keys := NewComparer(), make([]float32, 16*len(q)), make([]float64, 16)
		for i := range rows {
			rows[i] = rng.Float32()
		}
		b.Run(m.String()+"/16", func(b *testing.B) {
			for b.Loop() {
				c.Keys(keys, &v, rows)
			}
		})
	}
}
