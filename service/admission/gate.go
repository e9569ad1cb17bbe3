package admission

import (
	"time"

	"github.com/geniemq/geniemq/wire"
)

// Gate says how many queries of a flow may join a batch that is being made. It belongs to who makes the batch.
type Gate struct {
	Slices *Slices
	Quotas *Quotas
	most   int // queries of a batch
	now    time.Time
	in     int  // queries that the batch has
	bulk   bool // and they are bulk
	room   int  // for bulk
	// Wake is when to look again, if some may not leave yet that nothing else will announce; else zero.
	Wake time.Time
	// Ending says that rates are not to be kept any longer, since nothing is run any more.
	Ending bool
}

// retry is after how long is looked again when a user may not have more in flight.
const retry = 10 * time.Millisecond

// Begin begins to fill a batch of at most so many queries, that has some already, of bulk or not.
func (g *Gate) Begin(now time.Time, most, in int, bulk bool) {
	g.now, g.most, g.in, g.bulk, g.Wake = now, most, in, bulk, time.Time{}
	if g.room = 0; in == 0 || bulk {
		g.room = g.Slices.Room(now) - in
	}
}

// Left is how many more queries fit the batch.
func (g *Gate) Left() int { return g.most - g.in }

// Allow says how many queries of a flow may leave now. A batch is of bulk or of the others. Bulk has the room of its slice; with none, the end of the bulk batch that is
// out tells. Users have what their quotas leave: of what waits, bulk alone is bounded by its rate here, since all others were refused.
func (g *Gate) Allow(f Flow) int {
	bulk, n := f.Class == wire.ClassBulk, g.most
	if bulk {
		n = g.room
	}
	if g.in > 0 && g.bulk != bulk || n <= 0 {
		return 0
	}
	if f.Class == wire.ClassDirect || !g.Quotas.Bounded(f.User) {
		return n
	}
	if n = min(n, g.Quotas.Room(f.User)); n <= 0 {
		return g.later(retry)
	}
	if bulk && !g.Ending {
		left, wait := g.Quotas.Left(f.User, g.now)
		if n = min(n, left); n <= 0 {
			return g.later(max(wait, time.Millisecond))
		}
	}
	return n
}

// Took says that queries of a flow joined the batch.
func (g *Gate) Took(f Flow, n int) {
	g.in += n
	if g.bulk = f.Class == wire.ClassBulk; g.bulk {
		g.Quotas.Spend(f.User, n, g.now)
		g.room -= n
	}
}

func (g *Gate) later(wait time.Duration) int {
	if at := g.now.Add(wait); g.Wake.IsZero() || at.Before(g.Wake) {
		g.Wake = at
	}
	return 0
}

// Cost is what a query of so much estimated work costs its flow, in queries that only count matches.
func Cost(work time.Duration) float64 { return 1 + float64(work)/float64(costUnit) }

// costUnit is the work that costs as much as being a query does.
const costUnit = 100 * time.Microsecond
