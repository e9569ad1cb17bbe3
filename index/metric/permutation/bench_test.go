//go:build unix

package permutation

import (
	"fmt"
	"math"
	"math/rand/v2"
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

// BenchmarkDistances is one core on ranks that do not fit its caches, as a search reads them.
func BenchmarkDistances(b *testing.B) {
	for _, m := range []int{64, 128, 100} {
		const n = 1 << 20
		rng := rand.New(rand.NewPCG(1, 1))
		ranks, query := make([]byte, n*m), make([]byte, m)
		for i := range ranks {
			ranks[i] = byte(rng.IntN(m))
		}
		for _, similarity := range []Similarity{Rho, Footrule} {
			for name, loop := range map[string]distances{"go": plain(similarity), "best": best(similarity, m)} {
				b.Run(fmt.Sprintf("%s/%s/%d", name, similarity, m), func(b *testing.B) {
					dst := make([]uint32, 512)
					packed, start := pack(nil, query), spent()
					for b.Loop() {
						for lo := 0; lo < n; lo += len(dst) {
							loop(dst, ranks[lo*m:(lo+len(dst))*m], packed, m)
						}
					}
					b.ReportMetric(float64(n)*float64(b.N)/(spent()-start)/1e6, "Mobjects/core-s")
				})
			}
		}
	}
}

// BenchmarkRank is how fast objects rank permutants whose values are known.
func BenchmarkRank(b *testing.B) {
	for _, m := range []int{64, 128, 255} {
		b.Run(fmt.Sprint(m), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 1))
			const n = 256
			values, dst := make([]float64, n*m), make([]byte, m)
			for i := range values {
				values[i] = rng.Float64()
			}
			var r ranker
			start := spent()
			for b.Loop() {
				for o := range n {
					r.rank(dst, values[o*m:(o+1)*m])
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/(spent()-start)/1e6, "Mobjects/core-s")
		})
	}
}

// BenchmarkCandidates is a search but for comparing candidates: rank distances of a million objects and the selection of the first.
func BenchmarkCandidates(b *testing.B) {
	const n, dims = 1 << 20, 8
	rng := rand.New(rand.NewPCG(1, 1))
	elements := make([]float32, n*dims)
	for i := range elements {
		elements[i] = float32(rng.NormFloat64())
	}
	space, err := metric.NewVectors(metric.Metric{Kind: metric.L2}, dims, elements)
	if err != nil {
		b.Fatal(err)
	}
	x, err := Build(b.Context(), space, Parameters{HeldOut: -1}, 2, nil)
	if err != nil {
		b.Fatal(err)
	}
	s := x.Searcher()
	for _, fraction := range []float64{.001, .01, .1} {
		b.Run(fmt.Sprintf("fraction=%v", fraction), func(b *testing.B) {
			first, start, q := uint32(math.Ceil(fraction*n)), spent(), uint32(0)
			for b.Loop() {
				if err := s.Begin(space.Of(q%n), metric.Want{K: int(first), Most: math.Inf(1)}, fraction); err != nil {
					b.Fatal(err)
				}
				for s.state != comparing {
					s.step(nil)
				}
				q += 7919
			}
			b.ReportMetric(n*float64(b.N)/(spent()-start)/1e6, "Mobjects/core-s")
		})
	}
}

// set is real objects.
type set struct {
	name  string
	space metric.Space
}

func sets(t testing.TB) []set {
	return []set{
		{"86,016 words, edit", words(t, 86016)}, {"SIFT, 10,000, l2", sift(t)}, {"nasa_atmos, 41,472, l1", atmospheres(t)}, {"DNA, 20,000 reads of 64 bases, edit", reads(t)},
		{"Color-like, 50,000, l1", colors(t)},
	}
}

// The figures of docs/benchmarks: recall by fraction, permutants and similarity.
func TestFigures(t *testing.T) {
	if os.Getenv("GENIEMQ_FULL") != "1" {
		t.Skip("figures for docs/benchmarks: with GENIEMQ_FULL=1")
	}
	fractions := []float64{.001, .003, .01, .03, .1, .3}
	var page strings.Builder
	for _, set := range sets(t) {
		all := []asked{{k: 1}, {k: 10}, {k: 100}}
		var indexes []*Index
		var ways []way
		for _, m := range []int{64, 128} {
			for _, similarity := range []Similarity{Rho, Footrule} {
				x := must(t, set.space, Parameters{Permutants: m, Similarity: similarity, HeldOut: -1})
				indexes = append(indexes, x)
				ways = append(ways, way{byRanks(x), false}, way{byRanks(x), true})
			}
		}
		got := figures(t, set.space, held(indexes[len(indexes)-1], 256), ways, all, fractions)
		fmt.Fprintf(&page, "\n**%s**\n\n| m | similarity | queries | k | 0.1 | 0.3 | 1 | 3 | 10 | 30 %% |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n", set.name)
		for w, rows := range got {
			x, who := indexes[w/2], "held out"
			if w%2 == 1 {
				who = "members"
			}
			for j, row := range rows {
				fmt.Fprintf(&page, "| %d | %s | %s | %d |", len(x.permutants), x.parameters.Similarity, who, all[j].k)
				for _, share := range row {
					fmt.Fprintf(&page, " %.1f |", share)
				}
				fmt.Fprintln(&page)
			}
		}
	}
	t.Log(page.String())
}

// The figures of docs/benchmarks: recall of the ten nearest by how many objects are drawn for a permutant, the mean of some seeds, and what choosing takes of a build. 1 is no choice.
// Queries are held out, those of a seed the same for all.
func TestDraws(t *testing.T) {
	if os.Getenv("GENIEMQ_FULL") != "1" {
		t.Skip("figures for docs/benchmarks: with GENIEMQ_FULL=1")
	}
	const seeds = 4
	fractions := []float64{.001, .003, .01, .03, .1, .3}
	type row struct {
		p             Parameters
		means         [6]float64
		chosen, built float64 // ms
	}
	var page strings.Builder
	for _, set := range sets(t) {
		var rows []row
		for _, m := range []int{64, 128} {
			for _, similarity := range []Similarity{Rho, Footrule} {
				for _, draws := range []int{1, 4, 12, 32} {
					rows = append(rows, row{p: Parameters{Permutants: m, Similarity: similarity, HeldOut: -1, draws: draws}})
				}
			}
		}
		for seed := range uint64(seeds) {
			var ways []way
			var last *Index
			for i := range rows {
				r := &rows[i]
				r.p.Seed = seed
				start := spent()
				pool, _ := r.p.lots(set.space.Len(), uint32(r.p.Permutants))
				if _, err := choose(t.Context(), set.space, pool, r.p.Permutants, r.p.draws, 1); err != nil {
					t.Fatal(err)
				}
				between := spent()
				last = must(t, set.space, r.p)
				ways = append(ways, way{byRanks(last), false})
				r.chosen, r.built = r.chosen+(between-start)*1000/seeds, r.built+(spent()-between)*1000/seeds
			}
			for i, got := range figures(t, set.space, held(last, 256), ways, []asked{{k: 10}}, fractions) {
				for j, share := range got[0] {
					rows[i].means[j] += share / seeds
				}
			}
		}
		fmt.Fprintf(&page, "\n**%s**\n\n| m | similarity | draws | 0.1 | 0.3 | 1 | 3 | 10 | 30 %% | chosen, ms | built, ms |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n", set.name)
		for _, r := range rows {
			fmt.Fprintf(&page, "| %d | %s | %d |", r.p.Permutants, r.p.Similarity, r.p.draws)
			for _, share := range r.means {
				fmt.Fprintf(&page, " %.1f |", share)
			}
			fmt.Fprintf(&page, " %.1f | %.0f |\n", r.chosen, r.built)
		}
	}
	t.Log(page.String())
}

// The figures of docs/benchmarks: which fraction a recall of 0.95 takes, what other queries than those that it was measured with find, and what is saved.
func TestWhereItPays(t *testing.T) {
	if os.Getenv("GENIEMQ_FULL") != "1" {
		t.Skip("figures for docs/benchmarks: with GENIEMQ_FULL=1")
	}
	var page strings.Builder
	for _, set := range sets(t) {
		fmt.Fprintf(&page, "\n**%s**\n", set.name)
		all := []asked{{k: 1}, {k: 10}, {k: 100}}
		var indexes []*Index
		for _, m := range []int{64, 128} {
			for _, similarity := range []Similarity{Rho, Footrule} {
				indexes = append(indexes, must(t, set.space, Parameters{Permutants: m, Similarity: similarity}))
			}
		}
		fmt.Fprintf(&page, "\n| m | similarity | k | fraction for 0.95 | expected recall (at least) | other queries found | search, us | scan, us | scan / search |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
		for _, x := range indexes {
			found := figures(t, set.space, held(indexes[len(indexes)-1], 256), []way{{byRanks(x), false}}, all, fractions())[0]
			for j, q := range all {
				fraction := x.Fraction(q.k, .95)
				if fraction >= 1 {
					fmt.Fprintf(&page, "| %d | %s | %d | none up to 0.5: scan | | | | | |\n", len(x.permutants), x.parameters.Similarity, q.k)
					continue
				}
				expected, _ := x.Recall().At(q.k, fraction)
				truth := found[j][slices.Index(fractions(), fraction)]
				search, scan := timed(t, x, set.space, q.k, fraction)
				fmt.Fprintf(&page, "| %d | %s | %d | %v | %.3f (%.3f) | %.3f | %.0f | %.0f | %.1f |\n", len(x.permutants), x.parameters.Similarity, q.k, fraction,
					expected.Share, expected.Low, truth/100, search, scan, scan/search)
			}
		}
	}
	t.Log(page.String())
}

// timed are the microseconds of a core per query of a search and of comparing everything.
func timed(t testing.TB, x *Index, space metric.Space, k int, fraction float64) (search, scan float64) {
	s, want := x.Searcher(), metric.Want{K: k, Most: math.Inf(1)}
	queries := held(x, 64)
	for i := range 2 { // the first time warms up
		start := spent()
		for _, q := range queries {
			if _, err := s.Search(t.Context(), space.Of(q), want, fraction, nil); err != nil {
				t.Fatal(err)
			}
		}
		between := spent()
		var best metric.Best
		var values [512]float64
		for _, q := range queries[:32] {
			a := space.Of(q)
			best.Reset(want)
			for lo := uint32(0); lo < space.Len(); lo += uint32(len(values)) {
				part := values[:min(uint32(len(values)), space.Len()-lo)]
				metric.ValuesTo(a, lo, lo+uint32(len(part)), best.Bound(), part)
				for j, v := range part {
					if v <= best.Bound() {
						best.Add(metric.Hit{Value: v, ID: lo + uint32(j)})
					}
				}
			}
		}
		if i == 1 {
			search = (between - start) * 1e6 / float64(len(queries))
			scan = (spent() - between) * 1e6 / 32
		}
	}
	return search, scan
}
