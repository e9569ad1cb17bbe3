package workload

import (
	"runtime"
	"sync"
)

// parallel runs work over [0, n) in contiguous pieces on all cores.
func parallel(n int, work func(lo, hi int)) {
	pieces := min(n, 4*runtime.GOMAXPROCS(0))
	var group sync.WaitGroup
	for p := range pieces {
		group.Go(func() { work(n*p/pieces, n*(p+1)/pieces) })
	}
	group.Wait()
}
