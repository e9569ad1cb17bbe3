package pairing

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// draw makes pairs of which many are as good as others.
func draw(r *rand.Rand, rows, objects int) (pairs []Pair) {
	seen := make(map[[2]uint32]bool)
	for range r.IntN(4 * rows) {
		p := Pair{uint32(r.IntN(rows)), uint32(r.IntN(objects)), float64(r.IntN(5)) / 4}
		if !seen[[2]uint32{p.Row, p.Object}] {
			seen[[2]uint32{p.Row, p.Object}] = true
			pairs = append(pairs, p)
		}
	}
	return pairs
}

// TestOneToOne: nothing comes twice, no pair that was left out is better than what either of its sides has, and what is found above a threshold is what
// is found with it.
func TestOneToOne(t *testing.T) {
	r := seeded.Rand(t)
	for range 300 {
		all := draw(r, 1+r.IntN(12), 1+r.IntN(12))
		some := slices.Clone(all)
		r.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		chosen := OneToOne(some)
		row, object := make(map[uint32]float64), make(map[uint32]float64)
		for _, p := range chosen {
			if _, ok := row[p.Row]; ok {
				t.Fatalf("row %d comes twice: %v", p.Row, chosen)
			}
			if _, ok := object[p.Object]; ok {
				t.Fatalf("object %d comes twice: %v", p.Object, chosen)
			}
			row[p.Row], object[p.Object] = p.Score, p.Score
		}
		for _, p := range all {
			a, hasA := row[p.Row]
			b, hasB := object[p.Object]
			if (!hasA || a < p.Score) && (!hasB || b < p.Score) {
				t.Fatalf("%v is left out of %v", p, chosen)
			}
		}
		threshold := float64(r.IntN(5)) / 4
		below := func(p Pair) bool { return p.Score < threshold }
		if with := OneToOne(slices.DeleteFunc(slices.Clone(all), below)); !slices.Equal(with, slices.DeleteFunc(slices.Clone(chosen), below)) {
			t.Fatalf("with the threshold %v: %v, not those of %v", threshold, with, chosen)
		}
	}
}

// TestClusters: two rows are in one cluster if, and only if, pairs lead from one to the other.
func TestClusters(t *testing.T) {
	r := seeded.Rand(t)
	for range 200 {
		n := 1 + r.IntN(12)
		pairs := draw(r, n, n)
		reached := make([][]bool, n)
		for i := range reached {
			reached[i] = make([]bool, n)
			reached[i][i] = true
		}
		for _, p := range pairs {
			reached[p.Row][p.Object], reached[p.Object][p.Row] = true, true
		}
		for k := range n {
			for i := range n {
				for j := range n {
					reached[i][j] = reached[i][j] || reached[i][k] && reached[k][j]
				}
			}
		}
		for i, cluster := range Clusters(n, Undirected(pairs)) {
			if want := slices.Index(reached[i], true); int(cluster) != want {
				t.Fatalf("row %d of %v is in %d, not in %d", i, pairs, cluster, want)
			}
		}
	}
}

func TestUndirected(t *testing.T) {
	got := Undirected([]Pair{{2, 1, .5}, {1, 2, .75}, {0, 2, 1}, {1, 2, .25}})
	if want := []Pair{{0, 2, 1}, {1, 2, .75}}; !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
	got = Apart([]Pair{{0, 1, .5}, {1, 2, .75}, {2, 3, .7}, {3, 4, .1}})
	if want := []Pair{{1, 2, .75}, {3, 4, .1}}; !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}

func TestJudge(t *testing.T) {
	pairs := []Pair{{0, 0, 1}, {1, 1, .8}, {2, 3, .8}, {3, 2, .1}}
	right := func(p Pair) bool { return p.Row == p.Object }
	got := Judge(pairs, right, 4, []float64{0, .8, .9, 1.5})
	want := []Quality{
		{0, 4, 2, .5, .5, .5}, {.8, 3, 2, 2. / 3, .5, 4. / 7},
		{.9, 1, 1, 1, .25, .4}, {1.5, 0, 0, 1, 0, 0},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v,\nnot %v", got, want)
	}
	if Best(got) != 1 || Best(nil) != -1 {
		t.Errorf("the best are %d and %d", Best(got), Best(nil))
	}
}
