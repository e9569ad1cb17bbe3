package cost

import (
	"math"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index/metric"
)

// What builders go by is written down: another number would build other files.
func TestReferenceStays(t *testing.T) {
	for _, c := range []struct {
		o    Object
		want float64
	}{
		{Object{Metric: metric.Metric{Kind: metric.L2}, Dims: 2, Bytes: 4}, 17}, {Object{Metric: metric.Metric{Kind: metric.Lp, P: 3}, Dims: 7}, 36},
		{Object{Metric: metric.Metric{Kind: metric.Geo}, Dims: 3}, 18}, {Object{Metric: metric.Metric{Kind: metric.Edit}}, 115},
	} {
		d := Reference()
		if x := d.Distance(c.o); x.Sieved != x.Alone {
			t.Errorf("%+v takes %+v on the reference device, where nothing is sieved for one query", c.o, x)
		}
		if got := d.Distance(c.o).Alone; got != c.want || d.Measured() || d.left != 0 {
			t.Errorf("%+v takes %v on the reference device, not %v", c.o, got, c.want)
		}
	}
	x := Reference().Distance(Object{Metric: metric.Metric{Kind: metric.Edit}, Length: 100})
	if long, short := x.Asked(strings.Repeat("a", 200)).Alone, x.Asked("abc").Alone; short != x.Alone || long != 70+4*carry*500 {
		t.Errorf("a text of 200 symbols takes %v, of 3 %v: it has 4 blocks", long, short)
	}
	words := Reference().Distance(Object{Metric: metric.Metric{Kind: metric.Edit}})
	if got := words.Within(1).Alone; got != 70+5*2/apart {
		t.Errorf("a word within an edit takes %v", got)
	}
	if half := words.Within(math.Inf(1)); half.Alone != 70+5*(9*halfway+1)/apart || half.Together != words.Together || words.Within(100) != half {
		t.Errorf("a word of any distance takes %+v, beside others %+v", half, words)
	}
	if long := x.Asked(strings.Repeat("a", 200)); long.Within(32).Alone != 70+carry*500*1.5 || long.Within(1e9).Alone != 70+carry*500*(1+192*halfway/64) || long.Within(32).Within(1e9) != long.Within(1e9) {
		t.Errorf("a text of 4 blocks takes %+v within 32 edits, and %+v within any", long.Within(32), long.Within(1e9))
	}
	numbers := Reference().Distance(Object{Metric: metric.Metric{Kind: metric.L2}, Dims: 2})
	if numbers.Within(0) != numbers {
		t.Errorf("a distance of numbers takes %+v where none is wanted", numbers.Within(0))
	}
	if x := (Distance{Alone: 300, Sieved: 100, Together: 10}); x.Among(1) != 100 || x.Among(9) != 20 || x.Among(0) != 100 {
		t.Errorf("among 9 queries %v", x.Among(9))
	}
}

// What is measured is measured once, for every metric and storage, and is no more than a factor from what is written down. Without time left it is the reference's.
func TestHostMeasures(t *testing.T) {
	all := []metric.Metric{{Kind: metric.L1}, {Kind: metric.L2}, {Kind: metric.Linf}, {Kind: metric.Lp, P: 8}, {Kind: metric.Cosine}, {Kind: metric.Angular}, {Kind: metric.Hamming}}
	for _, m := range all {
		for _, bytes := range []int{1, 2, 4} {
			for _, dims := range []int{1, 4096} {
				o := Object{Metric: m, Dims: dims, Bytes: bytes}
				d := Host()
				x, reference := d.Distance(o), Reference().Distance(o)
				if again := d.Distance(o); again != x {
					t.Errorf("%+v takes %+v and then %+v", o, x, again)
				}
				if !(x.Alone >= reference.Alone/far && x.Alone <= reference.Alone*far && x.Together > 0 && x.Together <= x.Sieved && x.Sieved <= x.Alone) || d.left >= budget {
					t.Errorf("%+v takes %+v, on the reference device %+v", o, x, reference)
				}
			}
		}
	}
	d := Host()
	plain := d.Of(Constant{Name: "any", Reference: 10}) / 10
	d.left = 0
	probed := false
	if got := d.Of(Constant{Name: "late", Reference: 7, Probe: func() int { probed = true; return 1 }}); probed || math.Abs(got-7*plain) > 1e-9 {
		t.Errorf("without time left a constant of 7 is %v, of code that takes %v; measured: %v", got, plain, probed)
	}
}

// TestRatios: searches that take many times as long as expected have as many times the ratio; the reference device makes none, and nobody more than a load may take.
func TestRatios(t *testing.T) {
	if ratios := Reference().Ratios(2, func(int, int) float64 { t.Error("the reference device searches"); return 1 }); ratios[0] != 1 || ratios[1] != 1 {
		t.Errorf("ratios of the reference device are %v", ratios)
	}
	sink := 0.0
	work := func(units int) {
		for i := range 1000 * units {
			sink += math.Sqrt(float64(i))
		}
	}
	d := Host()
	most := 0
	const times = 32
	ratios := d.Ratios(2, func(kind, n int) (expected float64) {
		most = max(most, n)
		for range n {
			work(1 + kind*(times-1))
			expected += 10_000
		}
		return expected
	})
	if most > MostTried || d.left > budget-2*kindTime || d.left < budget/4 {
		t.Errorf("%d searches at a time, and %v are left", most, d.left)
	}
	if r := ratios[1] / ratios[0]; r < times/4 || r > times*4 { // neighbours of the core may slow one of them down
		t.Errorf("what takes %d times as long has %.2f times the ratio", times, r)
	}
	d.left = 0
	if ratios := d.Ratios(1, func(int, int) float64 { t.Error("searches without time left"); return 1 }); ratios[0] != 1 {
		t.Errorf("without time left the ratio is %v", ratios[0])
	}
	if d.Load(); d.left != budget {
		t.Errorf("the next load has %v", d.left)
	}
	if ratios := d.Ratios(1, func(int, int) float64 { return math.NaN() }); ratios[0] != 1 {
		t.Errorf("the ratio of what failed is %v", ratios[0])
	}
}
