package run

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/verify"
)

// A scanJob asks for the nearest of all texts, of those that a matcher holds: what is left of a sequence's plan where no
// number of candidates can certify an answer.
type ScanJob struct {
	Text     []rune
	K        int
	MinCount uint32 // 0 admits objects that share no gram with the text
	Within   int    // objects farther away are no hits (verify.Verifier.Within)

	Hits []verify.Hit // the first k
	Done bool         // hits holds; a matcher that cannot do the job leaves it to the host's cores
}

// textsOfCandidate: scanning so many texts on a device costs about as much as one candidate more, its counting and its
// comparison on the host (17 us for the 663,473 words of a word list on an H200). It decides nothing but time.
const textsOfCandidate = 1024

// scan ends the jobs that no number of candidates can certify and, where the matcher can scan, those that would take too many
// candidates: every text is compared, by the matcher if it can.
func (p *Pipeline) scan(ctx context.Context, b *batch, t *gpuexec.Trace) error {
	var jobs, left []*planJob
	var scans []*ScanJob
	for _, job := range b.pending {
		s := job.sequence
		switch {
		case s.state == sequenceScan && s.parts != nil:
			left = append(left, job)
		case s.state == sequenceScan || s.state == sequenceWiden && 2*job.match.K*textsOfCandidate > int(p.Index.Objects()):
			jobs = append(jobs, job)
			scans = append(scans, &ScanJob{Text: s.plan.Text, K: s.plan.K, MinCount: job.plan.Match.MinCount, Within: s.verifier.Within()})
		}
	}
	for len(scans) > 0 && !b.pace.over() {
		n := len(scans)
		if b.pace.Call > 0 {
			n = scanSlice(scans, p.Index.TextBytes())
		}
		start := time.Now()
		if err := p.Matcher.Scan(ctx, scans[:n], t); err != nil {
			return err
		}
		done := false
		for i, job := range jobs[:n] {
			switch s := job.sequence; {
			case scans[i].Done:
				s.verifier.Add(scans[i].Hits)
				s.state, s.exact, done = sequenceDone, true, true
			case s.state == sequenceScan:
				left = append(left, job)
			}
		}
		if done { // of the device's time there is an allowance too
			b.pace.spent.Add(int64(time.Since(start)))
		}
		jobs, scans = jobs[n:], scans[n:]
	}
	if len(left) == 0 || b.pace.over() {
		return nil
	}
	return p.scanOnHost(ctx, b, left)
}

// sliceWork is how much of a scan, in bytes times lanes, a matcher is asked for at a time in a call that has an allowance: some
// 10 ms of an H200.
const sliceWork = 1 << 34

// scanSlice is how many of the jobs are that much, at least one.
func scanSlice(jobs []*ScanJob, bytes int64) int {
	work := int64(0)
	for i, job := range jobs {
		lanes := int64(1+len(job.Text)/64) * 2 // a power of two
		if work += bytes * lanes; i > 0 && work > sliceWork {
			return i
		}
	}
	return len(jobs)
}

// A scanPart is a range of texts that a job is compared with on the host.
type scanPart struct {
	verifier         verify.Verifier
	seeded           bool
	first, next, end uint32 // objects; next is where to go on
	stint            stint
}

// scanOnHost compares every text on the cores, as far as the call's allowance goes. It splits the texts where there are fewer
// jobs than cores.
func (p *Pipeline) scanOnHost(ctx context.Context, b *batch, jobs []*planJob) error {
	type unit struct {
		job  *planJob
		part *scanPart
	}
	var units []unit
	ranges := Splits(len(jobs), p.Index.Tiles(), p.Crew.Size())
	for _, job := range jobs {
		s := job.sequence
		if s.parts == nil {
			s.parts = p.scanParts(ranges)
		}
		for _, part := range s.parts {
			if part.next < part.end {
				units = append(units, unit{job, part})
			}
		}
	}
	var mu sync.Mutex // of a job's state and match.err, which its parts share
	err := p.Crew.Run(ctx, len(units), func(s *Shift, n int) {
		job, part := units[n].job, units[n].part
		if b.pace.over() {
			return
		}
		var err error
		failure := Protect(func() {
			part.stint.begin(ctx, &b.pace, s, job)
			defer part.stint.end()
			v := &part.verifier
			if !part.seeded {
				v.Seed(&job.sequence.verifier)
				part.seeded = true
			}
			v.Paced(part.stint.pace, b.pace.Grain)
			part.next, err = v.Scan(p.Index, part.next, part.end, job.plan.Match.MinCount)
		})
		mu.Lock()
		defer mu.Unlock()
		if failure != nil {
			job.fail(failure)
		} else {
			job.stopped(err)
		}
	})
	if err != nil {
		return err
	}
	for _, job := range jobs {
		s := job.sequence
		if slices.ContainsFunc(s.parts, func(part *scanPart) bool { return part.next < part.end }) && job.match.Err == nil {
			continue // to be gone on with
		}
		for _, part := range s.parts {
			if job.match.Err == nil {
				s.verifier.Join(&part.verifier)
				p.parts.Put(part)
			}
		}
		s.parts = nil
		if job.match.Err == nil {
			s.state, s.exact = sequenceDone, true
		}
	}
	return nil
}

// scanParts cuts the index into ranges of tiles.
func (p *Pipeline) scanParts(ranges int) []*scanPart {
	parts := make([]*scanPart, ranges)
	tiles := p.Index.Tiles()
	border := func(i int) uint32 {
		return uint32(min(uint64(tiles*i/ranges)*index.TileObjects, uint64(p.Index.Objects())))
	}
	for i := range parts {
		part, _ := p.parts.Get().(*scanPart)
		if part == nil {
			part = new(scanPart)
		}
		part.seeded, part.first, part.next, part.end = false, border(i), border(i), border(i+1)
		parts[i] = part
	}
	return parts
}
