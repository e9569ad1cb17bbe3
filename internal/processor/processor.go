// Package processor tells how long a processor worked for a piece of work, which is not how long it took: on a busy machine that is mostly waiting.
package processor

import (
	"runtime"
	"time"
)

// Time does some work on the caller's goroutine, and returns how long the processor worked for it; 0 where the system does not tell. While the goroutine waits, in the work or for a
// core, nothing is counted, nor what other goroutines do for it.
func Time(work func()) time.Duration {
	runtime.LockOSThread() // the clock is the thread's
	defer runtime.UnlockOSThread()
	before := thread()
	work()
	return thread() - before
}
