//go:build cuda

package device

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestCUDAStreamedLeavesLanes: while more batches on a streamed index than there are lanes wait for their turn, an index that
// stays is searched, and a batch whose caller has gone ends. Then all are answered right.
func TestCUDAStreamedLeavesLanes(t *testing.T) {
	e := openDevice(t, gpuexec.CUDAOptions{InFlight: 2}).(*Engine)
	rng := seeded.Rand(t)
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

	e.lanes.Turn <- struct{}{} // the test's turn: it takes as long as the test likes
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
	<-e.lanes.Turn
	calls.Wait()
}
