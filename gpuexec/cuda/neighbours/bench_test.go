//go:build cuda

package neighbours

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/gpuexec/cuda/device"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/distance"
	asked "github.com/geniemq/geniemq/index/nearest"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
)

// vectors are columns that are measured.
type vectors struct {
	metric     string
	dims, k, n int
	of         string
	made       func(rng *rand.Rand, dims int) []float32
	storage    string // empty: f32
	method     string // empty: scan
	options    string // of the column
}

// ask is a query for the nearest.
func (c *vectors) ask(rng *rand.Rand) *index.Request {
	return &index.Request{Vector: c.made(rng, c.dims), Near: asked.Near{K: c.k, Method: cmp.Or(c.method, "scan")}}
}

// BenchmarkCUDAColumns measures scans of vectors, by metric and size: milliseconds of a batch on the device, as it is used, with what is off, and without a sieve, and in
// all, and on the host; and what share of the objects is compared exactly. Random vectors are the sieve's worst.
func BenchmarkCUDAColumns(b *testing.B) {
	for _, c := range []vectors{
		{"l2", 300, 8, 200_000, "random", randomVector, "", "", ""}, {"cosine", 128, 10, 200_000, "random", randomVector, "", "", ""}, {"l2", 8, 8, 1_000_000, "random", randomVector, "", "", ""},
		{"l1", 8, 8, 1_000_000, "random", randomVector, "", "", ""}, {"l1", 32, 8, 200_000, "random", randomVector, "", "", ""}, {"l1", 282, 8, 100_000, "random", randomVector, "", "", ""}, {"l1", 282, 8, 1_000_000, "random", randomVector, "", "", ""},
		{"l1", 282, 8, 100_000, "colours", colourVector, "", "", ""}, {"l1", 282, 8, 1_000_000, "colours", colourVector, "", "", ""}, {"l1", 282, 8, 5_000_000, "colours", colourVector, "", "", ""},
		{"l1", 282, 8, 400_000, "bytes", byteVector, "u8", "", ""}, {"l1", 128, 8, 1_000_000, "bytes", byteVector, "u8", "", ""}, {"l1", 128, 8, 1_000_000, "colours", colourVector, "u8", "", ""},
		{"l1", 64, 8, 1_000_000, "colours", colourVector, "u8", "", ""},
		{"linf", 128, 10, 1_000_000, "random", randomVector, "", "", ""}, {"linf", 128, 10, 1_000_000, "bytes", byteVector, "u8", "", ""},
		{"hamming", 128, 10, 1_000_000, "codes", codeVector, "", "", ""}, {"hamming", 128, 10, 1_000_000, "codes", codeVector, "u8", "", ""},
		{"l3", 128, 10, 1_000_000, "random", randomVector, "", "", ""}, {"l3", 128, 10, 1_000_000, "bytes", byteVector, "u8", "", ""}, {"l8", 128, 10, 1_000_000, "random", randomVector, "", "", ""},
		{"l4", 128, 10, 1_000_000, "random", randomVector, "", "", ""}, {"l5", 128, 10, 1_000_000, "random", randomVector, "", "", ""}, {"l6", 128, 10, 1_000_000, "random", randomVector, "", "", ""},
		{"l7", 128, 10, 1_000_000, "random", randomVector, "", "", ""}, {"l2", 128, 100, 4_500_000, "random", randomVector, "", "", ""},
	} {
		b.Run(fmt.Sprintf("%s%s/%dx%d/k=%d/%s", c.metric, c.storage, c.n, c.dims, c.k, c.of), func(b *testing.B) {
			if testing.Short() && c.n > 1_000_000 {
				b.Skip("of many objects")
			}
			x := columnOf(b, c)
			for _, name := range []string{"used", "waves", "untried", "scan", "host"} {
				measureColumn(b, name, x, c.k, c.ask)
			}
		})
	}
}

// BenchmarkCUDATrees measures trees of places, on the device and on the host.
func BenchmarkCUDATrees(b *testing.B) {
	for _, n := range []int{1_000_000, 10_000_000} {
		c := vectors{"l2", 2, 0, n, "places", placeVector, "", "tree", ""}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			if testing.Short() && n > 1_000_000 {
				b.Skip("of many objects")
			}
			x := columnOf(b, c)
			for _, c.k = range []int{1, 8, 100} {
				b.Run(fmt.Sprintf("k=%d", c.k), func(b *testing.B) {
					for _, name := range []string{"used", "host"} {
						measureColumn(b, name, x, c.k, c.ask)
					}
				})
			}
		})
	}
}

// measureColumn measures one way to answer, by the number of queries.
func measureColumn(b *testing.B, name string, x *index.Index, k int, ask func(rng *rand.Rand) *index.Request) {
	b.Helper()
	e := gpuexec.Engine(cpu.New(gpuexec.CPUOptions{}))
	if name != "host" {
		e = measured(b, name)
	}
	rng := rand.New(rand.NewPCG(2, 2))
	planner, err := index.NewQueries(x)
	if err != nil {
		b.Fatal(err)
	}
	s, err := e.Load(b.Context(), x)
	if err != nil {
		b.Fatal(err)
	}
	for _, queries := range []int{1, 32, 512, 1024, 4096, 16384} {
		if name == "host" && queries > 1024 || queries > 4096 && !strings.Contains(b.Name(), "Cells") {
			continue
		}
		plans, answers := make([]gpuexec.Plan, queries), make([]gpuexec.Answer, queries)
		for i := range plans {
			made, err := planner.Plan(new(postings.MatchQuery), ask(rng))
			if err != nil {
				b.Fatal(err)
			}
			plans[i] = gpuexec.Plan{Family: made.Family, Query: made.Query, K: k}
		}
		b.Run(fmt.Sprintf("%s/queries=%d", name, queries), func(b *testing.B) {
			var stages time.Duration
			for b.Loop() {
				var t gpuexec.Trace
				if err := s.Search(b.Context(), plans, answers, &t); err != nil {
					b.Fatal(err)
				}
				stages += t.Match
			}
			compared := 0.0
			for i := range answers {
				compared += float64(answers[i].Value.(*distance.Answer).Distances)
			}
			b.ReportMetric(float64(stages)/1e6/float64(b.N), "device-ms/op")
			b.ReportMetric(float64(b.Elapsed())/1e6/float64(b.N), "ms/op")
			b.ReportMetric(compared/float64(queries), "compared/query")
		})
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

// measured opens a device as it is used, without sieves (scan), without samples (waves), with cells that each query visits alone or that all visit together, or with what is off.
func measured(b *testing.B, name string) *device.Engine {
	e := openEngine(b, gpuexec.CUDAOptions{Untried: name == "untried"})
	e.Device().Profile.Paths.Sieves = name != "scan"
	switch near := &e.Device().Profile.Near; name {
	case "alone":
		near.CellsPairs, near.CellsEach = math.Inf(1), math.MaxInt32
	case "waves":
		near.Sample = math.MaxInt32
	case "together":
		near.CellsPairs = 0
	case "untried": // levels too
		near.LevelSteps, near.LevelsLeave = 0, 1
	}
	return e
}

func randomVector(rng *rand.Rand, dims int) []float32 {
	v := make([]float32, dims)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

// colourVector is like a histogram of colours: half of it is 0, and it is one of many that differ little from each other.
func colourVector(rng *rand.Rand, dims int) []float32 {
	v := make([]float32, dims)
	like := rand.New(rand.NewPCG(rng.Uint64N(2000), 7))
	for i := range v {
		if x := like.NormFloat64(); x > 0 {
			v[i] = float32(math.Round(min(255, max(0, x*60+rng.NormFloat64()*6))))
		}
	}
	return v
}

// placeVector is a place near one of 2,000 others.
func placeVector(rng *rand.Rand, dims int) []float32 {
	v, near := make([]float32, dims), rand.New(rand.NewPCG(rng.Uint64N(2000), 7))
	for i := range v {
		v[i] = float32(near.Float64()*180 + rng.NormFloat64()*0.05)
	}
	return v
}

// byteVector is of bytes that have nothing to do with each other.
func byteVector(rng *rand.Rand, dims int) []float32 {
	v := make([]float32, dims)
	for i := range v {
		v[i] = float32(rng.IntN(256))
	}
	return v
}

// codeVector is of codes: it is one of many that differ in a part of their elements.
func codeVector(rng *rand.Rand, dims int) []float32 {
	v, like := byteVector(rand.New(rand.NewPCG(rng.Uint64N(2000), 7)), dims), byteVector(rng, dims)
	for i := range v {
		if rng.IntN(4) == 0 {
			v[i] = like[i]
		}
	}
	return v
}

// columnOf is an index of vectors.
func columnOf(b testing.TB, c vectors) *index.Index {
	b.Helper()
	spec, err := index.Builtin().ParseSchema(fmt.Appendf(nil, "{name: columns, columns: [{name: v, type: vector, metric: %s, storage: %s, dims: %d, index: [%s]%s}]}", c.metric, cmp.Or(c.storage, "f32"), c.dims, cmp.Or(c.method, "scan"), c.options))
	if err != nil {
		b.Fatal(err)
	}
	objects, err := index.NewObjects(spec, index.BuilderOptions{})
	if err != nil {
		b.Fatal(err)
	}
	if c.method == "cells" && c.n > 100_000 {
		e := openEngine(b, gpuexec.CUDAOptions{})
		e.Finds = Finds(e)
		objects.FindBy(e, func(note string) { b.Error(note) })
	}
	const together = 64 << 10 // are made on all cores
	made, crew, id := make([][]float32, together), run.NewCrew(0), 0
	if err := objects.AddAll(b.Context(), index.Source{Next: func(r *schema.Record) error {
		if id == c.n {
			return io.EOF
		}
		if id%together == 0 {
			if err := crew.Run(b.Context(), min(together, c.n-id), func(_ *run.Shift, i int) {
				made[i] = c.made(rand.New(rand.NewPCG(1, uint64(id+i))), c.dims)
			}); err != nil {
				return err
			}
		}
		r.Cells = []schema.Cell{{Vector: made[id%together]}}
		id++
		return nil
	}}); err != nil {
		b.Fatal(err)
	}
	file, err := objects.Bytes(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	x, err := index.OpenBytes(file)
	if err != nil {
		b.Fatal(err)
	}
	return x
}

// BenchmarkCUDACells measures searches of cells to a recall of 0.995 for ten neighbours, in clusters that are apart, in such that are not, and in none, and scans of the same; what recall
// that is; and which way is taken by `auto`.
func BenchmarkCUDACells(b *testing.B) {
	for _, c := range []vectors{
		{"l2", 32, 10, 4_500_000, "clusters", aroundCentre(20_000, 0.1), "", "cells", ""}, {"l2", 32, 10, 4_500_000, "overlapping", aroundCentre(2000, 0.75), "", "cells", ""},
		{"l2", 32, 10, 4_500_000, "gaussian", randomVector, "", "cells", ""},
	} {
		b.Run(c.of, func(b *testing.B) {
			if testing.Short() {
				c.n /= 500
			}
			x := columnOf(b, c)
			b.Run("recall", func(b *testing.B) { measureRecall(b, x, &c, 0.995) })
			for _, name := range []string{"used", "alone", "together", "all", "host"} {
				measureColumn(b, name, x, c.k, func(rng *rand.Rand) *index.Request {
					r := c.ask(rng)
					r.Near.Recall = 0.995
					if name == "all" { // are compared, as ever
						r.Near.Method, r.Near.Recall = "scan", 0
					}
					return r
				})
			}
		})
	}
}

// measureRecall tells what share of the nearest is found to a recall, and what `auto` takes for it.
func measureRecall(b *testing.B, x *index.Index, c *vectors, recall float64) {
	b.Helper()
	planner, err := index.NewQueries(x)
	if err != nil {
		b.Fatal(err)
	}
	s := enginetest.LoadOn(b, openEngine(b, gpuexec.CUDAOptions{}), x)
	const queries = 1024
	ask := func(method string, recall float64) (answers []gpuexec.Answer) {
		plans, rng := make([]gpuexec.Plan, queries), rand.New(rand.NewPCG(2, 2))
		for i := range plans {
			r := c.ask(rng)
			r.Near.Method, r.Near.Recall = method, recall
			made, err := planner.Plan(new(postings.MatchQuery), r)
			if err != nil {
				b.Fatal(err)
			}
			plans[i] = gpuexec.Plan{Family: made.Family, Query: made.Query, K: c.k}
		}
		answers = make([]gpuexec.Answer, queries)
		if err := s.Search(b.Context(), plans, answers, nil); err != nil {
			b.Fatal(err)
		}
		return answers
	}
	for b.Loop() {
		exact, found, cells := ask("scan", 0), 0, 0
		for i, a := range ask("cells", recall) {
			for _, h := range a.Hits {
				if slices.Contains(exact[i].Hits, h) {
					found++
				}
			}
		}
		for _, a := range ask("auto", recall) {
			if a.Value.(*distance.Answer).Method == "cells" {
				cells++
			}
		}
		b.ReportMetric(float64(found)/float64(queries*c.k), "found")
		b.ReportMetric(float64(cells)/queries, "by-cells")
	}
}

// aroundCentre makes vectors around one of so many others.
func aroundCentre(centres uint64, spread float64) func(rng *rand.Rand, dims int) []float32 {
	return func(rng *rand.Rand, dims int) []float32 {
		v, near := make([]float32, dims), rand.New(rand.NewPCG(rng.Uint64N(centres), 7))
		for i := range v {
			v[i] = float32(near.NormFloat64() + spread*rng.NormFloat64())
		}
		return v
	}
}
