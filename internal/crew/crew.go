// Package crew is goroutines that are there while there is something to do.
package crew

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Crew does what it is given, in the order in which it is given, on so many goroutines at most. It has as many as it had to have at a time since it was idle last: whoever
// gives starts one more where there are fewer than pieces of work, and who finds nothing to do waits. They do not end at once, because a goroutine that
// begins has a small stack, and to copy that as it grows took longer than most of the work. Those that wait end after a moment in which nothing was given,
// so that an idle crew has none.
//
// What is given waits in a queue of bounded length, which is the only thing that whoever gives ever waits for. Nothing that was given is left: work is
// counted before members are, and a member that leaves says so first and counts the work then.
//
// The goroutines are the crew's. Drain returns when they have ended.
type Crew[T any] struct {
	do      func(T)
	queue   chan piece[T]
	most    int32
	work    atomic.Int32 // pieces that are given and not done
	members atomic.Int32
	all     sync.WaitGroup // the members
	leave   chan struct{}  // whoever waits leaves with what comes from it; closed by Drain

	used    atomic.Bool // something was given since the last look
	mu      sync.Mutex  // held to look, and to begin and end with that
	looks   *time.Timer // nil while nobody looks
	drained bool
	idle    time.Duration
}

// piece is a piece of work, or something else that somebody has to do.
type piece[T any] struct {
	work T
	with func()
}

// idleTime is after how long without work members end. It is long beside the gaps in traffic, and short beside what people call idle.
const idleTime = time.Second

// New makes a crew of at most so many goroutines that call do. So many pieces of work, at least one, may wait for them.
func New[T any](room, most int, do func(T)) *Crew[T] {
	return &Crew[T]{do: do, queue: make(chan piece[T], max(1, room)), most: int32(most), leave: make(chan struct{}), idle: idleTime}
}

// Offer gives the crew a piece of work if there is room.
func (c *Crew[T]) Offer(work T) bool {
	c.work.Add(1)
	return c.offer(piece[T]{work: work})
}

// offer puts a piece into the queue that is counted already, if there is room.
func (c *Crew[T]) offer(p piece[T]) bool {
	select {
	case c.queue <- p:
		c.given()
		return true
	default:
		c.work.Add(-1)
		return false
	}
}

// Give waits for room. It is false, and the work is not given, when ctx ends before.
func (c *Crew[T]) Give(ctx context.Context, work T) bool {
	c.work.Add(1)
	select {
	case c.queue <- piece[T]{work: work}:
		c.given()
		return true
	case <-ctx.Done():
		c.work.Add(-1)
		return false
	}
}

// Put waits for room however long it takes.
func (c *Crew[T]) Put(work T) {
	c.work.Add(1)
	c.queue <- piece[T]{work: work}
	c.given()
}

// Waiting is how many pieces of work nobody has begun.
func (c *Crew[T]) Waiting() int { return len(c.queue) }

// Help has somebody do something else who has nothing to do. It is false where all are at work. It is called by members, or before Drain.
func (c *Crew[T]) Help(with func()) bool {
	for {
		n := c.work.Load()
		if n >= c.most {
			return false
		}
		if c.work.CompareAndSwap(n, n+1) {
			return c.offer(piece[T]{with: with})
		}
	}
}

// Drain returns when everything that was given is done and the members have ended. Nothing is given any longer.
func (c *Crew[T]) Drain() {
	c.mu.Lock()
	if !c.drained {
		c.drained = true
		close(c.leave)
		if c.looks != nil {
			c.looks.Stop()
		}
	}
	c.mu.Unlock()
	c.all.Wait()
}

// given has one more join if there is more work than there are members.
func (c *Crew[T]) given() {
	if !c.used.Load() {
		c.used.Store(true)
	}
	if c.work.Load() > c.members.Load() && c.join() {
		c.all.Go(c.member)
		c.begin()
	}
}

// join counts one more member, unless there are as many as there may be.
func (c *Crew[T]) join() bool {
	for {
		n := c.members.Load()
		if n >= c.most {
			return false
		}
		if c.members.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// member works until it is to leave and nothing is left.
func (c *Crew[T]) member() {
	for {
		select {
		case p := <-c.queue:
			c.begun(p)
			continue
		default:
		}
		select {
		case p := <-c.queue:
			c.begun(p)
		case <-c.leave:
			c.members.Add(-1)
			if c.work.Load() <= c.members.Load() || !c.join() { // else it came when there were enough, of whom this was one
				return
			}
		}
	}
}

func (c *Crew[T]) begun(p piece[T]) {
	if p.with != nil {
		p.with()
	} else {
		c.do(p.work)
	}
	c.work.Add(-1)
}

// begin has somebody look after a while whether members are needed, if nobody does.
func (c *Crew[T]) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.looks == nil && !c.drained {
		c.looks = time.AfterFunc(c.idle, c.look)
	}
}

// look lets those end that wait where nothing was given since the last look.
func (c *Crew[T]) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.drained {
		return
	}
	for waits := !c.used.Swap(false); waits; {
		select {
		case c.leave <- struct{}{}:
		default:
			waits = false
		}
	}
	if c.looks = nil; c.members.Load() > 0 { // who joins later begins anew
		c.looks = time.AfterFunc(c.idle, c.look)
	}
}
