//go:build ignore && linux

// Measures what it takes until all cores work: one goroutine gives others some work each, again and again, and waits until it is done.
//
//	go run docs/benchmarks/waking.go [-cores 16] [-rounds 300]
//
// For each way to wake and each rest between two rounds it prints, in microseconds, medians of the rounds: by how much a round took longer than the work of one, when the last one
// began, and how long the giver itself was busy with waking.
package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"log"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// way wakes the others, each of which calls work once, and returns when they have been told.
type way struct {
	name string
	make func(others int, work func()) (wake func(), end func())
}

var ways = []way{
	{"goroutines made anew", func(others int, work func()) (func(), func()) {
		return func() {
			for range others {
				go work()
			}
		}, func() {}
	}},
	{"that sleep on a condition", func(others int, work func()) (func(), func()) {
		var mu sync.Mutex
		cond, round, ended := sync.NewCond(&mu), 0, false
		for range others {
			go func() {
				for seen := 0; ; {
					mu.Lock()
					for round == seen && !ended {
						cond.Wait()
					}
					last := ended
					seen = round
					mu.Unlock()
					if last {
						return
					}
					work()
				}
			}()
		}
		tell := func(end bool) {
			mu.Lock()
			round, ended = round+1, end
			mu.Unlock()
			cond.Broadcast()
		}
		return func() { tell(false) }, func() { tell(true) }
	}},
	{"that sleep in the kernel, on one futex", func(others int, work func()) (func(), func()) {
		var round atomic.Uint32
		end := stay(others, work, func(seen uint32) uint32 {
			for round.Load() == seen {
				futex(&round, waitPrivate, seen)
			}
			return round.Load()
		})
		wake := func() { round.Add(1); futex(&round, wakePrivate, uint32(others)) }
		return wake, func() { end.Store(true); wake() }
	}},
	{"the same, woken by four of them", func(others int, work func()) (func(), func()) {
		const group = 4
		rounds := make([]struct {
			atomic.Uint32
			_ [60]byte
		}, (others+group-1)/group)
		var ended atomic.Bool
		for i := range others {
			mine := &rounds[i/group].Uint32
			go func() {
				for seen := uint32(0); ; {
					for mine.Load() == seen {
						futex(mine, waitPrivate, seen)
					}
					seen = mine.Load()
					futex(mine, wakePrivate, group) // those who are awake hear nothing of it
					if ended.Load() {
						return
					}
					work()
				}
			}()
		}
		wake := func() {
			for i := range rounds {
				rounds[i].Add(1)
				futex(&rounds[i].Uint32, wakePrivate, 1)
			}
		}
		return wake, func() {
			ended.Store(true)
			for i := range rounds {
				rounds[i].Add(1)
				futex(&rounds[i].Uint32, wakePrivate, group)
			}
		}
	}},
	{"that read copies of one eventfd", func(others int, work func()) (func(), func()) {
		return copies(others, work)
	}},
	{"made anew, and cores are woken by others that do nothing but read copies of one eventfd", func(others int, work func()) (func(), func()) {
		ring, end := copies(others, func() {})
		return func() {
			for range others {
				go work()
			}
			ring()
		}, end
	}},
	{"that spin", func(others int, work func()) (func(), func()) {
		var round atomic.Uint32
		end := stay(others, work, func(seen uint32) uint32 {
			for round.Load() == seen {
			}
			return round.Load()
		})
		return func() { round.Add(1) }, func() { end.Store(true); round.Add(1) }
	}},
}

// copies starts others that work once for each round. Copies of an eventfd become readable all at once, and what the poller finds at once the runtime starts at once, a thread for each.
func copies(others int, work func()) (wake, end func()) {
	const semaphore = 1
	fd, _, errno := syscall.Syscall(syscall.SYS_EVENTFD2, 0, semaphore|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		log.Fatalf("making an eventfd: %v", errno)
	}
	var files []*os.File
	for range others {
		copied, err := syscall.Dup(int(fd))
		if err != nil {
			log.Fatalf("copying an eventfd: %v", err)
		}
		f := os.NewFile(uintptr(copied), "eventfd")
		files = append(files, f)
		go func() {
			for buf := make([]byte, 8); ; {
				if _, err := f.Read(buf); err != nil {
					return
				}
				work()
			}
		}()
	}
	add := binary.NativeEndian.AppendUint64(nil, uint64(others))
	return func() {
			if _, err := syscall.Write(int(fd), add); err != nil {
				log.Fatalf("writing to an eventfd: %v", err)
			}
		}, func() {
			for _, f := range files {
				f.Close()
			}
			syscall.Close(int(fd))
		}
}

// stay starts others that work once for each round that they see, until end is true.
func stay(others int, work func(), next func(seen uint32) uint32) (end *atomic.Bool) {
	end = new(atomic.Bool)
	for range others {
		go func() {
			for seen := next(0); !end.Load(); seen = next(seen) {
				work()
			}
		}()
	}
	return end
}

const waitPrivate, wakePrivate = 128, 129 // FUTEX_WAIT and FUTEX_WAKE of one process

func futex(word *atomic.Uint32, op uintptr, value uint32) {
	syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), op, uintptr(value), 0, 0, 0)
}

func main() {
	cores := flag.Int("cores", runtime.GOMAXPROCS(0), "cores that work, the giver's with them")
	rounds := flag.Int("rounds", 300, "rounds of each")
	flag.Parse()
	for _, work := range []time.Duration{100 * time.Microsecond, 600 * time.Microsecond} {
		for _, rest := range []time.Duration{0, 300 * time.Microsecond, 3 * time.Millisecond} {
			for _, w := range ways {
				var took, last, giving []time.Duration
				var start time.Time
				var latest atomic.Int64
				var all sync.WaitGroup
				one := func() {
					began := time.Since(start)
					for old := latest.Load(); old < int64(began) && !latest.CompareAndSwap(old, int64(began)); old = latest.Load() {
					}
					for time.Since(start)-began < work {
					}
					all.Done()
				}
				wake, end := w.make(*cores-1, one)
				for range *rounds {
					time.Sleep(rest)
					all.Add(*cores)
					latest.Store(0)
					start = time.Now()
					wake()
					giving = append(giving, time.Since(start))
					one()
					all.Wait()
					took, last = append(took, time.Since(start)-work), append(last, time.Duration(latest.Load()))
				}
				end()
				at := func(d []time.Duration, tenths int) float64 { slices.Sort(d); return float64(d[len(d)*tenths/10]) / 1e3 }
				fmt.Printf("work %v, rest %v, %s: longer by %.0f (p90 %.0f), the last began after %.0f, the giver gave for %.0f\n",
					work, rest, w.name, at(took, 5), at(took, 9), at(last, 5), at(giving, 5))
			}
		}
	}
}
