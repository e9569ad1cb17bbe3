package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// ErrNotIndex is wrapped by the error of Open for a file that is no geniemq index at all.
var ErrNotIndex = errors.New("not a geniemq index")

// CorruptError reports a file that is no longer, or never was, what a Builder writes.
type CorruptError struct {
	Reason string
}

func (e *CorruptError) Error() string {
	return "index is damaged: " + e.Reason + "; build it again or restore a copy"
}

func Corrupt(format string, args ...any) error {
	return &CorruptError{Reason: fmt.Sprintf(format, args...)}
}

// UnsupportedError reports a sound file that needs a newer geniemq.
type UnsupportedError struct {
	Needs string
}

func (e *UnsupportedError) Error() string {
	return "index needs " + e.Needs + "; open it with a newer geniemq or build it again"
}

func Unsupported(format string, args ...any) error {
	return &UnsupportedError{Needs: fmt.Sprintf(format, args...)}
}

// Faults collects what is wrong with an index from several goroutines, and keeps the first ten.
type Faults struct {
	mu       sync.Mutex
	faults   int
	reported []error // the first ten
}

// Add adds a fault, unless it is nil.
func (f *Faults) Add(err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.faults++; f.faults <= 10 {
		f.reported = append(f.reported, err)
	}
}

// Parallel checks n things on all cores.
func (f *Faults) Parallel(n int, check func(i int) error) {
	f.Workers(n, func(next func() (int, bool)) {
		for i, ok := next(); ok; i, ok = next() {
			f.Add(check(i))
		}
	})
}

// Workers runs work on all cores; each takes the numbers below n that come next.
func (f *Faults) Workers(n int, work func(next func() (int, bool))) {
	var taken atomic.Int64
	var group sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		group.Go(func() {
			work(func() (int, bool) {
				i := int(taken.Add(1)) - 1
				return i, i < n
			})
		})
	}
	group.Wait()
}

// Any says whether there are faults.
func (f *Faults) Any() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.faults > 0
}

// Err returns the faults, joined, and how many more there are.
func (f *Faults) Err() error {
	if more := f.faults - len(f.reported); more > 0 {
		f.reported = append(f.reported, Corrupt("%d more faults", more))
	}
	return errors.Join(f.reported...)
}

// Verify compares all checksums once more and checks that the padding between sections is zero. It returns all faults, up to ten, each a
// *CorruptError.
func (f *File) Verify(ctx context.Context) error {
	var faults Faults
	faults.Add(f.checkPadding())
	for i := range f.sections {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		faults.Add(f.check(i))
	}
	return faults.Err()
}

func (f *File) checkPadding() error {
	end := headerBytes + int64(len(f.sections))*entryBytes
	for i := range f.sections {
		s := &f.sections[i]
		for _, b := range f.data[end:s.Offset] {
			if b != 0 {
				return Corrupt("the padding before section %d (%v) is not zero", i, s.Name)
			}
		}
		end = s.Offset + s.Length
	}
	if int64(len(f.data)) != Align(end) || len(bytes.Trim(f.data[end:], "\x00")) > 0 {
		return Corrupt("bytes follow the last section")
	}
	return nil
}
