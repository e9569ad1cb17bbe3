package turns

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// lane is one without a device.
type lane struct{ _ int }

// hostLanes is a pool of so many lanes without a device.
func hostLanes(n int) Pool[*lane] {
	p := New[*lane](n)
	for range n {
		p.Free <- new(lane)
	}
	return p
}

// TestPoolTurns: batches on streamed indexes hold one lane however many they are, the others are free for indexes that stay,
// and a batch that waits for its turn gives up when its context ends.
func TestPoolTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := hostLanes(2)
		ctx, cancel := context.WithCancelCause(context.Background())
		gone := errors.New("the caller has gone")
		var began, done, gaveUp int
		end := make(chan struct{})
		var mu sync.Mutex // of the numbers
		count := func(n *int) {
			mu.Lock()
			defer mu.Unlock()
			*n++
		}
		stream := func(ctx context.Context) {
			err := pool.With(ctx, true, func(*lane) error {
				count(&began)
				<-end
				return nil
			})
			if errors.Is(err, gone) {
				count(&gaveUp)
			} else if err == nil {
				count(&done)
			}
		}
		for range 5 {
			go stream(context.Background())
		}
		synctest.Wait()
		go stream(ctx) // the last to come, so it waits
		synctest.Wait()
		if began != 1 {
			t.Errorf("%d batches on streamed indexes have lanes", began)
		}
		stayed := 0
		for range 3 {
			go pool.With(context.Background(), false, func(*lane) error { count(&stayed); return nil })
		}
		synctest.Wait()
		if stayed != 3 {
			t.Errorf("%d of 3 batches on an index that stays have run beside batches that wait for their turn", stayed)
		}
		cancel(gone)
		synctest.Wait()
		if gaveUp != 1 || began != 1 {
			t.Errorf("%d of 1 batches whose caller has gone gave up waiting; %d have begun", gaveUp, began)
		}
		for i := range 5 {
			end <- struct{}{}
			synctest.Wait()
			if done != i+1 || began != min(i+2, 5) {
				t.Errorf("%d batches are done, %d have begun, after the end of %d", done, began, i+1)
			}
		}
	})
}

// TestPoolWaits: a batch that has its turn and waits for a lane gives the turn back when its context ends.
func TestPoolWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := hostLanes(1)
		busy := <-pool.Free
		gone := errors.New("the caller has gone")
		ctx, cancel := context.WithCancelCause(context.Background())
		var first, second error
		never := func(*lane) error { return errors.New("it got a lane") }
		go func() { first = pool.With(ctx, true, never) }()
		synctest.Wait()
		ran := false
		go func() { second = pool.With(context.Background(), true, func(*lane) error { ran = true; return nil }) }()
		synctest.Wait()
		cancel(gone)
		synctest.Wait()
		pool.Free <- busy
		synctest.Wait()
		if first != gone || second != nil || !ran || len(pool.Free) != 1 || len(pool.Turn) != 0 {
			t.Errorf("%v, %v, the second has run: %v; %d free lanes, %d turns", first, second, ran, len(pool.Free), len(pool.Turn))
		}
	})
}

// TestPoolMix: whatever comes in whatever order, and gives up when it likes, all calls return, a lane has one batch at a time,
// and batches on streamed indexes run one after the other.
func TestPoolMix(t *testing.T) {
	const lanes = 3
	rng := seeded.Rand(t)
	pool := hostLanes(lanes)
	var streaming, running, ran, gaveUp atomic.Int32
	var calls sync.WaitGroup
	for range 12 {
		rng := rand.New(rand.NewPCG(rng.Uint64(), 0))
		calls.Go(func() {
			for range 300 {
				ctx, cancel := context.WithCancel(context.Background())
				streamed := rng.IntN(2) == 0
				if rng.IntN(4) == 0 {
					go cancel()
				}
				err := pool.With(ctx, streamed, func(*lane) error {
					ran.Add(1)
					if n := running.Add(1); n > lanes {
						t.Errorf("%d batches on %d lanes", n, lanes)
					}
					if streamed && streaming.Add(1) > 1 {
						t.Error("two batches on streamed indexes at a time")
					}
					for range rng.IntN(3000) {
						_ = rng.Uint64()
					}
					if streamed {
						streaming.Add(-1)
					}
					running.Add(-1)
					return nil
				})
				if err != nil {
					gaveUp.Add(1)
				}
				cancel()
			}
		})
	}
	calls.Wait()
	if len(pool.Free) != lanes || len(pool.Turn) != 0 || ran.Load()+gaveUp.Load() != 12*300 {
		t.Errorf("%d free lanes, %d turns, %d batches ran, %d gave up", len(pool.Free), len(pool.Turn), ran.Load(), gaveUp.Load())
	}
}
