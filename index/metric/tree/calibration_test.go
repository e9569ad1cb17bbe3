package tree

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/geniemq/geniemq/index/metric"
)

// real are data sets of some size, by name.
func real(t testing.TB) map[string]metric.Space {
	list := words(t)
	rng := rand.New(rand.NewPCG(6, 6))
	rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	list = list[:20000]
	texts, err := metric.NewTexts(uint32(len(list)), func(i uint32) string { return list[i] }, nil)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]metric.Space{
		"cities15000 L2": vectors(t, metric.L2, 2, cities(t)), "nasa_atmos L1": vectors(t, metric.L1, 7, atmosphere(t)),
		"optdigits L1": vectors(t, metric.L1, 64, digits(t)), "words": texts,
	}
}

// TestCalibrationPredicts: what a search does is between 0.67 and 1.5 of what was expected, for each capacity and data set, by k and by radius. Queries are other
// objects than those that calibrated.
func TestCalibrationPredicts(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds 36 trees")
	}
	capacities := []int{4, 8, 16, 32, 64, 128}
	if os.Getenv("GENIEMQ_FULL") == "" {
		capacities = []int{4, 16, 128} // `geniemq bench capacity` has all, of more data
	}
	for name, space := range real(t) {
		asked := heldOut(int(space.Len()))
		for _, b := range boundsOf(space.Metric()) {
			if name == "optdigits L1" && b == Box {
				continue // boxes of 64 coordinates hold everything
			}
			for _, capacity := range capacities {
				tree := mustBuild(t, space, Options{Bounds: b, Capacity: capacity, Leaf: 32, Seed: 3})
				least, one, three := tree.own()[3].Reach, tree.own()[12].Reach, tree.own()[13].Reach // within which are a ten-thousandth of all pairs, 1 and 3 %
				for _, want := range []metric.Want{
					{K: 1, Most: math.Inf(1)}, {K: 10, Most: math.Inf(1)}, {K: 100, Most: math.Inf(1)}, {K: math.MaxInt, Most: tree.own()[4].value(tree)},
					{K: math.MaxInt, Most: tree.measure.value(0.4 * least)}, {K: math.MaxInt, Most: tree.measure.value((one + three) / 2)}, {K: math.MaxInt, Most: tree.measure.value(3 * three / 2)},
				} {
					did := Work{}
					for _, object := range asked {
						got, err := tree.Search(context.Background(), Ask{Asker: tree.Positions(space.Of(object)), Want: want, Pass: func(id uint32) bool { return id != object }})
						if err != nil {
							t.Fatal(err)
						}
						did.add(got.Work)
					}
					expected := tree.Expect(want).Work
					ratio := (expected.Nodes + expected.Distances) * float64(len(asked)) / (did.Nodes + did.Distances)
					blocks := expected.Blocks * float64(len(asked)) / did.Blocks
					if !(ratio > 0.67 && ratio < 1.5 && blocks > 0.67 && blocks < 1.5) {
						t.Errorf("%s, %v, %+v: %.2f of the distances and %.2f of the blocks are expected", name, tree.Shape(), want, ratio, blocks)
					}
				}
			}
		}
	}
}

func (r Row) value(t *Tree) float64 { return t.measure.value(r.Reach) }

// TestChoice: of the shapes that were considered, the one that was built takes at most 15 % more than the best, over what is wanted often (the mean of logarithms), by the work that queries
// which did not calibrate are counted to do, times the reference device's constants. Times, and the choice among paths, are what `geniemq bench choice` measures.
func TestChoice(t *testing.T) {
	if os.Getenv("GENIEMQ_FULL") == "" {
		t.Skip("it builds 180 trees: GENIEMQ_FULL=1")
	}
	for name, space := range real(t) {
		chosen := mustBuild(t, space, Options{})
		wants := []metric.Want{{K: 1, Most: math.Inf(1)}, {K: 10, Most: math.Inf(1)}, {K: 100, Most: math.Inf(1)}, {K: math.MaxInt, Most: chosen.own()[8].value(chosen)}}
		own := counted(t, chosen, space, wants)
		best, which := own, chosen.Shape()
		for _, b := range boundsOf(space.Metric()) {
			for _, capacity := range []int{4, 8, 16, 32, 64, 128} {
				for _, leaf := range []int{32, 128, 512} {
					tree := mustBuild(t, space, Options{Bounds: b, Capacity: capacity, Leaf: leaf})
					if cost := counted(t, tree, space, wants); cost < best {
						best, which = cost, tree.Shape()
					}
				}
			}
		}
		t.Logf("%s: %v takes %.1f us, %.2f of the best, %v", name, chosen.Shape(), own/1e3, own/best, which)
		if own > 1.15*best {
			t.Errorf("%s: %v takes %.2f of what %v does", name, chosen.Shape(), own/best, which)
		}
	}
}

// counted is what searches for held-out objects take per query on the reference device, by the work that they do, in the mean of logarithms.
func counted(t *testing.T, tree *Tree, space metric.Space, wants []metric.Want) (nanoseconds float64) {
	t.Helper()
	asked := heldOut(int(space.Len()))
	for _, want := range wants {
		did := Work{}
		for _, object := range asked {
			got, err := tree.Search(context.Background(), Ask{Asker: tree.Positions(space.Of(object)), Want: want, Pass: func(id uint32) bool { return id != object }})
			if err != nil {
				t.Fatal(err)
			}
			did.add(got.Work)
		}
		n := float64(len(asked))
		row := Row{Bounds: tree.bounds, Capacity: tree.capacity, Leaf: tree.leaf, Height: tree.height, Work: Work{did.Nodes / n, did.Blocks / n, did.Distances / n, did.Hits / n}}
		nanoseconds += math.Log(tree.Cost(tree.reference(), row)) / float64(len(wants))
	}
	return math.Exp(nanoseconds)
}
