package permutation

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/recall"
)

// grid is a space of points whose coordinates are small whole numbers, under the sum of differences: distances tie, and points lie on each other.
type grid [][]int

func someGrid(rng *rand.Rand, n int) grid {
	g, dims, side := make(grid, n), 1+rng.IntN(4), 1+rng.IntN(9)
	for i := range g {
		g[i] = somePoint(rng, dims, side)
	}
	return g
}

func somePoint(rng *rand.Rand, dims, side int) []int {
	p := make([]int, dims)
	for j := range p {
		p[j] = rng.IntN(side)
	}
	return p
}

func (g grid) Len() uint32           { return uint32(len(g)) }
func (g grid) Metric() metric.Metric { return metric.Metric{Kind: metric.L1} }
func (g grid) Of(i uint32) metric.Asker {
	return gridAsker{g, g[i]}
}

type gridAsker struct {
	grid
	point []int
}

func (a gridAsker) Value(i uint32) float64 {
	sum := 0
	for j, v := range a.grid[i] {
		sum += max(v-a.point[j], a.point[j]-v)
	}
	return float64(sum)
}

func (a gridAsker) Values(lo, hi uint32, dst []float64) {
	for i := range dst[:hi-lo] {
		dst[i] = a.Value(lo + uint32(i))
	}
}

// someSpace is a grid, or vectors, points or texts under any metric, with few values and objects on each other.
func someSpace(t testing.TB, rng *rand.Rand, n int) metric.Space {
	t.Helper()
	kinds := []metric.Metric{{Kind: metric.L1}, {Kind: metric.L2}, {Kind: metric.Linf}, {Kind: metric.Lp, P: 3}, {Kind: metric.Cosine}, {Kind: metric.Angular},
		{Kind: metric.Hamming}, {Kind: metric.Edit}, {Kind: metric.Geo}, {}}
	m, side := kinds[rng.IntN(len(kinds))], 1+rng.IntN(9)
	var space metric.Space
	var err error
	switch m.Kind {
	case "":
		return someGrid(rng, n)
	case metric.Edit:
		all := make([]string, n)
		for i := range all {
			for range rng.IntN(6) {
				all[i] += string(rune('a' + rng.IntN(min(3, side))))
			}
		}
		space, err = metric.NewTexts(uint32(n), func(i uint32) string { return all[i] }, nil)
	case metric.Geo:
		var units []float64
		for range n {
			unit, err := metric.Unit(float64(rng.IntN(side)*10), float64(rng.IntN(side)*20))
			if err != nil {
				t.Fatal(err)
			}
			units = append(units, unit[:]...)
		}
		space, err = metric.NewPoints(units)
	default:
		dims := 1 + rng.IntN(20)
		floats, bytes := make([]float32, 0, n*dims), make([]uint8, 0, n*dims)
		for range n {
			for range dims {
				bytes = append(bytes, uint8(1+rng.IntN(side)))
				floats = append(floats, float32(bytes[len(bytes)-1])*.1)
			}
		}
		if space, err = metric.NewVectors(m, dims, floats); rng.IntN(2) == 0 {
			space, err = metric.NewVectors(m, dims, bytes)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return space
}

// defined is the definition of a search in words of the package's comment: rank vectors by counting, all objects sorted.
type defined struct {
	space      metric.Space
	permutants []uint32
	similarity Similarity
	objects    [][]int // their ranks
}

func define(x *Index, space metric.Space) defined {
	d := defined{space: space, permutants: x.Permutants(), similarity: x.Parameters().Similarity}
	for id := range space.Len() {
		d.objects = append(d.objects, d.ranks(space.Of(id)))
	}
	return d
}

func (d defined) ranks(a metric.Asker) []int {
	ranks, values := make([]int, len(d.permutants)), make([]float64, len(d.permutants))
	for j, p := range d.permutants {
		values[j] = a.Value(p)
	}
	for j, v := range values {
		for i, w := range values {
			if w < v || w == v && i < j {
				ranks[j]++
			}
		}
	}
	return ranks
}

// order is that of all objects by (rank distance, id).
func (d defined) order(a metric.Asker) []uint32 {
	type far struct {
		distance int
		id       uint32
	}
	own := d.ranks(a)
	all := make([]far, d.space.Len())
	for id := range all {
		all[id].id = uint32(id)
		for j, r := range d.objects[id] {
			difference := max(r-own[j], own[j]-r)
			if d.similarity == Rho {
				difference *= difference
			}
			all[id].distance += difference
		}
	}
	slices.SortStableFunc(all, func(x, y far) int { return x.distance - y.distance })
	ids := make([]uint32, len(all))
	for i, f := range all {
		ids[i] = f.id
	}
	return ids
}

// wanted are the hits that are wanted of some objects.
func wanted(a metric.Asker, ids []uint32, want metric.Want) []metric.Hit {
	var hits []metric.Hit
	for _, id := range ids {
		if v := a.Value(id); v <= want.Most {
			hits = append(hits, metric.Hit{Value: v, ID: id})
		}
	}
	slices.SortFunc(hits, func(x, y metric.Hit) int {
		if x.Less(y) {
			return -1
		}
		return 1
	})
	return hits[:max(0, min(len(hits), want.K))]
}

// heldOut says whether an object was a query of the table.
func heldOut(x *Index, id uint32) bool {
	m := uint32(len(x.permutants))
	drawn := recall.Draw(x.objects, m+uint32(max(0, x.parameters.HeldOut)), x.parameters.Seed)
	return slices.Contains(drawn[m:], id)
}
