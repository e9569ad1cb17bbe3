// Package spread does work on all cores whose parts do not depend on each other.
package spread

import (
	"context"
	"sync"
	"sync/atomic"
)

// Run calls work for 0 to n-1, each once, in any order, from so many goroutines at a time, which have ended when it returns. Each goroutine makes a
// worker of its own, which may keep what it works with. When the context is done the rest is left out, and its cause returned.
func Run(ctx context.Context, workers, n int, worker func() (work func(i int))) error {
	var next atomic.Int64
	run := func() {
		work := worker()
		for ctx.Err() == nil {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			work(i)
		}
	}
	var group sync.WaitGroup
	for range min(workers, n) - 1 {
		group.Go(run)
	}
	run()
	group.Wait()
	return context.Cause(ctx)
}
