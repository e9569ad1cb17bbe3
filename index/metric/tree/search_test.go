package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// boundsOf are the bounds that a tree over a metric may have.
func boundsOf(m metric.Metric) []Bounds {
	if m.Kind == metric.Edit || m.Kind == metric.Hamming {
		return []Bounds{Pivot}
	}
	return []Bounds{Pivot, Box}
}

func optionsOf(rng *rand.Rand, b Bounds) Options {
	return Options{Bounds: b, Capacity: []int{2, 3, 5, 16, 256}[rng.IntN(5)], Leaf: []int{1, 2, 3, 10, 32}[rng.IntN(5)], Seed: rng.Uint64(), Workers: 1 + rng.IntN(3)}
}

// TestSearchIsComparingEverything: both forms of the search answer what comparing everything does, to the bit, on every metric, with buffers from
// the least size on; and every bound of the tree holds.
func TestSearchIsComparingEverything(t *testing.T) {
	rng := seeded.Rand(t)
	rounds := 60
	if testing.Short() {
		rounds = 12
	}
	for _, m := range metrics() {
		for range rounds {
			n := []int{0, 1, 2, 3, 17, 100, 400}[rng.IntN(7)]
			w := worldOf(rng, m, n)
			for _, b := range boundsOf(m) {
				o := optionsOf(rng, b)
				tree := mustBuild(t, w, o)
				name := fmt.Sprintf("%v, %d objects of %d elements, %v", m, n, w.dims, tree.Shape())
				if err := tree.Verify(context.Background(), w); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				compareAll(t, name, rng, w, tree)
			}
		}
	}
}

func compareAll(t *testing.T, name string, rng *rand.Rand, w *world, tree *Tree) {
	t.Helper()
	asks, right := make([]Ask, 1+rng.IntN(6)), []Answer{}
	for i := range asks {
		asks[i] = wants(rng, w, w.ask(rng))
		right = append(right, everything(w.Len(), asks[i]))
		asks[i].Asker = tree.Positions(asks[i].Asker)
		got, err := tree.Search(context.Background(), asks[i])
		if err != nil || !got.same(right[i]) {
			t.Fatalf("%s: %+v gives %+v, not %+v (%v)", name, asks[i], got, right[i], err)
		}
	}
	for _, entries := range []int{tree.capacity, tree.capacity + 1, 3 * tree.capacity, 1 << 16} {
		got, err := tree.SearchAll(context.Background(), asks, entries)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i := range got {
			if !got[i].same(right[i]) {
				t.Fatalf("%s, buffers of %d: %+v gives %+v, not %+v", name, entries, asks[i], got[i], right[i])
			}
		}
	}
}

// TestBuffersHold: whatever the batch, no level has more entries than it may, for a single query whose radius is everything too.
func TestBuffersHold(t *testing.T) {
	rng := seeded.Rand(t)
	w := worldOf(rng, metric.Metric{Kind: metric.L2}, 3000)
	for _, o := range []Options{{Bounds: Pivot, Capacity: 5, Leaf: 2}, {Bounds: Box, Capacity: 7, Leaf: 3}, {Bounds: Pivot, Capacity: 64, Leaf: 1}} {
		tree := mustBuild(t, w, o)
		for _, queries := range []int{1, 20} {
			for _, entries := range []int{o.Capacity, 2*o.Capacity + 1, 1000} {
				b := batch{tree: tree, entries: entries}
				asks := make([]Ask, queries)
				for i := range asks {
					asks[i] = Ask{Asker: tree.Positions(w.ask(rng)), Want: metric.Want{K: 3, Most: math.Inf(1)}, Total: true}
				}
				if err := b.prepare(asks); err != nil {
					t.Fatal(err)
				}
				size := 0
				for depth := range b.levels {
					l := b.levels[depth]
					if cap(l.entries) > entries || cap(l.distances) > entries*depth {
						t.Errorf("level %d has room for %d entries and %d distances, more than %d", depth, cap(l.entries), cap(l.distances), entries)
					}
					size += cap(l.entries)
				}
				if most := (tree.height + 1) * entries; size > most {
					t.Errorf("%d entries, more than %d", size, most)
				}
				if err := b.run(context.Background()); err != nil {
					t.Fatal(err)
				}
				for depth := range b.levels {
					if got := b.levels[depth].entries; cap(got) > entries {
						t.Errorf("buffers of %d, %d queries: level %d grew to %d", entries, queries, depth, cap(got))
					}
				}
				for _, a := range b.askings {
					if a.within != uint64(w.Len()) {
						t.Errorf("%d objects of %d are found", a.within, w.Len())
					}
				}
			}
		}
	}
	tree := mustBuild(t, w, Options{Bounds: Pivot, Capacity: 5, Leaf: 2})
	if _, err := tree.SearchAll(context.Background(), nil, 4); err == nil {
		t.Error("buffers that cannot hold the children of a node are taken")
	}
}

// TestBlocksAreReadOnce: a batch scans a block for all queries that need it, one after the other, where the buffers hold all entries.
func TestBlocksAreReadOnce(t *testing.T) {
	rng := seeded.Rand(t)
	w := worldOf(rng, metric.Metric{Kind: metric.L1}, 500)
	tree := mustBuild(t, w, Options{Bounds: Pivot, Capacity: 4, Leaf: 8})
	var blocks []uint32
	asks := make([]Ask, 30)
	for i := range asks {
		asks[i] = Ask{Asker: &following{tree.Positions(w.ask(rng)), &blocks}, Want: metric.Want{K: 3, Most: math.Inf(1)}, Total: true}
	}
	if _, err := tree.SearchAll(context.Background(), asks, 1<<20); err != nil {
		t.Fatal(err)
	}
	if len(blocks) < 30*tree.Shape().Leaves {
		t.Fatalf("%d blocks are read", len(blocks))
	}
	if runs := len(slices.Compact(blocks)); runs != tree.Shape().Leaves {
		t.Errorf("%d leaves are read in %d runs", tree.Shape().Leaves, runs)
	}
}

type following struct {
	metric.Asker
	begins *[]uint32
}

func (f *following) Values(lo, hi uint32, dst []float64) {
	*f.begins = append(*f.begins, lo)
	f.Asker.Values(lo, hi, dst)
}

// TestSameBytes: workers change nothing, a seed does.
func TestSameBytes(t *testing.T) {
	rng := seeded.Rand(t)
	for _, m := range raced.Of([]metric.Metric{{Kind: metric.L2}, {Kind: metric.Cosine}, {Kind: metric.Edit}}, []metric.Metric{{Kind: metric.L2}}) {
		n := 20000 // sorted in parts, and cut by several goroutines
		if m.Kind == metric.Edit {
			n = 5000
		}
		w := worldOf(rng, m, n)
		if m.Kind != metric.Edit {
			for i := range w.points {
				w.points[i] = draw(rng, m, w.dims, 2, nil)
			}
		}
		for _, b := range boundsOf(m) {
			o := Options{Bounds: b, Capacity: 8, Leaf: 64, Seed: 7, Workers: 1}
			one := mustBuild(t, w, o).Encode()
			o.Workers = 7
			if !bytes.Equal(one, mustBuild(t, w, o).Encode()) {
				t.Errorf("%v, %s: the bytes differ with the number of workers", m, b)
			}
			o.Seed = 8
			if b == Pivot && !raced.Detector && bytes.Equal(one, mustBuild(t, w, o).Encode()) {
				t.Errorf("%v: the seed has no influence", m)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	rng := seeded.Rand(t)
	words, points := worldOf(rng, metric.Metric{Kind: metric.Edit}, 9), worldOf(rng, metric.Metric{Kind: metric.L2}, 9)
	for _, c := range []struct {
		space metric.Space
		o     Options
	}{
		{points, Options{Bounds: "sphere"}}, {points, Options{Capacity: 1}}, {points, Options{Capacity: 257}}, {points, Options{Leaf: 1025}}, {points, Options{Leaf: -1}},
		{words, Options{Bounds: Box}}, {bare{points}, Options{}},
	} {
		var refused *Refused
		if _, err := Build(context.Background(), c.space, c.o); !errors.As(err, &refused) {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Build(ctx, points, Options{Leaf: 2}); !errors.Is(err, context.Canceled) {
		t.Errorf("a build goes on: %v", err)
	}
	tree := mustBuild(t, points, Options{Bounds: Box, Leaf: 1, Capacity: 2})
	for _, ask := range []Ask{
		{Asker: tree.Positions(points.Of(0)), Want: metric.Want{K: -1}}, {Asker: tree.Positions(points.Of(0)), Want: metric.Want{K: 1, Most: math.NaN()}},
		{Asker: tree.Positions(words.Of(0)), Want: metric.Want{K: math.MaxInt, Most: math.Inf(1)}},
	} {
		if _, err := tree.Search(context.Background(), ask); err == nil {
			t.Errorf("%+v is searched", ask)
		}
		if _, err := tree.SearchAll(context.Background(), []Ask{ask}, 100); err == nil {
			t.Errorf("%+v is searched", ask)
		}
	}
	if _, err := tree.SearchAll(ctx, []Ask{{Asker: tree.Positions(points.Of(0)), Want: metric.Want{K: math.MaxInt, Most: math.Inf(1)}}}, 100); !errors.Is(err, context.Canceled) {
		t.Errorf("a batch goes on: %v", err)
	}
}

// bare is a space of which nothing is known.
type bare struct{ metric.Space }

// TestBoundsAllowForRounding: with one object per leaf a bound is all but the value, and radii are values. Any rounding that a bound does not allow for loses hits.
func TestBoundsAllowForRounding(t *testing.T) {
	raced.Skip(t, raced.One)
	rng := seeded.Rand(t)
	for _, m := range metrics() {
		for _, way := range []int{2, 3, 5} {
			w := worldOf(rng, m, 150)
			if m.Kind != metric.Edit && m.Kind != metric.Geo {
				w.dims = 33
				for i := range w.points {
					w.points[i] = draw(rng, m, w.dims, way, nil)
				}
			}
			for _, b := range boundsOf(m) {
				tree := mustBuild(t, w, Options{Bounds: b, Capacity: 4, Leaf: 1, Seed: rng.Uint64()})
				for range 100 {
					q := w.Of(uint32(rng.IntN(150)))
					ask := Ask{Asker: q, Want: metric.Want{K: math.MaxInt, Most: q.Value(uint32(rng.IntN(150)))}}
					want := everything(150, ask)
					ask.Asker = tree.Positions(q)
					if got, err := tree.Search(context.Background(), ask); err != nil || !got.same(want) {
						t.Fatalf("%v, %v, drawn in way %d: %d hits, not %d (%v)", m, tree.Shape(), way, len(got.Hits), len(want.Hits), err)
					}
				}
			}
		}
	}
}

// TestSlackIsNeeded: where the triangle inequality is an equality and float32 holds all bounds, nothing but the slack allows for rounding. Objects are between a
// pivot and the query in every coordinate; or unit vectors without rounding, near which a cosine has an error that a chord has not.
func TestSlackIsNeeded(t *testing.T) {
	rng := seeded.Rand(t)
	between := &world{m: metric.Metric{Kind: metric.L1}, dims: 33}
	for i := range 150 {
		between.points = append(between.points, slices.Repeat([]float64{float64(i) * 0x1p-20}, 33))
	}
	beyond := func() (x []float64) {
		for range 33 {
			x = append(x, float64(float32(1+rng.Float64()*math.Exp2(float64(rng.IntN(34))))))
		}
		return x
	}
	units := &world{m: metric.Metric{Kind: metric.Cosine}, dims: 4}
	for i := range 16 {
		var x []float64
		for j := range 4 {
			x = append(x, float64(i>>j&1)*2-1)
		}
		units.points = append(units.points, x)
	}
	near := func() (x []float64) {
		for _, v := range units.points[rng.IntN(16)] {
			x = append(x, float64(float32(v+rng.NormFloat64()*math.Pow(10, -float64(rng.IntN(8))))))
		}
		return x
	}
	for _, c := range []struct {
		w      *world
		bounds Bounds
		draw   func() []float64
	}{{between, Pivot, beyond}, {between, Box, beyond}, {units, Box, near}, {units, Pivot, near}} {
		tree := mustBuild(t, c.w, Options{Bounds: c.bounds, Capacity: 2, Leaf: 1})
		for range 1000 {
			q := &question{w: c.w, point: c.draw()}
			ask := Ask{Asker: q, Want: metric.Want{K: math.MaxInt, Most: q.Value(uint32(rng.IntN(len(c.w.points))))}}
			want := everything(c.w.Len(), ask)
			ask.Asker = tree.Positions(q)
			if got, err := tree.Search(context.Background(), ask); err != nil || !got.same(want) {
				t.Fatalf("%v, %v: %d hits, not %d (%v)", c.w.m, tree.Shape(), len(got.Hits), len(want.Hits), err)
			}
		}
	}
}
