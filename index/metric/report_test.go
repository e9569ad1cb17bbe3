package metric

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index/metric/fenced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestRefused: what has no distance is refused with a reason.
func TestRefused(t *testing.T) {
	vectors := func(m Metric, elements int) (*Vectors, error) {
		return NewVectors(m, 2, make([]float32, elements))
	}
	for name, f := range map[string]func() error{
		"kind":          func() error { return Metric{Kind: "l7"}.Check() },
		"lp of 2":       func() error { return Metric{Lp, 2}.Check() },
		"lp of 9":       func() error { return Metric{Lp, 9}.Check() },
		"l2 with p":     func() error { return Metric{L2, 3}.Check() },
		"edit":          func() error { _, err := vectors(Metric{Kind: Edit}, 2); return err },
		"geo":           func() error { _, err := vectors(Metric{Kind: Geo}, 2); return err },
		"no metric":     func() error { _, err := vectors(Metric{}, 2); return err },
		"odd":           func() error { _, err := vectors(Metric{Kind: L2}, 3); return err },
		"no dimensions": func() error { _, err := NewVectors(Metric{Kind: L2}, 0, []uint8{}); return err },
		"parts":         func() error { _, err := NewVectors(Metric{Kind: L2}, 1, []uint8{1}, []uint8{1, 2}); return err },
		"parts in front": func() error {
			_, err := NewVectors(Metric{Kind: L2}, 1, []uint8{1, 2}, []uint8{1}, []uint8{1})
			return err
		},
		"points": func() error { _, err := NewPoints(make([]float64, 4)); return err },
	} {
		if f() == nil {
			t.Errorf("%s: no error", name)
		}
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		kind Kind
		v    []float32
		ok   bool
	}{
		{L2, []float32{1}, false}, {L2, []float32{1, 2, 3}, false}, {L2, []float32{1, nan}, false}, {L1, []float32{-inf, 0}, false}, {L2, []float32{0, 0}, true},
		{L2, []float32{math.MaxFloat32, 0}, true}, {Lp, []float32{0x1p100, -0x1p100}, true}, {Lp, []float32{0, 0x1.000002p100}, false}, {Lp, []float32{0, -0x1.000002p100}, false},
		{Cosine, []float32{0, 0}, false}, {Angular, []float32{0, float32(math.Copysign(0, -1))}, false}, {Cosine, []float32{0, 1e-45}, true}, {Hamming, []float32{0, 0}, true},
	} {
		m := Metric{Kind: c.kind}
		if c.kind == Lp {
			m.P = 8
		}
		s, err := vectors(m, 4)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Query(c.v); (err == nil) != c.ok {
			t.Errorf("%v of %v: %v", m, c.v, err)
		}
	}
	s, _ := vectors(Metric{Kind: Cosine}, 4)
	if _, err := s.UseNorms(make([]float64, 3)); err == nil {
		t.Error("3 norms are taken for 2 vectors")
	}
	if _, err := s.Permuted([]uint32{2}); err == nil {
		t.Error("an order beyond the vectors is taken")
	}
}

// TestDegenerate: the ends of what float32 holds have values that are numbers, never -0 and in their range.
func TestDegenerate(t *testing.T) {
	edges := []float32{0, float32(math.Copysign(0, -1)), 1e-45, -1e-45, 1e-30, 1e30, -1e30, 1, 1.0000001, math.MaxFloat32, -math.MaxFloat32, 0x1p100}
	damaged := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}
	for _, m := range ofVectors() {
		least, most := m.values()
		for _, objects := range [][]float32{edges, slices.Concat(edges, damaged)} {
			// Every pair of edges is a vector of 33 elements: the first, and then the second again and again.
			var flat []float32
			var rows [][]float32
			for _, a := range objects {
				for _, b := range objects {
					row := slices.Repeat([]float32{b}, 33)
					row[0] = a
					flat, rows = append(flat, row...), append(rows, row)
				}
			}
			s, err := NewVectors(m, 33, flat)
			if err != nil {
				t.Fatal(err)
			}
			values := make([]float64, len(rows))
			for i, row := range rows {
				a, err := s.Query(row)
				if err != nil {
					continue
				}
				a.Values(0, s.Len(), values)
				for j, v := range values {
					if m.Admits(rows[j]) != nil {
						if v != v {
							t.Fatalf("%v: %v and %v have the value NaN", m, row, rows[j])
						}
						continue
					}
					if !(v >= least && v <= most) || v == 0 && math.Signbit(v) {
						t.Fatalf("%v: %v and %v have the value %v", m, row, rows[j], v)
					}
					if i == j && (m.Kind == Cosine || m.Kind == Angular) && v > -1+1e-15 || i == j && least == 0 && v != 0 {
						t.Fatalf("%v: %v has the value %v to itself", m, row, v)
					}
				}
			}
		}
	}
}

// someValues are values of a metric, of all sizes and those around which reports turn.
func someValues(rng *rand.Rand, m Metric, n int) []float64 {
	least, most := m.values()
	v := []float64{least, most, 0, 0x1p-1074}
	switch {
	case m.Kind == IP:
		v = append(v, -1, 1, -0x1p-1074, math.Nextafter(least, 0), math.Nextafter(most, 0))
	case least < 0:
		v = append(v, -0x1p-1074, -0.5, 0.5, math.Nextafter(-1, 0), math.Nextafter(1, 0), -0x1p-60, 0x1p-60)
	default:
		v = append(v, 1, 2, 4, 3, 8, 0x1p-1022)
	}
	for range n {
		x := math.Ldexp(rng.Float64(), -rng.IntN(100))
		switch {
		case m.Kind == IP:
			v = append(v, x, -x, math.Ldexp(x, rng.IntN(1000)), -math.Ldexp(x, rng.IntN(1000)))
		case least < 0 && rng.IntN(2) == 0:
			v = append(v, -1+x)
		case least < 0:
			v = append(v, x, -x, 1-x)
		default:
			v = append(v, 4*x, math.Float64frombits(rng.Uint64N(math.Float64bits(most))), float64(rng.IntN(100)))
		}
	}
	return v
}

// TestReport: reports rise with values, from one number to the next and over any distance, within the range that users expect.
func TestReport(t *testing.T) {
	rng := seeded.Rand(t)
	for _, m := range all() {
		values := someValues(rng, m, 300)
		least, most := m.values()
		for _, v := range values {
			for range 10 {
				next := math.Nextafter(v, math.Inf(1))
				if next > most {
					break
				}
				if a, b := m.Report(v), m.Report(next); !(a <= b) {
					t.Fatalf("%v: %v is reported as %v, and the next as %v", m, v, a, b)
				}
				if a, b := m.Distance(v), m.Distance(next); !(a <= b) {
					t.Fatalf("%v: %v is at the distance %v, and the next at %v", m, v, a, b)
				}
				v = next
			}
		}
		slices.Sort(values)
		for i, v := range values[1:] {
			if a, b := m.Report(values[i]), m.Report(v); !(a <= b) {
				t.Fatalf("%v: %v is reported as %v, and %v as %v", m, values[i], a, v, b)
			}
		}
		if r := m.Report(least); r != m.Least() || m.Kind != IP && (r != 0 || math.Signbit(r)) {
			t.Errorf("%v: the least value is reported as %v", m, r)
		}
		want := map[Kind]float64{Cosine: 2, Angular: 180, Geo: EarthRadius * math.Pi}[m.Kind]
		if r := m.Report(most); want != 0 && r != want {
			t.Errorf("%v: the largest value is reported as %v, not %v", m, r, want)
		}
	}
}

// TestWithin: a value is at most Within(radius) exactly when its report is at most the radius.
func TestWithin(t *testing.T) {
	rng := seeded.Rand(t)
	for _, m := range all() {
		values := someValues(rng, m, 100)
		least, most := m.values()
		for range 300 {
			v := values[rng.IntN(len(values))]
			radius := m.Report(v)
			limit := m.Within(radius)
			if !(limit >= v) {
				t.Fatalf("%v: %v is reported as %v, within which is %v at most", m, v, radius, limit)
			}
			if rng.IntN(2) == 0 { // any other radius
				radius = math.Nextafter(radius*(1+float64(rng.IntN(3)-1)*rng.Float64()*1e-3), float64(rng.IntN(3)-1))
				limit = m.Within(radius)
			}
			next := math.Nextafter(limit, math.Inf(1))
			if limit == 0 {
				next = 0x1p-1074
			}
			switch {
			case math.IsInf(limit, -1):
				if !(m.Report(least) > radius) {
					t.Fatalf("%v: nothing is within %v, and %v is reported as %v", m, radius, least, m.Report(least))
				}
			case !(m.Report(limit) <= radius) || limit < most && !(m.Report(next) > radius):
				t.Fatalf("%v: %v is the largest within %v, reported as %v, and the next as %v", m, limit, radius, m.Report(limit), m.Report(next))
			}
		}
		below := math.Inf(-1)
		if m.Kind == IP {
			below = -1
		}
		for radius, want := range map[float64]float64{-1: below, math.Inf(1): math.Inf(1)} {
			if got := m.Within(radius); got != want {
				t.Errorf("%v: %v is within %v, want %v", m, got, radius, want)
			}
		}
		if got := m.Within(math.NaN()); got != math.Inf(-1) {
			t.Errorf("%v: %v is within NaN", m, got)
		}
	}
	if fenced.Asin(1) != math.Pi/2 {
		t.Error("half of the earth's circumference is not that of the report")
	}
}

// TestSlack: what rounding does to the triangle inequality stays within Slack, where nothing else is between three points.
func TestSlack(t *testing.T) {
	rng := seeded.Rand(t)
	broken := map[Kind]int{}
	for range 400 {
		dims := []int{1, 2, 3, 8, 9, 40, 300}[rng.IntN(7)]
		scale := math.Ldexp(1, rng.IntN(60)-30)
		a, b := make([]float32, dims), make([]float32, dims)
		for i := range a {
			a[i] = float32(rng.NormFloat64() * scale * math.Ldexp(1, -rng.IntN(1+rng.IntN(60))))
			b[i] = a[i] + float32(rng.NormFloat64()*scale*math.Ldexp(1, -rng.IntN(30)))
		}
		// Three points on a line, nearly.
		c, share := make([]float32, dims), rng.Float32()
		for i := range c {
			c[i] = a[i] + (b[i]-a[i])*share
		}
		for _, m := range ofVectors() {
			if m.Kind == IP { // which obeys no triangle inequality
				continue
			}
			s, err := NewVectors(m, dims, slices.Concat(a, b, c))
			if err != nil {
				t.Fatal(err)
			}
			d := func(i, j uint32) float64 { return m.Distance(s.Of(i).Value(j)) }
			for q := range uint32(3) {
				p, o := (q+1)%3, (q+2)%3
				bound := math.Abs(d(q, p) - d(o, p))
				if bound > d(q, o) {
					broken[m.Kind]++
				}
				if slack := m.Slack(dims, d(q, p), d(o, p)); bound > d(q, o)+slack {
					t.Fatalf("%v, %d dimensions: |%v - %v| is more than %v, the slack is %v", m, dims, d(q, p), d(o, p), d(q, o), slack)
				}
			}
		}
	}
	for _, kind := range []Kind{L1, L2, Linf, Lp, Cosine} {
		if broken[kind] == 0 {
			t.Errorf("%s: no triangle needed the slack: the test shows nothing", kind)
		}
	}
}
