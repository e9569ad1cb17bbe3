package run

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
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
	if err := c.Run(context.Background(), 10, func(s *Shift, _ int) { s.Spend(2 * quantum) }); err != nil || len(c.seats) != 2 {
		t.Errorf("afterwards: %v, %d seats", err, len(c.seats))
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
