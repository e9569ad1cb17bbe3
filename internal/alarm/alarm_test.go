package alarm

import (
	"os"
	"runtime"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// TestRing: whoever rings is not kept, however often, by however many; and after Close nothing is left, and nobody is heard.
func TestRing(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	before := descriptors(t)
	a := New(5)
	if (a != nil) != (runtime.GOOS == "linux") {
		t.Fatalf("an alarm on %s: %v", runtime.GOOS, a)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 1000 {
				a.Ring()
			}
		})
	}
	all.Wait()
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	a.Ring()
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

// TestNone: an alarm for nobody is nil, and does nothing.
func TestNone(t *testing.T) {
	a := New(0)
	a.Ring()
	if err := a.Close(); a != nil || err != nil {
		t.Errorf("%v, %v", a, err)
	}
}

// descriptors counts those that are open: 0 where that is not told.
func descriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil && runtime.GOOS == "linux" {
		t.Fatal(err)
	}
	return len(entries)
}
