//go:build cuda

package device

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/index/store"
)

// hostLanes is a pool of so many lanes without a device.
func hostLanes(n int) lanePool {
	p := newLanePool(n)
	for range n {
		p.free <- new(lane)
	}
	return p
}

// TestLanePoolTurns: batches on streamed indexes hold one lane however many they are, the others are free for indexes that stay,
// and a batch that waits for its turn gives up when its context ends.
func TestLanePoolTurns(t *testing.T) {
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
			err := pool.with(ctx, true, func(*lane) error {
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
			go pool.with(context.Background(), false, func(*lane) error { count(&stayed); return nil })
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

// TestLanePoolWaits: a batch that has its turn and waits for a lane gives the turn back when its context ends.
func TestLanePoolWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := hostLanes(1)
		busy := <-pool.free
		gone := errors.New("the caller has gone")
		ctx, cancel := context.WithCancelCause(context.Background())
		var first, second error
		never := func(*lane) error { return errors.New("it got a lane") }
		go func() { first = pool.with(ctx, true, never) }()
		synctest.Wait()
		ran := false
		go func() { second = pool.with(context.Background(), true, func(*lane) error { ran = true; return nil }) }()
		synctest.Wait()
		cancel(gone)
		synctest.Wait()
		pool.free <- busy
		synctest.Wait()
		if first != gone || second != nil || !ran || len(pool.free) != 1 || len(pool.turn) != 0 {
			t.Errorf("%v, %v, the second has run: %v; %d free lanes, %d turns", first, second, ran, len(pool.free), len(pool.turn))
		}
	})
}

// TestLanePoolMix: whatever comes in whatever order, and gives up when it likes, all calls return, a lane has one batch at a time,
// and batches on streamed indexes run one after the other.
func TestLanePoolMix(t *testing.T) {
	const lanes = 3
	rng := enginetest.NewRand(t)
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
				err := pool.with(ctx, streamed, func(*lane) error {
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
	if len(pool.free) != lanes || len(pool.turn) != 0 || ran.Load()+gaveUp.Load() != 12*300 {
		t.Errorf("%d free lanes, %d turns, %d batches ran, %d gave up", len(pool.free), len(pool.turn), ran.Load(), gaveUp.Load())
	}
}

// TestCUDAStreamedLeavesLanes: while more batches on a streamed index than there are lanes wait for their turn, an index that
// stays is searched, and a batch whose caller has gone ends. Then all are answered right.
func TestCUDAStreamedLeavesLanes(t *testing.T) {
	e := openDevice(t, gpuexec.CUDAOptions{InFlight: 2}).(*Engine)
	rng := enginetest.NewRand(t)
	w := enginetest.RandomWorld(t, rng, 3*store.TileObjects)
	e.limits.PartBytes = partBytesOf(t, w.Index)
	streamed := onDevice(enginetest.LoadOn(t, e, w.Index))
	defer streamed.Close()
	e.limits.PartBytes = 0
	stays := onDevice(enginetest.LoadOn(t, e, w.Index))
	defer stays.Close()
	if !streamed.resident.Streamed || len(streamed.resident.Parts) < 2 || stays.resident.Streamed {
		t.Fatalf("%d parts; one index should be streamed, the other not", len(streamed.resident.Parts))
	}
	var plans []gpuexec.Plan
	for len(plans) < 40 {
		p := w.RandomPlan(rng)
		p.K = min(p.K, 1000)
		plans = append(plans, p)
	}
	want := enginetest.Search(t, stays, plans)

	e.lanes.turn <- struct{}{} // the test's turn: it takes as long as the test likes
	ctx, cancel := context.WithCancelCause(context.Background())
	gone := errors.New("the caller has gone")
	gaveUp := make(chan error, 1)
	go func() { gaveUp <- streamed.Search(ctx, plans, make([]gpuexec.Answer, len(plans)), nil) }()
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() {
			got := make([]gpuexec.Answer, len(plans))
			if err := streamed.Search(context.Background(), plans, got, nil); err != nil {
				t.Error(err)
				return
			}
			for i := range got {
				if !enginetest.SameHits(&got[i], &want[i]) {
					t.Errorf("plan %d: %s", i, difference(&got[i], &want[i]))
				}
			}
		})
	}
	for range scaled(200) { // long enough for all of them to wait
		for i, got := range enginetest.Search(t, stays, plans) {
			if !enginetest.SameHits(&got, &want[i]) {
				t.Fatalf("plan %d: %s", i, difference(&got, &want[i]))
			}
		}
	}
	cancel(gone)
	if err := <-gaveUp; !errors.Is(err, gone) {
		t.Errorf("a batch whose caller has gone returned %v", err)
	}
	<-e.lanes.turn
	calls.Wait()
}
