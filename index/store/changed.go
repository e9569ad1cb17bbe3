package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// ChangedError reports that an index file is, or may be, no longer what was opened.
type ChangedError struct {
	Path   string
	Reason string // what of the file is not as it was
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("the file %s was changed while it was open: %s", e.Path, e.Reason)
}

// Epoch numbers the times through which an open index's file was certainly what was opened. No epoch is 0.
type Epoch uint64

// A mappedFile is the file under an open index, and what is known of whether it still is what was opened.
//
// # The danger
//
// The mapping is not a copy. Whoever writes to the file (cp onto it, an editor, rsync --inplace) changes what the accessors
// return, under answers that are being made of it; whoever shortens it takes pages away, and reading them raises SIGBUS, which
// ends a Go process unless it asked for a panic. No check that comes before a read helps, since the write may come between.
//
// # What is promised
//
// An epoch is a time through which the file was what was opened. Whoever makes something of the mapping asks for the Epoch
// before the first read, and after the last read whether the file is Unchanged since: if so, every read in between saw what was
// opened. It is one system call, fstat, for everything that was read, which is why the service can afford it for each answer.
// It rests on three things:
//
//   - Who writes, shortens or maps for writing sets the times of the file (of which the second, ctime, cannot be set back)
//     before the first byte is different, so what has been read before the times were found as they were is sound.
//   - Times have a granularity. Bytes are therefore only compared once the times have been seen to be older than that
//     (settle, quiet): a write after the comparison began has another time.
//   - Where the times are found different, the epoch is over and no other begins before all bytes have been compared
//     with the checksum of what was opened (Reread), with the times the same before and after. What was read in the time between
//     belongs to no epoch, whatever the file holds by then.
//
// A changed ctime alone may be a link that was made or removed (by mv of a newer file over the name, which leaves this file as it
// is), or chmod. Where the numbers of these differ as well, the epoch goes on, and Unverified asks for the bytes to be
// compared all the same. The system sets the two one after the other, so one that differs alone is looked at again (whole).
//
// What times do not tell is left to a Patrol: pages that another process had mapped and dirtied before the file was opened,
// media that fail, and file systems of other machines, which tell of a change late.
type mappedFile struct {
	path string
	file *os.File
	data []byte
	sum  [sha256.Size]byte // of what was opened

	trust atomic.Pointer[trust] // nil while the file is in doubt

	mu         sync.Mutex
	last       Epoch
	unverified bool          // bytes are to be compared although the epoch goes on
	doubt      *ChangedError // why there is no trust
	// Of Reread, while the file is in doubt:
	seen      fileState // when it last looked
	seenFirst time.Time // and since when it has looked like that
	compared  bool      // the bytes in that state, which are others
	retry     time.Time // not before, because they could not be read
}

// trust is an epoch and how the file looks through it. It is replaced, never changed.
type trust struct {
	epoch Epoch
	state fileState
}

// fileState is what fstat says of a file that is of interest here.
type fileState struct {
	size              int64
	modified, changed int64 // Unix nanoseconds; changed is ctime, 0 where there is none
	// What changes ctime without the bytes.
	links, mode, owner uint64
}

const (
	// settle is more than the granularity of the times of a file, a tick of the system's clock: 10 ms at most.
	settle = 20 * time.Millisecond
	// coarseSettle is the same where times are whole seconds or pairs of them, as on FAT.
	coarseSettle = 2100 * time.Millisecond
	// quiet is how long a file must have looked the same before its bytes are compared: it is at least settle, and longer
	// because who writes a file writes again and again.
	quiet = 250 * time.Millisecond
	// retryAfter is after how long a file is tried again that could not be read.
	retryAfter = 5 * time.Second
)

// granularity is how old the times of a file must be before a write is certain to change them.
func (s *fileState) granularity() time.Duration {
	if s.modified%int64(time.Second) == 0 && s.changed%int64(time.Second) == 0 {
		return coarseSettle
	}
	return settle
}

// sameBytes says that what differs between two states can be told apart from writing: links, mode or owner are others,
// size and time of the last write are not.
func (s *fileState) sameBytes(other *fileState) bool {
	bytes := s.size == other.size && s.modified == other.modified
	inode := s.links != other.links || s.mode != other.mode || s.owner != other.owner
	return bytes && (inode || s.changed == other.changed)
}

// half says that of links, mode or owner on the one hand and ctime on the other only one differs. A system call that changes them both does
// so one after the other, and fstat may look in between.
func (s *fileState) half(other *fileState) bool {
	inode := s.links != other.links || s.mode != other.mode || s.owner != other.owner
	return inode != (s.changed != other.changed)
}

// whole is the state of a file that was in another one. A change that was seen by half is waited for: a newer file that is renamed over the name
// must not look like a write.
func whole(f *os.File, was *fileState) (fileState, error) {
	const pause = time.Millisecond
	for waited := time.Duration(0); ; waited += pause {
		now, err := stateOf(f)
		if err != nil || waited >= settle || !now.half(was) || now.modified != was.modified || now.size != was.size {
			return now, err
		}
		time.Sleep(pause)
	}
}

// difference says in words how s differs from what was.
func (s *fileState) difference(was *fileState) string {
	switch {
	case s.size != was.size:
		return fmt.Sprintf("it has %d bytes now and had %d", s.size, was.size)
	case s.modified != was.modified:
		return "it was written to at " + time.Unix(0, s.modified).Format(time.RFC3339Nano)
	}
	return "its inode was changed at " + time.Unix(0, s.changed).Format(time.RFC3339Nano)
}

// Epoch returns the present epoch, or 0 while the file is in doubt. It costs a load of a word.
func (f *File) Epoch() Epoch {
	if f.mapped == nil {
		return 1
	}
	if t := f.mapped.trust.Load(); t != nil {
		return t.epoch
	}
	return 0
}

// Unchanged returns nil if everything that was read of the index since an epoch was asked for is what was opened; else a
// *ChangedError, and what was made of it must not be used. It takes one system call. An index in memory is never changed.
func (f *File) Unchanged(since Epoch) error {
	w := f.mapped
	if w == nil {
		return nil
	}
	if t := w.trust.Load(); t != nil && t.epoch == since {
		if now, err := stateOf(w.file); err == nil && now == t.state && f.Epoch() == since {
			return nil
		}
	}
	return w.look(since)
}

// look is Unchanged where that is not plain.
func (w *mappedFile) look(since Epoch) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.trust.Load()
	if t == nil {
		return w.doubt
	}
	now, err := whole(w.file, &t.state)
	switch {
	case err != nil:
		return w.revoke("it cannot be looked at: " + err.Error())
	case now == t.state:
	case now.sameBytes(&t.state):
		w.unverified = true
		t = &trust{t.epoch, now}
		w.trust.Store(t)
	default:
		return w.revoke(now.difference(&t.state))
	}
	if t.epoch != since {
		return &ChangedError{w.path, "it was in doubt meanwhile"}
	}
	return nil
}

// revoke ends the epoch. w.mu is held.
func (w *mappedFile) revoke(reason string) error {
	w.trust.Store(nil)
	w.doubt = &ChangedError{w.path, reason}
	w.seen, w.compared, w.retry = fileState{}, false, time.Time{}
	return w.doubt
}

// distrust ends the epoch, if there is one, for a reason that the file's state does not tell.
func (f *File) distrust(reason string) error {
	w := f.mapped
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.trust.Load() == nil {
		return w.doubt
	}
	return w.revoke(reason)
}

// Unverified says that something happened to the file that does not change its bytes, but might have hidden what does: call Reread.
func (f *File) Unverified() bool {
	w := f.mapped
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unverified
}

// Path returns the name by which the file was opened, "" for an index in memory.
func (f *File) Path() string {
	if f.mapped == nil {
		return ""
	}
	return f.mapped.path
}

// Named says whether the file still is what its name stands for. A newer one that was renamed over it leaves it as it is.
func (f *File) Named() (bool, error) {
	if f.mapped == nil {
		return true, nil
	}
	own, err := f.mapped.file.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Stat(f.mapped.path)
	if err != nil {
		return false, err
	}
	return os.SameFile(own, named), nil
}

// Reread compares all bytes of the file with what was opened, about 1.5 GB per second. When they are the same, a file in
// doubt is trusted again, in a new epoch; else the error says why it is not: a *ChangedError, or that ctx ended. It is
// meant to be called again and again: it looks at the state of the file only, as long as that has just changed or is the one in
// which the bytes were others.
func (f *File) Reread(ctx context.Context) error {
	w := f.mapped
	if w == nil {
		return nil
	}
	before, err := stateOf(w.file)
	if err != nil {
		return f.distrust("it cannot be looked at: " + err.Error())
	}
	if err := w.due(&before); err != nil {
		return err
	}
	sum, err := w.hash(ctx, &before)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	after, lost := stateOf(w.file)
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.trust.Load()
	switch {
	case lost != nil || after != before:
		if t != nil {
			return nil // Unchanged decides what that means, and asks again
		}
		w.seen = fileState{} // begin anew
		return w.doubt
	case errors.Is(err, errUnreadable):
		err := w.revoke(err.Error())
		w.seen, w.retry = before, time.Now().Add(retryAfter)
		return err
	case sum != w.sum:
		reason := "its content is another"
		if t == nil { // the state tells more
			reason = w.doubt.Reason + ", and its content is another"
		}
		err := w.revoke(reason)
		w.seen, w.compared = before, true
		return err
	}
	w.unverified = false
	if t == nil {
		w.last++
		w.doubt = nil
		w.trust.Store(&trust{w.last, before})
	}
	return nil
}

// due says why the bytes are not to be compared now: a *ChangedError.
func (w *mappedFile) due(now *fileState) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.trust.Load() != nil {
		return nil
	}
	wait := max(quiet, now.granularity())
	switch {
	case *now != w.seen:
		w.seen, w.seenFirst, w.compared, w.retry = *now, time.Now(), false, time.Time{}
	case w.compared, time.Since(w.seenFirst) < wait, time.Now().Before(w.retry):
	case now.size == int64(len(w.data)):
		return nil
	}
	if now.size != int64(len(w.data)) {
		w.doubt = &ChangedError{w.path, fmt.Sprintf("it has %d bytes now and had %d", now.size, len(w.data))}
	}
	return w.doubt
}

// errUnreadable is what became of a fault in the mapping.
var errUnreadable = errors.New("it cannot be read: it was cut off, or its medium fails")

// hash computes the checksum of the mapping, as long as the file looks the same.
func (w *mappedFile) hash(ctx context.Context, state *fileState) (sum [sha256.Size]byte, err error) {
	const stride = 16 << 20
	h := sha256.New()
	err = catch(func() error {
		for rest := w.data; len(rest) > 0; {
			n := min(stride, len(rest))
			h.Write(rest[:n])
			rest = rest[n:]
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if now, err := stateOf(w.file); err != nil || now != *state {
				return errors.New("it is being changed")
			}
		}
		return nil
	})
	h.Sum(sum[:0])
	if p := (*panicked)(nil); errors.As(err, &p) {
		if !inside(w.data, p.value) {
			p.again()
		}
		err = errUnreadable
	}
	return sum, err
}

// Faulted says of a value that was recovered from a panic whether it was a read of the index's file that failed, which ends the epoch.
// Such reads panic on goroutines for which debug.SetPanicOnFault was called; on others they end the process.
func (f *File) Faulted(value any) bool {
	if f.mapped == nil || !inside(f.data, value) {
		return false
	}
	_ = f.distrust(errUnreadable.Error()) // which every reader is told
	return true
}

// Recover is to be deferred by who reads the index outside an engine, after a call of Epoch. It makes a panic a *ChangedError in
// *err when the file has been changed since, which may make any read fail; other panics go on.
func (f *File) Recover(since Epoch, err *error) {
	value := recover()
	if value == nil {
		return
	}
	f.Faulted(value)
	if changed := f.Unchanged(since); changed != nil {
		*err = changed
		return
	}
	panic(value)
}

// inside says whether a recovered value is of a fault in data, a mapping.
func inside(data []byte, value any) bool {
	fault, ok := value.(interface{ Addr() uintptr })
	if !ok || len(data) == 0 {
		return false
	}
	page := uintptr(os.Getpagesize())
	offset := fault.Addr() - uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	return offset < (uintptr(len(data))+page-1)/page*page
}

// panicked is a panic that catch has caught.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprint(p.value) }

// again panics once more.
func (p *panicked) again() { panic(fmt.Sprintf("%v\n\n%s", p.value, p.stack)) }

// catch calls read, which may read of a mapping what may not be there, and makes a panic an error.
func catch(read func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if value := recover(); value != nil {
			err = &panicked{value, debug.Stack()}
		}
	}()
	return read()
}

// settled returns the state of a file that nobody is writing to, so that any write from now on changes the state. It waits where the
// file was written a moment ago.
func settled(f *os.File) (fileState, error) {
	const most = 5 * time.Second
	for start := time.Now(); ; {
		state, err := stateOf(f)
		if err != nil {
			return state, err
		}
		wait := state.granularity()
		if time.Since(time.Unix(0, max(state.modified, state.changed))) >= wait {
			return state, nil
		}
		time.Sleep(wait)
		if now, err := stateOf(f); err != nil || now == state {
			return state, err
		}
		if time.Since(start) > most {
			return state, errors.New("it is being written: open it when it is complete")
		}
	}
}
