package tree

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestEncodedTreesAreTheSame: what is opened encodes to the same bytes and searches alike.
func TestEncodedTreesAreTheSame(t *testing.T) {
	rng := seeded.Rand(t)
	for _, m := range metrics() {
		for _, n := range []int{0, 1, 30, 300} {
			w := worldOf(rng, m, n)
			for _, b := range boundsOf(m) {
				built := mustBuild(t, w, optionsOf(rng, b))
				data := built.Encode()
				tree, err := Open(data, m, uint32(n), w.dims)
				if err != nil {
					t.Fatalf("%v, %s, %d objects: %v", m, b, n, err)
				}
				if !bytes.Equal(tree.Encode(), data) {
					t.Errorf("%v, %s, %d objects: it encodes to other bytes", m, b, n)
				}
				if err := tree.Verify(context.Background(), w); err != nil {
					t.Errorf("%v, %s, %d objects: %v", m, b, n, err)
				}
				compareAll(t, string(m.Kind), rng, w, tree)
			}
		}
	}
}

// TestDamagedTrees: each number that a search relies on is looked at, by the word of the header and by the array.
func TestDamagedTrees(t *testing.T) {
	w := line(metric.L1, numbers(40)...)
	pivots := mustBuild(t, w, Options{Bounds: Pivot, Capacity: 4, Leaf: 4})
	boxes := mustBuild(t, w, Options{Bounds: Box, Capacity: 4, Leaf: 4})
	damage := map[string]func(x *Tree){
		"an object twice":           func(x *Tree) { x.order[3] = x.order[4] },
		"an object that is none":    func(x *Tree) { x.order[3] = 40 },
		"a node that is its own":    func(x *Tree) { x.first[1] = 1 },
		"children that go back":     func(x *Tree) { x.first[2] = x.first[1] - 1 },
		"children beyond all":       func(x *Tree) { x.first[1] = 1000 },
		"a root that is not first":  func(x *Tree) { x.first[0] = 0 },
		"one child":                 func(x *Tree) { x.first[1], x.first[2] = 2, 5 },
		"positions that begin late": func(x *Tree) { x.begin[2]++ },
		"too few positions":         func(x *Tree) { x.count[2]-- },
		"no positions":              func(x *Tree) { x.begin[2], x.count[1], x.count[2] = x.begin[2]+x.count[2], x.count[1]+x.count[2], 0 },
		"a leaf that is too large":  func(x *Tree) { x.leaf = 2 },
		"a height that is not":      func(x *Tree) { x.height, x.path = 1, x.path[:min(40, len(x.path))] },
		"a row of no capacity":      func(x *Tree) { x.calibration.Rows[0].Capacity = 0 },
		"a row without number":      func(x *Tree) { x.calibration.Rows[0].Work.Nodes = math.NaN() },
		"a dimension without end":   func(x *Tree) { x.calibration.Idim = math.Inf(1) },
		"a capacity of one":         func(x *Tree) { x.capacity = 1 },
		"too few objects":           func(x *Tree) { x.objects = 39 },
	}
	for name, harm := range damage {
		for _, from := range []*Tree{pivots, boxes} {
			refuse := func(t *testing.T) {
				x := reopened(t, from)
				harm(x)
				expectDamaged(t, x.Encode(), 40)
			}
			t.Run(name+", "+string(from.bounds), refuse)
		}
	}
	for name, harm := range map[string]func(x *Tree){
		"a pivot that is none":      func(x *Tree) { x.pivots[0] = 40 },
		"distances without number":  func(x *Tree) { x.lo[3] = float32(math.NaN()) },
		"distances below none":      func(x *Tree) { x.lo[3] = -1 },
		"distances the wrong way":   func(x *Tree) { x.lo[3], x.hi[3] = x.hi[3]+1, x.lo[3] },
		"a path that is too short":  func(x *Tree) { x.path = x.path[8:] },
		"a path that is too long":   func(x *Tree) { x.path = append(x.path, make([]byte, 8)...) },
		"a largest without number":  func(x *Tree) { x.hi[3] = float32(math.NaN()) },
		"fewer pivots than nodes":   func(x *Tree) { x.pivots = x.pivots[:4] },
		"order that is half there":  func(x *Tree) { x.order = x.order[:20] },
		"more nodes than there are": func(x *Tree) { x.begin = append(x.begin, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			x := reopened(t, pivots)
			harm(x)
			expectDamaged(t, x.Encode(), 40)
		})
	}
	x := reopened(t, boxes)
	x.boxes[0] = float32(math.NaN())
	expectDamaged(t, x.Encode(), 40)
	data := pivots.Encode()
	expectDamaged(t, data, 41)
	expectDamaged(t, append(bytes.Clone(data), 0), 40)
	for _, word := range []int{0, 1, 2, 3, 4, 5, 6, 7, 12} { // all of the header but the seed and the dimension
		other := bytes.Clone(data)
		binary.LittleEndian.PutUint32(other[4*word:], math.MaxUint32)
		expectDamaged(t, other, 40)
	}
}

func reopened(t *testing.T, tree *Tree) *Tree {
	t.Helper()
	x, err := Open(tree.Encode(), tree.Metric, tree.objects, tree.dims)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func expectDamaged(t *testing.T, data []byte, objects uint32) {
	t.Helper()
	var damaged *Damaged
	if _, err := Open(data, metric.Metric{Kind: metric.L1}, objects, 1); !errors.As(err, &damaged) {
		t.Errorf("it is opened: %v", err)
	}
}

// TestVerifyFindsWrongBounds: bounds that say too much are found, which Open cannot see.
func TestVerifyFindsWrongBounds(t *testing.T) {
	w := line(metric.L1, numbers(40)...)
	for name, harm := range map[string]func(pivots, boxes *Tree){
		"least":   func(p, _ *Tree) { p.lo[2] += (p.hi[2] - p.lo[2]) / 2 },
		"largest": func(p, _ *Tree) { p.hi[2] = p.lo[2] },
		"path":    func(p, _ *Tree) { p.path[0] ^= 128 },
		"pivot":   func(p, _ *Tree) { p.pivots[0] = (p.pivots[0] + 7) % 40 },
		"box":     func(_, b *Tree) { b.boxes[2*int(b.nodes()-1)] += 0.5 },
		"order":   func(p, b *Tree) { x, y := p.order[0], p.order[39]; p.order[0] = y; p.order[39] = x },
	} {
		trees := []*Tree{reopened(t, mustBuild(t, w, Options{Bounds: Pivot, Capacity: 4, Leaf: 4})), reopened(t, mustBuild(t, w, Options{Bounds: Box, Capacity: 4, Leaf: 4}))}
		harm(trees[0], trees[1])
		found := 0
		for _, x := range trees {
			opened, err := Open(x.Encode(), w.m, 40, 1)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var damaged *Damaged
			if err := opened.Verify(context.Background(), w); errors.As(err, &damaged) {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%s: %d trees are wrong", name, found)
		}
	}
}

// FuzzOpen: any bytes are refused, or are a tree that can be searched: to an end, within the objects, and encoding to the same bytes.
func FuzzOpen(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 1))
	spaces := map[bool]*world{}
	for _, boxes := range []bool{false, true} {
		w := line(metric.L1, numbers(40)...)
		spaces[boxes] = w
		b := Pivot
		if boxes {
			b = Box
		}
		tree := mustBuild(f, w, Options{Bounds: b, Capacity: 4, Leaf: 3})
		data := tree.Encode()
		f.Add(data)
		for range 40 {
			other := bytes.Clone(data)
			other[rng.IntN(len(other)-tree.calibrated())] ^= 1 << rng.IntN(8)
			f.Add(other)
		}
		f.Add(data[:len(data)-8])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, err := Open(data, metric.Metric{Kind: metric.L1}, 40, 1)
		var damaged *Damaged
		if err != nil {
			if !errors.As(err, &damaged) {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		w := spaces[tree.bounds == Box]
		_ = tree.Verify(context.Background(), w)
		ask := Ask{Asker: tree.Positions(w.Of(7)), Want: metric.Want{K: 3, Most: math.Inf(1)}}
		answer, err := tree.Search(context.Background(), ask)
		if err != nil || len(answer.Hits) > 3 {
			t.Fatalf("%+v, %v", answer, err)
		}
		if _, err := tree.SearchAll(context.Background(), []Ask{ask, ask}, tree.capacity); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(tree.Encode(), tree.Metric, 40, 1); err != nil {
			t.Fatal(err)
		}
	})
}

// calibrated is how many bytes rows take.
func (t *Tree) calibrated() int { return rowSize * len(t.calibration.Rows) }
