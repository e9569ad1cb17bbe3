package distance

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/cells"
	"github.com/geniemq/geniemq/index/metric/cost"
)

// By the reference device's prices it is chosen which answers are given, so they are what was written down: a scan and cells of one query have neither what is sieved nor what is read from memory. On a host
// they are what is measured.
func TestPricesOfOneQuery(t *testing.T) {
	const n, dims = 40_000, 32
	rng := rand.New(rand.NewPCG(1, 1))
	elements := make([]float32, n*dims)
	for i := range elements {
		elements[i] = float32(rng.IntN(8)) + float32(rng.NormFloat64())/16
	}
	m := metric.Metric{Kind: metric.L2}
	space, err := metric.NewVectors(m, dims, elements)
	if err != nil {
		t.Fatal(err)
	}
	x, err := cells.Build(t.Context(), space, cells.Parameters{Cells: 64, HeldOut: 64}, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &Column{Name: "v", Of: Vectors, Metric: m, Dims: dims, Storage: StorageF32, Objects: n}
	price := func(d *cost.Device, share float64) (scan, some float64) {
		p := c.Planner(d, n, nil)
		a := p.asked(&Query{Column: c, K: 10, Method: Auto, Most: math.Inf(1), Recall: share}, n)
		return p.scan(&a, 1), openedCells{Index: x}.Price(On{Device: d, Distance: p.each})(&a)
	}
	count := float64(x.Cells())
	for _, share := range []float64{0, .5} {
		probes := count
		if share > 0 {
			probes = float64(x.Probes(10, share))
		}
		scan, some := price(cost.Reference(), share)
		wantScan, wantSome := n*47+80*10*(1+math.Log(n/10)), count*(47+3)+probes*(40+n/count*47)
		if math.Abs(scan-wantScan) > 1e-6*scan || math.Abs(some-wantSome) > 1e-6*some {
			t.Errorf("recall %v: on the reference device a scan takes %v and cells %v, not %v and %v", share, scan, some, wantScan, wantSome)
		}
		if scan, some := price(cost.Host(), share); !(scan > 0 && some > 0 && scan < math.Inf(1) && some < math.Inf(1)) {
			t.Errorf("recall %v: here a scan takes %v and cells %v", share, scan, some)
		}
	}
}
