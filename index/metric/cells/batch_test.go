package cells

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// rowed is the objects of an index by position, as they lie in a file.
func rowed(t testing.TB, space *metric.Vectors, order []uint32) *metric.Vectors {
	t.Helper()
	wide, elements := make([]float64, space.Dims()), []float32{}
	for _, id := range order {
		space.Coordinates(id, wide)
		for _, e := range wide {
			elements = append(elements, float32(e))
		}
	}
	rows, err := metric.NewVectors(space.Metric(), space.Dims(), elements)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// A batch answers what each of its queries is answered alone, of rows in whatever order, with what it did.
func TestBatchIsEachAlone(t *testing.T) {
	rng := seeded.Rand(t)
	worlds := 60
	if testing.Short() {
		worlds = 15
	}
	answered := 0
	for round := range worlds {
		n := 1 + rng.IntN(600)
		w := someWorld(t, rng, n)
		p := some(rng)
		p.HeldOut = []int{-1, 20}[rng.IntN(2)]
		x := must(t, w.space, p)
		positions := rowed(t, w.space, x.Order())
		if round%2 > 0 {
			var err error
			if positions, err = w.space.Permuted(x.Order()); err != nil {
				t.Fatal(err)
			}
		}
		var asks []Ask
		var want []Result
		var stops []bool
		gone := errors.New("gone")
		for range 1 + rng.IntN(70) {
			asks, want = append(asks, askOf(t, rng, w, x, positions)), append(want, Result{})
			a := &asks[len(asks)-1]
			if stops = append(stops, rng.IntN(10) == 0); stops[len(stops)-1] {
				continue
			}
			r, err := x.Searcher().Search(t.Context(), a.Near, a.Asker, a.Want, a.Probes, a.Pass)
			if err != nil {
				t.Fatal(err)
			}
			want[len(want)-1] = r
			want[len(want)-1].Hits = slices.Clone(r.Hits)
		}
		s := x.Searcher()
		stop := func(ask int) error {
			if stops[ask] {
				return gone
			}
			return nil
		}
		if err := s.SearchAll(t.Context(), slices.Clone(asks[:1+rng.IntN(len(asks))]), nil); err != nil { // whose memory the others find
			t.Fatal(err)
		}
		if err := s.SearchAll(t.Context(), asks, stop); err != nil {
			t.Fatal(err)
		}
		for i, a := range asks {
			if a.Left { // which is so of those that have to be
				passed := want[i].Visited <= a.Probes
				if !stops[i] && passed && !want[i].Exact {
					t.Fatalf("query %d, %+v, %d probes of %d, is left", i, a.Want, a.Probes, x.Cells())
				}
				continue
			}
			if stops[i] {
				if a.Err != gone {
					t.Fatalf("a query that was to stop has %v", a.Err)
				}
				continue
			}
			answered++
			if a.Err != nil || !slices.Equal(a.Result.Hits, want[i].Hits) {
				t.Fatalf("%+v, %d objects in %d cells, query %d, %+v, %d probes: %v, not %v (%v)", w.space.Metric(), n, x.Cells(), i, a.Want, a.Probes, a.Result.Hits, want[i].Hits, a.Err)
			}
			a.Result.Hits, want[i].Hits = nil, nil
			if !reflect.DeepEqual(a.Result, want[i]) {
				t.Fatalf("query %d, %+v, %d probes: %+v, not %+v", i, a.Want, a.Probes, a.Result, want[i])
			}
		}
	}
	if answered < worlds {
		t.Errorf("%d queries are answered together in %d worlds", answered, worlds)
	}
}

func askOf(t *testing.T, rng *rand.Rand, w world, x *Index, positions *metric.Vectors) Ask {
	t.Helper()
	v, wide := w.draw(), make([]float64, w.space.Dims())
	if rng.IntN(2) == 0 {
		w.space.Coordinates(rng.Uint32N(w.space.Len()), wide)
		for j, e := range wide {
			v[j] = float32(e)
		}
	}
	a := Ask{Probes: rng.IntN(x.Cells() + 2)}
	var by metric.Asker
	for space, asker := range map[*metric.Vectors]*metric.Asker{x.Centroids(): &a.Near, positions: &a.Asker, w.space: &by} {
		var err error
		if *asker, err = space.Query(v); err != nil {
			t.Fatal(err)
		}
	}
	a.Want, a.Pass = wants(rng, by, w.space.Len())
	if rng.IntN(2) == 0 {
		a.Want.K = 1 + rng.IntN(5)
	}
	if rng.IntN(4) == 0 {
		a.Want.Most = math.Inf(1)
	}
	return a
}

func TestBatchEnds(t *testing.T) {
	rng := seeded.Rand(t)
	w := someWorld(t, rng, 300)
	x := must(t, w.space, Parameters{Cells: 30, HeldOut: -1})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	asks := []Ask{askOf(t, rng, w, x, rowed(t, w.space, x.Order()))}
	asks[0].Probes, asks[0].Want = 3, metric.Want{K: 2, Most: math.Inf(1)}
	if err := x.Searcher().SearchAll(ctx, asks, nil); x.Cells() > 3 && !errors.Is(err, context.Canceled) {
		t.Errorf("a batch goes on: %v", err)
	}
}
