package metric

import (
	"math"
	"math/rand/v2"

	"github.com/geniemq/geniemq/index/metric/sums"
)

// all are all metrics.
func all() []Metric {
	m := ofVectors()
	return append(m, Metric{Kind: Edit}, Metric{Kind: Geo})
}

func ofVectors() []Metric {
	m := []Metric{{L1, 0}, {L2, 0}, {Linf, 0}, {Cosine, 0}, {Angular, 0}, {IP, 0}, {Hamming, 0}}
	for p := 3; p <= 8; p++ {
		m = append(m, Metric{Lp, p})
	}
	return m
}

// sum is the definition of section 2, in words of its own.
func sum(n int, term func(i int) float64) float64 {
	var s [8]float64
	for i := range n {
		s[i%8] = float64(s[i%8] + term(i))
	}
	a, b, c, d := float64(s[0]+s[1]), float64(s[2]+s[3]), float64(s[4]+s[5]), float64(s[6]+s[7])
	return float64(float64(a+b) + float64(c+d))
}

// defined is the value of two vectors, by the definition.
func defined(m Metric, q, o []float64) float64 {
	dot := func(a, b []float64) float64 { return sum(len(a), func(i int) float64 { return float64(a[i] * b[i]) }) }
	difference := func(i int) float64 { return math.Abs(q[i] - o[i]) }
	v := 0.0
	switch m.Kind {
	case L1:
		v = sum(len(q), difference)
	case L2, Geo:
		v = sum(len(q), func(i int) float64 { return float64(difference(i) * difference(i)) })
	case Lp:
		v = sum(len(q), func(i int) float64 {
			power := 1.0
			for range m.P {
				power = float64(power * difference(i))
			}
			return power
		})
	case Linf:
		for i := range q {
			v = math.Max(v, difference(i))
		}
	case Hamming:
		for i := range q {
			if q[i] != o[i] {
				v++
			}
		}
	case IP:
		v = -dot(q, o)
	case Cosine, Angular:
		norms := float64(math.Sqrt(dot(q, q)) * math.Sqrt(dot(o, o)))
		if norms == 0 {
			return 0
		}
		v = min(1, max(-1, -dot(q, o)/norms))
	}
	return v + 0
}

// world is vectors of elements that a storage can hold.
type world struct {
	name string
	dims int
	rows [][]float32
	make func(m Metric) (*Vectors, error)
}

func worldOf[E Element](name string, dims, n, each int, element func() E) *world {
	w := &world{name: name, dims: dims, rows: make([][]float32, n)}
	var parts [][]E
	for i := range w.rows {
		if i%each == 0 {
			parts = append(parts, nil)
		}
		row := make([]E, dims)
		for j := range row {
			row[j] = element()
		}
		wide := make([]float64, dims)
		widen(wide, row)
		w.rows[i] = make([]float32, dims)
		for j, e := range wide {
			w.rows[i][j] = float32(e)
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], row...)
	}
	w.make = func(m Metric) (*Vectors, error) { return NewVectors(m, dims, parts...) }
	return w
}

// worlds are vectors of every storage, friendly and not.
func worlds(rng *rand.Rand, dims, n, each int) []*world {
	half := func() sums.Half {
		for {
			if h := sums.Half(rng.Uint32()); h&0x7c00 != 0x7c00 {
				return h
			}
		}
	}
	base := float32(math.Ldexp(1+rng.Float64(), rng.IntN(100)-50))
	return []*world{
		worldOf("normal", dims, n, each, func() float32 { return float32(rng.NormFloat64()) }),
		worldOf("wild", dims, n, each, func() float32 { return float32(math.Ldexp(rng.NormFloat64(), rng.IntN(198)-100)) }),
		worldOf("denormal", dims, n, each, func() float32 {
			return math.Float32frombits(rng.Uint32()>>rng.IntN(32)&0x807fffff | rng.Uint32()&0x80000000)
		}),
		worldOf("near", dims, n, each, func() float32 { return math.Float32frombits(math.Float32bits(base) + rng.Uint32N(2)) }),
		worldOf("grid", dims, n, each, func() float32 { return float32(rng.IntN(3) - 1) }),
		worldOf("half", dims, n, each, half),
		worldOf("bytes", dims, n, each, func() uint8 { return uint8(rng.Uint32()) }),
		worldOf("bits", dims, n, each, func() uint8 { return uint8(rng.Uint32N(2)) }),
	}
}

func same(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }
