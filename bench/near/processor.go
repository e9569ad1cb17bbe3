package near

import (
	"fmt"
	"syscall"
	"time"
)

// processor is what this process has taken of processors so far.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(fmt.Sprintf("asking for the time of the processor: %v", err)) // which cannot be
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
