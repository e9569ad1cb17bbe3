package processor

import (
	"runtime"
	"testing"
	"time"
)

// TestWaitingIsNoWork: what waits takes the processor no time, however long it is, and what works takes some.
func TestWaitingIsNoWork(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells")
	}
	const pause = 50 * time.Millisecond
	if took := Time(func() { time.Sleep(pause) }); took < 0 || took > pause/2 {
		t.Errorf("to sleep for %v took the processor %v", pause, took)
	}
	other := make(chan struct{})
	if took := Time(func() { // others work meanwhile
		go func() {
			defer close(other)
			work(pause)
		}()
		<-other
	}); took > pause/2 {
		t.Errorf("to wait for another goroutine's work of %v took the processor %v", pause, took)
	}
	if took := Time(func() { work(pause) }); took < pause/2 {
		t.Errorf("work of %v took the processor %v", pause, took)
	}
}

// work works until the thread has worked so long.
func work(until time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for before := thread(); thread()-before < until; {
	}
}
