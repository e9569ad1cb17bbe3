package run

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/verify"
)

// A sequenceJob is the verification of one plan, from its first candidates to its answer. Its stages are
//
//	match K -> verify -> [ certified or not to be certified: answer ]
//	                  -> [ a larger K can certify: double K, match ]
//	                  -> [ none can, or a scan costs less: scan all texts, answer ]
//
// Since the candidates of 2K begin with those of K, the verifier goes on where it stopped. So it does when the allowance of a
// call is spent (Pace), in the middle of a comparison too: the job is what an Unfinished keeps.
type sequenceJob struct {
	plan  *gpuexec.SequencePlan
	state sequenceState
	exact bool
	ready bool        // the verifier is: some work was done
	begun bool        // candidates are those of this round
	rest  uint32      // objects that are no candidates have a count of at most that
	parts []*scanPart // of a scan on the host that has begun

	spent  atomic.Int64  // nanoseconds of cores
	before time.Duration // of that, before this call

	// Memory that is used again (pipeline.sequences).
	verifier   verify.Verifier
	stint      stint
	candidates []verify.Candidate
	known      []int32 // their distances, while the job is interrupted (matchJob.distances)
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
const maxCandidates = gpuexec.MaxK

// sequence begins the verification of a plan.
func (p *Pipeline) sequence(plan *gpuexec.SequencePlan) *sequenceJob {
	s, _ := p.sequences.Get().(*sequenceJob)
	if s == nil {
		s = new(sequenceJob)
	}
	s.plan, s.state, s.exact, s.ready, s.begun, s.parts, s.before = plan, sequenceMatched, false, false, false, nil, 0
	s.spent.Store(0)
	return s
}

// resume goes on with a plan that was interrupted.
func (j *planJob) resume(u *unfinished) {
	s := u.sequence
	u.sequence = nil
	j.sequence, s.plan, s.before = s, j.plan.Match.Verify, time.Duration(s.spent.Load())
	j.match.K, j.match.Bound, j.match.Postings, j.match.Candidates = u.k, u.bound, u.postings, u.candidates
	j.match.Distances = append(j.match.Distances, s.known...)
}

// interrupt hands a job back that is not done.
func (j *planJob) interrupt() {
	s := j.sequence
	u := &unfinished{}
	j.answer.Unfinished, j.answer.Verify = u, time.Duration(s.spent.Load())
	if !s.ready {
		return // what the matcher found takes more memory than time, and there may be many like this
	}
	if s.state == sequenceMatched && !s.begun {
		j.takeCandidates()
	}
	s.known = append(s.known[:0], j.match.Distances...)
	u.sequence, j.sequence = s, nil
	u.k, u.bound, u.postings, u.candidates = j.match.K, j.match.Bound, j.match.Postings, j.match.Candidates
}

// left is unfinished.Left.
func (s *sequenceJob) left() time.Duration {
	done, all := 0, 0
	switch {
	case s.parts != nil:
		for _, part := range s.parts {
			done += int(part.next - part.first)
			all += int(part.end - part.first)
		}
	case s.begun:
		done, all = s.verifier.Compared(), len(s.candidates)
	default:
		done, all = 1, 2 // as much again
	}
	return time.Duration(float64(s.spent.Load()) * float64(all-done) / float64(max(1, done)))
}

// verify brings the sequences of a batch from candidates to answers, as far as the call's allowance goes.
func (p *Pipeline) verify(ctx context.Context, b *batch, t *gpuexec.Trace) error {
	for len(b.pending) > 0 {
		err := p.Crew.Run(ctx, len(b.pending), func(s *Shift, unit int) {
			job := b.pending[unit]
			if err := Protect(func() { job.verify(ctx, p, b, s) }); err != nil {
				job.fail(err)
			}
		})
		if err != nil {
			return err
		}
		if err := p.scan(ctx, b, t); err != nil {
			return err
		}
		b.round = b.round[:0]
		left := b.pending[:0]
		over := b.pace.over()
		for _, job := range b.pending {
			s := job.sequence
			switch {
			case s.state == sequenceDone:
				job.answerSequence()
				continue
			case over || s.state != sequenceWiden || b.pace.Plan > 0 && time.Duration(s.spent.Load())-s.before >= b.pace.Plan:
				job.interrupt()
				continue
			}
			s.state = sequenceMatched
			job.match.K = min(2*job.match.K, int(p.Index.Objects()))
			job.match.Text, job.match.Distances = nil, job.match.Distances[:0] // the first ones have been compared
			b.round = append(b.round, &job.match)
			left = append(left, job)
		}
		clear(b.pending[len(left):])
		b.pending = left
		if err := p.Matcher.Match(ctx, b.round, t); err != nil {
			return err
		}
	}
	return nil
}

// fail ends a job.
func (j *planJob) fail(err error) { j.match.Err, j.sequence.state = err, sequenceDone }

// takeCandidates takes over what the matcher has found.
func (j *planJob) takeCandidates() {
	s, entries := j.sequence, j.match.Entries
	s.candidates = slices.Grow(s.candidates[:0], len(entries))
	for i := len(entries) - 1; i >= 0; i-- {
		s.candidates = append(s.candidates, verify.Candidate{ID: entries[i].ID(), Count: entries[i].Count()})
	}
	s.rest = 0
	if len(entries) == j.match.K && len(entries) > 0 {
		s.rest = entries[0].Count()
	}
	s.begun = true
}

// verify compares the candidates that the matcher has returned and decides what comes next.
func (j *planJob) verify(ctx context.Context, p *Pipeline, b *batch, shift *Shift) {
	s := j.sequence
	if s.state != sequenceMatched || j.match.Err == nil && b.pace.over() {
		return
	}
	if j.match.Err != nil {
		s.state = sequenceDone
		return
	}
	s.stint.begin(ctx, &b.pace, shift, j)
	defer s.stint.end()
	if j.expired(s.stint.since) {
		j.fail(gpuexec.ErrDeadline)
		return
	}
	if !s.ready {
		s.verifier.Reset(s.plan.Text, s.plan.K, p.Index.Schema().NGram)
		s.ready = true
	}
	if !s.begun {
		j.takeCandidates()
	}
	s.verifier.Paced(s.stint.pace, b.pace.Grain)
	if err := s.verifier.Verify(p.Index, s.candidates, j.match.Distances); err != nil {
		j.stopped(err)
		return
	}
	s.begun = false
	found := len(s.candidates)
	// All objects that may be hits were candidates: every object, or every one with minCount where that is asked for.
	complete := uint32(found) == p.Index.Objects() || found < j.match.K && j.plan.Match.MinCount > 0
	s.exact = complete || s.verifier.Certified(s.rest)
	switch {
	case s.exact || !s.plan.Certify:
		s.state = sequenceDone
	case s.verifier.Threshold() > 0 && s.rest > 0 && 2*j.match.K <= maxCandidates:
		s.state = sequenceWiden
	default:
		s.state = sequenceScan
	}
}

// stopped takes notice of the error with which a stint stopped: it ends the job, or it is no concern of the job's.
func (j *planJob) stopped(err error) {
	if errors.Is(err, gpuexec.ErrDeadline) || errors.Is(err, gpuexec.ErrWork) {
		j.fail(err)
	}
}

// answerSequence fills the answer of a plan with verification.
func (j *planJob) answerSequence() {
	a, s := j.answer, j.sequence
	a.Postings, a.Candidates, a.Verify = j.match.Postings, j.match.Candidates, time.Duration(s.spent.Load())
	if a.Err = j.match.Err; a.Err != nil {
		return
	}
	s.hits = s.verifier.Hits(s.hits[:0])
	a.Hits = slices.Grow(a.Hits, len(s.hits))
	for _, h := range s.hits {
		a.Hits = append(a.Hits, gpuexec.Hit{ID: h.ID, Count: h.Count, Distance: h.Distance})
	}
	a.Exact = s.exact
	setMCK(a, s.plan.K)
}
