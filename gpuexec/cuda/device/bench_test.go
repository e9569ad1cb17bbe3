//go:build cuda

package device

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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
		var wl enginetest.Workload
		switch name {
		case "w1":
			wl = enginetest.Hashed(4_500_000*scale/100, 237)
		case "w2":
			wl = enginetest.Zipf("w2", 5_000_000*scale/100, 58, 30_000, 60, 38, 32)
		case "w3":
			wl = enginetest.Zipf("w3", 6_800_000*scale/100, 17, 1_000_000, 20, 12, 100)
		case "w4":
			wl = enginetest.Rows(980_000 * scale / 100)
		default:
			t.Fatalf("enginetest.Workload %q is unknown", name)
		}
		if layout := os.Getenv("GENIEMQ_LAYOUT"); layout != "" {
			wl.Layout = layout
		}
		measure(t, &wl)
	}
}

func measure(t *testing.T, wl *enginetest.Workload) {
	start := time.Now()
	x := wl.Build(t)
	built := time.Since(start)
	defer x.Close()
	plans := wl.Plans()
	fmt.Printf("%s: %d objects, %d postings, %d MB, built in %.1f s\n", wl.Name, wl.Objects, postingsIn(x), x.Size()/1e6, built.Seconds())

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

// cases are all of GENIEMQ_WAVES ("blocks,growth,firstGroups,groups,boundFirst,boundMost" each, or the first of them; see
// plan.Waves), GENIEMQ_PATHS (see setPath), GENIEMQ_K, GENIEMQ_REACH and the batch sizes.
func casesOf(t testing.TB, wl *enginetest.Workload, counts []int) (all []measureCase) {
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
	for _, k := range numbers("GENIEMQ_K", wl.K) {
		for _, reach := range numbers("GENIEMQ_REACH", int(wl.Reach)) {
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

func measureOn(t *testing.T, wl *enginetest.Workload, x *index.Index, plans []gpuexec.Plan, want []gpuexec.Answer, folder string) {
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
	e.(*Engine).limits.PlanesOnly = os.Getenv("GENIEMQ_FORM") == "planes"
	if mb, err := strconv.Atoi(os.Getenv("GENIEMQ_PARTS_MB")); err == nil {
		e.(*Engine).limits.PartBytes = int64(mb) << 20
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
	for _, c := range casesOf(t, wl, counts) {
		if c.k != wl.K || c.reach != int(wl.Reach) {
			wl.K, wl.Reach = c.k, uint32(c.reach)
			plans = wl.Plans()
		}
		for _, l := range e.(*Engine).all {
			w := &l.policy.Profile.Waves
			_, _ = fmt.Sscanf(c.waves, "%d,%d,%d,%d,%d,%d", &w.Blocks, &w.Growth, &w.FirstGroups, &w.Groups, &w.BoundFirst, &w.BoundMost)
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
		if own.K != wl.K || own.Reach != wl.Reach {
			want = enginetest.Search(t, enginetest.LoadOn(t, cpu.New(gpuexec.CPUOptions{}), x), plans[:2])
		}
		for i := range min(count, len(want)) {
			if !enginetest.SameHits(&answers[i], &want[i]) {
				mismatches++
				t.Errorf("%s, query %d: %s", wl.Name, i, difference(&answers[i], &want[i]))
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
		fmt.Printf("%s k=%d reach=%d by tile %d sliced %d bound %d; ", wl.Name, wl.K, wl.Reach, all[0].Work.TileQueries, all[0].Work.SlicedQueries, all[0].Work.BoundQueries)
		fmt.Printf("%s %-12s q=%-5d plan %.3f upload %.3f match %.3f select %.3f download %.3f total %.3f ms (max %.3f); %.0f postings/query, %.2f T/s, %.0f candidates/query; load %.1f s, mismatches %d; mc_k %d top %d\n",
			wl.Name, filepath.Base(folder)+" "+c.path+" "+c.waves, count, ms(func(i int) time.Duration { return all[i].Plan }),
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
	fmt.Printf("%s %d callers: %.3f ms a batch of %d, %.0f queries/s; index %d MB on the device (%.1f bits a posting), Cost of a query %d bytes\n", wl.Name, callers,
		batch, len(plans), float64(len(plans))/batch*1e3, c.IndexBytes/1e6, float64(c.IndexBytes)*8/float64(postingsIn(x)), s.Cost(&plans[0]))
}

func postingsIn(x *index.Index) (n uint64) {
	for _, a := range x.Attributes() {
		n += a.Postings
	}
	return n
}
