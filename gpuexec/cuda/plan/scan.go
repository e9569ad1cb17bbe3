package plan

import (
	"cmp"
	"slices"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/texts"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/verify"
)

// A ScanPiece is jobs of a scan that are executed together. A scan compares queries with all texts that are on the device
// (kernels/scan.cu). It is executed like a batch of matching, in pieces that fit, objects in waves of ascending ids with
// compactions between them; only the measure is another.
//
//	arena (device)   queries | scans | patterns | states | answers | candidates
//	in (pinned)      queries | scans | patterns | states                          one copy to the device
//	out (pinned)                                  states | answers                one copy back
//
// An object appends one entry at most, so the candidates of a query are bounded by k + the objects of a wave, and waves
// are as wide as the arena has room for, ScanSizes.LeastWave at least: fittingScans sees to it. A piece does about ScanSizes.Work,
// so that a caller who has gone is noticed and other batches come to their turn.
//
// The host scans for patterns and texts that the device does not compare (package rescoring), and where no text is resident.
type ScanPiece struct {
	Jobs    []*run.ScanJob
	Classes []ScanClass
	// Offsets of the arrays; queries come first.
	Scans, Patterns, States, Answers, Candidates int64
	NGram                                        int
	FirstWave, Wave                              int // objects of the first wave, and for which candidates have room

	index *Index
	hits  int64 // wanted
}

// A ScanClass is jobs of a piece that follow each other and whose pairs take equally many of a warp's lanes.
type ScanClass struct {
	Lanes, First, Count int
}

// ScansOf are the jobs that the device can do, ordered by classes: those of which no text that is near enough is longer than it
// compares.
func (x *Index) ScansOf(jobs []*run.ScanJob) (own []*run.ScanJob) {
	if x.Texts == nil {
		return nil
	}
	farthest := x.device.ScanFarthest
	for _, job := range jobs {
		asked, ok := job.Rescorer.(*verify.SequenceRescorer)
		if q, of := job.Query.(*postings.MatchQuery); of && q.Filter != nil {
			continue // the host looks at what passes alone
		}
		if ok && x.Texts.Compares(asked.Nearest(), x.device.MaxPattern) && (x.Texts.Longest <= farthest || len(asked.Nearest().Text)+asked.Within() <= farthest) {
			own = append(own, job)
		}
	}
	slices.SortStableFunc(own, func(a, b *run.ScanJob) int { return cmp.Compare(classOf(a), classOf(b)) })
	return own
}

// sequencesOf is the rescorer of a job that the device scans for, patternOf the text that is sought.
func sequencesOf(job *run.ScanJob) *verify.SequenceRescorer {
	return job.Rescorer.(*verify.SequenceRescorer)
}
func patternOf(job *run.ScanJob) []rune { return sequencesOf(job).Nearest().Text }

func classOf(job *run.ScanJob) int { return texts.PairClass(len(patternOf(job))) }

// scanK is how many hits a job gets at most.
func (x *Index) scanK(job *run.ScanJob) int {
	return min(sequencesOf(job).Nearest().K, x.Texts.Objects)
}

// fittingScans is how many of the jobs fit. It is 0 when not even the first does: it is left to the host.
func (x *Index) fittingScans(jobs []*run.ScanJob, room Room) int {
	t, sizes := x.Texts, &x.device.Profile.Scan
	need, in, out, work := int64(slack), int64(slack), int64(slack), int64(0)
	for i, job := range jobs {
		k := int64(x.scanK(job))
		in += abi.QueryBytes + abi.ScanQueryBytes + abi.StateBytes + abi.SymbolBytes*int64(len(patternOf(job)))
		out += abi.StateBytes + topk.EntryBytes*k
		need += topk.EntryBytes * (2*k + int64(min(sizes.LeastWave, t.Objects)))
		work += t.Units * abi.UnitBytes << classOf(job)
		if need+in > room.Arena || in > room.In || out > room.Out || i > 0 && work > sizes.Work {
			return i
		}
	}
	return len(jobs)
}

// PlanScan plans as many of the jobs as fit, which are ordered by classes. The piece has none where not even the first does.
func (x *Index) PlanScan(jobs []*run.ScanJob, room Room) (p ScanPiece) {
	p = ScanPiece{index: x, Jobs: jobs[:x.fittingScans(jobs, room)]}
	n := int64(len(p.Jobs))
	if n == 0 {
		return p
	}
	p.NGram = sequencesOf(p.Jobs[0]).Nearest().NGram // of the index
	var symbols, lanes int64
	for i, job := range p.Jobs {
		symbols += int64(len(patternOf(job)))
		p.hits += int64(x.scanK(job))
		own := 1 << classOf(job)
		lanes += int64(own)
		if last := len(p.Classes) - 1; last < 0 || p.Classes[last].Lanes != own {
			p.Classes = append(p.Classes, ScanClass{Lanes: own, First: i})
		}
		p.Classes[len(p.Classes)-1].Count++
	}
	p.Scans = abi.Align(n * abi.QueryBytes)
	p.Patterns = p.Scans + n*abi.ScanQueryBytes
	p.States = abi.Align(p.Patterns + symbols*abi.SymbolBytes)
	p.Answers = p.States + n*abi.StateBytes
	p.Candidates = abi.Align(p.Answers + p.hits*topk.EntryBytes)
	t, d := x.Texts, x.device
	sizes := &d.Profile.Scan
	p.Wave = int(min(((room.Arena-p.Candidates)/topk.EntryBytes-p.hits)/n, int64(t.Objects), abi.MaxGridY*int64(d.ScanObjects)))
	// A piece of one job may be more than ScanSizes.Work: then its launches are not. LeastWave is what fittingScans counts on.
	if t.Objects > 0 {
		bytes := max(1, t.Units*abi.UnitBytes/int64(t.Objects)) // of a text
		p.Wave = min(p.Wave, max(sizes.LeastWave, int(sizes.Work/(bytes*lanes))))
	}
	p.FirstWave = max(1, d.Processors*sizes.Blocks/len(p.Jobs)) * d.ScanObjects
	return p
}

// Used takes notice of the device memory that the piece uses.
func (p *ScanPiece) Used(work *gpuexec.Work) {
	work.Used(p.Candidates+topk.EntryBytes*(p.hits+int64(len(p.Jobs))*int64(p.Wave)), len(p.Jobs))
}

// InBytes is how much of the pinned input is copied to the beginning of the arena.
func (p *ScanPiece) InBytes() int64 { return p.Answers }

// OutBytes is how much is copied back, from States on.
func (p *ScanPiece) OutBytes() int64 { return p.Answers + topk.EntryBytes*p.hits - p.States }

// Waves calls launch with each wave: its first object, and how many it has.
func (p *ScanPiece) Waves(launch func(first, count int)) {
	growth := p.index.device.Profile.Scan.Growth
	for first, width, objects := 0, p.FirstWave, p.index.Texts.Objects; first < objects; width *= growth {
		width = min(width, p.Wave)
		launch(first, min(width, objects-first))
		first += width
	}
}

// Encode fills the pinned input.
func (p *ScanPiece) Encode(in []byte) {
	n := len(p.Jobs)
	queries := abi.Array[abi.Query](in, 0, n)
	scans := abi.Array[abi.ScanQuery](in, p.Scans, n)
	states := abi.Array[abi.State](in, p.States, n)
	patterns := abi.Array[uint16](in, p.Patterns, int(p.States-p.Patterns)/abi.SymbolBytes)
	farthest := p.index.device.ScanFarthest
	var pattern uint32
	var candidates, answers uint64
	for i, job := range p.Jobs {
		k := p.index.scanK(job)
		queries[i] = abi.Query{K: uint32(k), Bound: uint32(farthest+1)<<16 - 1, Entries: candidates, Out: answers}
		scans[i] = abi.ScanQuery{Pattern: pattern, Length: uint32(len(patternOf(job))), MinCount: job.MinCount}
		states[i] = abi.State{Threshold: uint32(farthest-min(sequencesOf(job).Within(), farthest)) << 16}
		for _, r := range patternOf(job) {
			patterns[pattern] = p.index.Texts.Symbols.Of(r)
			pattern++
		}
		candidates += uint64(k + p.Wave)
		answers += uint64(k)
	}
}

// Decode hands the hits to the jobs.
func (p *ScanPiece) Decode(out []byte) {
	states := abi.Array[abi.State](out, 0, len(p.Jobs))
	answer := p.Answers - p.States
	for i, job := range p.Jobs {
		k := p.index.scanK(job)
		entries := abi.Array[topk.Entry](out, answer, min(k, int(states[i].Kept)))
		for j := len(entries) - 1; j >= 0; j-- {
			e := entries[j]
			distance := int32(p.index.device.ScanFarthest) - int32(e.Count()>>16)
			job.Found = append(job.Found, verify.Scored{ID: e.ID(), Count: e.Count() & 0xffff, Score: float64(distance)})
		}
		job.Done = true
		answer += topk.EntryBytes * int64(k)
	}
}
