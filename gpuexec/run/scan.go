package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/verify"
)

// objectsOfCandidate: scanning so many objects on a device costs about as much as one candidate more, its counting and its
// comparison on the host (17 us for the 663,473 words of a word list on an H200). It decides nothing but time.
const objectsOfCandidate = 1024

// scan ends the jobs that no number of candidates can certify and, where the matcher can scan, those that would take too many
// candidates: every object is scored, by the matcher if it can.
func (p *Searcher) scan(ctx context.Context, b *batch, t *gpuexec.Trace) error {
	var left []*planJob
	for i := range p.matchers {
		var jobs []*planJob
		for _, job := range b.pending {
			s := job.rescoring
			switch {
			case int(job.matcher) != i || s == nil:
			case s.state == rescoringScan && s.parts != nil:
				left = append(left, job)
			case s.state == rescoringScan || s.state == rescoringWiden && 2*job.match.K*objectsOfCandidate > int(p.source.Objects()):
				jobs = append(jobs, job)
			}
		}
		undone, err := p.scanByMatcher(ctx, b, p.matchers[i], jobs, t)
		if err != nil {
			return err
		}
		left = append(left, undone...)
	}
	if len(left) == 0 || b.pace.over() {
		return nil
	}
	return p.scanOnHost(ctx, b, left)
}

// scanByMatcher lets a matcher scan for jobs, a slice of them at a time. It returns those that it leaves and that need a scan.
func (p *Searcher) scanByMatcher(ctx context.Context, b *batch, m Matcher, jobs []*planJob, t *gpuexec.Trace) (left []*planJob, err error) {
	var scans []*ScanJob
	for _, job := range jobs {
		scans = append(scans, &ScanJob{Query: job.plan.Query, Rescorer: job.rescoring.rescorer, MinCount: job.plan.MinCount})
	}
	for len(scans) > 0 && !b.pace.over() {
		n := len(scans)
		if b.pace.Call > 0 {
			n = scanSlice(scans)
		}
		start := time.Now()
		if err := m.Scan(ctx, scans[:n], t); err != nil {
			return nil, err
		}
		done := false
		for i, job := range jobs[:n] {
			switch s := job.rescoring; {
			case scans[i].Done:
				s.rescorer.Add(scans[i].Found)
				s.state, s.exact, done = rescoringDone, true, true
			case s.state == rescoringScan:
				left = append(left, job)
			}
		}
		if done { // of the device's time there is an allowance too
			b.pace.spent.Add(int64(time.Since(start)))
		}
		jobs, scans = jobs[n:], scans[n:]
	}
	return left, nil
}

// sliceWork is how much of a scan, in bytes times lanes, a matcher is asked for at a time in a call that has an allowance: some
// 10 ms of an H200.
const sliceWork = 1 << 34

// scanSlice is how many of the jobs are that much, at least one.
func scanSlice(jobs []*ScanJob) int {
	work := int64(0)
	for i, job := range jobs {
		if work += job.Rescorer.ScanWork(); i > 0 && work > sliceWork {
			return i
		}
	}
	return len(jobs)
}

// A scanPart is a range of objects that a job scores on the host.
type scanPart struct {
	rescorer         verify.Rescorer
	seeded           bool
	first, next, end uint32 // objects; next is where to go on
	stint            stint
}

// scanOnHost scores every object on the cores, as far as the call's allowance goes. It splits the objects where there are fewer
// jobs than cores.
func (p *Searcher) scanOnHost(ctx context.Context, b *batch, jobs []*planJob) error {
	type unit struct {
		job  *planJob
		part *scanPart
	}
	var units []unit
	ranges := Splits(len(jobs), AllTiles(p.source).Len(), p.crew.Size())
	for _, job := range jobs {
		s := job.rescoring
		if s.parts == nil {
			if err := p.choosePassing(ctx, job); err != nil {
				if failed := (*gpuexec.PanicError)(nil); !errors.As(err, &failed) {
					return err
				}
				job.fail(err)
				continue
			}
			s.parts = p.scanParts(ranges)
		}
		for _, part := range s.parts {
			if part.next < part.end {
				units = append(units, unit{job, part})
			}
		}
	}
	var mu sync.Mutex // of a job's state and match.Err, which its parts share
	err := p.crew.Run(ctx, len(units), func(s *Shift, n int) {
		job, part := units[n].job, units[n].part
		if b.pace.over() {
			return
		}
		var err error
		failure := Protect(func() {
			part.stint.begin(ctx, &b.pace, s, job)
			defer part.stint.end()
			if !part.seeded {
				part.rescorer = job.rescoring.rescorer.Part(part.rescorer)
				part.seeded = true
			}
			part.next, err = part.rescorer.Scan(part.next, part.end, job.plan.MinCount, job.rescoring.passing, part.stint.pace, b.pace.Grain)
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
		s := job.rescoring
		if slices.ContainsFunc(s.parts, func(part *scanPart) bool { return part.next < part.end }) && job.match.Err == nil {
			continue // to be gone on with
		}
		for _, part := range s.parts {
			if job.match.Err == nil {
				s.rescorer.Join(part.rescorer)
				p.parts.Put(part)
			}
		}
		s.parts, s.passing = nil, nil
		if job.match.Err == nil {
			s.state, s.exact = rescoringDone, true
		}
	}
	return nil
}

// choosePassing finds out which objects a scan may find.
func (p *Searcher) choosePassing(ctx context.Context, job *planJob) (err error) {
	q, ok := job.plan.Query.(Filtering)
	if !ok {
		return nil
	}
	if filtered, _, _ := q.Filtering(); !filtered {
		return nil
	}
	passer, ok := p.matchers[job.matcher].(Passer)
	if !ok {
		return fmt.Errorf("scanning %s of index %s: its matcher has no filters", job.plan.Family, p.source.Name())
	}
	job.rescoring.passing, err = passer.Passing(ctx, q)
	return err
}

// scanParts cuts the index into ranges of tiles.
func (p *Searcher) scanParts(ranges int) []*scanPart {
	parts := make([]*scanPart, ranges)
	tiles := AllTiles(p.source).Len()
	border := func(i int) uint32 {
		return uint32(min(uint64(tiles*i/ranges)*TileObjects, uint64(p.source.Objects())))
	}
	for i := range parts {
		part := p.parts.Get()
		part.seeded, part.first, part.next, part.end = false, border(i), border(i), border(i+1)
		parts[i] = part
	}
	return parts
}
