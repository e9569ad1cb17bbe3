//go:build cuda

package device

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index"
)

// The workloads of TestCUDAWorkloads are synthetic: they have the sizes and the skew of the design's workloads, so
// that the engine can be measured without data. GENIEMQ_WORKLOADS names those to run, with a scale of the number of
// objects in percent: "w3:100,w2:20"; nothing runs without it. GENIEMQ_FORM=planes keeps no postings of what is sliced,
// GENIEMQ_PARTS_MB streams parts of that size. GENIEMQ_K and GENIEMQ_REACH are lists that replace the workload's own. GENIEMQ_IMAGES names folders of device images to compare
// beside the built-in one.
type workload struct {
	name       string
	objects    int
	attributes int
	vocabulary uint32
	k, queries int
	// object appends the keywords of an object, (attribute, keyword) each; query those of a query.
	object, query func(dst [][2]uint32, id uint32) [][2]uint32
	reach         uint32 // an item is the keywords within this distance
	layout        string // of the attributes, as in a schema
	// Of texts, whose keywords are those that occur: which do, and by keyword how many do before.
	occurs, numbers []uint32
}

func mix(x uint32) uint32 {
	x ^= x >> 16
	x *= 0x7feb352d
	x ^= x >> 15
	x *= 0x846ca68b
	return x ^ x>>16
}

// zipf makes a workload of documents: length words of a vocabulary with rank = shift (e^(u ln(V/shift+1)) - 1). A
// query is length words of an object, every fourth replaced.
func zipf(name string, objects, length int, v uint32, shift float64, queryLength, k int) workload {
	lnr := math.Log(float64(v)/shift + 1)
	word := func(doc, j uint32) uint32 {
		u := (float64(mix(doc*131+j*2654435761+17)) + 0.5) / (1 << 32)
		return min(v-1, uint32(shift*(math.Exp(u*lnr)-1)))
	}
	add := func(dst [][2]uint32, w uint32) [][2]uint32 {
		if slices.Contains(dst, [2]uint32{0, w}) {
			return dst
		}
		return append(dst, [2]uint32{0, w})
	}
	wl := workload{name: name, objects: objects, attributes: 1, vocabulary: v, k: k, queries: 1024}
	wl.object = func(dst [][2]uint32, id uint32) [][2]uint32 {
		for j := range uint32(length) {
			dst = add(dst, word(id, j))
		}
		return dst
	}
	wl.query = func(dst [][2]uint32, q uint32) [][2]uint32 {
		id := mix(q+99) % uint32(objects)
		for j := uint32(0); j < uint32(length) && len(dst) < queryLength; j++ {
			if mix(q*77+j)%100 < 25 {
				dst = add(dst, word(uint32(objects)+q, j))
			} else {
				dst = add(dst, word(id, j))
			}
		}
		return dst
	}
	return wl
}

// hashed makes a workload of p-stable hashes: points of clusters in 32 dimensions, as the design's W1.
func hashed(objects, functions int) workload {
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
		u := max((float64(mix(s*2+1))+1)/(1<<32), 1e-12)
		v := (float64(mix(s*2+0x9e3779b9)) + 1) / (1 << 32)
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
		c := centers()[mix(id)%clusters*dims:]
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
	wl := workload{layout: "sliced", name: "w1", objects: objects, attributes: functions, vocabulary: buckets, k: 100, queries: 1024}
	wl.object = func(dst [][2]uint32, id uint32) [][2]uint32 {
		var x [dims]float32
		point(id, 0, 0, &x)
		return hash(dst, &x)
	}
	wl.query = func(dst [][2]uint32, q uint32) [][2]uint32 {
		var x [dims]float32
		point(mix(q+7)%uint32(objects), q, 0.25, &x)
		return hash(dst, &x)
	}
	return wl
}

// rows makes a workload of 14 columns of 1,024 buckets, half of them skewed, asked by ranges of +-50.
func rows(objects int) workload {
	const columns, buckets = 14, 1024
	wl := workload{layout: "sliced", name: "w4", objects: objects, attributes: columns, vocabulary: buckets, k: 100, queries: 1024, reach: 50}
	wl.object = func(dst [][2]uint32, id uint32) [][2]uint32 {
		for c := range uint32(columns) {
			u := float64(mix(id*31+c*7919)) / (1 << 32)
			if c%2 == 0 {
				u = u * u * u
			}
			dst = append(dst, [2]uint32{c, uint32(u * buckets)})
		}
		return dst
	}
	wl.query = func(dst [][2]uint32, q uint32) [][2]uint32 { return wl.object(dst, mix(q)%uint32(objects)) }
	return wl
}

func (wl *workload) build(t testing.TB) *index.Index {
	schema, err := index.ParseSchema(enginetest.RowsSchema)
	if err != nil {
		t.Fatal(err)
	}
	var specs []index.AttributeSpec
	for a := range wl.attributes {
		spec := index.AttributeSpec{Name: "a" + strconv.Itoa(a), Type: index.Ordinal, Keywords: wl.vocabulary, Layout: wl.layout}
		if wl.layout == "rare" { // of texts
			spec.Type, spec.Keywords = index.Text, 0
			wl.occurs = make([]uint32, wl.vocabulary+1)
		}
		specs = append(specs, spec)
	}
	b, err := index.NewBuilder(schema, specs, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// Objects are made in parallel, chunk by chunk, and added in order.
	const chunk = 8192
	made := make([][][2]uint32, chunk)
	for first := 0; first < wl.objects; first += chunk {
		n := min(chunk, wl.objects-first)
		var workers sync.WaitGroup
		for w := range runtime.GOMAXPROCS(0) {
			workers.Go(func() {
				for i := w; i < n; i += runtime.GOMAXPROCS(0) {
					made[i] = wl.object(made[i][:0], uint32(first+i))
				}
			})
		}
		workers.Wait()
		for _, object := range made[:n] {
			for _, kw := range object {
				if wl.occurs != nil {
					b.AddString(int(kw[0]), fmt.Sprintf("%08d", kw[1]))
					wl.occurs[kw[1]] = 1
				} else if err := b.AddOrdinal(int(kw[0]), kw[1]); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.EndObject("", nil, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	wl.numbers = wl.numbers[:0]
	sum := uint32(0)
	for _, n := range wl.occurs {
		wl.numbers = append(wl.numbers, sum)
		sum += n
	}
	return enginetest.OpenBuilt(t, b)
}

func (wl *workload) plans() []gpuexec.Plan {
	plans := make([]gpuexec.Plan, wl.queries)
	for q := range plans {
		m := &plans[q]
		m.K = wl.k
		for _, kw := range wl.query(nil, uint32(q)) {
			enginetest.Query(m).StartItem(kw[0], 1)
			lo, hi := kw[1]-min(kw[1], wl.reach), min(kw[1]+wl.reach+1, wl.vocabulary)
			if wl.occurs != nil {
				lo, hi = wl.numbers[lo], wl.numbers[hi]
			}
			if lo < hi {
				enginetest.Query(m).AddSpan(lo, hi)
			}
		}
	}
	return plans
}

func TestCUDAWorkloads(t *testing.T) {
	names := os.Getenv("GENIEMQ_WORKLOADS")
	if names == "" {
		t.Skip("a measurement: GENIEMQ_WORKLOADS names the workloads")
	}
	for name := range strings.SplitSeq(names, ",") {
		name, percent, _ := strings.Cut(name, ":")
		scale, err := strconv.Atoi(percent)
		if err != nil {
			scale = 100
		}
		var wl workload
		switch name {
		case "w1":
			wl = hashed(4_500_000*scale/100, 237)
		case "w2":
			wl = zipf("w2", 5_000_000*scale/100, 58, 30_000, 60, 38, 32)
		case "w3":
			wl = zipf("w3", 6_800_000*scale/100, 17, 1_000_000, 20, 12, 100)
		case "w4":
			wl = rows(980_000 * scale / 100)
		default:
			t.Fatalf("workload %q is unknown", name)
		}
		if layout := os.Getenv("GENIEMQ_LAYOUT"); layout != "" {
			wl.layout = layout
		}
		measure(t, &wl)
	}
}

func measure(t *testing.T, wl *workload) {
	start := time.Now()
	x := wl.build(t)
	built := time.Since(start)
	defer x.Close()
	plans := wl.plans()
	fmt.Printf("%s: %d objects, %d postings, %d MB, built in %.1f s\n", wl.name, wl.objects, postingsIn(x), x.Size()/1e6, built.Seconds())

	// The reference: the CPU engine on a sample.
	const sample = 16
	cpu := enginetest.LoadOn(t, cpu.New(gpuexec.CPUOptions{}), x)
	want := enginetest.Search(t, cpu, plans[:sample])

	images := append([]string{""}, strings.Fields(os.Getenv("GENIEMQ_IMAGES"))...)
	for _, folder := range images {
		measureOn(t, wl, x, plans, want, folder)
	}
}

// measureCase is what a batch asks, and how it is executed.
type measureCase struct {
	waves, path     string
	count, k, reach int
}

// cases are all of GENIEMQ_WAVES ("blocks,growth,firstGroups,groups,filterFirst,filterMost" each, or the first of them; see
// wavePolicy), GENIEMQ_PATHS (see setPath), GENIEMQ_K, GENIEMQ_REACH and the batch sizes.
func (wl *workload) cases(t testing.TB, counts []int) (all []measureCase) {
	list := func(name string) []string {
		if fields := strings.Fields(os.Getenv(name)); len(fields) > 0 {
			return fields
		}
		return []string{""}
	}
	numbers := func(name string, own int) (numbers []int) {
		for _, text := range list(name) {
			n, err := strconv.Atoi(text)
			if text == "" {
				n = own
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			numbers = append(numbers, n)
		}
		return numbers
	}
	for _, k := range numbers("GENIEMQ_K", wl.k) {
		for _, reach := range numbers("GENIEMQ_REACH", int(wl.reach)) {
			for _, waves := range list("GENIEMQ_WAVES") {
				for _, path := range list("GENIEMQ_PATHS") {
					for _, count := range counts {
						all = append(all, measureCase{waves, path, count, k, reach})
					}
				}
			}
		}
	}
	return all
}

func measureOn(t *testing.T, wl *workload, x *index.Index, plans []gpuexec.Plan, want []gpuexec.Answer, folder string) {
	var e gpuexec.Engine
	if folder == "" {
		e = openDevice(t, gpuexec.CUDAOptions{})
	} else {
		fmt.Print("  ")
		engine, err := Open(gpuexec.CUDAOptions{}, 0, run.NewCrew(0), imagesOf(t, folder))
		if err != nil {
			t.Fatal(err)
		}
		defer engine.Close()
		e = engine
	}
	e.(*cudaEngine).limits.planesOnly = os.Getenv("GENIEMQ_FORM") == "planes"
	if mb, err := strconv.Atoi(os.Getenv("GENIEMQ_PARTS_MB")); err == nil {
		e.(*cudaEngine).limits.partBytes = int64(mb) << 20
	}
	start := time.Now()
	s := onDevice(enginetest.LoadOn(t, e, x))
	loaded := time.Since(start)
	defer s.Close()
	counts := []int{1, 32, len(plans)}
	if text := os.Getenv("GENIEMQ_BATCHES"); text != "" {
		counts = nil
		for c := range strings.SplitSeq(text, ",") {
			n, err := strconv.Atoi(c)
			if err != nil {
				t.Fatal(err)
			}
			counts = append(counts, min(n, len(plans)))
		}
	}
	if folder != "" {
		counts = counts[len(counts)-1:]
	}
	own := *wl
	defer func() { *wl = own }()
	for _, c := range wl.cases(t, counts) {
		if c.k != wl.k || c.reach != int(wl.reach) {
			wl.k, wl.reach = c.k, uint32(c.reach)
			plans = wl.plans()
		}
		for _, l := range e.(*cudaEngine).all {
			w := &l.waves
			_, _ = fmt.Sscanf(c.waves, "%d,%d,%d,%d,%d,%d", &w.blocks, &w.growth, &w.firstGroups, &w.groups, &w.filterFirst, &w.filterMost)
			setPath(t, l, c.path)
		}
		count := c.count
		batch := plans[:count]
		answers := make([]gpuexec.Answer, count)
		const repeats = 9
		var all [repeats]gpuexec.Trace
		var totals [repeats]time.Duration
		for i := range repeats + 2 {
			start := time.Now()
			if i < 2 { // warming up
				if err := s.Search(context.Background(), batch, answers, nil); err != nil {
					t.Fatal(err)
				}
				continue
			}
			var stages gpuexec.Trace
			err := s.Search(context.Background(), batch, answers, &stages)
			if err != nil {
				t.Fatal(err)
			}
			all[i-2], totals[i-2] = stages, time.Since(start)
		}
		mismatches := 0
		want := want
		if own.k != wl.k || own.reach != wl.reach {
			want = enginetest.Search(t, enginetest.LoadOn(t, cpu.New(gpuexec.CPUOptions{}), x), plans[:2])
		}
		for i := range min(count, len(want)) {
			if !enginetest.SameHits(&answers[i], &want[i]) {
				mismatches++
				t.Errorf("%s, query %d: %s", wl.name, i, difference(&answers[i], &want[i]))
			}
		}
		ms := func(of func(i int) time.Duration) float64 {
			var times []time.Duration
			for i := range repeats {
				times = append(times, of(i))
			}
			slices.Sort(times)
			return times[repeats/2].Seconds() * 1e3
		}
		var scanned, candidates uint64
		for i := range answers {
			scanned += answers[i].Units
			candidates += answers[i].Candidates
		}
		match := ms(func(i int) time.Duration { return all[i].Match })
		fmt.Printf("%s k=%d reach=%d by tile %d sliced %d filter %d; ", wl.name, wl.k, wl.reach, all[0].Work.TileQueries, all[0].Work.SlicedQueries, all[0].Work.FilterQueries)
		fmt.Printf("%s %-12s q=%-5d plan %.3f upload %.3f match %.3f select %.3f download %.3f total %.3f ms (max %.3f); %.0f postings/query, %.2f T/s, %.0f candidates/query; load %.1f s, mismatches %d; mc_k %d top %d\n",
			wl.name, filepath.Base(folder)+" "+c.path+" "+c.waves, count, ms(func(i int) time.Duration { return all[i].Plan }),
			ms(func(i int) time.Duration { return all[i].Upload }), match,
			ms(func(i int) time.Duration { return all[i].Select }), ms(func(i int) time.Duration { return all[i].Download }),
			ms(func(i int) time.Duration { return totals[i] }), slices.Max(totals[:]).Seconds()*1e3,
			float64(scanned)/float64(count), float64(scanned)/match/1e9, float64(candidates)/float64(count), loaded.Seconds(), mismatches,
			answers[0].MCK, answers[0].Hits[0].Count)
	}
	// Batches that overlap: the time of a batch when the device is kept busy.
	const callers, each = 4, 10
	var calls sync.WaitGroup
	start = time.Now()
	for range callers {
		calls.Go(func() {
			answers := make([]gpuexec.Answer, len(plans))
			for range each {
				if err := s.Search(context.Background(), plans, answers, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	calls.Wait()
	batch := time.Since(start).Seconds() * 1e3 / (callers * each)
	c := s.Capacity()
	fmt.Printf("%s %d callers: %.3f ms a batch of %d, %.0f queries/s; index %d MB on the device (%.1f bits a posting), Cost of a query %d bytes\n", wl.name, callers,
		batch, len(plans), float64(len(plans))/batch*1e3, c.IndexBytes/1e6, float64(c.IndexBytes)*8/float64(postingsIn(x)), s.Cost(&plans[0]))
}

func postingsIn(x *index.Index) (n uint64) {
	for _, a := range x.Attributes() {
		n += a.Postings
	}
	return n
}
