// Package crew is goroutines that are there while there is something to do.
package crew

import (
	"context"
	"sync"
	"sync/atomic"
)

// Crew does what it is given, in the order in which it is given, on so many goroutines at most. Where nothing is to be done it has none: the first
// piece of work starts one, each further piece another one up to the most, and who finds nothing left to do ends. To start a goroutine takes no
// longer than to wake one that waits, so a crew costs what as many goroutines that wait for a channel cost, and nothing while it is idle.
//
// What is given waits in a queue of bounded length, which is the only thing that whoever gives ever waits for. Nothing that was given is left: a
// member leaves by saying so first and looking at the queue once more then, and whoever gives looks for members after the queue has it.
//
// The goroutines are the crew's. Drain returns when they have ended.
type Crew[T any] struct {
	do      func(T)
	queue   chan T
	most    int32
	members atomic.Int32
	all     sync.WaitGroup // the members
}

// New makes a crew of at most so many goroutines that call do. So many pieces of work, at least one, may wait for them.
func New[T any](room, most int, do func(T)) *Crew[T] {
	return &Crew[T]{do: do, queue: make(chan T, max(1, room)), most: int32(most)}
}

// Offer gives the crew a piece of work if there is room.
func (c *Crew[T]) Offer(work T) bool {
	select {
	case c.queue <- work:
		c.call(nil)
		return true
	default:
		return false
	}
}

// Give waits for room. It is false, and the work is not given, when ctx ends before.
func (c *Crew[T]) Give(ctx context.Context, work T) bool {
	select {
	case c.queue <- work:
		c.call(nil)
		return true
	case <-ctx.Done():
		return false
	}
}

// Put waits for room however long it takes.
func (c *Crew[T]) Put(work T) {
	c.queue <- work
	c.call(nil)
}

// Waiting is how many pieces of work nobody has begun.
func (c *Crew[T]) Waiting() int { return len(c.queue) }

// Help has somebody do something else who has nothing to do. It is false where all are at work. It is called by members, or before Drain.
func (c *Crew[T]) Help(with func()) bool { return c.call(with) }

// Drain returns when everything that was given is done. Nothing is given any longer.
func (c *Crew[T]) Drain() { c.all.Wait() }

// call has one more join who does something first, if it is not nil, unless there are as many as there may be.
func (c *Crew[T]) call(first func()) bool {
	if !c.join() {
		return false
	}
	c.all.Go(func() {
		if first != nil {
			first()
		}
		c.work()
	})
	return true
}

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

// work works until nothing is left.
func (c *Crew[T]) work() {
	for {
		select {
		case work := <-c.queue:
			c.do(work)
			continue
		default:
		}
		c.members.Add(-1)
		if len(c.queue) == 0 || !c.join() { // else it came when there were enough, of whom this was one
			return
		}
	}
}
