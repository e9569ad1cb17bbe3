package gpuexec

import (
	"context"
	"errors"
	"time"
)

// Pace says how a Search call shares the engine with other calls. It travels in the context (WithPace) because all stages of
// all engines are under it; without one a call takes what it needs.
//
// Rescoring is the part of a query whose work nothing else bounds: a text of 60 KB and 8,000 candidates are minutes. So a
// call has an allowance of it. When that is spent the call ends, and plans that are not answered then have an Unfinished, with
// which they go on in a later call. How often they are interrupted changes nothing in their answers.
type Pace struct {
	// Plan and Call bound the time of a core that a call spends on rescoring, for one plan and for all of them together. 0
	// is no bound. Whatever they are, a call gets on: it ends with some plan's work done or begun.
	Plan, Call time.Duration
	// Background calls leave at least half of the cores to the others as long as there have been any in the last second. They
	// have all cores else.
	Background bool
	// Cores is the most cores that one step of a call works on at a time. Default all.
	Cores int

	// Grain is the work between two looks at the clock. Default verify.PaceWork.
	Grain int
}

type paceKey struct{}

// WithPace returns a context under which Search calls have a pace.
func WithPace(ctx context.Context, p Pace) context.Context {
	return context.WithValue(ctx, paceKey{}, &p)
}

// PaceOf is the pace of a context; one without bounds where it has none.
func PaceOf(ctx context.Context) *Pace {
	if p, ok := ctx.Value(paceKey{}).(*Pace); ok {
		return p
	}
	return &Pace{}
}

// Answer.Err of plans that ran out of what they were given.
var (
	// ErrDeadline: Plan.Deadline has passed.
	ErrDeadline = errors.New("the deadline of the plan has passed")
	// ErrWork: rescoring has taken more than Plan.Work.
	ErrWork = errors.New("comparing texts takes more time than the plan may take")
)

// Unfinished is what a plan has come to that was interrupted. It is for one further Search call, of any Searcher of the same
// source, with the same plan. A call that returns an error has spoiled it: the plan begins anew then, without one.
type Unfinished interface {
	// Left estimates how much more time of a core the plan takes, by what is done so far; 0 when nothing is known.
	Left() time.Duration
}
