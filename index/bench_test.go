package index_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
)

// BenchmarkBuild builds indexes of 500,000 objects with one worker on one core, and reports postings per second from
// the first value to the bytes in memory. The shapes are those of the workloads: signatures (W1), short documents from
// a large vocabulary (W3), table rows with numbers (W4).
func BenchmarkBuild(b *testing.B) {
	const objects = 500_000
	const vocabulary = 1_000_000
	zipf := func(random *rand.Rand) string {
		rank := 20 * (math.Exp(random.Float64()*math.Log(vocabulary/20+1)) - 1)
		return "w" + strconv.Itoa(int(rank))
	}
	categories := make([]string, 40)
	for i := range categories {
		categories[i] = "category " + strconv.Itoa(i)
	}
	shapes := []struct {
		name     string
		specs    func() []schema.AttributeSpec
		postings int
		fill     func(random *rand.Rand) func(build *postings.Batch)
	}{
		{"signatures", func() (specs []schema.AttributeSpec) {
			for i := range 24 {
				specs = append(specs, schema.AttributeSpec{Name: fmt.Sprint("h", i), Type: schema.Ordinal, Keywords: 67})
			}
			return specs
		}, 24 * objects, func(random *rand.Rand) func(*postings.Batch) {
			return func(build *postings.Batch) {
				for i := range 24 {
					build.AddOrdinal(i, random.Uint32N(67))
				}
			}
		}},
		{"documents", func() []schema.AttributeSpec { return []schema.AttributeSpec{{Name: "text", Type: schema.Text}} }, 17 * objects,
			func(random *rand.Rand) func(*postings.Batch) {
				// Words lie one after the other, as an encoder cuts them from a text; drawing is not building.
				var text strings.Builder
				ends := make([]int, 1<<20+1)
				for i := range 1 << 20 {
					text.WriteString(zipf(random))
					ends[i+1] = text.Len()
				}
				drawn, next := text.String(), 0
				return func(build *postings.Batch) {
					for range 17 {
						build.AddString(0, drawn[ends[next]:ends[next+1]])
						next = (next + 1) & (1<<20 - 1)
					}
				}
			}},
		{"rows", func() (specs []schema.AttributeSpec) {
			for i := range 6 {
				specs = append(specs, schema.AttributeSpec{Name: fmt.Sprint("n", i), Type: schema.Number})
			}
			for i := range 8 {
				specs = append(specs, schema.AttributeSpec{Name: fmt.Sprint("c", i), Type: schema.Text})
			}
			return specs
		}, 14 * objects, func(random *rand.Rand) func(*postings.Batch) {
			return func(build *postings.Batch) {
				for i := range 6 {
					build.AddNumber(i, random.Float64())
				}
				for i := range 8 {
					build.AddString(6+i, categories[random.IntN(40)])
				}
			}
		}},
	}
	for _, shape := range shapes {
		b.Run(shape.name, func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			s := schemaFor(b, schema.Rows)
			var bytes int
			for b.Loop() {
				b.StopTimer()
				build, err := index.Builtin().NewBuilder(s, shape.specs(), index.BuilderOptions{Workers: 1})
				if err != nil {
					b.Fatal(err)
				}
				fill := shape.fill(rand.New(rand.NewPCG(1, 2)))
				runtime.GC()
				b.StartTimer()
				if err := build.AddObjects(b.Context(), objects, func(dst *postings.Batch, _ int) error {
					fill(dst) // one worker, so by one goroutine
					return nil
				}); err != nil {
					b.Fatal(err)
				}
				data, err := build.Bytes(context.Background())
				if err != nil {
					b.Fatal(err)
				}
				bytes = len(data)
			}
			perSecond := float64(shape.postings) * float64(b.N) / b.Elapsed().Seconds()
			b.ReportMetric(perSecond/1e6, "Mpostings/s")
			b.ReportMetric(8*float64(bytes)/float64(shape.postings), "bits/posting")
		})
	}
}

// BenchmarkLookup looks words up in a vocabulary larger than the caches.
func BenchmarkLookup(b *testing.B) {
	build, err := onebyone.NewBuilder(schemaFor(b, schema.Rows), []schema.AttributeSpec{{Name: "text", Type: schema.Text}}, index.BuilderOptions{})
	if err != nil {
		b.Fatal(err)
	}
	words := make([]string, 1<<20)
	for i := range words {
		words[i] = "word " + strconv.Itoa(i*7919)
		build.AddString(0, words[i])
		if err := build.EndObject("", nil, ""); err != nil {
			b.Fatal(err)
		}
	}
	x := built(b, build)
	i := 0
	for b.Loop() {
		i = (i + 514229) & (len(words) - 1)
		if _, ok := x.Lookup(0, words[i]); !ok {
			b.Fatal(words[i])
		}
	}
}

// BenchmarkOpen opens an index in memory: what hashing and checking cost.
func BenchmarkOpen(b *testing.B) {
	build, err := manyTiles()
	if err != nil {
		b.Fatal(err)
	}
	data, err := build.Bytes(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := index.OpenBytes(data); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDecode makes postings of a tile in each layout, as an engine does when it loads an index.
func BenchmarkDecode(b *testing.B) {
	for _, shape := range []struct {
		name, layout string
		keywords     uint32
	}{
		{"sliced, 2 keywords", "sliced", 2}, {"sliced, 67 keywords", "sliced", 67}, {"sliced, 1024 keywords", "sliced", 1024},
		{"sliced, 16384 keywords", "sliced", 16384}, {"rare, 30000 keywords", "rare", 30_000},
	} {
		b.Run(shape.name, func(b *testing.B) {
			const tiles = 4
			spec := schema.AttributeSpec{Name: "a", Type: schema.Text, Layout: shape.layout}
			build, err := onebyone.NewBuilder(schemaFor(b, schema.Rows), []schema.AttributeSpec{spec}, index.BuilderOptions{})
			if err != nil {
				b.Fatal(err)
			}
			random := rand.New(rand.NewPCG(1, 2))
			for range tiles * store.TileObjects {
				keyword := random.Uint32N(shape.keywords)
				if shape.layout == "rare" { // half of the keywords rare
					keyword = uint32(float64(shape.keywords) * math.Pow(random.Float64(), 4))
				}
				build.AddString(0, strconv.Itoa(int(keyword)))
				if err := build.EndObject("", nil, ""); err != nil {
					b.Fatal(err)
				}
			}
			x := built(b, build)
			var decoder postings.Decoder
			for b.Loop() {
				for tile := range tiles {
					decoder.Postings(x.Lists, tile, 0)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(tiles*store.TileObjects), "ns/posting")
		})
	}
}

// built opens what a builder made.
func built(b *testing.B, from *onebyone.Builder) *index.Index {
	b.Helper()
	data, err := from.Bytes(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	x, err := index.OpenBytes(data)
	if err != nil {
		b.Fatal(err)
	}
	return x
}
