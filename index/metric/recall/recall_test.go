package recall

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// A draw has each number once, a larger one begins as a smaller one does, and over seeds all numbers come alike.
func TestDraw(t *testing.T) {
	rng := seeded.Rand(t)
	for range 300 {
		n, seed := rng.Uint32N(200), rng.Uint64()
		count := rng.Uint32N(250)
		drawn := Draw(n, count, seed)
		if want := min(n, count); uint32(len(drawn)) != want {
			t.Fatalf("%d of %d numbers: %d were drawn", count, n, len(drawn))
		}
		if some := Draw(n, count/2, seed); !slices.Equal(some, drawn[:len(some)]) {
			t.Fatalf("%d of %d numbers are %v, and half as many %v", count, n, drawn, some)
		}
		slices.Sort(drawn)
		if len(slices.Compact(drawn)) != int(min(n, count)) || len(drawn) > 0 && slices.Max(drawn) >= n {
			t.Fatalf("%d of %d numbers: %v", count, n, drawn)
		}
	}
	var times [10]int
	for seed := range uint64(20000) {
		for _, i := range Draw(10, 3, seed) {
			times[i]++
		}
	}
	for i, n := range times { // 6,000 each, with a deviation of 65
		if n < 5600 || n > 6400 {
			t.Errorf("number %d was drawn %d times, and not about 6000", i, n)
		}
	}
	// The very numbers, which files rely on.
	if got := Draw(1000, 6, 1); !slices.Equal(got, []uint32{181, 627, 745, 393, 705, 886}) {
		t.Errorf("seed 1 draws %v", got)
	}
}

// table is 100 queries, of which a share was found by row and effort.
func table() *Table {
	return &Table{Objects: 5000, Queries: 100, Ks: []uint32{1, 10, 100}, Efforts: []float64{.01, .1, .5},
		Found: []uint64{90, 99, 100, 700, 900, 1000, 8000, 9950, 10000}}
}

func TestLookingUp(t *testing.T) {
	x := table()
	for _, c := range []struct {
		k      int
		effort float64
		share  float64 // 0: nothing is known
	}{
		{1, .01, .9}, {10, .01, .7}, {100, .01, .8}, {10, .1, .9}, {100, .5, 1},
		{5, .01, .7},  // the lesser of .9 and .7
		{50, .01, .7}, // of .7 and .8
		{50, .1, .9},  // of .9 and .995
		{10, .0999, .7}, {10, .4, .9}, {10, .7, 1},
		{0, .1, 0}, {-1, .1, 0}, {101, .1, 0}, {math.MaxInt, .1, 0}, {10, .009, 0}, {10, 0, 0},
	} {
		r, ok := x.At(c.k, c.effort)
		if ok != (c.share > 0) || r.Share != c.share {
			t.Errorf("%d neighbours, effort %v: %+v %v, and the share is %v", c.k, c.effort, r, ok, c.share)
		}
		if ok && (r.Low >= r.Share || r.Low < r.Share-.1) {
			t.Errorf("%d neighbours, effort %v: the bound of %v is %v", c.k, c.effort, r.Share, r.Low)
		}
	}
	for _, c := range []struct {
		k             int
		share, effort float64 // 0: none
	}{
		{10, .5, .01}, {10, .61, .1}, {10, .8, .1}, {10, .9, .5}, {10, .96, .5}, {10, .97, 0}, // by the bound, which is .963 of 100 in 100
		{5, .9, .5}, {1, .8, .01}, {200, .1, 0}, {0, .1, 0},
	} {
		if effort, r, ok := x.Least(c.k, c.share); effort != c.effort || ok != (effort > 0) || ok && r.Low < c.share {
			t.Errorf("%d neighbours with a recall of %v: effort %v, %+v, %v, and not %v", c.k, c.share, effort, r, ok, c.effort)
		}
	}
	if _, ok := (&Table{}).At(1, 1); ok {
		t.Error("an empty table says something")
	}
}

// line is a space of numbers, and a path that looks at objects by descending id, so that ties count which come last.
type line []float64

func (l line) Len() uint32                    { return uint32(len(l)) }
func (line) Metric() metric.Metric            { return metric.Metric{Kind: metric.L1} }
func (l line) Of(i uint32) metric.Asker       { return asker{l, l[i]} }
func (line) Steps(k uint32, e float64) uint32 { return max(k, uint32(e)) }
func (l line) Locator() Locator {
	return func(_ uint32, _ metric.Asker, objects []metric.Hit) func(int, uint32) uint32 {
		return func(i int, _ uint32) uint32 { return l.Len() - 1 - objects[i].ID }
	}
}

type asker struct {
	line
	at float64
}

func (a asker) Value(i uint32) float64 { return math.Abs(a.line[i] - a.at) }
func (a asker) Values(lo, hi uint32, dst []float64) {
	for i := range hi - lo {
		dst[i] = a.Value(lo + i)
	}
}

// Measuring is comparing everything with everything, ties included, for any number of workers.
func TestMeasureIsTheDefinition(t *testing.T) {
	rng := seeded.Rand(t)
	for range 60 {
		l := make(line, rng.IntN(4000))
		values := 1 + rng.IntN(100)
		for i := range l {
			l[i] = float64(rng.IntN(values))
		}
		plan := Plan{Queries: Draw(l.Len(), 5, rng.Uint64()), Ks: []uint32{1, 10, 100}, Efforts: []float64{1, 3, 30, 500, 2000}}
		got, err := Measure(t.Context(), l, l, plan, 1+rng.IntN(3))
		if err != nil {
			t.Fatal(err)
		}
		want := &Table{}
		for _, k := range plan.Ks {
			if int(k) < len(l) {
				want.Ks = append(want.Ks, k)
			}
		}
		if len(want.Ks) > 0 {
			want.Objects, want.Queries, want.Efforts = l.Len()-1, uint32(len(plan.Queries)), plan.Efforts
		}
		for _, k := range want.Ks {
			for _, e := range want.Efforts {
				sum := uint64(0)
				for _, q := range plan.Queries {
					a := l.Of(q)
					var all []float64
					for i := range l {
						if uint32(i) != q {
							all = append(all, a.Value(uint32(i)))
						}
					}
					slices.Sort(all)
					n := uint32(0)
					for i := range max(k, uint32(e)) {
						if id := l.Len() - 1 - i; i < l.Len() && id != q && a.Value(id) <= all[k-1] {
							n++
						}
					}
					sum += uint64(min(n, k))
				}
				want.Found = append(want.Found, sum)
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%d objects of %d values: %+v, not %+v", len(l), values, got, want)
		}
		if read, err := Read(got.Append(nil), math.MaxFloat64); err != nil || !bytes.Equal(read.Append(nil), got.Append(nil)) {
			t.Fatalf("%+v is written and read as %+v, %v", got, read, err)
		}
	}
}

// FuzzRead: no bytes make anything but a table or an error; a table is written as it was read, and rises with the effort.
func FuzzRead(f *testing.F) {
	f.Add(table().Append(nil))
	f.Add((&Table{}).Append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		const most = 1000
		x, err := Read(data, most)
		if err != nil {
			return
		}
		if n := len(x.Efforts); n > 0 && x.Efforts[n-1] > most {
			t.Fatalf("an effort of %v, where there is %v", x.Efforts[n-1], most)
		}
		if again := x.Append(nil); !bytes.Equal(again, data) {
			t.Fatalf("%x is read and written as %x", data, again)
		}
		for _, k := range []int{1, 2, 50, 1000} {
			last := 0.0
			for _, e := range x.Efforts {
				r, ok := x.At(k, e)
				if ok && (!(r.Share >= last) || r.Share > 1 || !(r.Low >= 0)) {
					t.Fatalf("%+v: %d neighbours, effort %v: %+v after %v", x, k, e, r, last)
				}
				last = r.Share
			}
		}
	})
}

// TestCertainty: a bound exceeds the truth in one table of forty at most, and so does the recall that an effort was chosen for, though all efforts of a table are looked at: they are measured by the
// same queries, and a query that finds with one effort finds with all above, so that the chosen effort falls short only if the last one that truly does passes.
func TestCertainty(t *testing.T) {
	rng := seeded.Rand(t)
	const worlds, queries, k = 4000, 256, 4
	truth := []float64{.5, .7, .8, .85, .88, .91, .93, .945, .96, .975, .985, .995} // the share of neighbours that an effort finds
	x := &Table{Objects: 5000, Queries: queries, Ks: []uint32{k}}
	for i := range truth {
		x.Efforts = append(x.Efforts, float64(i+1))
	}
	tooHigh, short := make([]int, len(truth)), 0
	for range worlds {
		x.Found = make([]uint64, len(truth))
		for range queries {
			hard := rng.Float64() // the neighbours of a query are found or missed together
			for i, share := range truth {
				if hard < share {
					x.Found[i] += k
				}
			}
		}
		for i, share := range truth {
			if r, ok := x.At(k, x.Efforts[i]); !ok || r.Low > share {
				tooHigh[i]++
			}
		}
		if effort, _, ok := x.Least(k, .95); ok && truth[int(effort)-1] < .95 {
			short++
		}
	}
	const most = worlds/40 + 40 // four deviations
	for i, n := range tooHigh {
		if n > most {
			t.Errorf("the bound of %v is above it in %d of %d tables", truth[i], n, worlds)
		}
	}
	if short > most {
		t.Errorf("an effort chosen for 0.95 finds less in %d of %d tables", short, worlds)
	}
}
