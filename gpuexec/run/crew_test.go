package run

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestCrewEach: every unit once, whatever the stretches.
func TestCrewEach(t *testing.T) {
	for _, workers := range []int{1, 3} {
		c := NewCrew(workers)
		for _, units := range []int{0, 1, 2, 7, 1000} {
			for _, work := range []int{0, 250_000, 1_000_000_000} {
				done := make([]atomic.Int32, units)
				if err := c.Each(context.Background(), units, work, func(i int) { done[i].Add(1) }); err != nil {
					t.Fatal(err)
				}
				for i := range done {
					if n := done[i].Load(); n != 1 {
						t.Fatalf("%d workers, %d units: unit %d was executed %d times", workers, units, i, n)
					}
				}
			}
		}
	}
}

// TestCrewEachOfNobody: nothing is done for a caller who has gone, however little it is.
func TestCrewEachOfNobody(t *testing.T) {
	gone := errors.New("gone")
	ctx, leave := context.WithCancelCause(context.Background())
	leave(gone)
	for _, work := range []int{0, 1_000_000_000} {
		if err := NewCrew(2).Each(ctx, 10, work, func(int) { t.Error("a unit was executed") }); !errors.Is(err, gone) {
			t.Errorf("work of %d ns ends with %v", work, err)
		}
	}
}

// TestPanicInUnit: a panic outside of any plan's work fails the call, not the process.
func TestPanicInUnit(t *testing.T) {
	c := NewCrew(2)
	err := c.Run(context.Background(), 10, func(_ *Shift, unit int) {
		if unit == 3 {
			panic("boom")
		}
	})
	var panicked *gpuexec.PanicError
	if !errors.As(err, &panicked) || panicked.Value != "boom" {
		t.Errorf("got %v", err)
	}
	if err := c.Run(context.Background(), 10, func(s *Shift, _ int) { s.Spend(2 * quantum) }); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	for len(c.seats) != 2 { // who came too late may have one for a moment
		runtime.Gosched()
	}
}

// TestNobodyIsWaitedForWithoutASeat: a call ends when its work is done, though goroutines of it have found no seat.
func TestNobodyIsWaitedForWithoutASeat(t *testing.T) {
	c := NewCrew(2)
	sits, end := make(chan struct{}), make(chan struct{})
	var other sync.WaitGroup
	other.Go(func() {
		_ = c.Run(context.Background(), 1, func(*Shift, int) {
			close(sits)
			<-end
		})
	})
	<-sits
	var done atomic.Int32
	if err := c.Run(context.Background(), 8, func(*Shift, int) { done.Add(1) }); err != nil || done.Load() != 8 {
		t.Errorf("%d units of 8 are done: %v", done.Load(), err)
	}
	close(end)
	other.Wait()
}

// TestAllUnitsAreDone: whatever is begun has ended when the call ends, by whomever, though most of the goroutines come too late.
func TestAllUnitsAreDone(t *testing.T) {
	rng := seeded.Rand(t)
	c := NewCrew(8)
	for range 2000 {
		done := make([]int, 1+rng.IntN(12)) // not atomic, for the race detector
		if err := c.Run(context.Background(), len(done), func(_ *Shift, unit int) { done[unit]++ }); err != nil {
			t.Fatal(err)
		}
		for i, n := range done {
			if n != 1 {
				t.Fatalf("unit %d of %d was executed %d times", i, len(done), n)
			}
		}
	}
}

// TestSeatsAreShared checks that a small call is served while a large one is under way: it waits for a quantum of
// the large one, not for its end.
func TestSeatsAreShared(t *testing.T) {
	c := NewCrew(1)
	started, smallDone := make(chan struct{}), make(chan struct{})
	var large sync.WaitGroup
	large.Go(func() {
		_ = c.Run(context.Background(), 1, func(s *Shift, _ int) {
			close(started)
			for {
				s.Spend(quantum)
				select {
				case <-smallDone:
					return
				default:
				}
			}
		})
	})
	<-started
	if err := c.Run(context.Background(), 1, func(*Shift, int) {}); err != nil {
		t.Error(err)
	}
	close(smallDone)
	large.Wait()
}
