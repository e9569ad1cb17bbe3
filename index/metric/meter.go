package metric

import (
	"context"

	"github.com/geniemq/geniemq/index/levenshtein"
)

// A Meter is told of the work of a search, and may stop it between two steps: the search goes on later where it stopped, and comes to the same. Long texts are stopped in the middle of a
// comparison too (Pausing).
type Meter = levenshtein.Meter

// look is the work between two looks at a context: some 50 us.
const look = 10_000

// Until is a Meter that stops when a context ends. What was stopped then means nothing.
func Until(ctx context.Context) Meter { return &until{ctx: ctx} }

type until struct {
	ctx  context.Context
	left int
}

func (*until) Most() int      { return look }
func (u *until) Did(work int) { u.left -= work }
func (u *until) Stop() (end bool) {
	if u.left <= 0 {
		u.left = look
		end = u.ctx.Err() != nil
	}
	return end
}

// Work is what a value takes, for a Meter: about so many units. What is Pausable tells of its work itself, and counts little here.
func (m Metric) Work(dims int) int {
	if m.Kind == Edit {
		return 16
	}
	return 3 + dims*max(1, m.P)/5
}

// Metered lets a meter stop the comparisons of an asker that may take long, until the function that it returns is called. The asker is returned as one that can be stopped; nil: it need not be.
func Metered(a Asker, m Meter) (long Pausing, end func()) {
	if long = Pausable(a); long == nil {
		return nil, func() {}
	}
	long.SetMeter(m)
	return long, func() { long.SetMeter(nil) }
}
