package run

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/internal/alarm"
)

// Crew is the host cores that an engine may use, shared by all its searchers and all concurrent calls. Work is
// split into units, and who executes one holds a seat, of which there are as many as cores. There are no
// standing goroutines: a call brings its own, and they end with it, so a crew needs no closing and nothing leaks; but for
// one that is to Hurry, whose alarm is released.
// A call ends when its work is done and not before, but does not wait for those of its goroutines that have not begun (gang):
// the runtime wakes one core after the other, some 40 microseconds each, unless there is an alarm, and others may have the seats.
//
// Fairness: goroutines wait for a seat in one queue, first come first served, and give theirs up after a quantum of
// work. So concurrent calls share the cores evenly, and a small call waits a quantum for each call before it, not
// until a large batch is done.
//
// Background calls (Pace) hold a share beside the seat while there are other calls, or were a moment ago. There are half as many
// shares as seats. So the others find a core at once, and, which matters as much, so does the runtime: it looks at the network
// only when a core has nothing to do, or every 10 ms.
type Crew struct {
	seats  chan int      // numbers of those that are free
	shares chan struct{} // has an element for each that is free

	alarm *alarm.Alarm // nil: cores are woken one by one

	present atomic.Int64 // calls that are not in the background
	left    atomic.Int64 // when the last one ended, Unix nanoseconds
}

// NewCrew makes a crew of size workers; 0 means runtime.GOMAXPROCS(0).
func NewCrew(size int) *Crew {
	if size <= 0 {
		size = runtime.GOMAXPROCS(0)
	}
	c := &Crew{seats: make(chan int, size), shares: make(chan struct{}, max(1, size/2))}
	for seat := range size {
		c.seats <- seat
	}
	for range cap(c.shares) {
		c.shares <- struct{}{}
	}
	return c
}

// Hurry has calls that want many idle cores wake them all at once. It goes before the first call; release comes after the last.
func (c *Crew) Hurry() (release func() error) {
	if cores := min(c.Size(), runtime.GOMAXPROCS(0)); cores > fewCores {
		c.alarm = alarm.New(cores - 1)
	}
	return c.alarm.Close
}

// fewCores are woken one by one as soon as an alarm would.
const fewCores = 3

// enter and leave tell of a call that is not in the background.
func (c *Crew) enter() { c.present.Add(1) }
func (c *Crew) leave() {
	c.left.Store(time.Now().UnixNano())
	c.present.Add(-1)
}

// presence is for how long after the last one other calls count as present: who asks once a second, say, should not find all
// cores taken each time.
const presence = time.Second

// alone is for how long the background has not had the cores to itself: 0 or less when it has them.
func (c *Crew) alone() time.Duration {
	if c.present.Load() > 0 {
		return presence
	}
	return presence - time.Since(time.Unix(0, c.left.Load()))
}

func (c *Crew) Size() int { return cap(c.seats) }

// quantum is the work between two offers of the seat, in postings or in other units of about half a nanosecond:
// 1 to 2 ms.
const quantum = 3 << 20

// Shift is a goroutine's turn on a seat. Seats are numbered from 0, so that an engine may keep memory for each, which
// one goroutine at a time uses.
type Shift struct {
	Seat       int // noSeat while it waits
	crew       *Crew
	background bool
	share      bool // is held
	spent      int
}

const noSeat = -1

// sit waits for a seat. It is false when ctx, if there is one, ends before, or over is closed.
func (s *Shift) sit(ctx context.Context, over <-chan struct{}) bool {
	var ended <-chan struct{}
	if ctx != nil {
		ended = ctx.Done()
	}
	for s.background && !s.share {
		wait := s.crew.alone()
		if wait <= 0 {
			break
		}
		select {
		case <-s.crew.shares:
			s.share = true
		case <-time.After(wait):
		case <-over:
			s.stand()
			return false
		case <-ended:
		}
		if ctx != nil && ctx.Err() != nil {
			s.stand()
			return false
		}
	}
	select {
	case s.Seat = <-s.crew.seats:
		return true
	case <-over:
	case <-ended:
	}
	s.stand()
	return false
}

// stand gives the seat up, and the share.
func (s *Shift) stand() {
	if s.Seat != noSeat {
		s.crew.seats <- s.Seat
		s.Seat = noSeat
	}
	if s.share {
		s.share = false
		s.crew.shares <- struct{}{}
	}
}

// Due is true when spend will offer the seat.
func (s *Shift) Due(work int) bool { return s.spent+work >= quantum }

// Spend accounts for work and lets others have the seat once a quantum is spent; the seat may be another one
// afterwards.
func (s *Shift) Spend(work int) {
	if s.spent += work; s.spent < quantum {
		return
	}
	s.spent = 0
	if s.background {
		s.stand()
		s.sit(context.Background(), nil) // there will be one
		return
	}
	s.crew.seats <- s.Seat
	s.Seat = <-s.crew.seats
}

// Run executes work for the units 0 to units-1, on as many cores as are free, and returns when all are done. When
// ctx ends no further unit is begun, and the result is the cause. Units end early in that case only if they
// look at ctx themselves. A panic in a unit ends the run with a *PanicError; where a unit is not one plan's work, what
// belongs to a plan should be protected on its own.
func (c *Crew) Run(ctx context.Context, units int, work func(s *Shift, unit int)) error {
	return c.runOn(ctx, c.Size(), units, work)
}

// runOn is Run on at most so many cores.
func (c *Crew) runOn(ctx context.Context, cores, units int, work func(s *Shift, unit int)) error {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	pace := gpuexec.PaceOf(ctx)
	if pace.Cores > 0 {
		cores = min(cores, pace.Cores)
	}
	g := gang{over: make(chan struct{}), left: make(chan struct{})}
	worker := func() {
		s := Shift{Seat: noSeat, crew: c, background: pace.Background}
		if !s.sit(ctx, g.over) {
			return
		}
		if !g.begin() {
			s.stand()
			return
		}
		defer func() {
			s.stand()
			g.leave()
		}()
		for failed.Load() == nil && ctx.Err() == nil {
			unit := int(next.Add(1)) - 1
			if unit >= units {
				break
			}
			if err := Protect(func() { work(&s, unit) }); err != nil {
				first := err // err itself would be allocated for every unit
				failed.CompareAndSwap(nil, &first)
			}
		}
		g.end()
	}
	helpers := min(units, cores, c.Size()) - 1
	for range helpers {
		go worker()
	}
	if helpers >= fewCores && len(c.seats) > c.Size()/2 { // who has a seat is awake
		c.alarm.Ring()
	}
	if units > 0 {
		worker()
	}
	g.end()
	<-g.left
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// A gang is the goroutines of one call, of which nobody begins any longer once there is nothing left to begin: whoever comes then goes, and is not waited for.
type gang struct {
	work atomic.Int64  // how many are at work, and gangEnded when nobody begins any longer
	over chan struct{} // closed when nobody begins any longer
	left chan struct{} // closed when nobody is at work any longer, either
}

// gangEnded is more than there are goroutines.
const gangEnded = 1 << 32

// begin is false when it is too late.
func (g *gang) begin() bool {
	for {
		n := g.work.Load()
		if n >= gangEnded {
			return false
		}
		if g.work.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// leave ends what begin has begun.
func (g *gang) leave() {
	if g.work.Add(-1) == gangEnded {
		close(g.left)
	}
}

// end lets nobody begin any longer.
func (g *gang) end() {
	for {
		n := g.work.Load()
		if n >= gangEnded {
			return
		}
		if g.work.CompareAndSwap(n, n+gangEnded) {
			close(g.over)
			if n == 0 {
				close(g.left)
			}
			return
		}
	}
}

// Each executes work for the units 0 to units-1, which together take about so many nanoseconds, on as many cores as are worth waking. So
// little work stays on this goroutine; of a caller who has gone nothing is done. Units are dealt in stretches, some for each core: cores wake one after the other and have other work, so equal
// shares would end with the last to come.
func (c *Crew) Each(ctx context.Context, units, nanoseconds int, work func(unit int)) error {
	return c.EachShift(ctx, units, nanoseconds, func(_ *Shift, unit int) { work(unit) })
}

// EachShift is Each for work that may give up its seat. The shift is nil where it has none, since all stays on this goroutine.
func (c *Crew) EachShift(ctx context.Context, units, nanoseconds int, work func(s *Shift, unit int)) error {
	const (
		worth = 25_000 // nanoseconds that a core is woken for
		deal  = 4      // stretches for each core
	)
	cores := min(units, nanoseconds/worth, c.Size())
	if cores < 2 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return Protect(func() {
			for i := range units {
				work(nil, i)
			}
		})
	}
	stretches := min(units, deal*cores)
	return c.runOn(ctx, cores, stretches, func(s *Shift, stretch int) {
		for i := units * stretch / stretches; i < units*(stretch+1)/stretches; i++ {
			work(s, i)
		}
	})
}

// Splits returns into how many ranges of tiles the work of jobs is split: one when the jobs alone keep
// the workers busy to the end.
func Splits(jobs, tiles, workers int) int {
	const unitsPerWorker = 4 // so that workers end at about the same time
	if workers == 1 || jobs >= unitsPerWorker*workers {
		return 1
	}
	return max(1, min(tiles, (unitsPerWorker*workers+jobs-1)/jobs))
}
