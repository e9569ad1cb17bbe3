package metric

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/naive"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestPoints: values are those of unit vectors, and reports are the distances on the sphere.
func TestPoints(t *testing.T) {
	rng := seeded.Rand(t)
	places := [][2]float64{{90, 0}, {90, 77}, {-90, 0}, {0, 180}, {0, -180}, {0, 0}, {52.5200, 13.4050}, {48.8566, 2.3522}, {1e-320, 0}, {math.Copysign(0, -1), math.Copysign(0, -1)}, {90, 180}}
	for range 200 {
		places = append(places, [2]float64{rng.Float64()*180 - 90, rng.Float64()*360 - 180})
		if last := places[len(places)-1]; rng.IntN(2) == 0 {
			places = append(places, [2]float64{last[0], math.Nextafter(last[1], 1000)})
		}
	}
	var units []float64
	for _, p := range places {
		u, err := Unit(p[0], p[1])
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range u {
			if e == 0 && math.Signbit(e) {
				t.Errorf("%v has a coordinate -0", p)
			}
		}
		units = append(units, u[:]...)
	}
	s, err := NewPoints(slices.Collect(slices.Chunk(units, 150))...)
	if err != nil {
		t.Fatal(err)
	}
	var askers []Asker
	var want []float64
	for i, p := range places {
		a, err := s.Query(p[0], p[1])
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			a = s.Of(uint32(i))
		}
		askers = append(askers, a)
		for j, other := range places {
			want = append(want, defined(s.Metric(), units[3*i:3*i+3], units[3*j:3*j+3]))
			got, sphere := s.Metric().Report(want[len(want)-1]), haversine(p, other)
			if math.Abs(got-sphere) > 1e-8+1e-9*sphere && sphere < 2e7 || math.Abs(got-sphere) > 1 {
				t.Errorf("from %v to %v: %v m, want %v", p, other, got, sphere)
			}
		}
	}
	compareSpace(t, rng, "points", s, askers, want)
	if d := s.Metric().Report(askers[0].Value(1)); d != 0 {
		t.Errorf("the pole is %v m from itself", d)
	}
	if a, b := askers[3].Value(4), askers[5].Value(9); a != 0 || b != 0 {
		t.Errorf("the antimeridian is %v from itself, and 0 from -0 is %v", a, b)
	}
	berlin := s.Metric().Report(askers[6].Value(7))
	if math.Round(berlin/100) != 8775 {
		t.Errorf("Berlin to Paris: %v m", berlin)
	}
	for _, bad := range [][2]float64{{90.0000001, 0}, {-91, 0}, {math.NaN(), 0}, {0, math.NaN()}, {0, math.Inf(1)}, {math.Inf(-1), 0}} {
		if _, err := s.Query(bad[0], bad[1]); err == nil {
			t.Errorf("%v is taken for a point", bad)
		}
	}
	p, err := s.Permuted([]uint32{7, 6})
	if err != nil || p.Len() != 2 || p.Of(0).Value(1) != askers[6].Value(7) {
		t.Error("permuted points differ")
	}
}

func haversine(a, b [2]float64) float64 {
	sin := func(degrees float64) float64 { return math.Sin(degrees * math.Pi / 180) }
	cos := func(degrees float64) float64 { return math.Cos(degrees * math.Pi / 180) }
	h := sin((a[0]-b[0])/2)*sin((a[0]-b[0])/2) + cos(a[0])*cos(b[0])*sin((a[1]-b[1])/2)*sin((a[1]-b[1])/2)
	return 2 * EarthRadius * math.Asin(math.Sqrt(min(1, h)))
}

// TestTexts: values are edit distances of code points, by the textbook's matrix, around 64 symbols too.
func TestTexts(t *testing.T) {
	rng := seeded.Rand(t)
	for range 60 {
		n := 1 + rng.IntN(20)
		texts := make([]string, n)
		for i := range texts {
			var b strings.Builder
			for range []int{0, 3, 10, 31, 32, 33, 63, 64, 65, 130}[rng.IntN(10)] {
				b.WriteString([]string{"a", "b", "ß", "検", "\xff"}[rng.IntN(2+rng.IntN(4))])
			}
			texts[i] = b.String()
		}
		s, err := NewTexts(uint32(n), func(i uint32) string { return texts[i] }, nil)
		if err != nil {
			t.Fatal(err)
		}
		var askers []Asker
		var want []float64
		for i := range texts {
			askers = append(askers, s.Of(uint32(i)))
			for j := range texts {
				want = append(want, float64(naive.EditDistance([]rune(texts[i]), []rune(texts[j]))))
			}
		}
		compareSpace(t, rng, "texts", s, askers, want)
		if p, err := s.Permuted([]uint32{uint32(n - 1), 0}); err != nil || p.Query(texts[0]).Value(0) != want[n-1] || p.Text(1) != texts[0] {
			t.Error("permuted texts differ")
		}
		if _, err := s.Permuted([]uint32{uint32(n)}); err == nil {
			t.Error("an order beyond the texts is taken")
		}
	}
}
