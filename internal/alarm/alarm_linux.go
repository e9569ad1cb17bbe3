package alarm

import (
	"encoding/binary"
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Alarm is described in the package's essay. Its methods may be called concurrently.
type Alarm struct {
	bell     *os.File   // an eventfd
	sleepers []*os.File // copies of it, each of which is read by a goroutine
	asleep   sync.WaitGroup
}

// New makes an alarm that starts so many threads, of which nothing is left after Close.
func New(threads int) *Alarm {
	if threads <= 0 {
		return nil
	}
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil
	}
	a := &Alarm{bell: os.NewFile(uintptr(fd), "eventfd")}
	for range threads {
		copied, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			_ = a.Close()
			return nil
		}
		f := os.NewFile(uintptr(copied), "eventfd")
		a.sleepers = append(a.sleepers, f)
		a.asleep.Go(func() {
			for count := make([]byte, 8); ; {
				if _, err := f.Read(count); err != nil {
					return
				}
			}
		})
	}
	return a
}

// Ring starts threads, those of cores that have nothing to do.
func (a *Alarm) Ring() {
	if a == nil {
		return
	}
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = a.bell.Write(one[:]) // an alarm that is closed is silent
}

// Close ends the alarm's goroutines.
func (a *Alarm) Close() error {
	if a == nil {
		return nil
	}
	err := a.bell.Close()
	for _, f := range a.sleepers {
		err = errors.Join(err, f.Close())
	}
	a.asleep.Wait()
	return err
}
