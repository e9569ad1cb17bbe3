package memory

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// TestPercentFor: garbage is as much as is spare, or as lives, and never without bound.
func TestPercentFor(t *testing.T) {
	for _, c := range []struct {
		spare, living int64
		want          int
	}{{0, 1 << 20, 100}, {512 << 20, 256 << 20, 200}, {512 << 20, 512 << 20, 100}, {512 << 20, 4 << 30, 100}, {512 << 20, 1 << 20, 1600}, {1 << 40, 0, 1600}} {
		if got := percentFor(c.spare, c.living); got != c.want {
			t.Errorf("spare %d, living %d: %d %%, not %d", c.spare, c.living, got, c.want)
		}
	}
}

// TestSpare: the percentage follows what lives, collection by collection, and is what it was afterwards.
func TestSpare(t *testing.T) {
	if os.Getenv("GOGC") != "" {
		defer debug.SetGCPercent(debug.SetGCPercent(usualPercent))
	}
	b := NewBudget(1 << 30)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.Spare(ctx)
	}()
	within := func(what string, least, most uint64) {
		t.Helper()
		for percent() < least || percent() > most {
			runtime.GC() // which tells the one that follows
			time.Sleep(time.Millisecond)
		}
		t.Logf("%s: %d %%", what, percent())
	}
	within("little lives", 1000, 1600)
	ballast := make([]byte, 256<<20)
	within("256 MiB and more live", 120, 210)
	runtime.KeepAlive(ballast)
	within("little lives again", 1000, 1600)
	more := make([]byte, 600<<20)
	within("more lives than is spare", 100, 100)
	runtime.KeepAlive(more)
	cancel()
	<-ended
	if percent() != usualPercent {
		t.Errorf("%d %% afterwards", percent())
	}
}

// TestSpareAsSet: who has set GOGC decides.
func TestSpareAsSet(t *testing.T) {
	for _, set := range []int{50, 400, -1} {
		before := debug.SetGCPercent(set)
		NewBudget(1 << 30).Spare(t.Context())
		if now := debug.SetGCPercent(before); now != set {
			t.Errorf("%d %% was set, and now it is %d", set, now)
		}
	}
}
