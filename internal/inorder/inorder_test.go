package inorder

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// batch is a number on its way.
type batch struct{ number, square int }

func made() *batch { return new(batch) }

// TestOrder: whatever takes how long, results come in order, each once, from no more batches than there is room for.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		next, applied := 0, 0
		var working, most atomic.Int64
		err := Run(t.Context(), 4, 6, made, func(b *batch) (bool, error) {
			b.number = next
			next++
			return next == n, nil
		}, func(b *batch) error {
			most.Store(max(most.Load(), working.Add(1)))
			time.Sleep(time.Duration(b.number*7919%13) * time.Millisecond)
			b.square = b.number * b.number
			working.Add(-1)
			return nil
		}, func(b *batch) error {
			if b.number != applied || b.square != applied*applied {
				t.Errorf("%+v comes as number %d", b, applied)
			}
			applied++
			return nil
		})
		if err != nil || applied != n || most.Load() < 2 || most.Load() > 4 {
			t.Errorf("%d applied, at most %d at a time, %v", applied, most.Load(), err)
		}
	})
}

// TestErrors: the first error of any stage ends all, and what was before it is applied where it is the last stage's own.
func TestErrors(t *testing.T) {
	broken := errors.New("broken")
	fails := func(at, n int) error {
		if at == n {
			return broken
		}
		return nil
	}
	for stage := range 4 {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			next, applied := 0, 0
			when := [3]int{-1, -1, -1}
			if stage < 3 {
				when[stage] = 50
			}
			err := Run(ctx, 3, 5, made, func(b *batch) (bool, error) {
				b.number = next
				next++
				return false, fails(b.number, when[0])
			}, func(b *batch) error { return fails(b.number, when[1]) }, func(b *batch) error {
				applied++
				if stage == 3 && b.number == 50 {
					cancel(broken)
				}
				return fails(b.number, when[2])
			})
			if !errors.Is(err, broken) || applied > 60 || stage >= 2 && applied < 51 {
				t.Errorf("stage %d: %v after %d", stage, err, applied)
			}
		})
	}
}
