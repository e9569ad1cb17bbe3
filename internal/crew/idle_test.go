package crew

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// Members wait for more work, and end when none comes for a while.
func TestIdle(t *testing.T) {
	before := runtime.NumGoroutine()
	gate := make(chan struct{})
	c := New(4, 3, func(int) { <-gate })
	c.idle = time.Millisecond
	for n := range 3 {
		c.Put(n)
	}
	if n := c.members.Load(); n != 3 {
		t.Errorf("%d members for three pieces of work", n)
	}
	close(gate)
	for c.members.Load() > 0 || runtime.NumGoroutine() > before { // the last one has said that it ends
		runtime.Gosched()
	}
	for c.mu.Lock(); c.looks != nil; c.mu.Lock() { // and then nobody looks
		c.mu.Unlock()
		runtime.Gosched()
	}
	c.mu.Unlock()
	c.Put(4)
	c.Drain()
}

// One goroutine does one piece after the other; those that follow each other have the same.
func TestMembersStay(t *testing.T) {
	var done atomic.Int64
	c := New(1, 8, func(int) { done.Add(1) })
	for n := range 1000 {
		c.Put(n)
		for c.work.Load() > 0 {
			runtime.Gosched()
		}
	}
	if n := c.members.Load(); n != 1 || done.Load() != 1000 {
		t.Errorf("%d members did %d pieces of work, one at a time", n, done.Load())
	}
	c.Drain()
}

// Members that leave all the time leave nothing undone.
func TestLeaving(t *testing.T) {
	var done atomic.Int64
	c := New(2, 2, func(int) { done.Add(1) })
	stop := make(chan struct{})
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		for {
			select {
			case <-stop:
				return
			case c.leave <- struct{}{}:
			}
		}
	}()
	for n := range 100_000 {
		c.Put(n)
		for tries := 0; done.Load() <= int64(n); tries++ {
			runtime.Gosched()
			if tries > 20_000_000 && len(c.queue) > 0 {
				t.Fatalf("nobody does piece %d", n)
			}
		}
	}
	close(stop)
	<-looked
	c.Drain()
}
