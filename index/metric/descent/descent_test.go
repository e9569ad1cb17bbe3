package descent

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/sums"
	"github.com/geniemq/geniemq/index/metric/tree"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// world is a space with many ties and copies, and what is asked of it: some of its objects, and others.
func world(t *testing.T, rng *rand.Rand, n int) (space metric.Space, asked [][]float64) {
	t.Helper()
	m := metric.Metric{Kind: []metric.Kind{metric.L1, metric.L2, metric.Linf, metric.Geo}[rng.IntN(4)]}
	dims, grid := 1+rng.IntN(Most), 1+rng.IntN(20)
	if m.Kind == metric.Geo {
		dims = 3
	}
	one := func() []float64 {
		x := make([]float64, dims)
		if m.Kind == metric.Geo {
			unit, err := metric.Unit(float64(rng.IntN(grid))*180/float64(grid)-90, float64(rng.IntN(grid))*300/float64(grid))
			if err != nil {
				t.Fatal(err)
			}
			return unit[:]
		}
		for i := range x {
			x[i] = float64(rng.IntN(grid))
		}
		return x
	}
	scale := 1.0
	storage := rng.IntN(3)
	if m.Kind != metric.Geo && storage == 0 && rng.IntN(2) == 0 {
		scale = math.Ldexp(0.7, rng.IntN(200)-100) // up to where squares are denormal as float32s
	}
	rows := make([]float64, 0, n*dims)
	for range n {
		rows = append(rows, one()...)
	}
	for range 6 {
		asked = append(asked, one())
	}
	if n > 0 {
		at := rng.IntN(n)
		asked = append(asked, slices.Clone(rows[at*dims:(at+1)*dims]))
	}
	floats := make([]float32, len(rows))
	for i, v := range rows {
		floats[i] = float32(v * scale)
	}
	if m.Kind != metric.Geo {
		for _, q := range asked {
			for i, v := range q {
				q[i] = float64(float32(v * scale))
			}
		}
	}
	return stored(t, m, dims, storage, rows, floats), asked
}

func stored(t *testing.T, m metric.Metric, dims, storage int, rows []float64, floats []float32) metric.Space {
	t.Helper()
	var space metric.Space
	var err error
	switch {
	case m.Kind == metric.Geo:
		space, err = metric.NewPoints(rows)
	case storage == 1:
		bytes := make([]uint8, len(rows))
		for i, v := range rows {
			bytes[i] = uint8(v)
		}
		space, err = metric.NewVectors(m, dims, bytes)
	case storage == 2:
		halves := make([]sums.Half, len(rows))
		for i, v := range floats {
			halves[i], _ = sums.ToHalf(v)
		}
		space, err = metric.NewVectors(m, dims, halves)
	default:
		space, err = metric.NewVectors(m, dims, floats)
	}
	if err != nil {
		t.Fatal(err)
	}
	return space
}

// value is that of two rows, by the definition of its metric.
func value(m metric.Metric, q, o []float64) float64 {
	switch m.Kind {
	case metric.L1:
		return sums.Differences(q, o)
	case metric.Linf:
		return sums.Largest(q, o)
	}
	return sums.Squares(q, o)
}

// flat finds hits by comparing all.
func flat(space metric.Space, q []float64, want metric.Want, pass func(uint32) bool) (hits []metric.Hit, within uint64) {
	o := make([]float64, len(q))
	for i := range space.Len() {
		space.(metric.Placed).Coordinates(i, o)
		if v := value(space.Metric(), q, o); v <= want.Most && (pass == nil || pass(i)) {
			hits = append(hits, metric.Hit{Value: v, ID: i})
		}
	}
	slices.SortFunc(hits, func(x, y metric.Hit) int {
		if x.Less(y) {
			return -1
		}
		return 1
	})
	return hits[:min(len(hits), want.K)], uint64(len(hits))
}

// few makes a tree of a space, as files have it.
func few(t testing.TB, space metric.Space, capacity, leaf int) *Tree {
	t.Helper()
	built, err := tree.Build(t.Context(), space, tree.Options{Bounds: tree.Box, Capacity: capacity, Leaf: leaf, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	var ordered metric.Space
	switch s := space.(type) {
	case *metric.Points:
		ordered, err = s.Permuted(built.Order())
	case *metric.Vectors:
		ordered, err = s.Permuted(built.Order())
	}
	if err != nil {
		t.Fatal(err)
	}
	own, err := New(built, ordered)
	if err != nil || own == nil || own.Bytes() < 4*int64(space.Len()) {
		t.Fatalf("no tree of few coordinates: %v, %v", own, err)
	}
	return own
}

// halting stops a search wherever it can be.
type halting struct{}

func (halting) Most() int  { return 1 }
func (halting) Did(int)    {}
func (halting) Stop() bool { return true }

// TestFlat: the hits are to the bit those of comparing everything, with ties, copies, filters, radii at distances that exist, and k around the number of objects, however often it is stopped.
func TestFlat(t *testing.T) {
	rng := seeded.Rand(t)
	for range 1500 {
		n := rng.IntN(1 + rng.IntN(200))
		space, asked := world(t, rng, n)
		own := few(t, space, 2+rng.IntN(9), 1+rng.IntN(20))
		for _, q := range asked {
			want := metric.Want{K: rng.IntN(n + 3), Most: math.Inf(1)}
			if n > 0 && rng.IntN(2) == 0 {
				x := make([]float64, len(q))
				space.(metric.Placed).Coordinates(rng.Uint32N(uint32(n)), x)
				want.Most = value(space.Metric(), q, x)
			}
			if rng.IntN(4) == 0 {
				want.Most = 0
			}
			if rng.IntN(4) == 0 {
				want.K = 1 + rng.IntN(3)
			}
			total := rng.IntN(3) == 0
			var pass func(uint32) bool
			if rng.IntN(3) == 0 {
				pass = func(id uint32) bool { return id*2654435761>>29 < 3 }
			}
			hits, within := flat(space, q, want, pass)
			what := fmt.Sprintf("%d objects under %s, %d coordinates, %+v, total %v", n, space.Metric().Kind, len(q), want, total)
			search, err := own.Begin(q, want, total)
			if err != nil {
				t.Fatal(err)
			}
			meter := metric.Until(context.Background())
			if rng.IntN(2) == 0 {
				meter = halting{}
			}
			for !search.Run(pass, meter) {
			}
			got := search.End(nil)
			if !slices.Equal(got.Hits, hits) || total && got.Within != within {
				t.Fatalf("%s: %v, %d within; want %v, %d", what, got.Hits, got.Within, hits, within)
			}
			if got.Work.Distances > float64(n) || cap(search.stack) > 2*own.deepest+64 {
				t.Fatalf("%s: %v distances, a stack of %d", what, got.Work.Distances, cap(search.stack))
			}
		}
	}
}

// TestRefused: what cannot be searched so is not, and what cannot be asked is told.
func TestRefused(t *testing.T) {
	rng := seeded.Rand(t)
	space, err := metric.NewVectors(metric.Metric{Kind: metric.L2}, 2, []float32{1, 2, 3, 4, 5, 6})
	if err != nil {
		t.Fatal(err)
	}
	own := few(t, space, 2, 1)
	for _, ask := range []struct {
		q    []float64
		want metric.Want
	}{{[]float64{1}, metric.Want{K: 1}}, {[]float64{1, 2}, metric.Want{K: -1}}, {[]float64{1, 2}, metric.Want{K: 1, Most: math.NaN()}}} {
		if _, err := own.Begin(ask.q, ask.want, false); err == nil {
			t.Errorf("%+v is not refused", ask)
		}
	}
	built, err := tree.Build(t.Context(), space, tree.Options{Bounds: tree.Pivot, Capacity: 2, Leaf: 1})
	if err != nil {
		t.Fatal(err)
	}
	if own, err := New(built, space); own != nil || err != nil || own.Bytes() != 0 {
		t.Errorf("a tree of pivots: %v, %v", own, err)
	}
	many := make([]float32, 9*20)
	for i := range many {
		many[i] = rng.Float32()
	}
	wide, err := metric.NewVectors(metric.Metric{Kind: metric.L2}, 9, many)
	if err != nil {
		t.Fatal(err)
	}
	if built, err = tree.Build(t.Context(), wide, tree.Options{Bounds: tree.Box, Capacity: 2, Leaf: 1}); err != nil {
		t.Fatal(err)
	}
	if own, err := New(built, wide); own != nil || err != nil {
		t.Errorf("nine coordinates: %v, %v", own, err)
	}
	three, err := space.Permuted([]uint32{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	if built, err = tree.Build(t.Context(), space, tree.Options{Bounds: tree.Box, Capacity: 2, Leaf: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := New(built, three); err == nil {
		t.Error("a tree over three objects takes two")
	}
}
