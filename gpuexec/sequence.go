package gpuexec

import (
	"context"
	"slices"
	"time"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/verify"
)

// A sequenceJob is the verification of one plan, from its first candidates to its answer. Its stages are
//
//	match K -> verify -> [ certified or not to be certified: answer ]
//	                  -> [ a larger K can certify: double K, match ]
//	                  -> [ none can, or a scan costs less: scan all texts, answer ]
//
// Since the candidates of 2K begin with those of K, the verifier goes on where it stopped.
type sequenceJob struct {
	plan  *SequencePlan
	state sequenceState
	exact bool
	spent time.Duration

	// Memory that is used again (pipeline.sequences).
	verifier   verify.Verifier
	candidates []verify.Candidate
	hits       []verify.Hit
}

type sequenceState uint8

const (
	sequenceMatched sequenceState = iota // the matcher has returned
	sequenceWiden                        // needs twice the candidates
	sequenceScan                         // needs all texts
	sequenceDone
)

// maxCandidates bounds the doubling: beyond, a scan of all texts costs less than what is left to gain.
const maxCandidates = MaxK

// sequence begins the verification of a plan.
func (p *pipeline) sequence(plan *SequencePlan) *sequenceJob {
	s, _ := p.sequences.Get().(*sequenceJob)
	if s == nil {
		s = new(sequenceJob)
	}
	s.plan, s.state, s.exact, s.spent = plan, sequenceMatched, false, 0
	s.verifier.Reset(plan.Text, plan.K, p.index.Schema().NGram)
	return s
}

// verify brings all sequences of a batch from candidates to answers.
func (p *pipeline) verify(ctx context.Context, m matcher, b *batch) error {
	for len(b.pending) > 0 {
		err := p.crew.run(ctx, len(b.pending), func(s *shift, unit int) {
			job, start := b.pending[unit], time.Now()
			if err := protect(func() { job.verify(ctx, p.index) }); err != nil {
				job.match.err, job.sequence.state = err, sequenceDone
			}
			took := time.Since(start)
			job.sequence.spent += took
			s.spend(int(took) * 2)
		})
		if err != nil {
			return err
		}
		if err := p.scan(ctx, m, b); err != nil {
			return err
		}
		b.round = b.round[:0]
		left := b.pending[:0]
		for _, job := range b.pending {
			if job.sequence.state != sequenceWiden {
				job.answerSequence()
				continue
			}
			job.match.k = min(2*job.match.k, int(p.index.Objects()))
			job.match.text, job.match.distances = nil, job.match.distances[:0] // the first ones have been compared
			b.round = append(b.round, &job.match)
			left = append(left, job)
		}
		clear(b.pending[len(left):])
		b.pending = left
		if err := m.match(ctx, b.round); err != nil {
			return err
		}
	}
	return nil
}

// verify compares the candidates that the matcher has returned and decides what comes next.
func (j *planJob) verify(ctx context.Context, x *index.Index) {
	s := j.sequence
	if j.match.err != nil {
		s.state = sequenceDone
		return
	}
	entries := j.match.entries
	s.candidates = slices.Grow(s.candidates[:0], len(entries))
	for i := len(entries) - 1; i >= 0; i-- {
		s.candidates = append(s.candidates, verify.Candidate{ID: entries[i].id(), Count: entries[i].count()})
	}
	if s.verifier.Verify(ctx, x, s.candidates, j.match.distances) != nil {
		return // ctx has ended; so does the batch
	}
	// Objects that are no candidates have a count of at most rest.
	rest := uint32(0)
	if len(entries) == j.match.k && len(entries) > 0 {
		rest = entries[0].count()
	}
	// All objects that may be hits were candidates: every object, or every one with minCount where that is asked for.
	complete := uint32(len(entries)) == x.Objects() || len(entries) < j.match.k && j.plan.Match.MinCount > 0
	s.exact = complete || s.verifier.Certified(rest)
	switch {
	case s.exact || !s.plan.Certify:
		s.state = sequenceDone
	case s.verifier.Threshold() > 0 && rest > 0 && 2*j.match.k <= maxCandidates:
		s.state = sequenceWiden
	default:
		s.state = sequenceScan
	}
}

// answerSequence fills the answer of a plan with verification.
func (j *planJob) answerSequence() {
	a, s := j.answer, j.sequence
	a.Postings, a.Candidates, a.Verify = j.match.postings, j.match.candidates, s.spent
	if a.Err = j.match.err; a.Err != nil {
		return
	}
	s.hits = s.verifier.Hits(s.hits[:0])
	a.Hits = slices.Grow(a.Hits, len(s.hits))
	for _, h := range s.hits {
		a.Hits = append(a.Hits, Hit{ID: h.ID, Count: h.Count, Distance: h.Distance})
	}
	a.Exact = s.exact
	a.setMCK(s.plan.K)
}
