package plan

import (
	"slices"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/rescoring"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/index/verify"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestScanPieces: whatever the memory of a lane, the pieces of a scan are all jobs that fit, and each has room for its
// candidates in waves that a launch can have.
func TestScanPieces(t *testing.T) {
	rng := seeded.Rand(t)
	refused, pieces := 0, 0
	for range enginetest.Rounds(make([]struct{}, 300)) {
		objects, memory := 1+rng.IntN(1<<rng.IntN(28)), 4<<10+rng.Int64N(1<<(13+rng.IntN(18)))
		if rng.IntN(20) == 0 { // room for more than a launch can have
			objects, memory = 1<<28, 1<<34
		}
		d := hostDevice()
		d.MaxPattern = 2048
		x := &Index{device: d}
		x.Texts = &rescoring.Texts{Objects: objects, Units: int64(objects) * int64(1+rng.IntN(20)), Source: noTexts(objects)}
		room, in := roomOf(memory), make([]byte, 8<<20)
		var jobs []*run.ScanJob
		for range 1 + rng.IntN(100) {
			k, within := 1+rng.IntN([]int{1, 100, 2000}[rng.IntN(3)]), rng.IntN(5000)-1
			jobs = append(jobs, &run.ScanJob{Rescorer: enginetest.Sought(x.Texts.Source, 3, make([]rune, rng.IntN(2049)), k, within)})
		}
		if jobs = x.ScansOf(jobs); len(jobs) == 0 {
			t.Fatal("no job is the device's")
		}
		for len(jobs) > 0 {
			p := x.PlanScan(jobs, room)
			n := len(p.Jobs)
			if n == 0 {
				job := jobs[0]
				if entries := int64(2*x.scanK(job) + min(d.Profile.Scan.LeastWave, objects)); entries*topk.EntryBytes+2*int64(len(patternOf(job)))+5000 < memory {
					t.Fatalf("a scan for %d of %d objects does not fit %d bytes", x.scanK(job), objects, memory)
				}
				refused++
				jobs = jobs[1:]
				continue
			}
			pieces++
			p.Encode(in)
			queries := abi.Array[abi.Query](in, 0, n)
			scans := abi.Array[abi.ScanQuery](in, p.Scans, n)
			states := abi.Array[abi.State](in, p.States, n)
			var entries, answers uint64
			pattern := 0
			for i, job := range jobs[:n] {
				if q := queries[i]; q.Entries != entries || q.Out != answers || int(q.K) != min(sequencesOf(job).Nearest().K, objects) || int(scans[i].Pattern) != pattern {
					t.Fatalf("job %d: %+v %+v", i, q, scans[i])
				}
				if limit := 4096 - int(states[i].Threshold>>16); limit != min(sequencesOf(job).Within(), 4096) {
					t.Fatalf("job %d allows a distance of %d, its threshold %d", i, sequencesOf(job).Within(), limit)
				}
				entries += uint64(queries[i].K) + uint64(p.Wave)
				answers += uint64(queries[i].K)
				pattern += len(patternOf(job))
			}
			if p.Wave < min(d.Profile.Scan.LeastWave, objects) || (p.Wave+d.ScanObjects-1)/d.ScanObjects > abi.MaxGridY {
				t.Fatalf("waves of %d objects of %d", p.Wave, objects)
			}
			for i, end := range []int64{p.Patterns, p.States, p.Answers, p.Candidates, memory} {
				from := []int64{p.Scans, p.Patterns, p.States, p.Answers, p.Candidates}[i]
				bytes := []int64{int64(n) * abi.ScanQueryBytes, int64(pattern) * abi.SymbolBytes, int64(n) * abi.StateBytes, int64(answers) * topk.EntryBytes, int64(entries) * topk.EntryBytes}[i]
				if from+bytes > end {
					t.Fatalf("array %d lies at %d to %d, beyond %d", i, from, from+bytes, end)
				}
			}
			if int64(n)*abi.QueryBytes > p.Scans || p.InBytes() > room.In || p.OutBytes() > room.Out || p.OutBytes() != int64(n)*abi.StateBytes+int64(answers)*topk.EntryBytes {
				t.Fatalf("%d jobs: %+v", n, p)
			}
			next := 0
			p.Waves(func(first, count int) {
				if first != next || count < 1 || count > p.Wave {
					t.Fatalf("a wave of %d objects from %d on, of at most %d", count, first, p.Wave)
				}
				next = first + count
			})
			if next != objects {
				t.Fatalf("waves end at object %d of %d", next, objects)
			}
			jobs = jobs[n:]
		}
	}
	if refused == 0 || pieces == 0 {
		t.Errorf("%d pieces, %d jobs refused", pieces, refused)
	}
}

// TestScanDecodes: what the device might hand back becomes hits, the best first.
func TestScanDecodes(t *testing.T) {
	d := hostDevice()
	d.MaxPattern = 2048
	x := &Index{device: d}
	x.Texts = &rescoring.Texts{Objects: 10, Units: 10, Source: noTexts(10)}
	var jobs []*run.ScanJob
	for i, k := range []int{3, 1, 20} {
		text := [][]rune{[]rune("ab"), make([]rune, 4000), []rune("abc")}[i]
		jobs = append(jobs, &run.ScanJob{Rescorer: enginetest.Sought(x.Texts.Source, 3, text, k, 9)})
	}
	jobs = append(jobs, &run.ScanJob{Rescorer: enginetest.Sought(noTexts(11), 3, []rune("ab"), 1, 9)}) // texts that are elsewhere
	own := x.ScansOf(jobs)
	if len(own) != 2 || own[0] != jobs[0] || own[1] != jobs[2] {
		t.Fatalf("%d jobs are the device's", len(own))
	}
	p := x.PlanScan(own, roomOf(1<<30))
	out := make([]byte, p.OutBytes())
	states := abi.Array[abi.State](out, 0, 2)
	states[0].Kept, states[1].Kept = 2, 0
	entries := abi.Array[topk.Entry](out, p.Answers-p.States, 3)
	entries[0], entries[1] = topk.NewEntry(4094<<16|3, 7), topk.NewEntry(4095<<16|2, 5)
	p.Decode(out)
	want := []verify.Scored{{ID: 5, Count: 2, Score: 1}, {ID: 7, Count: 3, Score: 2}}
	if !own[0].Done || !own[1].Done || !slices.Equal(own[0].Found, want) || len(own[1].Found) != 0 {
		t.Errorf("%+v, %+v", own[0], own[1])
	}
	work := &gpuexec.Work{}
	if p.Used(work); work.BytesQueries != 2 || work.Bytes <= p.Candidates {
		t.Errorf("%+v", work)
	}
	if x.Texts = nil; x.ScansOf(jobs) != nil {
		t.Error("a device without texts scans")
	}
}
