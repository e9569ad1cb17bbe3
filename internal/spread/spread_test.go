package spread

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

// Each part is done once, by any number of goroutines, by workers that belong to one goroutine.
func TestRunDoesEachPartOnce(t *testing.T) {
	for _, workers := range []int{-1, 0, 1, 2, 7, 100} {
		for _, n := range []int{0, 1, 2, 50} {
			done, made := make([]atomic.Int32, n), atomic.Int32{}
			err := Run(t.Context(), workers, n, func() func(int) {
				made.Add(1)
				return func(i int) { done[i].Add(1) }
			})
			if err != nil {
				t.Fatal(err)
			}
			if most := max(1, min(workers, n)); int(made.Load()) != most {
				t.Errorf("%d goroutines for %d parts: %d workers, not %d", workers, n, made.Load(), most)
			}
			for i := range done {
				if done[i].Load() != 1 {
					t.Errorf("%d goroutines: part %d of %d was done %d times", workers, i, n, done[i].Load())
				}
			}
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why, done := errors.New("enough"), atomic.Int32{}
	err := Run(ctx, 1, 1000, func() func(int) {
		return func(i int) {
			if done.Add(1); i == 10 {
				cancel(why)
			}
		}
	})
	if !errors.Is(err, why) || done.Load() != 11 {
		t.Errorf("%d parts were done, and the error is %v", done.Load(), err)
	}
}
