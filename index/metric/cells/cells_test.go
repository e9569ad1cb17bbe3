package cells

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/bound"
	"github.com/geniemq/geniemq/index/metric/recall"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// An exact search is comparing everything.
func TestExactSearchIsComparingEverything(t *testing.T) {
	rng := seeded.Rand(t)
	for range 300 {
		w := someWorld(t, rng, rng.IntN(300))
		x := must(t, w.space, some(rng))
		s := x.Searcher()
		for range 5 {
			by, at, near := w.query(t, rng, x)
			want, pass := wants(rng, by, x.Len())
			got, err := s.Search(t.Context(), near, at, want, 0, pass)
			if err != nil {
				t.Fatal(err)
			}
			if hits := first(by, all(x.Len()), want, pass); !slices.Equal(got.Hits, hits) || !got.Exact || got.Measured {
				t.Fatalf("%+v, %d objects, %d cells, %+v: %v, not %v; exact %v", w.space.Metric(), x.Len(), x.Cells(), want, got.Hits, hits, got.Exact)
			}
		}
	}
}

// A search with probes compares what is in the nearest cells, and in more of them until k objects that pass were compared, or as many as its table speaks of.
func TestProbesAreTheDefinition(t *testing.T) {
	rng := seeded.Rand(t)
	for range 300 {
		w := someWorld(t, rng, 1+rng.IntN(300))
		x := must(t, w.space, some(rng))
		s, parts := x.Searcher(), x.Sections()
		for range 5 {
			by, at, near := w.query(t, rng, x)
			want, pass := wants(rng, by, x.Len())
			probes := 1 + rng.IntN(x.Cells()+2)
			var order []metric.Hit
			for c := range x.Cells() {
				order = append(order, metric.Hit{Value: near.Value(uint32(c)), ID: uint32(c)})
			}
			var compared []uint32
			visited, passed := 0, 0
			for _, c := range sorted(order) {
				if want.K == 0 || visited >= probes && (passed >= x.Recall().Neighbours(want.K) || want.K == math.MaxInt) {
					break
				}
				visited++
				for _, id := range parts.Order[parts.Starts[c.ID]:parts.Starts[c.ID+1]] {
					compared = append(compared, id)
					if pass == nil || pass(id) {
						passed++
					}
				}
			}
			got, err := s.Search(t.Context(), near, at, want, probes, pass)
			if err != nil {
				t.Fatal(err)
			}
			if hits := first(by, compared, want, pass); !slices.Equal(got.Hits, hits) || probes < x.Cells() && (got.Visited != visited || got.Compared != uint64(len(compared))) {
				t.Fatalf("%+v, %d objects, %d cells, %d probes, %+v, filter %v: %d cells and %v, not %d and %v",
					w.space.Metric(), x.Len(), x.Cells(), probes, want, pass != nil, got.Visited, got.Hits, visited, hits)
			}
			if proven := want.K == 0 || visited == x.Cells() || math.IsInf(want.Most, -1); got.Exact != proven {
				t.Fatalf("%d of %d cells are visited, and exact is %v", visited, x.Cells(), got.Exact)
			}
		}
	}
}

// Where data are clustered, exactness needs few cells.
func TestExactSearchLeavesCellsOut(t *testing.T) {
	rng := seeded.Rand(t)
	const n, dims, clusters = 4000, 8, 40
	var elements []float32
	for i := range n {
		for j := range dims {
			elements = append(elements, float32(rand.New(rand.NewPCG(uint64(i%clusters), uint64(j))).NormFloat64()+rng.NormFloat64()*.01))
		}
	}
	space, err := metric.NewVectors(metric.Metric{Kind: metric.L2}, dims, elements)
	if err != nil {
		t.Fatal(err)
	}
	x := must(t, space, Parameters{Cells: 160, HeldOut: -1})
	positions, err := space.Permuted(x.Order())
	if err != nil {
		t.Fatal(err)
	}
	s, visited := x.Searcher(), 0
	for id := range uint32(100) {
		near, err := x.Centroids().Query(elements[id*dims : (id+1)*dims])
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Search(t.Context(), near, positions.Of(uint32(slices.Index(x.Order(), id))), metric.Want{K: 5, Most: math.Inf(1)}, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		visited += r.Visited
	}
	if visited > 100*x.Cells()/4 {
		t.Errorf("exact searches visit %d of %d cells each", visited/100, x.Cells())
	}
}

// The index is the same bytes, whatever built it; every object is in its cell; an opened index is the built one.
func TestBuildIsReproducible(t *testing.T) {
	rng := seeded.Rand(t)
	for range raced.Of(60, 15) {
		w, p := someWorld(t, rng, rng.IntN(1200)), some(rng)
		p.HeldOut = rng.IntN(40)
		x := must(t, w.space, p)
		for _, workers := range []int{1, 3} {
			other, err := Build(t.Context(), w.space, p, workers, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(x.Sections(), other.Sections()) {
				t.Fatalf("%d objects, %+v: %d goroutines build another index", x.Len(), p, workers)
			}
		}
		if err := x.Verify(w.space); err != nil {
			t.Fatal(err)
		}
		opened, err := Open(x.Sections(), w.space.Metric(), w.space.Dims(), x.Len())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(opened.Sections(), x.Sections()) {
			t.Fatalf("%d objects, %+v: the opened index is another", x.Len(), p)
		}
		if most := cmp.Or(p.Cells, Auto(x.Len())); x.Cells() > most || x.Len() > 0 && x.Cells() == 0 {
			t.Fatalf("%d cells, where at most %d are wanted", x.Cells(), most)
		}
	}
}

// The table is what searching says, each held-out object being asked in an index from whose answers it is taken.
func TestRecallIsWhatIsFound(t *testing.T) {
	rng := seeded.Rand(t)
	for range 15 {
		w, p := someWorld(t, rng, 150+rng.IntN(400)), some(rng)
		p.HeldOut = 10
		x := must(t, w.space, p)
		table, parts := x.Recall(), x.Sections()
		if x.Cells() == 1 {
			if table.Queries != 0 {
				t.Fatalf("one cell has nothing to measure: %+v", table)
			}
			continue
		}
		if table.Queries != 10 || table.Objects != x.Len()-1 || !slices.Equal(table.Ks, neighbours()) || !slices.Equal(table.Efforts, probes(x.Cells())) {
			t.Fatalf("the table is of %d queries, %d objects, %v and %v", table.Queries, table.Objects, table.Ks, table.Efforts)
		}
		found := make([]uint64, len(table.Found))
		for _, query := range recall.Draw(x.Len(), 10, p.Seed) {
			by, v := w.space.Of(query), vector{space: w.space}
			near := v.query(query, x.Centroids())
			var order []metric.Hit
			for c := range x.Cells() {
				order = append(order, metric.Hit{Value: near.Value(uint32(c)), ID: uint32(c)})
			}
			sorted(order)
			others := slices.DeleteFunc(all(x.Len()), func(id uint32) bool { return id == query })
			for i, k := range table.Ks {
				want := metric.Want{K: int(k), Most: math.Inf(1)}
				truth := first(by, others, want, nil)
				for j, effort := range table.Efforts {
					var compared []uint32
					for visited, c := range order {
						if visited >= int(effort) && len(compared) >= int(k) {
							break
						}
						for _, id := range parts.Order[parts.Starts[c.ID]:parts.Starts[c.ID+1]] {
							if id != query {
								compared = append(compared, id)
							}
						}
					}
					for _, h := range first(by, compared, want, nil) {
						if h.Value <= truth[k-1].Value {
							found[i*len(table.Efforts)+j]++
						}
					}
				}
			}
		}
		if !slices.Equal(found, table.Found) {
			t.Fatalf("%d objects, %d cells: %v are found, and the table says %v", x.Len(), x.Cells(), found, table.Found)
		}
	}
}

// What is expected is said only of what was measured.
func TestExpectedRecall(t *testing.T) {
	rng := seeded.Rand(t)
	elements := make([]float32, 6000*4)
	for i := range elements {
		elements[i] = rng.Float32()
	}
	space, err := metric.NewVectors(metric.Metric{Kind: metric.L2}, 4, elements)
	if err != nil {
		t.Fatal(err)
	}
	x := must(t, space, Parameters{Cells: 100})
	if x.Recall().Queries != 600 {
		t.Errorf("%d of 6,000 objects are held out", x.Recall().Queries)
	}
	w := world{space, func() []float32 { return []float32{.1, .2, .3, .4} }}
	_, at, near := w.query(t, rng, x)
	everything := func(uint32) bool { return true }
	for _, c := range []struct {
		name     string
		want     metric.Want
		probes   int
		pass     func(uint32) bool
		measured bool
	}{
		{"what is measured", metric.Want{K: 10, Most: math.Inf(1)}, 2, nil, true},
		{"between two rows", metric.Want{K: 42, Most: math.Inf(1)}, 5, nil, true},
		{"a filter", metric.Want{K: 10, Most: math.Inf(1)}, 2, everything, false},
		{"a radius", metric.Want{K: 10, Most: 7}, 2, nil, false},
		{"more neighbours", metric.Want{K: 101, Most: math.Inf(1)}, 5, nil, false},
		{"all cells", metric.Want{K: 10, Most: math.Inf(1)}, 100, nil, false},
		{"exact", metric.Want{K: 10, Most: math.Inf(1)}, 0, nil, false},
	} {
		r, err := x.Searcher().Search(t.Context(), near, at, c.want, c.probes, c.pass)
		if err != nil {
			t.Fatal(err)
		}
		if r.Measured != c.measured || r.Measured && (r.Expected.Share <= r.Expected.Low || r.Expected.Share > 1) {
			t.Errorf("%s: measured %v, %+v", c.name, r.Measured, r.Expected)
		}
	}
	for _, k := range []int{1, 7, 10, 100} {
		p := x.Probes(k, .9)
		if r, ok := x.Recall().At(k, float64(p)); p >= x.Cells() || !ok || r.Low < .9 {
			t.Errorf("%d neighbours with %d probes: %+v", k, p, r)
		}
	}
	if p := x.Probes(1000, .5); p != x.Cells() {
		t.Errorf("of 1,000 neighbours nothing is known, and the probes are %d", p)
	}
}

func TestAuto(t *testing.T) {
	for n, want := range map[uint32]int{0: 1, 1: 1, 2: 2, 64: 64, 10_000: 1024, 1_000_000: 8192, 4_500_000: 16384, math.MaxUint32: 1 << 19} {
		if got := Auto(n); got != want {
			t.Errorf("%d objects get %d cells, not %d", n, got, want)
		}
	}
}

func TestFaults(t *testing.T) {
	rng := seeded.Rand(t)
	codes, err := metric.NewVectors(metric.Metric{Kind: metric.Hamming}, 2, []uint8{1, 2, 3, 4})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Build(t.Context(), codes, Parameters{}, 1, nil); err == nil {
		t.Error("codes have a mean")
	}
	w := someWorld(t, rng, 50)
	for _, cells := range []int{-1, MaxCells + 1} {
		if _, err := Build(t.Context(), w.space, Parameters{Cells: cells}, 1, nil); err == nil {
			t.Errorf("%d cells are built", cells)
		}
	}
	x := must(t, w.space, Parameters{Cells: 5})
	_, at, near := w.query(t, rng, x)
	if _, err := x.Searcher().Search(t.Context(), near, at, metric.Want{K: math.MaxInt, Most: math.Inf(1)}, -1, nil); err == nil {
		t.Error("-1 cells are visited")
	}
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	for _, probes := range []int{0, 1} {
		if _, err := x.Searcher().Search(ctx, near, at, metric.Want{K: math.MaxInt, Most: math.Inf(1)}, probes, nil); !errors.Is(err, why) {
			t.Errorf("a search whose time is up: %v", err)
		}
	}
	if _, err := Build(ctx, w.space, Parameters{}, 2, nil); !errors.Is(err, why) {
		t.Errorf("a build whose time is up: %v", err)
	}
	if x.Cells() > 1 {
		damaged := x.Sections()
		damaged.Radii = make([]float32, x.Cells())
		damaged.Centroids = slices.Repeat(damaged.Centroids[:w.space.Dims()], x.Cells())
		y, err := Open(damaged, w.space.Metric(), w.space.Dims(), x.Len())
		if err != nil {
			t.Fatal(err)
		}
		if err := y.Verify(w.space); err == nil {
			t.Error("all centroids are one, and all objects are in their cells")
		}
	}
}

// view is bytes as numbers, of which those that are left over go.
func view[T uint32 | float32](data []byte) []T {
	out := make([]T, len(data)/4)
	if len(out) > 0 {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&out[0])), 4*len(out)), data)
	}
	return out
}

func bytesOf[T uint32 | float32](numbers []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(numbers))), 4*len(numbers))
}

// FuzzOpen: no bytes make anything but cells or an error, and cells answer.
func FuzzOpen(f *testing.F) {
	rng := seeded.Rand(f)
	var elements []float32
	for i := range 60 {
		elements = append(elements, float32(i%7), float32(i%5), rng.Float32())
	}
	space, err := metric.NewVectors(metric.Metric{Kind: metric.L2}, 3, elements)
	if err != nil {
		f.Fatal(err)
	}
	for _, p := range []Parameters{{Cells: 4}, {Cells: 1}, {HeldOut: -1}} {
		x, err := Build(f.Context(), space, p, 1, nil)
		if err != nil {
			f.Fatal(err)
		}
		s := x.Sections()
		f.Add(s.Head, bytesOf(s.Starts), bytesOf(s.Order), bytesOf(s.Centroids), bytesOf(s.Radii))
		far := s.Head // recall that was measured with more cells than an int counts
		for _, probes := range x.Recall().Efforts {
			number := func(v float64) []byte { return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)) }
			far = bytes.Replace(far, number(probes), number(1e300*probes), 1)
		}
		f.Add(far, bytesOf(s.Starts), bytesOf(s.Order), bytesOf(s.Centroids), bytesOf(s.Radii))
	}
	f.Fuzz(func(t *testing.T, head, starts, order, centroids, radii []byte) {
		s := Sections{head, view[uint32](starts), view[uint32](order), view[float32](centroids), view[float32](radii)}
		x, err := Open(s, space.Metric(), 3, 60)
		if err != nil {
			return
		}
		if again := x.Sections(); !bytes.Equal(again.Head, head) {
			t.Fatalf("%x is read and written as %x", head, again.Head)
		}
		_ = x.Verify(space)
		positions, err := space.Permuted(x.Order())
		if err != nil {
			t.Fatal(err)
		}
		near, err := x.Centroids().Query([]float32{1, 2, 3})
		if err != nil {
			t.Fatal(err)
		}
		for _, probes := range []int{0, 1, x.Probes(5, .5)} {
			r, err := x.Searcher().Search(t.Context(), near, positions.Of(7), metric.Want{K: 5, Most: math.Inf(1)}, probes, nil)
			if err != nil || len(r.Hits) != 5 {
				t.Fatalf("%v, %v", r.Hits, err)
			}
		}
	})
}

// Cells are k-means as the package's comment says it, written down once more: an object is in the cell of its nearest centroid, which is a mean by ascending id.
func TestCellsAreKMeans(t *testing.T) {
	raced.Skip(t, raced.Same)
	rng := seeded.Rand(t)
	for range 25 {
		w, p := someWorld(t, rng, 1+rng.IntN(500)), some(rng)
		p.Cells, p.HeldOut = 1+rng.IntN(80), 1+rng.IntN(20)
		x := must(t, w.space, p)
		n, dims := int(w.space.Len()), w.space.Dims()
		object := func(id uint32) []float64 {
			v := make([]float64, dims)
			w.space.Coordinates(id, v)
			return v
		}
		narrow := func(v []float64) []float32 {
			out := make([]float32, dims)
			for j, e := range v {
				out[j] = float32(e)
			}
			return out
		}
		held := min(p.HeldOut, n/10)
		sample := recall.Draw(w.space.Len(), uint32(min(n, held+sampled*p.Cells)), p.Seed)[held:]
		var means [][]float32
		for _, id := range sample[:min(p.Cells, len(sample))] {
			means = append(means, narrow(object(id)))
		}
		assign := func(id uint32) (cell int, value float64) {
			value = math.Inf(1)
			for c, mean := range means {
				a, err := w.space.Query(mean)
				if err != nil {
					t.Fatal(err)
				}
				if v := a.Value(id); v < value {
					cell, value = c, v
				}
			}
			return cell, value
		}
		slices.Sort(sample)
		for range rounds {
			if len(means) == 1 {
				break
			}
			sums, counts := make([][]float64, len(means)), make([]int, len(means))
			for _, id := range sample {
				c, _ := assign(id)
				if counts[c]++; sums[c] == nil {
					sums[c] = make([]float64, dims)
				}
				length, v := 1.0, object(id)
				if kind := w.space.Metric().Kind; kind == metric.Cosine || kind == metric.Angular {
					length = 0
					for _, e := range v {
						length += float64(e * e)
					}
					length = math.Sqrt(length)
				}
				for j, e := range v {
					sums[c][j] += e / length
				}
			}
			for c, sum := range sums {
				for j := range sum {
					sum[j] /= float64(counts[c])
				}
				if sum == nil {
					continue
				}
				if mean := narrow(sum); w.space.Metric().Admits(mean) == nil {
					means[c] = mean
				}
			}
		}
		var want Sections
		members, radii := make([][]uint32, len(means)), make([]float64, len(means))
		for id := range uint32(n) {
			c, v := assign(id)
			if len(members[c]) == 0 {
				radii[c] = math.Inf(-1)
			}
			members[c], radii[c] = append(members[c], id), max(radii[c], v)
		}
		want.Starts = []uint32{0}
		for c, ids := range members {
			if len(ids) == 0 {
				continue
			}
			want.Order = append(want.Order, ids...)
			want.Starts = append(want.Starts, uint32(len(want.Order)))
			want.Centroids = append(want.Centroids, means[c]...)
			want.Radii = append(want.Radii, bound.Float32Up(w.space.Metric().Distance(radii[c])))
		}
		got := x.Sections()
		if want.Head = got.Head; !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, %d objects, %+v: cells from %v, not %v, or others", w.space.Metric(), n, p, got.Starts, want.Starts)
		}
	}
}
