package permutation

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/recall"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// farthest is the definition of the choice in words of choose's comment: all values of all that are drawn, every time.
func farthest(space metric.Space, pool []uint32, m, draws int) []uint32 {
	chosen, queue := []uint32{pool[0]}, slices.Clone(pool[1:])
	for len(chosen) < m {
		few, at, most := queue[:min(draws, len(queue))], 0, math.Inf(-1)
		for i, id := range few {
			least := math.Inf(1)
			for _, p := range chosen {
				least = min(least, space.Of(id).Value(p))
			}
			if least > most && least < math.Inf(1) {
				at, most = i, least
			}
		}
		chosen = append(chosen, few[at])
		again := slices.Delete(slices.Clone(few), at, at+1)
		queue = slices.Concat(queue[len(few):], again)
	}
	return chosen
}

// Permutants are those of the definition under every metric, of many objects and of a few that are drawn again and again, of copies, with any number of goroutines.
func TestPermutantsAreTheDefinition(t *testing.T) {
	rng := seeded.Rand(t)
	for range raced.Of(200, 20) {
		n := rng.IntN(3000)
		if rng.IntN(2) == 0 {
			n = rng.IntN(100)
		}
		space, p := someSpace(t, rng, n), some(rng)
		p.Permutants, p.HeldOut = 1+rng.IntN(30), rng.IntN(60)-1
		if p.HeldOut == 0 {
			p.HeldOut = -1 // 0 is the default
		}
		if rng.IntN(3) == 0 {
			p.draws = 1 + rng.IntN(40)
		}
		x, err := Build(t.Context(), space, p, 1+rng.IntN(4), nil)
		if err != nil {
			t.Fatal(err)
		}
		p = x.Parameters()
		m := min(n, p.Permutants)
		pool, held := p.lots(space.Len(), uint32(m))
		if len(x.permutants) != m || len(held) != min(n-m, max(0, p.HeldOut)) || len(pool) != min(n-len(held), m*p.draws) {
			t.Fatalf("%d objects, %+v: %d permutants of %d that may be, and %d held out", n, p, len(x.permutants), len(pool), len(held))
		}
		if slices.ContainsFunc(held, func(id uint32) bool { return slices.Contains(pool, id) }) {
			t.Fatalf("%d objects, %+v: what is held out may be a permutant", n, p)
		}
		if m == 0 {
			continue
		}
		want := farthest(space, pool, m, p.draws)
		if len(pool) == m {
			want = pool // all are, so their order is that of the draw
		}
		if !slices.Equal(x.Permutants(), want) {
			t.Fatalf("%d objects under %+v, %+v: the permutants are %v, not %v", n, space.Metric(), p, x.Permutants(), want)
		}
		if sorted := slices.Compact(slices.Sorted(slices.Values(want))); len(sorted) != m {
			t.Fatalf("%d objects, %+v: %v are not %d objects", n, p, want, m)
		}
	}
}

// One object for each permutant is no choice: the first of the draw, as builds had it before. Those files are read as they are, and what is held out is the same with any number of draws.
func TestOneDrawIsNoChoice(t *testing.T) {
	rng := seeded.Rand(t)
	space := someGrid(rng, 2000)
	p := Parameters{Permutants: 20, HeldOut: 30, Seed: rng.Uint64()}
	x := must(t, space, p)
	p.draws = 1
	before := must(t, space, p)
	first := recall.Draw(2000, 50, p.Seed)
	if !slices.Equal(before.Permutants(), first[:20]) {
		t.Errorf("the permutants are %v, not %v", before.Permutants(), first[:20])
	}
	for _, p := range []Parameters{x.Parameters(), before.Parameters()} {
		if _, held := p.lots(2000, 20); !slices.Equal(held, first[20:]) {
			t.Errorf("%d draws: %v are held out, not %v", p.draws, held, first[20:])
		}
	}
	opened, err := Open(before.Sections(), 2000)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(opened.Sections(), before.Sections()) {
		t.Error("an index of before is another once it is opened")
	}
}

// nearest is the least distance between two permutants.
func nearest(x *Index, space metric.Space) float64 {
	least := math.Inf(1)
	for i, p := range x.permutants {
		a := space.Of(p)
		for _, q := range x.permutants[:i] {
			least = min(least, space.Metric().Distance(a.Value(q)))
		}
	}
	return least
}

// Permutants are farther from each other than any objects are, whatever the seed: by a quarter at least with eight dimensions.
func TestPermutantsAreFarFromEachOther(t *testing.T) {
	rng := seeded.Rand(t)
	const n, dims = 5000, 8
	elements := make([]float32, n*dims)
	for i := range elements {
		elements[i] = rng.Float32()
	}
	space := vectors(t, metric.Metric{Kind: metric.L2}, dims, elements)
	for range 10 {
		p := Parameters{Permutants: 40, HeldOut: -1, Seed: rng.Uint64()}
		far := nearest(must(t, space, p), space)
		p.draws = 1
		if random := nearest(must(t, space, p), space); far < 1.25*random {
			t.Errorf("seed %d: the nearest two permutants are %.3f apart, those of no choice %.3f", p.Seed, far, random)
		}
	}
}

// Copies are no permutants beside each other, as long as there is anything else in a draw.
func TestCopiesAreChosenOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1)) // and fixed seeds: of twelve draws each may be a copy once in thousands
	space := make(grid, 4000)
	for i := range space {
		if space[i] = []int{500, 500}; i%2 == 0 {
			space[i] = []int{rng.IntN(1000), rng.IntN(1000)}
		}
	}
	for seed := range uint64(20) {
		copies := 0
		for _, id := range must(t, space, Parameters{Permutants: 32, HeldOut: -1, Seed: seed}).Permutants() {
			if slices.Equal(space[id], []int{500, 500}) {
				copies++
			}
		}
		if copies > 1 {
			t.Errorf("seed %d: %d of 32 permutants are copies of one object", seed, copies)
		}
	}
	for i := range space {
		space[i] = []int{1}
	}
	x := must(t, space, Parameters{Permutants: 32, HeldOut: -1})
	pool, _ := x.parameters.lots(4000, 32)
	for j, id := range x.Permutants() {
		if first := max(0, 1+(j-1)*draws); id != pool[first] {
			t.Errorf("of objects that are all equal permutant %d is object %d, and the first of its draw is %d", j, id, pool[first])
		}
	}
}

// Objects that are damaged have no distances, and must not become permutants by that: they would rank nothing.
func TestDamagedObjectsAreNotFar(t *testing.T) {
	rng := seeded.Rand(t)
	const n, dims = 2000, 4
	elements := make([]float32, n*dims)
	for i := range elements {
		if elements[i] = rng.Float32(); i/dims%4 == 0 {
			elements[i] = float32(math.NaN())
		}
	}
	for _, kind := range []metric.Kind{metric.L1, metric.L2, metric.Cosine, metric.Angular} { // linf has some value of what is damaged
		space := vectors(t, metric.Metric{Kind: kind}, dims, elements)
		x := must(t, space, Parameters{Permutants: 32, Seed: rng.Uint64()})
		sound := false // once one is known, what has no distance from it is damaged
		for j, id := range x.Permutants() {
			if damaged := id%4 == 0; damaged && sound {
				t.Errorf("%s: permutant %d is a damaged object", kind, j)
			} else if !damaged {
				sound = true
			}
		}
		if !sound {
			t.Errorf("%s: all permutants are damaged", kind)
		}
	}
	for i := range elements {
		elements[i] = float32(math.NaN())
	}
	space := vectors(t, metric.Metric{Kind: metric.L2}, dims, elements)
	if x := must(t, space, Parameters{}); len(x.Permutants()) != 64 {
		t.Errorf("of damaged objects alone %d are permutants", len(x.Permutants()))
	}
}
