// Package alarm wakes sleeping cores, all at once.
//
// An Alarm has the Go runtime start the threads of sleeping cores at once, for goroutines that have just been made.
//
// Left to itself the runtime starts one thread for them, which starts the next when it has found work: some 40 microseconds each, so of sixteen
// cores the last begins 0.3 to 0.7 ms after the first. But what its network poller finds in one look it starts at once, a thread for
// each goroutine. So an alarm has goroutines that read copies of one descriptor, which become readable together. Their threads find the
// goroutines that were made, and of sixteen cores the last but one begins after 0.1 ms
// (docs/benchmarks/history/2026-12-01-h200-spare.md; docs/benchmarks/waking.go has other ways).
//
// It is for calls that occupy many cores for 0.1 ms or more: ringing costs the caller a write, and each core some microseconds. What is
// done, and by whom, never depends on it. Only Linux has such descriptors. Elsewhere, and where no more of them are to be had, an alarm is nil
// and silent.
package alarm
