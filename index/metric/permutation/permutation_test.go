package permutation

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/internal/testkit/generated"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

func must(t testing.TB, space metric.Space, p Parameters) *Index {
	t.Helper()
	x, err := Build(t.Context(), space, p, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func some(rng *rand.Rand) Parameters {
	p := Parameters{Permutants: 1 + rng.IntN(80), Similarity: Rho, Seed: rng.Uint64(), HeldOut: -1}
	if rng.IntN(2) == 0 {
		p.Similarity = Footrule
	}
	return p
}

// Searches are the definition: the first objects that pass by (rank distance, id), compared, the best of them in the order of (value, id).
func TestSearchIsTheDefinition(t *testing.T) {
	rng := seeded.Rand(t)
	for range 300 {
		space := someSpace(t, rng, rng.IntN(200))
		p, n := some(rng), int(space.Len())
		x := must(t, space, p)
		d, s := define(x, space), x.Searcher()
		for range 4 {
			var a metric.Asker = gridAsker{grid{}, nil}
			if g, ok := space.(grid); ok && n > 0 {
				a = gridAsker{g, somePoint(rng, len(g[0]), 12)}
			} else if n > 0 {
				a = space.Of(rng.Uint32N(space.Len()))
			}
			want := metric.Want{K: rng.IntN(n + 3), Most: math.Inf(1)}
			switch rng.IntN(4) {
			case 0:
				want.K = math.MaxInt
			case 1:
				if n > 0 {
					want.Most = a.Value(rng.Uint32N(space.Len())) // exactly at a distance that there is
				}
			}
			var pass func(uint32) bool
			if rng.IntN(2) == 0 {
				passing := make([]bool, n)
				for i := range passing {
					passing[i] = rng.IntN(3) > 0
				}
				pass = func(id uint32) bool { return passing[id] }
			}
			fraction := []float64{1e-9, .01, .1, .5, .99, 1, 2}[rng.IntN(7)]
			var passed []uint32
			for _, id := range d.order(a) {
				if pass == nil || pass(id) {
					passed = append(passed, id)
				}
			}
			share := int(math.Ceil(fraction * float64(n)))
			first := max(share, min(want.K, n))
			if want.K == math.MaxInt {
				first = share
			}
			candidates := passed[:min(len(passed), first)]
			if want.K == 0 {
				candidates = nil
			}
			got, err := s.Search(t.Context(), a, want, fraction, pass)
			if err != nil {
				t.Fatal(err)
			}
			compared := len(candidates)
			if first >= n && want.K > 0 {
				compared = n // who passes is asked of the near ones alone
			}
			if hits := wanted(a, candidates, want); !slices.Equal(got.Hits, hits) || got.Compared != compared {
				t.Fatalf("%d objects under %+v, %+v, fraction %v, %+v, filter %v: %d compared and %v, not %d and %v",
					n, space.Metric(), p, fraction, want, pass != nil, got.Compared, got.Hits, compared, hits)
			}
			if proven := want.K == 0 || len(candidates) == len(passed); got.Exact != proven {
				t.Fatalf("%d of %d objects that pass are compared, and exact is %v", len(candidates), len(passed), got.Exact)
			}
		}
	}
}

// An object at the radius is within it: the paper's "less than" loses it, and of a radius 0 all.
func TestAnObjectAtTheRadiusIsWithin(t *testing.T) {
	line := make(grid, 10)
	for i := range line {
		line[i] = []int{i}
	}
	s := must(t, line, Parameters{Permutants: 4, HeldOut: -1}).Searcher()
	for radius := range 10 {
		r, err := s.Search(t.Context(), line.Of(0), metric.Want{K: math.MaxInt, Most: float64(radius)}, 1, nil)
		if err != nil || len(r.Hits) != radius+1 || !r.Exact {
			t.Errorf("radius %d: %v, %v", radius, r.Hits, err)
		}
	}
}

// Every loop is the plain one, for all numbers of permutants and for ranks that no permutation has; and the plain one is the definition.
func TestDistancesAreTheDefinition(t *testing.T) {
	rng := seeded.Rand(t)
	for m := 1; m <= MaxPermutants; m++ {
		n := rng.IntN(20)
		ranks, query := make([]byte, n*m), make([]byte, m)
		for i := range ranks {
			ranks[i] = byte(rng.Uint32())
		}
		for j := range query {
			query[j] = byte(rng.Uint32())
		}
		if m%10 == 0 && n > 0 { // the largest there are
			copy(ranks, bytes.Repeat([]byte{255}, m))
			clear(query)
		}
		packed := pack(nil, query)
		for _, similarity := range []Similarity{Rho, Footrule} {
			want := make([]uint32, n)
			for i := range want {
				for j, q := range query {
					d := max(q, ranks[i*m+j]) - min(q, ranks[i*m+j])
					if similarity == Rho {
						want[i] += uint32(d) * uint32(d)
					} else {
						want[i] += uint32(d)
					}
				}
			}
			for name, loop := range map[string]distances{"go": plain(similarity), "best": best(similarity, m)} {
				got := make([]uint32, n)
				loop(got, ranks, packed, m)
				if !slices.Equal(got, want) {
					t.Fatalf("%s, %s, %d permutants: %v, not %v", name, similarity, m, got, want)
				}
			}
		}
	}
}

// Ranks are counting who is nearer, for values that tie, that differ in the last bits, and for both zeros.
func TestRanksAreCounted(t *testing.T) {
	rng := seeded.Rand(t)
	var r ranker
	for range 2000 {
		values := make([]float64, 1+rng.IntN(MaxPermutants))
		kind := rng.IntN(4)
		for j := range values {
			switch kind {
			case 0:
				values[j] = float64(rng.IntN(10))
			case 1:
				values[j] = rng.NormFloat64()
			case 2:
				values[j] = math.Float64frombits(math.Float64bits(1.5) + rng.Uint64N(700))
			case 3:
				values[j] = []float64{0, math.Copysign(0, -1), -1, -math.SmallestNonzeroFloat64, math.SmallestNonzeroFloat64, math.Inf(1)}[rng.IntN(6)]
			}
		}
		got := make([]byte, len(values))
		r.rank(got, values)
		for j, v := range values {
			rank := 0
			for i, w := range values {
				if w < v || w == v && i < j {
					rank++
				}
			}
			if int(got[j]) != rank {
				t.Fatalf("value %d of %v has rank %d, not %d", j, values, got[j], rank)
			}
		}
	}
}

// Selection is sorting, for distances that tie and for the widest, with cuts at any time.
func TestSelectionIsSorting(t *testing.T) {
	rng := seeded.Rand(t)
	s := new(selection)
	for range 200 {
		n := rng.IntN(30000)
		most := uint32(1) << rng.IntN(25)
		distances := make([]uint32, n)
		order := make([]candidate, n)
		for i := range distances {
			distances[i] = min(rng.Uint32N(most), MaxPermutants*255*255)
			order[i] = candidate{distances[i], uint32(i)}
		}
		k := 1 + rng.IntN(n+10)
		s.reset(k)
		for lo := 0; lo < n; {
			hi := min(n, lo+1+rng.IntN(1000))
			s.add(uint32(lo), distances[lo:hi], nil)
			lo = hi
		}
		s.cut()
		slices.SortStableFunc(order, func(a, b candidate) int { return int(a.distance) - int(b.distance) })
		order = order[:min(n, k)]
		slices.SortFunc(order, func(a, b candidate) int { return int(a.id) - int(b.id) })
		if !slices.Equal(s.entries, order) {
			t.Fatalf("the first %d of %d objects with distances below %d are others", k, n, most)
		}
	}
}

// The index is the same bytes, whatever built it, and an opened one is the built one.
func TestBuildIsReproducible(t *testing.T) {
	rng := seeded.Rand(t)
	for range 20 {
		space, p := someGrid(rng, rng.IntN(1500)), some(rng)
		p.HeldOut = rng.IntN(40)
		x := must(t, space, p)
		for _, workers := range []int{1, 3} {
			other, err := Build(t.Context(), space, p, workers, nil)
			if err != nil {
				t.Fatal(err)
			}
			if a, b := x.Sections(), other.Sections(); !reflect.DeepEqual(a, b) {
				t.Fatalf("%d objects, %+v: %d goroutines build another index", len(space), p, workers)
			}
		}
		opened, err := Open(x.Sections(), x.Len())
		if err != nil {
			t.Fatal(err)
		}
		if err := opened.Verify(); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(opened.Sections(), x.Sections()) || !slices.Equal(opened.Permutants(), x.Permutants()) {
			t.Fatalf("%d objects, %+v: the opened index is another", len(space), p)
		}
		if d := define(x, space); len(space) > 0 {
			id, m := rng.Uint32N(x.Len()), uint32(len(x.permutants))
			for j, r := range d.ranks(space.Of(id)) {
				if int(x.Ranks()[id*m+uint32(j)]) != r {
					t.Fatalf("object %d gives permutant %d the rank %d, not %d", id, j, x.Ranks()[id*m+uint32(j)], r)
				}
			}
		}
	}
}

// The table is what asking the index says: each held-out query against an index without it, whose permutants are the same.
func TestRecallIsWhatIsFound(t *testing.T) {
	rng := seeded.Rand(t)
	for range 6 {
		space, p := someGrid(rng, 300+rng.IntN(500)), some(rng)
		p.Permutants, p.HeldOut = 1+rng.IntN(20), 10
		x := must(t, space, p)
		table := x.Recall()
		if int(table.Queries) != 10 || int(table.Objects) != len(space)-1 || !slices.Equal(table.Ks, neighbours()) || !slices.Equal(table.Efforts, fractions()) {
			t.Fatalf("the table is of %d queries, %d objects, %v and %v", table.Queries, table.Objects, table.Ks, table.Efforts)
		}
		d, found := define(x, space), make([]uint64, len(table.Found))
		for id := range x.Len() {
			if !heldOut(x, id) {
				continue
			}
			a := space.Of(id)
			others := slices.DeleteFunc(d.order(a), func(i uint32) bool { return i == id })
			for i, k := range table.Ks {
				truth := wanted(a, others, metric.Want{K: int(k), Most: math.Inf(1)})
				for j, f := range table.Efforts {
					candidates := others[:max(int(k), int(math.Ceil(f*float64(len(others)))))]
					for _, h := range wanted(a, candidates, metric.Want{K: int(k), Most: math.Inf(1)}) {
						if h.Value <= truth[k-1].Value {
							found[i*len(table.Efforts)+j]++
						}
					}
				}
			}
		}
		if !slices.Equal(found, table.Found) {
			t.Fatalf("%d objects, %+v: %v are found, and the table says %v", len(space), p, found, table.Found)
		}
	}
}

// What is expected is said only of what was measured.
func TestExpectedRecall(t *testing.T) {
	rng := seeded.Rand(t)
	space := make(grid, 3000)
	for i := range space {
		space[i] = somePoint(rng, 3, 40)
	}
	x := must(t, space, Parameters{Permutants: 16})
	s, a := x.Searcher(), gridAsker{space, []int{3, 4, 5}}
	everything := func(uint32) bool { return true }
	for _, c := range []struct {
		name     string
		want     metric.Want
		fraction float64
		pass     func(uint32) bool
		measured bool
	}{
		{"what is measured", metric.Want{K: 10, Most: math.Inf(1)}, .01, nil, true},
		{"between two rows", metric.Want{K: 42, Most: math.Inf(1)}, .0177, nil, true},
		{"a filter", metric.Want{K: 10, Most: math.Inf(1)}, .01, everything, false},
		{"a radius", metric.Want{K: 10, Most: 7}, .01, nil, false},
		{"more neighbours", metric.Want{K: 101, Most: math.Inf(1)}, .5, nil, false},
		{"a smaller fraction", metric.Want{K: 10, Most: math.Inf(1)}, .0001, nil, false},
		{"everything", metric.Want{K: 10, Most: math.Inf(1)}, 1, nil, false},
	} {
		r, err := s.Search(t.Context(), a, c.want, c.fraction, c.pass)
		if err != nil {
			t.Fatal(err)
		}
		if r.Measured != c.measured || r.Measured && (r.Expected.Share <= r.Expected.Low || r.Expected.Share > 1) {
			t.Errorf("%s: measured %v, %+v", c.name, r.Measured, r.Expected)
		}
	}
	for _, k := range []int{1, 7, 10, 100} {
		f := x.Fraction(k, .9)
		if r, ok := x.Recall().At(k, f); f < 1 && (!ok || r.Low < .9) {
			t.Errorf("%d neighbours with the fraction %v: %+v", k, f, r)
		}
	}
	if f := x.Fraction(1, .9999); f != 1 {
		t.Errorf("256 queries cannot prove a recall of 0.9999, and the fraction is %v", f)
	}
	if f := x.Fraction(1000, .5); f != 1 {
		t.Errorf("of 1,000 neighbours nothing is known, and the fraction is %v", f)
	}
}

func TestFaults(t *testing.T) {
	space := someGrid(seeded.Rand(t), 10)
	for _, p := range []Parameters{{Permutants: -1}, {Permutants: 256}, {Similarity: "kendall"}} {
		if _, err := Build(t.Context(), space, p, 1, nil); err == nil {
			t.Errorf("%+v builds", p)
		}
	}
	x := must(t, space, Parameters{})
	for _, fraction := range []float64{0, -1, math.NaN()} {
		if _, err := x.Searcher().Search(t.Context(), space.Of(0), metric.Want{K: math.MaxInt, Most: math.Inf(1)}, fraction, nil); err == nil {
			t.Errorf("the fraction %v is searched with", fraction)
		}
	}
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := x.Searcher().Search(ctx, space.Of(0), metric.Want{K: math.MaxInt, Most: math.Inf(1)}, 1, nil); !errors.Is(err, why) {
		t.Errorf("a search whose time is up: %v", err)
	}
	if _, err := Build(ctx, space, Parameters{}, 2, nil); !errors.Is(err, why) {
		t.Errorf("a build whose time is up: %v", err)
	}
	damaged := x.Sections()
	damaged.Ranks = slices.Clone(damaged.Ranks)
	damaged.Ranks[3] = damaged.Ranks[4]
	y, err := Open(damaged, x.Len())
	if err != nil {
		t.Fatal(err)
	}
	if err := y.Verify(); err == nil {
		t.Error("two permutants have one rank")
	}
}

// The assembly that is checked in must be what the generator writes.
func TestAssemblyIsCurrent(t *testing.T) { generated.Assembly(t, "permutation", "distances_amd64.s") }

// FuzzOpen: no bytes make anything but an index or an error, and an index answers.
func FuzzOpen(f *testing.F) {
	space := make(grid, 40)
	for i := range space {
		space[i] = []int{i % 7, i % 5}
	}
	for _, p := range []Parameters{{Permutants: 3, HeldOut: 5}, {Permutants: 40, Similarity: Footrule}, {Permutants: 33, HeldOut: -1}} {
		x, err := Build(f.Context(), space, p, 1, nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(x.Sections().Head, x.Sections().Ranks)
		more := x.Sections().Head // recall that was measured with more than all
		for _, fraction := range x.Recall().Efforts {
			number := func(v float64) []byte { return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)) }
			more = bytes.Replace(more, number(fraction), number(1e300*fraction), 1)
		}
		f.Add(more, x.Sections().Ranks)
	}
	f.Fuzz(func(t *testing.T, head, ranks []byte) {
		x, err := Open(Sections{head, ranks}, 40)
		if err != nil {
			return
		}
		if again := x.Sections(); !bytes.Equal(again.Head, head) {
			t.Fatalf("%x is read and written as %x", head, again.Head)
		}
		_ = x.Verify()
		fraction := x.Fraction(5, .5)
		if fraction > 1 {
			t.Fatalf("%v of all objects", fraction)
		}
		r, err := x.Searcher().Search(t.Context(), space.Of(7), metric.Want{K: 5, Most: math.Inf(1)}, fraction, nil)
		if err != nil || len(r.Hits) != 5 {
			t.Fatalf("%v hits, %v", r.Hits, err)
		}
	})
}
