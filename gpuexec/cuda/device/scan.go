//go:build cuda

package device

import (
	"cmp"
	"context"
	"slices"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/index/verify"
)

// A scan compares queries with all texts that are on the device (kernels/scan.cu). It is executed like a batch of matching,
// on a lane, in pieces that fit, objects in waves of ascending ids with compactions between them; only the measure is another.
//
//	arena (device)   queries | scans | patterns | states | answers | candidates
//	in (pinned)      queries | scans | patterns | states                          one copy to the device
//	out (pinned)                                  states | answers                one copy back
//
// An object appends one entry at most, so the candidates of a query are bounded by k + the objects of a wave, and waves
// are as wide as the arena has room for, leastWave at least: cut sees to it. A piece does about scanWork, so that a
// caller who has gone is noticed and other batches come to their turn.
//
// The host scans for patterns and texts that the device does not compare (verify.go), and where no text is resident.

const (
	leastWave = 16 << 10
	// scanWork is what a piece does, and a launch, in bytes times lanes: about 10 ms of an H200, for which kernels of other lanes
	// may have to wait.
	scanWork = 1 << 34
	// Of the first wave, blocks a multiprocessor; and how many times as wide the next one is.
	scanBlocks, scanGrowth = 2, 4
)

// cudaScan are the kernels of scan.cu.
type cudaScan struct {
	narrow, wide function
	objects      int // of a block
	farthest     int // the largest distance
}

func (k *cudaKernels) loadScan(m module) error {
	var of [4]int
	for i, name := range []string{"scan_objects", "scan_threads", "scan_shared", "scan_farthest"} {
		value, err := m.constant(name)
		if err != nil {
			return deviceError("reading "+name, err)
		}
		of[i] = int(value)
	}
	k.scan.objects, k.scan.farthest = of[0], of[3]
	var err error
	if k.scan.narrow, err = m.function("scan_narrow", of[1], of[2]+maxNarrow*8*abi.WarpLanes); err != nil {
		return deviceError("finding kernel scan_narrow", err)
	}
	if k.scan.wide, err = m.function("scan_wide", of[1], of[2]+abi.HashedMaskBytes*abi.WarpLanes); err != nil {
		return deviceError("finding kernel scan_wide", err)
	}
	return nil
}

// scans is true when the device can do a job: no text that is near enough is longer than it compares.
func (r *resident) scans(job *run.ScanJob) bool {
	farthest := r.kernels.scan.farthest
	asked, ok := job.Rescorer.(*verify.SequenceRescorer)
	return ok && r.compares(asked.Nearest()) && len(patternOf(job)) <= r.kernels.verify.maxPattern &&
		(r.texts.longest <= farthest || len(patternOf(job))+withinOf(job) <= farthest)
}

// sequencesOf is the rescorer of a job that the device scans for.
func sequencesOf(job *run.ScanJob) *verify.SequenceRescorer {
	return job.Rescorer.(*verify.SequenceRescorer)
}

func patternOf(job *run.ScanJob) []rune { return sequencesOf(job).Nearest().Text }

func withinOf(job *run.ScanJob) int { return sequencesOf(job).Within() }

func (s *cudaSearcher) Scan(ctx context.Context, jobs []*run.ScanJob, timed *gpuexec.Trace) error {
	var own []*run.ScanJob
	for _, job := range jobs {
		if s.resident.scans(job) {
			own = append(own, job)
		}
	}
	if len(own) == 0 {
		return nil
	}
	slices.SortStableFunc(own, func(a, b *run.ScanJob) int {
		return cmp.Compare(verifyClass(len(patternOf(a))), verifyClass(len(patternOf(b))))
	})
	return s.onLane(ctx, func(l *lane) error { return l.scan(ctx, s.resident, own, timed) })
}

// scan executes jobs, which are ordered by classes, in pieces that fit the lane.
func (l *lane) scan(ctx context.Context, r *resident, jobs []*run.ScanJob, timed *gpuexec.Trace) error {
	return l.onIndex(r, timed, func() error {
		for len(jobs) > 0 {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			n := l.cutScan(jobs)
			if err := l.executeScan(jobs[:n]); err != nil {
				return err
			}
			jobs = jobs[max(1, n):]
		}
		return nil
	})
}

// cutScan is how many of the jobs fit. It is 0 when not even the first does: it is left to the host.
func (l *lane) cutScan(jobs []*run.ScanJob) int {
	t := l.resident.texts
	need, in, out, work := int64(arenaSlack), int64(arenaSlack), int64(arenaSlack), int64(0)
	for i, job := range jobs {
		k := int64(l.scanK(job))
		in += abi.QueryBytes + abi.ScanQueryBytes + abi.StateBytes + abi.SymbolBytes*int64(len(patternOf(job)))
		out += abi.StateBytes + topk.EntryBytes*k
		need += topk.EntryBytes * (2*k + int64(min(leastWave, t.objects)))
		work += t.units * abi.UnitBytes << verifyClass(len(patternOf(job)))
		if need+in > l.bytes || in > inBytes || out > outBytes || i > 0 && work > scanWork {
			return i
		}
	}
	return len(jobs)
}

func (l *lane) scanK(job *run.ScanJob) int {
	return min(sequencesOf(job).Nearest().K, l.resident.texts.objects)
}

// scanLayout says where a piece's arrays lie in the arena; queries come first.
type scanLayout struct {
	scans, patterns, states, answers, candidates int64
	wave                                         int // objects for which candidates have room
}

func (l *lane) layoutScan(jobs []*run.ScanJob) (at scanLayout) {
	n := int64(len(jobs))
	var symbols, k int64
	for _, job := range jobs {
		symbols += int64(len(patternOf(job)))
		k += int64(l.scanK(job))
	}
	at.scans = alignUp(n * abi.QueryBytes)
	at.patterns = at.scans + n*abi.ScanQueryBytes
	at.states = alignUp(at.patterns + symbols*abi.SymbolBytes)
	at.answers = at.states + n*abi.StateBytes
	at.candidates = alignUp(at.answers + k*topk.EntryBytes)
	t := l.resident.texts
	at.wave = int(min(((l.bytes-at.candidates)/topk.EntryBytes-k)/n, int64(t.objects), maxGridY*int64(l.resident.kernels.scan.objects)))
	// A piece of one job may be more than scanWork: then its launches are not. leastWave is what cutScan counts on.
	var lanes int64
	for _, job := range jobs {
		lanes += 1 << verifyClass(len(patternOf(job)))
	}
	if t.objects > 0 {
		bytes := max(1, t.units*abi.UnitBytes/int64(t.objects)) // of a text
		at.wave = min(at.wave, max(leastWave, int(scanWork/(bytes*lanes))))
	}
	return at
}

// executeScan executes jobs that fit.
func (l *lane) executeScan(jobs []*run.ScanJob) error {
	n := len(jobs)
	if n == 0 {
		return nil
	}
	l.profile.begin(l.timed != nil)
	at := l.layoutScan(jobs)
	l.encodeScan(jobs, &at)
	var k int64
	for _, job := range jobs {
		k += int64(l.scanK(job))
	}
	end := at.answers + topk.EntryBytes*k
	if l.timed != nil {
		l.timed.Work.Used(at.candidates+topk.EntryBytes*(k+int64(n)*int64(at.wave)), len(jobs))
	}
	r := l.resident
	b := abi.Batch{
		Queries: l.arena, States: l.arena + abi.Pointer(at.states),
		Entries: l.arena + abi.Pointer(at.candidates), Out: l.arena + abi.Pointer(at.answers),
	}
	l.steps = l.steps[:0]
	l.mark(stageUpload)
	l.steps.copyIn(l.arena, l.in[:at.answers])
	l.mark(stageVerify)
	width := max(1, r.kernels.processors*scanBlocks/n) * r.kernels.scan.objects
	for first, objects := 0, r.texts.objects; first < objects; width *= scanGrowth {
		width = min(width, at.wave)
		if first > 0 {
			launch(&l.steps, r.kernels.compact, n, 1, &b)
		}
		l.launchScan(jobs, &at, first, min(width, objects-first))
		first += width
	}
	launch(&l.steps, r.kernels.answer, n, 1, &b)
	l.mark(stageDownload)
	l.steps.copyOut(l.out[:end-at.states], l.arena+abi.Pointer(at.states))
	l.mark(stageEnd)
	l.profile.encoded()
	if err := l.steps.run(l.stream, l.done); err != nil {
		return deviceError("executing a scan", err)
	}
	if err := l.profile.end(l.timed); err != nil {
		return err
	}
	l.decodeScan(jobs, &at)
	return nil
}

// launchScan records a wave, a launch a class of patterns.
func (l *lane) launchScan(jobs []*run.ScanJob, at *scanLayout, first, count int) {
	r := l.resident
	t, k := r.texts, &r.kernels.scan
	argument := abi.Scan{
		Texts: t.memory, Starts: t.starts(), Patterns: l.arena + abi.Pointer(at.patterns), Scans: l.arena + abi.Pointer(at.scans),
		Queries: l.arena, States: l.arena + abi.Pointer(at.states), Entries: l.arena + abi.Pointer(at.candidates),
		First: uint32(first), End: uint32(first + count), Symbols: uint32(t.symbols.count), Base: t.tiles.Base(),
		Ngram: uint32(r.index.Schema().NGram),
	}
	for i := 0; i < len(jobs); {
		class, end := verifyClass(len(patternOf(jobs[i]))), i+1
		for end < len(jobs) && verifyClass(len(patternOf(jobs[end]))) == class {
			end++
		}
		lanes := 1 << class
		argument.FirstQuery, argument.Lanes = uint32(i), uint32(lanes)
		kernel := k.wide
		kernel.shared = abi.HashedMaskBytes * lanes
		if t.symbolBytes() == 1 {
			kernel = k.narrow
			kernel.shared = 8 * t.symbols.count * lanes
		}
		launch(&l.steps, kernel, end-i, (count+k.objects-1)/k.objects, &argument)
		i = end
	}
}

// encodeScan fills the pinned input.
func (l *lane) encodeScan(jobs []*run.ScanJob, at *scanLayout) {
	n := len(jobs)
	queries := pinnedArray[abi.Query](l.in, 0, n)
	scans := pinnedArray[abi.ScanQuery](l.in, at.scans, n)
	states := pinnedArray[abi.State](l.in, at.states, n)
	patterns := pinnedArray[uint16](l.in, at.patterns, int(at.states-at.patterns)/abi.SymbolBytes)
	farthest := l.resident.kernels.scan.farthest
	var pattern uint32
	var candidates, answers uint64
	for i, job := range jobs {
		k := l.scanK(job)
		queries[i] = abi.Query{K: uint32(k), Bound: uint32(farthest+1)<<16 - 1, Entries: candidates, Out: answers}
		scans[i] = abi.ScanQuery{Pattern: pattern, Length: uint32(len(patternOf(job))), MinCount: job.MinCount}
		states[i] = abi.State{Threshold: uint32(farthest-min(withinOf(job), farthest)) << 16}
		for _, r := range patternOf(job) {
			patterns[pattern] = l.resident.texts.symbols.of(r)
			pattern++
		}
		candidates += uint64(k + at.wave)
		answers += uint64(k)
	}
}

// decodeScan hands the hits to the jobs.
func (l *lane) decodeScan(jobs []*run.ScanJob, at *scanLayout) {
	states := pinnedArray[abi.State](l.out, 0, len(jobs))
	answer := at.answers - at.states
	for i, job := range jobs {
		k := l.scanK(job)
		entries := pinnedArray[topk.Entry](l.out, answer, min(k, int(states[i].Kept)))
		for j := len(entries) - 1; j >= 0; j-- {
			e := entries[j]
			distance := int32(l.resident.kernels.scan.farthest) - int32(e.Count()>>16)
			job.Found = append(job.Found, verify.Scored{ID: e.ID(), Count: e.Count() & 0xffff, Score: float64(distance)})
		}
		job.Done = true
		answer += topk.EntryBytes * int64(k)
	}
}
