package run

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/verify"
)

// A rescoring is that of one plan, from its first candidates to its answer. Its stages are
//
//	match K -> score -> [ certified or not to be certified: answer ]
//	                 -> [ a larger K can certify: double K, match ]
//	                 -> [ none can, or a scan costs less: scan all objects, answer ]
//
// Since the candidates of 2K begin with those of K, the rescorer goes on where it stopped. So it does when the allowance of a
// call is spent (Pace), in the middle of a comparison too: the rescoring is what an Unfinished keeps.
type rescoring struct {
	state rescoringState
	exact bool
	ready bool        // the rescorer is this plan's: some work was done
	begun bool        // candidates are those of this round
	rest  uint32      // objects that are no candidates have a count of at most that
	parts []*scanPart // of a scan on the host that has begun
	// passing are the objects that it may find.
	passing filter.Set

	spent  atomic.Int64  // nanoseconds of cores
	before time.Duration // of that, before this call

	// Memory that is used again (Searcher.rescorings).
	rescorer   verify.Rescorer
	stint      stint
	candidates []verify.Candidate
	known      []verify.Known // of them, while the job is interrupted (Job.Known)
}

type rescoringState uint8

const (
	rescoringMatched rescoringState = iota // the matcher has returned
	rescoringWiden                         // needs twice the candidates
	rescoringScan                          // needs all objects
	rescoringDone
)

// maxCandidates bounds the doubling: beyond, a scan of all objects costs less than what is left to gain.
const maxCandidates = gpuexec.MaxK

// rescoring begins that of a plan.
func (p *Searcher) rescoring() *rescoring {
	s := p.rescorings.Get()
	s.state, s.exact, s.ready, s.begun, s.parts, s.passing, s.before = rescoringMatched, false, false, false, nil, nil, 0
	s.spent.Store(0)
	return s
}

// unfinished is what the searcher keeps of a plan that was interrupted.
type unfinished struct {
	rescoring         *rescoring // nil: there was nothing worth keeping
	begun             Begun      // of a plan that is not rescored: what its matcher keeps; nil: nothing
	k                 int
	bound             uint32
	units, candidates uint64
	total             uint64
}

func (u *unfinished) Left() time.Duration {
	if u.begun != nil {
		return u.begun.Left()
	}
	if u.rescoring == nil {
		return 0
	}
	return u.rescoring.left()
}

// resume goes on with a plan that was interrupted.
func (j *planJob) resume(u *unfinished) {
	s := u.rescoring
	u.rescoring = nil
	j.rescoring, s.before = s, time.Duration(s.spent.Load())
	j.match.K, j.match.Bound, j.match.Units, j.match.Candidates = u.k, u.bound, u.units, u.candidates
	j.match.Total = u.total
	j.match.Known = append(j.match.Known, s.known...)
}

// interrupt hands a job back that is not done.
func (j *planJob) interrupt() {
	s := j.rescoring
	u := &unfinished{}
	j.answer.Unfinished = u
	if s == nil {
		return
	}
	if j.answer.Rescoring = time.Duration(s.spent.Load()); !s.ready {
		return // what the matcher found takes more memory than time, and there may be many like this
	}
	if s.state == rescoringMatched && !s.begun {
		j.takeCandidates()
	}
	s.known = append(s.known[:0], j.match.Known...)
	u.rescoring, j.rescoring = s, nil
	u.k, u.bound, u.units, u.candidates = j.match.K, j.match.Bound, j.match.Units, j.match.Candidates
	u.total = j.match.Total
}

// left is unfinished.Left.
func (s *rescoring) left() time.Duration {
	done, all := 0, 0
	switch {
	case s.parts != nil:
		for _, part := range s.parts {
			done += int(part.next - part.first)
			all += int(part.end - part.first)
		}
	case s.begun:
		done, all = s.rescorer.Offered(), len(s.candidates)
	default:
		done, all = 1, 2 // as much again
	}
	return time.Duration(float64(s.spent.Load()) * float64(all-done) / float64(max(1, done)))
}

// fail ends a job.
func (j *planJob) fail(err error) { j.match.Err, j.rescoring.state = err, rescoringDone }

// takeCandidates takes over what the matcher has found.
func (j *planJob) takeCandidates() {
	s, entries := j.rescoring, j.match.Entries
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

// score scores the candidates that the matcher has returned and decides what comes next.
func (j *planJob) score(ctx context.Context, p *Searcher, b *batch, shift *Shift) {
	s := j.rescoring
	if s.state != rescoringMatched || j.match.Err == nil && b.pace.over() {
		return
	}
	if j.match.Err != nil {
		s.state = rescoringDone
		return
	}
	s.stint.begin(ctx, &b.pace, shift, j)
	defer s.stint.end()
	if j.expired(s.stint.since) {
		j.fail(gpuexec.ErrDeadline)
		return
	}
	if !s.ready {
		s.rescorer = j.plan.Rescore.New(s.rescorer)
		s.ready = true
	}
	found, err := j.offer(b.pace.Grain)
	if err != nil {
		j.stopped(err)
		return
	}
	s.exact = j.complete(found, p.source.Objects()) || s.rescorer.Certified(s.rest)
	switch {
	case s.exact || !j.plan.Certify:
		s.state = rescoringDone
	case s.rescorer.Certifiable() && s.rest > 0 && 2*j.match.K <= maxCandidates:
		s.state = rescoringWiden
	default:
		s.state = rescoringScan
	}
}

// complete is true where all objects that may be hits were candidates, of which so many were found: every object, or every one with minCount where that is
// asked for.
func (j *planJob) complete(found int, objects uint32) bool {
	return uint32(found) == objects || found < j.match.K && j.plan.MinCount > 0
}

// restOfOrder is what objects have at most that were no candidates of an Ordered job.
func (j *planJob) restOfOrder() uint32 {
	if j.match.Found == j.match.K {
		return j.match.Least
	}
	return 0
}

// offer gives the rescorer the candidates that the matcher has found, and returns how many these are.
func (j *planJob) offer(work int) (found int, err error) {
	s := j.rescoring
	if m := &j.match; m.Ordered {
		m.Ordered = false
		s.rescorer.(verify.Taker).Take(m.Best, m.Found)
		s.rest = j.restOfOrder()
		return m.Found, nil
	}
	if !s.begun {
		j.takeCandidates()
	}
	if err := s.rescorer.Offer(s.candidates, j.match.Known, s.stint.pace, work); err != nil {
		return 0, err
	}
	s.begun = false
	return len(s.candidates), nil
}

// stopped takes notice of the error with which a stint stopped: it ends the job, or it is no concern of the job's.
func (j *planJob) stopped(err error) {
	if errors.Is(err, gpuexec.ErrDeadline) || errors.Is(err, gpuexec.ErrWork) {
		j.fail(err)
	}
}

// answerInOrder fills the answer of a plan whose hits were put in the order of scores elsewhere, and need not be certain: they are in its memory.
func (j *planJob) answerInOrder(objects uint32) {
	a, m := j.answer, &j.match
	a.Units, a.Candidates, a.Total, a.Value = m.Units, m.Candidates, m.Total, m.Value
	if j.expired(time.Now()) {
		a.Err = gpuexec.ErrDeadline
		return
	}
	a.Hits, a.Scored = m.Best, true
	a.Exact = j.complete(m.Found, objects) || j.plan.Rescore.(verify.Ordering).Proven(m.Best, j.restOfOrder())
	setMCK(a, j.plan.Wanted())
}

// answerScores fills the answer of a plan whose hits are in the order of scores.
func (j *planJob) answerScores() {
	a, s := j.answer, j.rescoring
	a.Units, a.Candidates, a.Rescoring = j.match.Units, j.match.Candidates, time.Duration(s.spent.Load())
	if a.Err = j.match.Err; a.Err != nil {
		return
	}
	a.Total = j.match.Total
	a.Hits = s.rescorer.Hits(a.Hits)
	a.Exact, a.Scored, a.Value = s.exact, true, j.match.Value
	setMCK(a, j.plan.Wanted())
}
