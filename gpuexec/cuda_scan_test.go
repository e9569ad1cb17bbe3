//go:build cuda

package gpuexec

import (
	"bufio"
	"compress/gzip"
	"context"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/verify"
)

// TestCUDAScan compares the hits of scans with the definition, and certified answers with the host's.
func TestCUDAScan(t *testing.T) {
	rng := newRand(t)
	e := openDevice(t, CUDAOptions{BatchMemory: 64 << 20})
	done, left := 0, 0
	for round := range scaled(40) {
		alphabet, texts, bases := verifyTexts(rng, round)
		ngram := 1 + rng.IntN(4)
		c := sequenceCollection(t, texts, ngram)
		s := loadOn(t, e, c.index)
		var plans []Plan
		var jobs []*scanJob
		onDevice := func(job *scanJob) bool { return s.(*cudaSearcher).resident.scans(job) }
		for n := 1 + rng.IntN(20); len(jobs) < n || !slices.ContainsFunc(jobs, onDevice); {
			text := misspelt(rng, bases[rng.IntN(len(bases))], rng.IntN(20)) + "a"
			if rng.IntN(20) == 0 {
				text = randomString(rng, alphabet, 2045+rng.IntN(8)) // around the longest pattern
			}
			jobs = append(jobs, &scanJob{
				text: []rune(text), k: []int{1, 2, 1 + rng.IntN(20), 500}[rng.IntN(4)], minCount: uint32(rng.IntN(4) * rng.IntN(4)),
				within: []int{rng.IntN(10), rng.IntN(1 + len(text)), math.MaxInt32 - 1}[rng.IntN(3)],
			})
			plan := c.sequencePlan(t, text, 1+rng.IntN(12), 1+rng.IntN(20), true)
			plan.Match.MinCount = uint32(rng.IntN(3) * rng.IntN(3))
			plans = append(plans, plan)
		}
		if err := s.(matcher).scan(context.Background(), jobs); err != nil {
			t.Fatal(err)
		}
		for i, job := range jobs {
			if job.done != onDevice(job) {
				t.Fatalf("round %d job %d: done %v", round, i, job.done)
			}
			if !job.done {
				left++
				continue
			}
			done++
			var want []verify.Hit
			for _, h := range nearest(texts, string(job.text), ngram, job.minCount) {
				if int(h.Distance) <= job.within && len(want) < job.k {
					want = append(want, verify.Hit{ID: h.ID, Count: h.Count, Distance: h.Distance})
				}
			}
			if !slices.Equal(job.hits, want) {
				t.Fatalf("round %d job %d, %d symbols, n %d, k %d, within %d, min count %d:\ngot  %v\nwant %v",
					round, i, len(job.text), ngram, job.k, job.within, job.minCount, job.hits, want)
			}
		}
		sameAsHost(t, c, s, plans)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d scans on the device, %d left to the host", done, left)
}

// TestCUDAScanWaves: several tiles, waves and pieces, on one device and spread over several. The lane has little memory.
func TestCUDAScanWaves(t *testing.T) {
	rng := newRand(t)
	texts := make([]string, 3*index.TileObjects+777)
	for i := range texts {
		texts[i] = randomString(rng, "abcdef", 1+rng.IntN(14))
	}
	c := sequenceCollection(t, texts, 3)
	opts := CUDAOptions{Mode: DeviceCapacity, BatchMemory: 4 << 20, InFlight: 1}
	for _, e := range []Engine{openDevice(t, opts), openDeviceGroup(t, opts)} {
		s := loadOn(t, e, c.index)
		var plans []Plan
		for i := range scaled(60) {
			text := randomString(rng, "abcdefg", 1+rng.IntN(12))
			if i%10 == 0 { // shares no gram with any: all are as good
				text = randomString(rng, "xyz", 1+rng.IntN(80))
			}
			plans = append(plans, c.sequencePlan(t, text, []int{1, 10, 100, 20_000}[rng.IntN(4)], 10, true))
		}
		sameAsHost(t, c, s, plans)
		jobs := make([]*scanJob, len(plans))
		for i := range jobs {
			jobs[i] = &scanJob{text: plans[i].Match.Verify.Text, k: plans[i].Match.Verify.K, within: math.MaxInt32 - 1}
		}
		if m, ok := s.(*cudaSearcher); ok { // of the members of a group the same is true
			if err := m.scan(context.Background(), jobs); err != nil {
				t.Fatal(err)
			}
			for i := range jobs {
				if !jobs[i].done {
					t.Errorf("scan %d was left to the host", i)
				}
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestScanPieces: whatever the memory of a lane, the pieces of a scan are all jobs that fit, and each has room for its
// candidates in waves that a launch can have.
func TestScanPieces(t *testing.T) {
	rng := newRand(t)
	refused, pieces := 0, 0
	for range 300 {
		objects, memory := 1+rng.IntN(1<<rng.IntN(28)), 4<<10+rng.Int64N(1<<(13+rng.IntN(18)))
		if rng.IntN(20) == 0 { // room for more than a launch can have
			objects, memory = 1<<28, 1<<34
		}
		k := hostKernels()
		k.scan.objects, k.scan.farthest = 1024, 4096
		l := hostLane(&resident{kernels: k, texts: &residentTexts{textsLayout: textsLayout{
			objects: objects, units: int64(objects) * int64(1+rng.IntN(20)),
		}}}, memory)
		l.in = make(pinned, 8<<20)
		var jobs []*scanJob
		for range 1 + rng.IntN(100) {
			jobs = append(jobs, &scanJob{text: make([]rune, rng.IntN(2049)), k: 1 + rng.IntN([]int{1, 100, MaxK}[rng.IntN(3)]), within: rng.IntN(5000) - 1})
		}
		slices.SortFunc(jobs, func(a, b *scanJob) int { return verifyClass(len(a.text)) - verifyClass(len(b.text)) })
		for len(jobs) > 0 {
			n := l.cutScan(jobs)
			if n == 0 {
				job := jobs[0]
				if entries := int64(2*l.scanK(job) + min(leastWave, objects)); entries*entryBytes+2*int64(len(job.text))+5000 < l.bytes {
					t.Fatalf("a scan for %d of %d objects does not fit %d bytes", job.k, objects, l.bytes)
				}
				refused++
				jobs = jobs[1:]
				continue
			}
			pieces++
			at := l.layoutScan(jobs[:n])
			l.encodeScan(jobs[:n], &at)
			queries := pinnedArray[deviceQuery](l.in, 0, n)
			scans := pinnedArray[deviceScanQuery](l.in, at.scans, n)
			states := pinnedArray[deviceState](l.in, at.states, n)
			var entries, answers uint64
			pattern := 0
			for i, job := range jobs[:n] {
				if q := queries[i]; q.entries != entries || q.out != answers || int(q.k) != min(job.k, objects) || int(scans[i].pattern) != pattern {
					t.Fatalf("job %d: %+v %+v", i, q, scans[i])
				}
				if limit := 4096 - int(states[i].threshold>>16); limit != min(job.within, 4096) {
					t.Fatalf("job %d allows a distance of %d, its threshold %d", i, job.within, limit)
				}
				entries += uint64(queries[i].k) + uint64(at.wave)
				answers += uint64(queries[i].k)
				pattern += len(job.text)
			}
			if at.wave < min(leastWave, objects) || (at.wave+k.scan.objects-1)/k.scan.objects > maxGridY {
				t.Fatalf("waves of %d objects of %d", at.wave, objects)
			}
			for i, end := range []int64{at.patterns, at.states, at.answers, at.candidates, l.bytes} {
				from := []int64{at.scans, at.patterns, at.states, at.answers, at.candidates}[i]
				bytes := []int64{int64(n) * scanQueryBytes, int64(pattern) * symbolBytes, int64(n) * stateBytes, int64(answers) * entryBytes, int64(entries) * entryBytes}[i]
				if from+bytes > end {
					t.Fatalf("array %d lies at %d to %d, beyond %d", i, from, from+bytes, end)
				}
			}
			if int64(n)*queryBytes > at.scans || at.answers > inBytes || at.candidates-at.states > outBytes {
				t.Fatalf("%d jobs: %+v", n, at)
			}
			jobs = jobs[n:]
		}
	}
	if refused == 0 || pieces == 0 {
		t.Errorf("%d pieces, %d jobs refused", pieces, refused)
	}
}

// TestCUDAScanTimes measures certified answers whose scans the device does and the host, in turns; it runs with
// GENIEMQ_SCAN_TIMES=1. GENIEMQ_WORDS may name a gzipped list of words, one a line.
func TestCUDAScanTimes(t *testing.T) {
	if os.Getenv("GENIEMQ_SCAN_TIMES") != "1" {
		t.Skip("a measurement: GENIEMQ_SCAN_TIMES=1")
	}
	e := openDevice(t, CUDAOptions{})
	cores := runtime.GOMAXPROCS(0)
	t.Logf("%s, %d cores", e.Info().Device, cores)
	rng := rand.New(rand.NewPCG(1, 1))
	alphabet := "abcdefghijklmnopqrstuvwxyz '"
	families := func(objects, length, edits int) (texts []string) {
		bases := make([]string, objects/50)
		for i := range bases {
			bases[i] = randomString(rng, alphabet, length)
		}
		for range objects {
			texts = append(texts, misspelt(rng, bases[rng.IntN(len(bases))], rng.IntN(edits+1)))
		}
		return texts
	}
	for _, set := range []struct {
		name    string
		texts   []string
		queries int
		edits   int
	}{
		{"words", wordList(t), 1024, 2}, {"words", wordList(t), 1, 2}, {"titles, 40", families(300_000, 40, 10), 256, 20}, {"200 symbols", families(50_000, 200, 40), 64, 100},
	} {
		if len(set.texts) == 0 {
			continue
		}
		c := sequenceCollection(t, set.texts, 3)
		s := loadOn(t, e, c.index).(*cudaSearcher)
		plans := make([]Plan, set.queries)
		for i := range plans {
			plans[i] = c.sequencePlan(t, misspelt(rng, set.texts[rng.IntN(len(set.texts))], set.edits)+"q", 10, 64, true)
		}
		farthest := s.resident.kernels.scan.farthest
		var total, kernel [2][]float64
		var answers [2][]Answer
		var stagesOf [2]Stages
		for run := range 6 {
			way := run % 2
			if s.resident.kernels.scan.farthest = farthest; way == 1 {
				s.resident.kernels.scan.farthest = -1 // the host scans
			}
			answers[way] = make([]Answer, len(plans))
			start := time.Now()
			stages, err := s.SearchStages(context.Background(), plans, answers[way])
			if err != nil {
				t.Fatal(err)
			}
			if run > 1 {
				stagesOf[way] = stages
				total[way] = append(total[way], time.Since(start).Seconds()*1e3)
				kernel[way] = append(kernel[way], stages.Verify.Seconds()*1e3)
			}
		}
		s.resident.kernels.scan.farthest = farthest
		for i := range plans {
			if !sameHits(&answers[0][i], &answers[1][i]) {
				t.Fatal(difference(&answers[0][i], &answers[1][i]))
			}
		}
		jobs := make([]*scanJob, len(plans))
		for i := range jobs {
			hits := answers[0][i].Hits
			jobs[i] = &scanJob{text: plans[i].Match.Verify.Text, k: 10, within: int(hits[len(hits)-1].Distance)}
		}
		var alone Stages
		if err := s.scanStages(context.Background(), jobs, &alone); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d texts, %d queries: batch %.2f ms with the device's scan (device compares %.2f ms), %.2f with the host's; a scan for all queries, %.2f ms; stages %+v",
			set.name, len(set.texts), len(plans), total[0][0], kernel[0][0], total[1][0], alone.Verify.Seconds()*1e3, stagesOf[0])
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// wordList reads GENIEMQ_WORDS.
func wordList(t *testing.T) (words []string) {
	name := os.Getenv("GENIEMQ_WORDS")
	if name == "" {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(z); lines.Scan(); {
		if word := strings.TrimSpace(lines.Text()); word != "" && !strings.HasPrefix(word, "#") {
			words = append(words, word)
		}
	}
	return words
}
