package metric

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index/metric/sums"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestVectors: the values of every metric and storage are the definition's to the bit, of queries from outside and of objects, alone, in runs, for many queries at once and in
// another order.
func TestVectors(t *testing.T) {
	rng := seeded.Rand(t)
	for _, dims := range []int{1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 100, 128, 301} {
		n := 1 + rng.IntN(40)
		for _, w := range worlds(rng, dims, n, 1+rng.IntN(n)) {
			for _, m := range ofVectors() {
				testSpace(t, rng, w, m)
			}
		}
	}
}

func testSpace(t *testing.T, rng *rand.Rand, w *world, m Metric) {
	t.Helper()
	what := fmt.Sprintf("%v, %s, %d dimensions, %d objects", m, w.name, w.dims, len(w.rows))
	s, err := w.make(m)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	kernels := sums.All()
	s.kernels = &kernels[rng.IntN(len(kernels))]
	what += ", " + s.kernels.Name
	var askers []Asker
	var queries [][]float64
	add := func(a Asker, v []float32) {
		wide := make([]float64, len(v))
		for i, e := range v {
			wide[i] = float64(e)
		}
		askers, queries = append(askers, a), append(queries, wide)
	}
	for range 1 + rng.IntN(9) {
		if i := rng.IntN(len(w.rows)); rng.IntN(2) == 0 {
			add(s.Of(uint32(i)), w.rows[i])
			continue
		}
		v := slices.Clone(w.rows[rng.IntN(len(w.rows))])
		v[rng.IntN(len(v))] = float32(rng.IntN(300)) / float32(1+rng.IntN(2))
		a, err := s.Query(v)
		if err != nil {
			if m.Admits(v) == nil {
				t.Fatalf("%s: %v of %v", what, err, v)
			}
			continue
		}
		add(a, v)
	}
	n := len(w.rows)
	want := make([]float64, len(askers)*n)
	o := make([]float64, w.dims)
	for i, q := range queries {
		for j := range w.rows {
			s.Coordinates(uint32(j), o)
			want[i*n+j] = defined(m, q, o)
		}
	}
	order := make([]uint32, rng.IntN(2*n))
	for i := range order {
		order[i] = rng.Uint32N(uint32(n))
	}
	compareSpace(t, rng, what, s, askers, want)
	with, err := s.UseNorms(s.Norms(nil))
	if err != nil {
		t.Fatal(err)
	}
	normed := make([]float64, n)
	for i, q := range queries {
		with.rows.asker(with, sums.NewQuery(q)).Values(0, uint32(n), normed)
		for j := range normed {
			if !same(normed[j], want[i*n+j]) {
				t.Fatalf("%s: with norms object %d has %v, want %v", what, j, normed[j], want[i*n+j])
			}
		}
	}
	one, err := s.Permuted(order)
	if err != nil {
		t.Fatal(err)
	}
	backwards, again := make([]uint32, n), make([]uint32, len(order))
	for i := range backwards {
		backwards[i] = uint32(n - 1 - i)
	}
	for i, at := range order {
		again[i] = backwards[at]
	}
	two, err := s.Permuted(backwards)
	if err == nil {
		two, err = two.Permuted(again)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*Vectors{one, two} {
		got := make([]float64, len(order))
		for i, q := range queries {
			p.rows.asker(p, sums.NewQuery(q)).Values(0, uint32(len(order)), got)
			for j, v := range got {
				if w := want[i*n+int(order[j])]; !same(v, w) {
					t.Fatalf("%s: in another order, place %d has %v, want %v", what, j, v, w)
				}
			}
		}
	}
}

// compareSpace asks for all values in all ways.
func compareSpace(t *testing.T, rng *rand.Rand, what string, s Space, askers []Asker, want []float64) {
	t.Helper()
	n := int(s.Len())
	lo := rng.IntN(n + 1)
	hi := lo + rng.IntN(n-lo+1)
	most := want[rng.IntN(len(want))]
	block := make([]float64, len(askers)*(hi-lo))
	Block(askers, uint32(lo), uint32(hi), block)
	run := make([]float64, hi-lo)
	for i, a := range askers {
		check := func(way string, j int, got float64) {
			t.Helper()
			if w := want[i*n+j]; !same(got, w) {
				t.Fatalf("%s: %s query %d and object %d have the value %v, want %v", what, way, i, j, got, w)
			}
		}
		for j := range n {
			check("alone", j, a.Value(uint32(j)))
		}
		some := make([]uint32, n)
		for j := range some {
			some[j] = uint32(rng.IntN(n))
		}
		apart := make([]float64, n)
		for _, most := range []float64{math.Inf(1), most} {
			ValuesOf(askers[rng.IntN(len(askers))], a, some, most, apart)
			for j, v := range apart {
				if w := want[i*n+int(some[j])]; w <= most || !math.IsInf(v, 1) {
					check("apart", int(some[j]), v)
				}
			}
		}
		a.Values(uint32(lo), uint32(hi), run)
		for j, v := range run {
			check("in a run", lo+j, v)
			check("in a block", lo+j, block[i*(hi-lo)+j])
		}
		ValuesTo(a, uint32(lo), uint32(hi), most, run)
		for j, v := range run {
			if w := want[i*n+lo+j]; w > most && math.IsInf(v, 1) {
				continue
			}
			check("cut off", lo+j, v)
		}
	}
}

// scan asks for the k nearest of each query within a radius by Scan, limits falling.
func scan(s Space, askers []Asker, lo, hi uint32, k int, most []float64, step uint32) [][]Hit {
	best := make([]Best, len(askers))
	limits := slices.Clone(most)
	for i := range best {
		best[i].Reset(Want{k, most[i]})
	}
	for ; lo < hi; lo += min(step, hi-lo) {
		Scan(askers, lo, min(hi, lo+step), limits, func(query int, object uint32, value float64) {
			if !(value <= limits[query]) {
				panic("an object beyond the limit")
			}
			best[query].Add(Hit{value, object})
			limits[query] = best[query].Bound()
		})
	}
	hits := make([][]Hit, len(askers))
	for i := range best {
		hits[i] = slices.Clone(best[i].Sorted())
	}
	return hits
}

// TestScan: a scan finds what comparing one by one finds, whatever is dropped by products: of friendly vectors and of those that are near each other far from 0, tiny, huge, not normal,
// damaged.
func TestScan(t *testing.T) {
	rng := seeded.Rand(t)
	dropping, laid := 0, 0
	for range 40 {
		dims := []int{1, 2, 8, 17, 40, 129}[rng.IntN(6)]
		n := 1 + rng.IntN(600)
		each := 1 + rng.IntN(n)
		if rng.IntN(2) == 0 { // panels
			each = (each + sums.Panel - 1) / sums.Panel * sums.Panel
		}
		for _, w := range append(worlds(rng, dims, n, each), scanWorlds(rng, dims, n)...) {
			m := []Metric{{L2, 0}, {Cosine, 0}, {Angular, 0}, {IP, 0}, {L1, 0}}[rng.IntN(5)]
			s, err := w.make(m)
			if err != nil {
				t.Fatal(err)
			}
			kernels := sums.All()
			s.kernels = &kernels[rng.IntN(len(kernels))]
			if rng.IntN(2) == 0 {
				s = s.UsePanels()
			}
			var space Space = s
			if rng.IntN(3) == 0 {
				order := make([]uint32, n)
				for i := range order {
					order[i] = rng.Uint32N(uint32(n))
				}
				if space, err = s.Permuted(order); err != nil {
					t.Fatal(err)
				}
			}
			var askers []Asker
			for range 1 + rng.IntN(20) {
				i := rng.Uint32N(uint32(n))
				askers = append(askers, space.Of(i))
				if v := slices.Clone(w.rows[i]); rng.IntN(4) == 0 { // with an element that storages do not hold
					v[rng.IntN(dims)] += 0.3
					if a, err := space.(interface {
						Query(v []float32) (Asker, error)
					}).Query(v); err == nil {
						askers = append(askers, a)
					}
				}
			}
			lo := rng.Uint32N(uint32(n))
			hi := lo + rng.Uint32N(uint32(n)-lo+1)
			k, step := 1+rng.IntN(12), 1+rng.Uint32N(300)
			if rng.IntN(2) == 0 {
				lo, step = lo&^(sums.Panel-1), sums.Panel*(1+step/sums.Panel)
			}
			most, values := make([]float64, len(askers)), make([]float64, n)
			want := make([][]Hit, len(askers))
			for i, a := range askers {
				a.Values(0, uint32(n), values)
				most[i] = values[rng.IntN(n)]
				if rng.IntN(3) == 0 {
					most[i] = math.Inf(1)
				}
				var best Best
				best.Reset(Want{k, most[i]})
				for j := lo; j < hi; j++ {
					best.Add(Hit{values[j], j})
				}
				want[i] = slices.Clone(best.Sorted())
			}
			// Twice, since what is kept of queries serves the next call.
			for range 2 {
				got := scan(space, askers, lo, hi, k, most, step)
				for i := range want {
					if !slices.Equal(got[i], want[i]) {
						t.Fatalf("%v, %s, %s, %d dimensions, objects %d to %d, k %d within %v: %v, want %v", m, w.name, s.kernels.Name, dims, lo, hi, k, most[i], got[i], want[i])
					}
				}
			}
			if a, ok := askers[0].(*vectorAsker[float32]); ok && len(a.dense) < len(askers) && len(a.packedOf) > 0 {
				dropping++
				if s.laid != nil && space == Space(s) && len(s.laid.squares) > 0 {
					laid++
				}
			}
		}
	}
	if sums.All()[0].Sieves() && (dropping < 10 || laid == 0) {
		t.Errorf("%d scans dropped anything, %d of them in panels of the space: the test shows too little", dropping, laid)
	}
}

// TestQueryIn: queries in the memory of earlier ones, which were compared together, find what new ones find.
func TestQueryIn(t *testing.T) {
	rng := seeded.Rand(t)
	for range 10 {
		dims, n := []int{1, 8, 17, 40}[rng.IntN(4)], 40+rng.IntN(300)
		for _, w := range worlds(rng, dims, n, 1+rng.IntN(n)) {
			m := ofVectors()[rng.IntN(len(ofVectors()))]
			s, err := w.make(m)
			if err != nil {
				t.Fatal(err)
			}
			old := make([]Asker, 12)
			for round, asked := range []int{4, 12, 12, 12} {
				var askers, fresh []Asker
				for i := range old[:asked] {
					v := slices.Clone(w.rows[rng.IntN(n)])
					if rng.IntN(3) == 0 {
						v[rng.IntN(dims)] += 0.3
					}
					a, err := s.Query(v)
					if err != nil {
						continue
					}
					if old[i], err = s.QueryIn(old[i], v); err != nil {
						t.Fatal(err)
					}
					askers, fresh = append(askers, old[i]), append(fresh, a)
				}
				if len(askers) == 0 {
					continue
				}
				most := slices.Repeat([]float64{math.Inf(1)}, len(askers))
				if got, want := scan(s, askers, 0, uint32(n), 5, most, 100), scan(s, fresh, 0, uint32(n), 5, most, 100); !reflect.DeepEqual(got, want) {
					t.Fatalf("%v, %s, round %d: %v, want %v", m, w.name, round, got, want)
				}
				for i, a := range askers {
					if j := rng.Uint32N(uint32(n)); !same(a.Value(j), fresh[i].Value(j)) {
						t.Fatalf("%v, %s, round %d: %v, want %v", m, w.name, round, a.Value(j), fresh[i].Value(j))
					}
				}
			}
		}
	}
}

// TestScanTiny: directions of vectors whose squares vanish in float32s are compared all the same.
func TestScanTiny(t *testing.T) {
	const n = 64
	rows := make([]float32, 2*n)
	for i := range n {
		rows[2*i] = -1
	}
	for _, i := range []int{3, 40} { // nearly at a right angle, on the far side
		rows[2*i], rows[2*i+1] = -0.05e-30, 1e-30
	}
	s, err := NewVectors(Metric{Kind: Angular}, 2, rows)
	if err != nil {
		t.Fatal(err)
	}
	var askers []Asker
	for range 8 {
		a, err := s.Query([]float32{1, 0})
		if err != nil {
			t.Fatal(err)
		}
		askers = append(askers, a)
	}
	found := 0
	Scan(askers, 0, n, slices.Repeat([]float64{0.1}, len(askers)), func(_ int, object uint32, value float64) {
		if found++; object != 3 && object != 40 || math.Abs(value-0.05) > 1e-3 {
			t.Errorf("object %d has the value %v", object, value)
		}
	})
	if found != 2*len(askers) {
		t.Errorf("%d are found, want 2 for each of %d queries", found, len(askers))
	}
}

// TestAllocations: once an asker has its memory, comparing takes none.
func TestAllocations(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, w := range worlds(rng, 40, 200, 60) {
		for _, m := range []Metric{{L2, 0}, {Cosine, 0}, {Lp, 3}} {
			s, err := w.make(m)
			if err != nil {
				t.Fatal(err)
			}
			var askers []Asker
			for i := range uint32(8) {
				askers = append(askers, s.Of(i))
			}
			dst, limits := make([]float64, 8*200), make([]float64, 8)
			found := func(int, uint32, float64) {}
			if n := testing.AllocsPerRun(20, func() {
				askers[0].Value(7)
				askers[0].Values(0, 200, dst)
				Block(askers, 0, 200, dst)
				Scan(askers, 0, 200, limits, found)
			}); n > 0 {
				t.Errorf("%v, %s: %v allocations", m, w.name, n)
			}
		}
	}
}

// scanWorlds are vectors that products of float32s tell apart badly, or not at all.
func scanWorlds(rng *rand.Rand, dims, n int) []*world {
	size := float32(math.Ldexp(1, rng.IntN(150)-75))
	damaged := []float32{float32(math.NaN()), float32(math.Inf(1)), math.MaxFloat32, 0, 1e-45}
	at, scale := 0, 0
	return []*world{
		worldOf("rows", dims, n, n, func() float32 { // each of its own size
			if at++; at%dims == 0 {
				scale = rng.IntN(180) - 100
			}
			return float32(math.Ldexp(rng.NormFloat64(), scale*(at/dims%2)))
		}),
		worldOf("mean", dims, n, n, func() float32 { return float32(1000 + rng.NormFloat64()*math.Ldexp(1, -rng.IntN(20))) }),
		worldOf("sized", dims, n, n, func() float32 { return size * float32(rng.NormFloat64()) }),
		worldOf("mixed", dims, n, n, func() float32 { return float32(math.Ldexp(rng.NormFloat64(), -rng.IntN(2)*rng.IntN(100))) }),
		worldOf("damaged", dims, n, n, func() float32 {
			if rng.IntN(200*dims) == 0 {
				return damaged[rng.IntN(len(damaged))]
			}
			return float32(rng.NormFloat64())
		}),
	}
}
