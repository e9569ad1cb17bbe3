//go:build unix

package cells

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/geniemq/geniemq/index/metric"
)

// spent are the seconds that cores have worked for this process, which a busy machine does not change much.
func spent() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}

// BenchmarkAssign is one core that finds the nearest of 4,096 centroids, of clusters and of data without structure.
func BenchmarkAssign(b *testing.B) {
	const n, dims, count = 2048, 32, 4096
	for _, spread := range []float64{.1, .7, 10} {
		space, others := clustered(b, n, dims, 1000, spread), clustered(b, count, dims, 1000, spread)
		elements := make([]float32, 0, count*dims)
		m := means{space: others}
		for id := range uint32(count) {
			elements = m.vector(elements, id)
		}
		all, err := centroids(space.Metric(), dims, elements)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("spread=%v", spread), func(b *testing.B) {
			cells, values := make([]uint32, n), make([]float64, n)
			start := spent()
			for b.Loop() {
				if err := assignHere(b.Context(), 1, space, all, nil, cells, values); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)*float64(count)*float64(b.N)/(spent()-start)/1e6, "Mpairs/core-s")
		})
	}
}

// What visiting an object takes, in turns in one process: with vectors in the order of ids, by cell, and by cell for 256 queries at once.
func TestLayoutFigures(t *testing.T) {
	if os.Getenv("GENIEMQ_FULL") != "1" {
		t.Skip("figures for docs/benchmarks: with GENIEMQ_FULL=1")
	}
	const n, dims, k, queries, turns = 200_000, 32, 10, 256, 7
	for _, set := range []struct {
		name     string
		clusters int
		spread   float64
		probes   []int
	}{
		{"clusters", 2000, .1, []int{4, 0}}, {"overlapping clusters", 2000, .75, []int{8, 128, 0}}, {"Gaussian", 1, 1, []int{384, 1536, 0}},
	} {
		elements := around(n+queries, dims, set.clusters, set.spread)
		space, err := metric.NewVectors(metric.Metric{Kind: metric.L2}, dims, elements[:n*dims])
		if err != nil {
			t.Fatal(err)
		}
		x := must(t, space, Parameters{HeldOut: -1})
		byID, err := space.Permuted(x.Order())
		if err != nil {
			t.Fatal(err)
		}
		byCell := rowed(t, space, x.Order())
		for _, probes := range set.probes {
			took := [3][]float64{}
			var results [3][]Result
			for range turns {
				for way, positions := range []*metric.Vectors{byID, byCell, byCell} {
					asks := make([]Ask, queries)
					for i := range asks {
						v := elements[(n+i)*dims : (n+i+1)*dims]
						asks[i] = Ask{Probes: probes, Want: metric.Want{K: k, Most: math.Inf(1)}}
						asks[i].Near, _ = x.Centroids().Query(v)
						asks[i].Asker, _ = positions.Query(v)
					}
					s, start := x.Searcher(), spent()
					results[way] = results[way][:0]
					if way == 2 {
						if err := s.SearchAll(t.Context(), asks, nil); err != nil {
							t.Fatal(err)
						}
					}
					for _, a := range asks {
						if way < 2 || a.Left {
							if a.Result, err = s.Search(t.Context(), a.Near, a.Asker, a.Want, a.Probes, nil); err != nil {
								t.Fatal(err)
							}
							a.Result.Hits = slices.Clone(a.Result.Hits)
						}
						results[way] = append(results[way], a.Result)
					}
					took[way] = append(took[way], (spent()-start)*1e6/queries)
				}
			}
			compared := 0.0
			for i := range results[0] {
				if !slices.Equal(results[0][i].Hits, results[1][i].Hits) || !slices.Equal(results[0][i].Hits, results[2][i].Hits) {
					t.Fatalf("query %d has other hits by layout", i)
				}
				compared += float64(results[0][i].Compared) / queries
			}
			for way := range took {
				slices.Sort(took[way])
			}
			ids, cells, both := took[0][turns/2], took[1][turns/2], took[2][turns/2]
			t.Logf("| %s | %d | %.0f | %.0f | %.0f | %.0f | %.1f | %.1f |", set.name, probes, compared, ids, cells, both, ids/cells, ids/both)
		}
	}
}

// The figures of docs/benchmarks: what a recall takes, what other queries than those that it was measured with find, and what exactness takes.
func TestFigures(t *testing.T) {
	if os.Getenv("GENIEMQ_FULL") != "1" {
		t.Skip("figures for docs/benchmarks: with GENIEMQ_FULL=1")
	}
	var page strings.Builder
	const n, dims, k = 200_000, 32, 10
	for _, set := range []struct {
		name     string
		clusters int
		spread   float64
	}{
		{"clusters", 2000, .1}, {"overlapping clusters", 2000, .75}, {"Gaussian", 1, 1},
	} {
		elements := around(n+256, dims, set.clusters, set.spread)
		space, err := metric.NewVectors(metric.Metric{Kind: metric.L2}, dims, elements[:n*dims])
		if err != nil {
			t.Fatal(err)
		}
		start := spent()
		must(t, space, Parameters{HeldOut: -1})
		built := spent() - start
		start = spent()
		x := must(t, space, Parameters{HeldOut: 2048})
		fmt.Fprintf(&page, "\n**%s**, %d of %d dimensions, %d cells, built in %.0f s of a core, recall measured in %.0f\n\n", set.name, n, dims, x.Cells(), built, spent()-start-built)
		fmt.Fprintf(&page, "| recall of %d | probes | expected recall (at least) | other queries found | objects compared | search, us | scan, us |\n| --- | --- | --- | --- | --- | --- | --- |\n", k)
		f := newFigures(t, x, space, elements[n*dims:], k)
		for _, share := range []float64{.9, .95, .99, .995} {
			probes := x.Probes(k, share)
			if probes == x.Cells() {
				fmt.Fprintf(&page, "| %v | beyond the table: scan | | | | | |\n", share)
				continue
			}
			expected, _ := x.Recall().At(k, float64(probes))
			found, compared, _, time := f.ask(probes)
			fmt.Fprintf(&page, "| %v | %d | %.4f (%.4f) | %.4f | %.0f | %.0f | %.0f |\n", share, probes, expected.Share, expected.Low, found, compared, time, f.scan)
		}
		found, compared, visited, time := f.ask(0)
		fmt.Fprintf(&page, "| exact | %.1f %% of cells | | %.4f | %.0f | %.0f | %.0f |\n", 100*visited/float64(x.Cells()), found, compared, time, f.scan)
	}
	t.Log(page.String())
}

// asking is an index with queries that are no part of its table, and what they should find.
type asking struct {
	t        testing.TB
	searcher *Searcher
	k        int
	queries  [][3]metric.Asker // by centroid, by position, by id
	truth    []float64         // of each query, the value of the last neighbour
	scan     float64           // microseconds of a core for comparing everything
}

func newFigures(t testing.TB, x *Index, space *metric.Vectors, vectors []float32, k int) *asking {
	f := &asking{t: t, searcher: x.Searcher(), k: k}
	at, err := rowed(t, space, x.Order()), error(nil)
	for ; len(vectors) > 0; vectors = vectors[space.Dims():] {
		var askers [3]metric.Asker
		for i, space := range []*metric.Vectors{x.Centroids(), at, space} {
			if askers[i], err = space.Query(vectors[:space.Dims()]); err != nil {
				t.Fatal(err)
			}
		}
		f.queries = append(f.queries, askers)
	}
	start := spent()
	for _, q := range f.queries {
		var best metric.Best
		best.Reset(metric.Want{K: k, Most: math.Inf(1)})
		var values [512]float64
		for lo := uint32(0); lo < space.Len(); lo += uint32(len(values)) {
			part := values[:min(uint32(len(values)), space.Len()-lo)]
			q[2].Values(lo, lo+uint32(len(part)), part)
			for j, v := range part {
				if v <= best.Bound() {
					best.Add(metric.Hit{Value: v, ID: lo + uint32(j)})
				}
			}
		}
		f.truth = append(f.truth, best.Bound())
	}
	f.scan = (spent() - start) * 1e6 / float64(len(f.queries))
	return f
}

// ask returns means per query: the share that is found, the objects compared, the cells visited, and microseconds of a core.
func (f *asking) ask(probes int) (found, compared, visited, time float64) {
	start := spent()
	for i, q := range f.queries {
		r, err := f.searcher.Search(f.t.Context(), q[0], q[1], metric.Want{K: f.k, Most: math.Inf(1)}, probes, nil)
		if err != nil {
			f.t.Fatal(err)
		}
		for _, h := range r.Hits {
			if h.Value <= f.truth[i] {
				found += 1 / float64(f.k)
			}
		}
		compared, visited = compared+float64(r.Compared), visited+float64(r.Visited)
	}
	n := float64(len(f.queries))
	return found / n, compared / n, visited / n, (spent() - start) * 1e6 / n
}
