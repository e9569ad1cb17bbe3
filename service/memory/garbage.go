package memory

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// usualPercent is GOGC where nobody has set it: a collection begins when there is as much garbage as memory that lives.
	usualPercent = 100
	// mostPercent bounds what comes of memory that lives all of a sudden, until the collection that finds it has been heard of.
	mostPercent = 1600
)

// Spare lets garbage of half the budget be before it is collected, or as much as lives if that is more, until ctx ends. A worker has little memory that lives and makes gigabytes
// of garbage per second. So by Go's defaults it collects many times per second, and queries wait some milliseconds each time (docs/benchmarks/history/2026-12-01-h200-spare.md).
// When all accounts are full there is as much garbage as there was by these defaults, so the process's bound stays what it was. Where GOGC is set to something else, that holds.
//
// The percentage is chosen anew after each collection, by what it found to live.
func (b *Budget) Spare(ctx context.Context) {
	if percent() != usualPercent {
		return
	}
	defer debug.SetGCPercent(usualPercent)
	collected, now := make(chan struct{}, 1), usualPercent
	for ctx.Err() == nil {
		tellOfCollection(collected)
		if next := percentFor(b.spare, living()); 8*next > 9*now || 9*next < 8*now { // to set it stops the world
			debug.SetGCPercent(next)
			now = next
		}
		select {
		case <-collected:
		case <-ctx.Done():
		}
	}
}

// percentFor is the percentage of living by which garbage is spare, or as much as lives.
func percentFor(spare, living int64) int {
	return int(min(max(spare*100/max(living, 1), usualPercent), mostPercent))
}

// tellOfCollection tells once that a collection has ended, some time after it.
func tellOfCollection(collected chan<- struct{}) {
	type sentinel struct{ _ *byte } // with a pointer: small values without are allocated together, and live as long as the last of them
	runtime.AddCleanup(new(sentinel), func(collected chan<- struct{}) { collected <- struct{}{} }, collected)
}

// living is what the last collection found to live, and what it looked for it in, by which the next is due.
func living() int64 {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(samples)
	sum := uint64(0)
	for _, s := range samples {
		sum += s.Value.Uint64()
	}
	return int64(sum)
}

// percent is GOGC as it is.
func percent() uint64 {
	samples := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64()
}
