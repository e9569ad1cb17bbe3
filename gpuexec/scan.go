package gpuexec

import (
	"context"
	"sync"
	"time"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/verify"
)

// A scanJob asks for the nearest of all texts, of those that a matcher holds: what is left of a sequence's plan where no
// number of candidates can certify an answer.
type scanJob struct {
	text     []rune
	k        int
	minCount uint32 // 0 admits objects that share no gram with the text
	within   int    // objects farther away are no hits (verify.Verifier.Within)

	hits []verify.Hit // the first k
	done bool         // hits holds; a matcher that cannot do the job leaves it to the host's cores
}

// textsOfCandidate: scanning so many texts on a device costs about as much as one candidate more, its counting and its
// comparison on the host (17 us for the 663,473 words of a word list on an H200). It decides nothing but time.
const textsOfCandidate = 1024

// scan ends the jobs that no number of candidates can certify and, where the matcher can scan, those that would take too many
// candidates: every text is compared, by the matcher if it can.
func (p *pipeline) scan(ctx context.Context, m matcher, b *batch) error {
	var jobs []*planJob
	var scans []*scanJob
	for _, job := range b.pending {
		s := job.sequence
		if s.state == sequenceScan || s.state == sequenceWiden && 2*job.match.k*textsOfCandidate > int(p.index.Objects()) {
			jobs = append(jobs, job)
			scans = append(scans, &scanJob{text: s.plan.Text, k: s.plan.K, minCount: job.plan.Match.MinCount, within: s.verifier.Within()})
		}
	}
	if len(jobs) == 0 {
		return nil
	}
	if err := m.scan(ctx, scans); err != nil {
		return err
	}
	var left []*planJob
	for i, job := range jobs {
		switch s := job.sequence; {
		case scans[i].done:
			s.verifier.Add(scans[i].hits)
			s.state, s.exact = sequenceDone, true
		case s.state == sequenceScan:
			s.state, s.exact = sequenceDone, true
			left = append(left, job)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return p.scanOnHost(ctx, left)
}

// scanOnHost compares every text on the cores. It splits the texts where there are fewer jobs than cores.
func (p *pipeline) scanOnHost(ctx context.Context, jobs []*planJob) error {
	tiles := p.index.Tiles()
	ranges := splits(len(jobs), tiles, p.crew.size())
	parts := make([]*verify.Verifier, len(jobs)*ranges)
	defer func() {
		for _, v := range parts {
			if v != nil {
				p.verifiers.Put(v)
			}
		}
	}()
	var mu sync.Mutex // of a job's match.err and spent, which its ranges share
	err := p.crew.run(ctx, len(parts), func(s *shift, unit int) {
		job, r := jobs[unit/ranges], unit%ranges
		spent := time.Duration(0)
		v, _ := p.verifiers.Get().(*verify.Verifier)
		if v == nil {
			v = new(verify.Verifier)
		}
		failure := protect(func() {
			v.Seed(&job.sequence.verifier)
			for tile := tiles * r / ranges; tile < tiles*(r+1)/ranges; tile++ {
				start, lo := time.Now(), uint32(tile)*index.TileObjects
				err := v.Scan(ctx, p.index, lo, lo+uint32(p.index.TileLen(tile)), job.plan.Match.MinCount)
				spent += time.Since(start)
				if err != nil {
					return // ctx has ended; so does the batch
				}
				s.spend(quantum)
			}
		})
		mu.Lock()
		defer mu.Unlock()
		job.sequence.spent += spent
		if failure != nil {
			job.match.err = failure
			return
		}
		parts[unit] = v
	})
	if err != nil {
		return err
	}
	for i, job := range jobs {
		if job.match.err == nil {
			for _, v := range parts[i*ranges : (i+1)*ranges] {
				job.sequence.verifier.Join(v)
			}
		}
	}
	return nil
}
