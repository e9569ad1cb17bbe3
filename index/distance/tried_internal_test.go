package distance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/cost"
	"github.com/geniemq/geniemq/index/metric/tree"
	"github.com/geniemq/geniemq/internal/testkit/raced"
)

// TestRatioBetween: between the numbers of nearest that were tried the ratio is a power of them, beyond it is that of the last one; within a radius it is its own.
func TestRatioBetween(t *testing.T) {
	p := ratios{1, 2, 8, 5}
	for _, c := range []struct {
		k    int
		hits float64
		want float64
	}{{1, 1, 1}, {10, 10, 2}, {10, math.Sqrt(10), math.Sqrt2}, {100, math.Sqrt(1000), 4}, {100, 100, 8}, {100, 5000, 8}, {1, 0, 1}, {0, 10, 5}} {
		if got := p.of(tree.Row{K: c.k, Work: tree.Work{Hits: c.hits}}); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("of %v nearest the ratio is %v, not %v", c.hits, got, c.want)
		}
	}
}

// TestTreesAreTried: trees of all sorts of searchers are tried, which ends in time, and what is expected of a search is then what its parts take, times the ratio. Where there is no searcher, or nothing is
// measured, it is what they take.
func TestTreesAreTried(t *testing.T) {
	raced.Skip(t, raced.One)
	rng := rand.New(rand.NewPCG(1, 2))
	numbers := make([]float32, 12_000)
	for i := range numbers {
		numbers[i] = rng.Float32()
	}
	vectors := func(m metric.Metric, dims int) metric.Space {
		s, err := metric.NewVectors(m, dims, numbers)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	texts, err := metric.NewTexts(2000, func(i uint32) string { return fmt.Sprint(numbers[i]) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		space  metric.Space
		bounds tree.Bounds
	}{
		{"few", vectors(metric.Metric{Kind: metric.L2}, 3), tree.Box}, {"boxes", vectors(metric.Metric{Kind: metric.Cosine}, 3), tree.Box},
		{"pivots", vectors(metric.Metric{Kind: metric.L1}, 12), tree.Pivot}, {"texts", texts, tree.Pivot},
	} {
		built, err := tree.Build(t.Context(), c.space, tree.Options{Bounds: c.bounds, Capacity: 8, Leaf: 16})
		if err != nil {
			t.Fatal(err)
		}
		o := openedTree{built, rows{}}
		s, err := o.Bind(c.space)
		if err != nil {
			t.Fatal(err)
		}
		if _, few := s.(fewSearcher); few != (c.name == "few") {
			t.Fatalf("%s: the searcher is a %T", c.name, s)
		}
		a, err := s.(tried).try(7, metric.Want{K: 3, Most: math.Inf(1)}, &brief{left: look})
		if err != nil || len(a.Hits) != 3 || a.Work.Distances == 0 {
			t.Errorf("%s: a search that is tried finds %v: %v", c.name, a, err)
		}
		d := cost.Host()
		on := On{Device: d, Distance: d.Distance(cost.Object{Metric: c.space.Metric(), Dims: 3}), Searcher: s}
		all := o.ratios(on, tree.PricesOn(d, on.Distance))
		for kind, x := range all {
			if len(all) != kinds || !(x > 0.01 && x < 100) || x == 1 {
				t.Errorf("%s: the ratio of searches %d is %v", c.name, kind, x)
			}
		}
		asked := &Asked{Want: metric.Want{K: 10, Most: math.Inf(1)}, Distance: on.Distance}
		for _, on := range []On{{Device: cost.Reference(), Distance: on.Distance, Searcher: s}, {Device: d, Distance: on.Distance}} {
			if got, want := o.Price(on)(asked), built.Cost(tree.PricesOn(on.Device, on.Distance), built.Expect(asked.Want)); got != want {
				t.Errorf("%s: without a ratio a search takes %v, and its parts %v", c.name, got, want)
			}
		}
	}
}

// TestBriefEnds: a search that takes long is stopped, one that does not never looks at the clock.
func TestBriefEnds(t *testing.T) {
	b := &brief{left: look}
	if b.Did(look - 1); b.Stop() || !b.until.IsZero() {
		t.Error("a short search looks at the clock")
	}
	for range 1 << 30 {
		if b.Did(look); b.Stop() {
			return
		}
	}
	t.Error("a long search does not end")
}

// TestPricedLikeObjects: a path is priced by what a distance takes of a query like the objects, which of texts depends on their length, with the searcher that is bound.
func TestPricedLikeObjects(t *testing.T) {
	var on On
	c := &Column{Of: Texts, Metric: metric.Metric{Kind: metric.Edit}, Objects: 100, texts: reads{}}
	c.paths = []opened{{"tree", toldOn{on: &on}}}
	bound := fewSearcher{}
	p := c.Planner(cost.Reference(), 100, map[string]Searcher{"tree": bound})
	if want := p.each.Asked(reads{}.Text(0)); on.Distance != want || want.Alone <= 1.5*p.each.Alone || on.Searcher != Searcher(bound) || on.Device.Measured() {
		t.Errorf("a path over texts of two blocks is priced on %+v, a distance from one takes %+v", on, want)
	}
}

// toldOn is a path that tells on what it was priced.
type toldOn struct {
	path
	on *On
}

func (p toldOn) Price(on On) Price {
	*p.on = on
	return p.path.Price(on)
}

// reads are texts of 72 symbols.
type reads struct{}

func (reads) Text(uint32) string { return strings.Repeat("acgt", 18) }
func (reads) TextBytes() int64   { return 7200 }
