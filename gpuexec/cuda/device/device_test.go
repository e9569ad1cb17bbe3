//go:build cuda

package device

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/kernels"
)

// openDevice opens the CUDA engine. Without a device the test is skipped, or fails where GENIEMQ_REQUIRE_CUDA is 1.
func openDevice(t testing.TB, opts gpuexec.CUDAOptions) gpuexec.Engine {
	t.Helper()
	e, err := newDevice(t, opts)
	if errors.Is(err, gpuexec.ErrNoCUDA) && os.Getenv("GENIEMQ_REQUIRE_CUDA") != "1" {
		t.Skipf("needs a CUDA device: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// newDevice opens device 0, with the device images of the folder GENIEMQ_IMAGE where that is given.
func newDevice(t testing.TB, opts gpuexec.CUDAOptions) (gpuexec.Engine, error) {
	images, err := kernels.Modules()
	if err != nil {
		return nil, err
	}
	if folder := os.Getenv("GENIEMQ_IMAGE"); folder != "" {
		images = imagesOf(t, folder)
	}
	e, err := Open(opts, 0, run.NewCrew(opts.Workers), images)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// imagesOf reads the device images of a folder.
func imagesOf(t testing.TB, folder string) map[string][]byte {
	t.Helper()
	images := map[string][]byte{}
	names, _ := filepath.Glob(folder + "/*.fatbin")
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		images[strings.TrimSuffix(filepath.Base(name), ".fatbin")] = data
	}
	return images
}

// setPath forces a kernel, "tile", "sliced" or "bound", or leaves it to the cost.
func setPath(t testing.TB, l *lane, path string) {
	t.Helper()
	switch path {
	case "", "cost":
		l.policy.Path = plan.ByCost
	case "tile":
		l.policy.Path = plan.PathTile
	case "sliced":
		l.policy.Path = plan.PathSliced
	case "bound":
		l.policy.Path = plan.PathBound
	default:
		t.Fatalf("path %q is unknown", path)
	}
}

// force makes all lanes of an engine take one kernel.
func force(t testing.TB, e gpuexec.Engine, path string) {
	t.Helper()
	for _, l := range e.(*Engine).all {
		setPath(t, l, path)
	}
}

// scaled is how often a randomised test repeats; GENIEMQ_ROUNDS scales it in percent (sanitizers are slow). A test that requires
// something of what it draws must draw enough of it in a reduced run too.
func scaled(n int) int {
	if percent, err := strconv.Atoi(os.Getenv("GENIEMQ_ROUNDS")); err == nil {
		return max(1, n*percent/100)
	}
	return n
}

// TestCUDAAgainstBruteForce compares with the definition on random small collections in every form.
func TestCUDAAgainstBruteForce(t *testing.T) {
	e := openDevice(t, gpuexec.CUDAOptions{BatchMemory: 16 << 20, InFlight: 1}).(*Engine)
	rng := seeded.Rand(t)
	paths := comparedBy{}
	var before int64
	const all = 4000
	worlds := scaled(all)
	for round := 0; round < worlds || round < all && !paths.sliced(); round++ { // of few worlds none may be one that shared decode takes
		if round == worlds/8 { // by now every kernel has run, and the driver has what it takes
			before = driverFree(t, e)
		}
		w := enginetest.RandomWorld(t, rng, []int{0, 1, 2, 7, 8, 9, 63, 64, 65, rng.IntN(300), rng.IntN(300)}[rng.IntN(11)])
		s := enginetest.LoadOn(t, e, w.Index)
		plans := w.RandomPlans(rng, func() gpuexec.Plan { return w.RandomPlan(rng) })
		path := []string{"sliced", "tile", ""}[round%3]
		force(t, e, path)
		c := compared{indexes: 1}
		enginetest.CheckAnswers(t, w, plans, c.search(t, s, plans))
		paths.add(path, c)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	paths.report(t, "sliced", "tile")
	nothingLeaked(t, e, before, "%d indexes", worlds-worlds/8)
}

// TestCUDAAgainstCPU compares with the CPU engine around the borders of tiles, parts, warps and blocks.
func TestCUDAAgainstCPU(t *testing.T) {
	rng := seeded.Rand(t)
	paths, worlds := comparedBy{}, 0
	const tile = store.TileObjects
	for _, n := range []int{1023, 1024, 1025, tile/4 - 1, tile / 4, tile/4 + 1, tile/2 + 1, tile - 1, tile, tile + 1, 1<<16 + 1, 2*tile - 1,
		2 * tile, 2*tile + 1, 3*tile + 100, 11*tile + 1} {
		if scaled(100) < 100 && n > tile+1 {
			continue
		}
		for range scaled(4) {
			w := enginetest.RandomWorld(t, rng, n)
			// Memory decides the width of waves, and whether a batch is cut.
			opts := gpuexec.CUDAOptions{BatchMemory: []int64{1 << 30, 3 << 20, 256 << 20}[rng.IntN(3)]}
			e := openDevice(t, opts)
			path := []string{"tile", "sliced", ""}[worlds%3]
			worlds++
			t.Logf("%d objects, batch memory %d, path %q", n, opts.BatchMemory, path)
			force(t, e, path)
			s := enginetest.LoadOn(t, e, w.Index)
			paths.add(path, compareWithCPU(t, rng, w, s, max(4, scaled(64)), true))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	paths.report(t, "tile")
}

// compareWithCPU searches random plans in batches of random size.
func compareWithCPU(t *testing.T, rng *rand.Rand, w *enginetest.World, s gpuexec.Searcher, count int, large bool) compared {
	t.Helper()
	c := compared{indexes: 1}
	cpu := loadHost(t, w.Index, gpuexec.CPUOptions{Workers: runtime.GOMAXPROCS(0)})
	var plans []gpuexec.Plan
	for len(plans) < count {
		p := w.RandomPlan(rng)
		if !large {
			p.K = min(p.K, 1000)
		}
		plans = append(plans, p)
	}
	want := enginetest.Search(t, cpu, plans)
	for first := 0; first < count; {
		end := min(count, first+1+rng.IntN(count))
		got := c.search(t, s, plans[first:end])
		for i := range got {
			var tooLarge *gpuexec.DeviceError
			if errors.As(got[i].Err, &tooLarge) && tooLarge.OutOfMemory && s.Cost(&plans[first+i]) > s.Capacity().BatchBytes {
				c.queries--
				continue
			}
			if !enginetest.SameHits(&got[i], &want[first+i]) {
				t.Fatalf("%d objects, plan %d of %d (%+v):\n%s", len(w.Objects), i, end-first, plans[first+i], difference(&got[i], &want[first+i]))
			}
			if s := matcherOf(s); s != nil {
				checkPostings(t, s, &plans[first+i], &got[i], &want[first+i])
			}
		}
		first = end
	}
	return c
}

// checkPostings compares with the CPU engine, which leaves out nothing. A device leaves out tiles only when K objects have
// as many as the bound of their counts, or when min_count is more than that.
func checkPostings(t *testing.T, s *matcher, plan *gpuexec.Plan, got, want *gpuexec.Answer) {
	t.Helper()
	m := plan
	bound := s.resident.Plan(&run.Job{Query: enginetest.Query(m), K: m.K, MinCount: 1, Bound: uint32(s.lists.CountBound(enginetest.Query(m)))}).Bound
	all := want.MCK < bound && m.MinCount <= bound
	if got.Units > want.Units || all && got.Units != want.Units {
		t.Fatalf("%+v: %d postings, there are %d; the bound is %d, the k-th hit has %d", *m, got.Units, want.Units, bound, want.MCK)
	}
}

func difference(got, want *gpuexec.Answer) string {
	if got.Err != nil || want.Err != nil {
		return "got error " + errText(got.Err) + ", want " + errText(want.Err)
	}
	s := strconv.Itoa(len(got.Hits)) + " hits, want " + strconv.Itoa(len(want.Hits))
	for i := range min(len(got.Hits), len(want.Hits)) {
		if got.Hits[i] != want.Hits[i] {
			g, w := got.Hits[i], want.Hits[i]
			return s + "; hit " + strconv.Itoa(i) + " is id " + strconv.Itoa(int(g.ID)) + " count " + strconv.Itoa(int(g.Count)) +
				", want id " + strconv.Itoa(int(w.ID)) + " count " + strconv.Itoa(int(w.Count))
		}
	}
	return s + "; mc_k " + strconv.Itoa(int(got.MCK)) + ", want " + strconv.Itoa(int(want.MCK))
}

func errText(err error) string {
	if err == nil {
		return "none"
	}
	return err.Error()
}

// TestCUDALists compares on documents, whose lists without repeats may be put aside: skewed ones, and ones that are
// equal in large groups, which more objects survive than expected.
func TestCUDALists(t *testing.T) {
	e := openDevice(t, gpuexec.CUDAOptions{})
	rng := seeded.Rand(t)
	var c compared
	for round, equal := range []int{1, 50, 5000, 1, 2, 1} {
		tiles, vocabulary := 3, 2000
		layout := "postings"
		if round > 2 {
			tiles, vocabulary, layout = 14, 100_000, "rare"
		}
		wl := enginetest.Zipf("lists", tiles*store.TileObjects+999, 20, uint32(vocabulary), 4, 24, 10)
		wl.Layout = layout
		plain := wl.Object
		if equal > 1 {
			wl.Object = func(dst [][2]uint32, id uint32) [][2]uint32 { return plain(dst, id/uint32(equal)) }
			wl.Query = func(dst [][2]uint32, q uint32) [][2]uint32 {
				return plain(dst, enginetest.Mix(q)%(uint32(wl.Objects)/uint32(equal)))
			}
		}
		x := wl.Build(t)
		e.(*Engine).limits.PartBytes = 0
		if round == 5 {
			e.(*Engine).limits.PartBytes = partBytesOf(t, x) * 5
		}
		s := enginetest.LoadOn(t, e, x)
		if layout == "rare" && equal == 1 && len(x.Rare(0).Run(0, x.Attributes()[0].Keywords)) == 0 {
			t.Error("no keyword is rare")
		}
		cpu := enginetest.LoadOn(t, cpu.New(gpuexec.CPUOptions{}), x)
		plans := wl.Plans()[:scaled(600)]
		for i := range plans {
			m := &plans[i]
			m.K = []int{1, 10, 100, 1 + rng.IntN(3000), 70000}[rng.IntN(5)]
			m.K = min(m.K, gpuexec.MaxK)
			if rng.IntN(3) == 0 {
				m.MinCount = uint32(rng.IntN(12))
			}
			heaviest := []int{1, 1, 3, 100}[rng.IntN(4)]
			for j := range enginetest.Query(m).Items {
				enginetest.Query(m).Items[j].Weight = uint32(1 + rng.IntN(heaviest))
			}
			if rng.IntN(4) == 0 { // some items that cannot be put aside, or more than one warp plans
				for range rng.IntN(50) {
					lo := uint32(rng.IntN(1900) * vocabulary / 4000)
					enginetest.Query(m).StartItem(0, 1)
					enginetest.Query(m).AddSpan(lo, lo+uint32(rng.IntN(90)))
				}
			}
		}
		c.indexes++
		want := enginetest.Search(t, cpu, plans)
		var got []gpuexec.Answer
		for len(got) < len(plans) { // large batches and small ones
			got = append(got, c.search(t, s, plans[len(got):min(len(plans), len(got)+1+rng.IntN(len(plans)))])...)
		}
		for i := range plans {
			if !enginetest.SameHits(&got[i], &want[i]) {
				t.Fatalf("groups of %d, plan %d (k %d, min_count %d, %d items): %s", equal, i, plans[i].K, plans[i].MinCount,
					len(enginetest.Query(&plans[i]).Items), difference(&got[i], &want[i]))
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	c.report(t)
	c.took(t, "tile")
}

// TestCUDAManyItems: more spans than a block plans at a time.
func TestCUDAManyItems(t *testing.T) {
	e := openDevice(t, gpuexec.CUDAOptions{})
	rng := seeded.Rand(t)
	w := enginetest.RandomWorld(t, rng, store.TileObjects+77)
	s := enginetest.LoadOn(t, e, w.Index)
	defer s.Close()
	cpu := loadHost(t, w.Index, gpuexec.CPUOptions{})
	counts := []int{31, 32, 33, 255, 256, 257, 511, 513, 1023, 1024, 5000}
	rng.Shuffle(len(counts), func(i, j int) { counts[i], counts[j] = counts[j], counts[i] })
	for _, items := range append(counts[:min(len(counts), scaled(len(counts)))], 1025) { // a reduced run too has one that takes rounds
		var plans []gpuexec.Plan
		for _, weight := range []int{1, 50} {
			var p gpuexec.Plan
			for range items {
				w.AddRandomItem(rng, enginetest.Query(&p), uint32(1+rng.IntN(weight)))
			}
			p.K = 1 + rng.IntN(300)
			plans = append(plans, p)
		}
		want := enginetest.Search(t, cpu, plans)
		for i, got := range enginetest.Search(t, s, plans) {
			if !enginetest.SameHits(&got, &want[i]) {
				t.Fatalf("%d items: %s", items, difference(&got, &want[i]))
			}
		}
	}
}

// TestCUDAConcurrentSearches runs overlapping batches on searchers of two indexes.
func TestCUDAConcurrentSearches(t *testing.T) {
	e := openDevice(t, gpuexec.CUDAOptions{})
	rng := seeded.Rand(t)
	var calls sync.WaitGroup
	var searchers []gpuexec.Searcher
	for range 2 {
		w := enginetest.RandomWorld(t, rng, store.TileObjects+1000)
		s := enginetest.LoadOn(t, e, w.Index)
		searchers = append(searchers, s)
		for range 6 {
			plans := w.RandomPlans(rng, func() gpuexec.Plan { return w.RandomPlan(rng) })
			calls.Go(func() {
				answers := make([]gpuexec.Answer, len(plans))
				for range 5 {
					if err := s.Search(context.Background(), plans, answers, nil); err != nil {
						t.Error(err)
						return
					}
				}
				for i := range plans {
					if answers[i].Err != nil {
						continue
					}
					if want, _ := w.Search(&plans[i]); !slices.Equal(answers[i].Hits, want) {
						t.Errorf("plan %d of a concurrent call is answered wrong", i)
					}
				}
			})
		}
	}
	calls.Wait()
	for _, s := range searchers {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestCUDAMemory: what does not fit is refused with advice, and what is closed is given back.
func TestCUDAMemory(t *testing.T) {
	e := openDevice(t, gpuexec.CUDAOptions{Memory: 300 << 20, BatchMemory: 64 << 20}).(*Engine)
	rng := seeded.Rand(t)
	w := enginetest.RandomWorld(t, rng, 1000)
	if err := enginetest.LoadOn(t, e, w.Index).Close(); err != nil { // the driver's first pieces
		t.Fatal(err)
	}
	before, driver := enginetest.Free(e.Host.Budget), driverFree(t, e)
	a, b := enginetest.LoadOn(t, e, w.Index), enginetest.LoadOn(t, e, w.Index)
	taken := enginetest.Free(e.Host.Budget) - 1000
	release := takeMemory(t, e, taken)
	var full *gpuexec.DeviceError
	if _, err := e.Load(context.Background(), w.Index); !errors.As(err, &full) || !full.OutOfMemory {
		t.Errorf("a third index: %v, want out of memory", err)
	}
	release()
	lanes, atHand := e.kernels.Profile.Lanes, e.kernels.Profile.AtHand
	if c := a.Capacity(); c.BatchBytes != 64<<20 || c.InFlight != lanes+atHand || c.IndexBytes <= 0 || c.SharedBytes != int64(lanes)*c.BatchBytes || c.DeviceBytes != c.IndexBytes+c.SharedBytes {
		t.Errorf("capacity %+v", c)
	}
	held := map[string]int64{}
	for _, h := range e.Memory() {
		if held[h.Owner] += h.Bytes; h.Form == "" || h.Bytes <= 0 || h.Owner == "engine" && !h.Needed {
			t.Errorf("%+v", h)
		}
	}
	if owner := run.OwnerOf(w.Index); held[owner] != 2*a.Capacity().IndexBytes || held["engine"] != int64(lanes)*64<<20 || len(held) != 2 {
		t.Errorf("two indexes of %d bytes: %v", a.Capacity().IndexBytes, held)
	}
	for _, s := range []gpuexec.Searcher{a, b} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if enginetest.Free(e.Host.Budget) != before {
		t.Errorf("%d bytes are missing after closing", before-enginetest.Free(e.Host.Budget))
	}
	nothingLeaked(t, e, driver, "closing")
}
