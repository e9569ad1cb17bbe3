package processor

import (
	"time"

	"golang.org/x/sys/unix"
)

// thread is how long processors have worked for this thread.
func thread() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
