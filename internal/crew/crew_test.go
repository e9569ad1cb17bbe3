package crew_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/geniemq/geniemq/internal/crew"
)

// Everything that is given is done, by no more than there may be, and then there is nobody.
func TestCrew(t *testing.T) {
	before := runtime.NumGoroutine()
	const most, givers, each = 3, 4, 20_000
	var at, highest, sum atomic.Int64
	c := crew.New(2, most, func(n int) {
		for now := at.Add(1); ; {
			if was := highest.Load(); now <= was || highest.CompareAndSwap(was, now) {
				break
			}
		}
		if n%7 == 0 {
			runtime.Gosched()
		}
		sum.Add(int64(n))
		at.Add(-1)
	})
	var giving sync.WaitGroup
	for giver := range givers {
		giving.Go(func() {
			for n := 1; n <= each; n++ {
				switch giver {
				case 0:
					c.Put(n)
				case 1:
					for !c.Offer(n) {
						runtime.Gosched()
					}
				default:
					if !c.Give(t.Context(), n) {
						t.Error("not given")
					}
				}
			}
		})
	}
	giving.Wait()
	c.Drain()
	if want := int64(givers) * each * (each + 1) / 2; sum.Load() != want {
		t.Errorf("what was done sums up to %d, what was given to %d", sum.Load(), want)
	}
	if highest.Load() > most {
		t.Errorf("%d worked at a time", highest.Load())
	}
	for runtime.NumGoroutine() > before { // the last one has said that it ends
		runtime.Gosched()
	}
}

// Who gives waits for room and for nothing else, and no longer than it wants to.
func TestRoom(t *testing.T) {
	release := make(chan struct{})
	c := crew.New(1, 1, func(int) { <-release })
	c.Put(1)
	c.Put(2) // when the first is being done
	if c.Offer(3) || c.Waiting() != 1 {
		t.Errorf("there was room for more than one, %d wait", c.Waiting())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c.Give(ctx, 3) {
		t.Error("given after the end")
	}
	if c.Help(func() { t.Error("there was nobody to help") }) {
		t.Error("somebody helps who is at work")
	}
	close(release)
	c.Drain()
}

// Those who help do what waits when they have helped.
func TestHelp(t *testing.T) {
	helping, release := make(chan struct{}), make(chan struct{})
	var done atomic.Int64
	c := crew.New(4, 1, func(int) { done.Add(1) })
	if !c.Help(func() { close(helping); <-release }) {
		t.Fatal("nobody helps")
	}
	<-helping
	for n := range 4 {
		c.Put(n)
	}
	if done.Load() != 0 {
		t.Error("something was done meanwhile")
	}
	close(release)
	c.Drain()
	if done.Load() != 4 {
		t.Errorf("%d of 4 were done", done.Load())
	}
}
