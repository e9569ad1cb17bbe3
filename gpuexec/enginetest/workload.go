package enginetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
)

// A Workload is a synthetic collection with queries that has the sizes and the skew of the design's workloads, so
// that an engine can be measured without data.
type Workload struct {
	Name       string
	Objects    int
	Attributes int
	Vocabulary uint32
	K, Queries int
	// Object appends the keywords of an object, (attribute, keyword) each; Query those of a query.
	Object, Query func(dst [][2]uint32, id uint32) [][2]uint32
	Reach         uint32 // an item is the keywords within this distance
	Layout        string // of the attributes, as in a schema
	// numbers are, of texts, whose keywords are those that occur, how many do before each.
	numbers []uint32
}

// Mix hashes a number.
func Mix(x uint32) uint32 {
	x ^= x >> 16
	x *= 0x7feb352d
	x ^= x >> 15
	x *= 0x846ca68b
	return x ^ x>>16
}

// Zipf makes a Workload of documents: length words of a vocabulary with rank = shift (e^(u ln(V/shift+1)) - 1). A
// query is length words of an object, every fourth replaced.
func Zipf(name string, objects, length int, v uint32, shift float64, queryLength, k int) Workload {
	lnr := math.Log(float64(v)/shift + 1)
	word := func(doc, j uint32) uint32 {
		u := (float64(Mix(doc*131+j*2654435761+17)) + 0.5) / (1 << 32)
		return min(v-1, uint32(shift*(math.Exp(u*lnr)-1)))
	}
	add := func(dst [][2]uint32, w uint32) [][2]uint32 {
		if slices.Contains(dst, [2]uint32{0, w}) {
			return dst
		}
		return append(dst, [2]uint32{0, w})
	}
	wl := Workload{Name: name, Objects: objects, Attributes: 1, Vocabulary: v, K: k, Queries: 1024}
	wl.Object = func(dst [][2]uint32, id uint32) [][2]uint32 {
		for j := range uint32(length) {
			dst = add(dst, word(id, j))
		}
		return dst
	}
	wl.Query = func(dst [][2]uint32, q uint32) [][2]uint32 {
		id := Mix(q+99) % uint32(objects)
		for j := uint32(0); j < uint32(length) && len(dst) < queryLength; j++ {
			if Mix(q*77+j)%100 < 25 {
				dst = add(dst, word(uint32(objects)+q, j))
			} else {
				dst = add(dst, word(id, j))
			}
		}
		return dst
	}
	return wl
}

// Hashed makes a Workload of p-stable hashes: points of clusters in 32 dimensions, as the design's W1.
func Hashed(objects, functions int) Workload {
	const dims, buckets, clusters = 32, 67, 20000
	const width = 0.12
	rng := rand.New(rand.NewPCG(1, 0))
	projections := make([]float32, functions*dims)
	for i := range projections {
		projections[i] = float32(rng.NormFloat64() / math.Sqrt(dims))
	}
	offsets := make([]float32, functions)
	for i := range offsets {
		offsets[i] = width * rng.Float32()
	}
	gauss := func(s uint32) float32 {
		u := max((float64(Mix(s*2+1))+1)/(1<<32), 1e-12)
		v := (float64(Mix(s*2+0x9e3779b9)) + 1) / (1 << 32)
		return float32(math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*v))
	}
	centers := sync.OnceValue(func() []float32 {
		c := make([]float32, clusters*dims)
		for i := range c {
			c[i] = gauss(uint32(i/dims)*977 + uint32(i%dims)*131071 + 7)
		}
		return c
	})
	point := func(id, salt uint32, noise float32, x *[dims]float32) {
		c := centers()[Mix(id)%clusters*dims:]
		for l := range uint32(dims) {
			x[l] = c[l] + 0.45*gauss(id*2654435761+l*7919+3)
			if noise > 0 {
				x[l] += noise * gauss(salt*40503+l*31+11)
			}
		}
	}
	hash := func(dst [][2]uint32, x *[dims]float32) [][2]uint32 {
		for f := range functions {
			s := offsets[f]
			for l, a := range projections[f*dims : f*dims+dims] {
				s += a * x[l]
			}
			v := int(math.Floor(float64(s/width))) + buckets/2
			dst = append(dst, [2]uint32{uint32(f), uint32(min(max(v, 0), buckets-1))})
		}
		return dst
	}
	wl := Workload{Layout: "sliced", Name: "w1", Objects: objects, Attributes: functions, Vocabulary: buckets, K: 100, Queries: 1024}
	wl.Object = func(dst [][2]uint32, id uint32) [][2]uint32 {
		var x [dims]float32
		point(id, 0, 0, &x)
		return hash(dst, &x)
	}
	wl.Query = func(dst [][2]uint32, q uint32) [][2]uint32 {
		var x [dims]float32
		point(Mix(q+7)%uint32(objects), q, 0.25, &x)
		return hash(dst, &x)
	}
	return wl
}

// Rows makes a Workload of 14 columns of 1,024 buckets, half of them skewed, asked by ranges of +-50.
func Rows(objects int) Workload {
	return columns(Workload{Name: "w4", Objects: objects, Attributes: 14, Vocabulary: 1024, K: 100, Reach: 50}, true)
}

// DenseRows makes a Workload of 24 columns of 8 keywords, too few columns for the bound, asked by ranges of five: lists so long
// that 1,024 queries are three times as fast by shared decode, and one is a hundred times slower.
func DenseRows(objects int) Workload {
	return columns(Workload{Name: "dense", Objects: objects, Attributes: 24, Vocabulary: 8, K: 10, Reach: 2}, false)
}

// columns are a Workload's objects, with a keyword in each attribute, and 1,024 queries that are like objects.
func columns(wl Workload, skewed bool) Workload {
	wl.Layout, wl.Queries = "sliced", 1024
	wl.Object = func(dst [][2]uint32, id uint32) [][2]uint32 {
		for c := range uint32(wl.Attributes) {
			u := float64(Mix(id*31+c*7919)) / (1 << 32)
			if skewed && c%2 == 0 {
				u = u * u * u
			}
			dst = append(dst, [2]uint32{c, uint32(u * float64(wl.Vocabulary))})
		}
		return dst
	}
	wl.Query = func(dst [][2]uint32, q uint32) [][2]uint32 { return wl.Object(dst, Mix(q)%uint32(wl.Objects)) }
	return wl
}

// Build makes the index.
func (wl *Workload) Build(t testing.TB) *index.Index {
	wl.numbers = nil
	if wl.Layout == "rare" { // of texts, whose keywords are those that occur
		occurs := make([]uint32, wl.Vocabulary)
		eachObject(wl.Objects, wl.Object, func(keywords [][2]uint32) {
			for _, kw := range keywords {
				occurs[kw[1]] = 1
			}
		})
		wl.numbers = make([]uint32, wl.Vocabulary+1)
		for kw, n := range occurs {
			wl.numbers[kw+1] = wl.numbers[kw] + n
		}
	}
	vocabulary := slices.Repeat([]uint32{wl.Vocabulary}, wl.Attributes)
	return buildKeywords(t, vocabulary, func(int) string { return wl.Layout }, wl.Objects, wl.Object)
}

// buildKeywords makes an index of objects, each some (attribute, keyword), made on all cores and added in their order. Attributes
// whose layout is rare are texts, the others ordinals, some of whose keywords may not occur.
func buildKeywords(t testing.TB, vocabulary []uint32, layout func(a int) string, objects int,
	object func(dst [][2]uint32, id uint32) [][2]uint32) *index.Index {
	t.Helper()
	rows, err := index.Builtin().ParseSchema(RowsSchema)
	if err != nil {
		t.Fatal(err)
	}
	var specs []schema.AttributeSpec
	for a, v := range vocabulary {
		spec := schema.AttributeSpec{Name: "a" + strconv.Itoa(a), Type: schema.Ordinal, Keywords: v, Layout: layout(a)}
		if spec.Layout == "rare" {
			spec.Type, spec.Keywords = schema.Text, 0
		}
		specs = append(specs, spec)
	}
	b, err := onebyone.NewBuilder(rows, specs, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eachObject(objects, object, func(keywords [][2]uint32) {
		for _, kw := range keywords {
			if specs[kw[0]].Type == schema.Text {
				b.AddString(int(kw[0]), fmt.Sprintf("%08d", kw[1]))
			} else if err := b.AddOrdinal(int(kw[0]), kw[1]); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.EndObject("", nil, ""); err != nil {
			t.Fatal(err)
		}
	})
	return OpenBuilt(t, b.Builder)
}

// eachObject makes objects on all cores, chunk by chunk, and hands them on in their order.
func eachObject(objects int, object func(dst [][2]uint32, id uint32) [][2]uint32, add func(keywords [][2]uint32)) {
	const chunk = 8192
	made := make([][][2]uint32, chunk)
	for first := 0; first < objects; first += chunk {
		n := min(chunk, objects-first)
		var workers sync.WaitGroup
		for w := range runtime.GOMAXPROCS(0) {
			workers.Go(func() {
				for i := w; i < n; i += runtime.GOMAXPROCS(0) {
					made[i] = object(made[i][:0], uint32(first+i))
				}
			})
		}
		workers.Wait()
		for _, keywords := range made[:n] {
			add(keywords)
		}
	}
}

// Plans are the queries.
func (wl *Workload) Plans() []gpuexec.Plan {
	plans := make([]gpuexec.Plan, wl.Queries)
	for q := range plans {
		m := &plans[q]
		m.K = wl.K
		Query(m) // also of no item
		for _, kw := range wl.Query(nil, uint32(q)) {
			Query(m).StartItem(kw[0], 1)
			lo, hi := kw[1]-min(kw[1], wl.Reach), min(kw[1]+wl.Reach+1, wl.Vocabulary)
			if wl.numbers != nil {
				lo, hi = wl.numbers[lo], wl.numbers[hi]
			}
			if lo < hi {
				Query(m).AddSpan(lo, hi)
			}
		}
	}
	return plans
}
