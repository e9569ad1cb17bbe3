package metric

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index/metric/sums"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// Panels of a space are what its rows are laid out as one panel at a time, whatever parts they lie in and in whatever order they are laid out. Bytes, others' orders and parts that end within a panel have no panels.
func TestLayOut(t *testing.T) {
	rng, laid := seeded.Rand(t), 0
	if !sums.All()[0].Sieves() {
		t.Skip("this machine compares by no panels")
	}
	for range 10 {
		dims, n := []int{1, 8, 17, 129, 600, 1500}[rng.IntN(6)], 1+rng.IntN(900)
		for _, each := range []int{sums.Panel, sums.Panel * (1 + rng.IntN(8)), n, 1 + rng.IntN(n)} {
			for _, w := range worlds(rng, dims, n, min(each, n)) {
				m := []Metric{{L2, 0}, {Cosine, 0}, {IP, 0}}[rng.IntN(3)]
				s, err := w.make(m)
				if err != nil {
					t.Fatal(err)
				}
				s = s.UsePanels()
				var units []int
				err = s.LayOut(func(count int, work func(unit int)) error {
					for unit := range count {
						units = append(units, unit)
					}
					rng.Shuffle(count, func(i, j int) { units[i], units[j] = units[j], units[i] })
					for _, unit := range units {
						work(unit)
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if s.laid == nil {
					continue
				}
				laid++
				if held := int64(4 * (len(s.laid.elements) + sums.Panel*len(s.laid.lengths) + len(s.laid.squares))); held != s.PanelBytes() {
					t.Fatalf("%d bytes are held, not %d", held, s.PanelBytes())
				}
				wide := make([]float64, dims)
				for first := 0; first < n; first += sums.Panel {
					var rows []float32
					for i := first; i < min(first+sums.Panel, n); i++ {
						s.Coordinates(uint32(i), wide)
						for _, e := range wide {
							rows = append(rows, float32(e))
						}
					}
					var want panels
					want.lay(s.kernels, m, dims, rows)
					got := s.laid.of(first, min(sums.Panel, n-first), dims)
					same := slices.EqualFunc(got.lengths[0][:], want.lengths[0][:], func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) })
					if !same || fmt.Sprint(got.squares) != fmt.Sprint(want.squares) || !slices.Equal(got.elements, want.elements) {
						t.Fatalf("%v, %s, %d x %d in parts of %d: the panel of row %d is not right", m, w.name, n, dims, each, first)
					}
				}
			}
		}
	}
	if laid < 30 {
		t.Errorf("%d spaces have panels: the test shows too little", laid)
	}
}

// A space whose rows nobody could lay out is searched without panels.
func TestLayOutFails(t *testing.T) {
	rng := seeded.Rand(t)
	rows := make([]float32, 4*100)
	for i := range rows {
		rows[i] = rng.Float32()
	}
	s, err := NewVectors(Metric{Kind: L2}, 4, rows)
	if err != nil {
		t.Fatal(err)
	}
	s = s.UsePanels()
	failed := errors.New("no core")
	if err := s.LayOut(func(int, func(int)) error { return failed }); s.kernels.Sieves() && !errors.Is(err, failed) {
		t.Fatalf("%v, want %v", err, failed)
	}
	found := 0
	Scan(slices.Repeat([]Asker{s.Of(3)}, fewSieved), 0, 100, make([]float64, fewSieved), func(_ int, object uint32, _ float64) {
		if found++; object != 3 {
			t.Errorf("object %d is found", object)
		}
	})
	if found != fewSieved {
		t.Errorf("%d queries find their object, of %d", found, fewSieved)
	}
}
