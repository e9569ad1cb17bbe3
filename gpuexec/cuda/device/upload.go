//go:build cuda

package device

import (
	"gorgonia.org/cu"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
)

// An uploader copies arrays of host memory to consecutive units of the device through two pinned buffers: while
// one is copied the other is filled. A copy from memory that is not pinned runs at a fraction of the speed.
type uploader struct {
	stream  cu.Stream
	buffers [2]pinned
	copied  [2]cu.Event // the buffer may be filled again
	used    [2]bool
	current int
	filled  int
	to      abi.Pointer // of the buffer's first byte
}

const uploadBytes = 32 << 20 // a multiple of unitBytes

// newUploader makes an uploader, which is to be closed after an error too.
func newUploader() (u *uploader, err error) {
	u = &uploader{}
	defer func() { err = deviceError("preparing to copy to the device", err) }()
	if u.stream, err = cu.MakeStream(cu.NonBlocking); err != nil {
		return u, err
	}
	for i := range u.buffers {
		if u.copied[i], err = cu.MakeEvent(cu.BlockingSyncEvent | cu.DisableTiming); err != nil {
			return u, err
		}
		if u.buffers[i], err = allocPinned(uploadBytes); err != nil {
			return u, err
		}
	}
	return u, nil
}

// begin sets where the next arrays go. What was written before and not flushed is dropped: it is of a load that has failed.
func (u *uploader) begin(to abi.Pointer) { u.to, u.filled = to, 0 }

// write copies an array and fills its last unit up with zeros.
func (u *uploader) write(array []byte) error {
	padding := int(abi.Units(len(array))*abi.UnitBytes) - len(array)
	for len(array) > 0 {
		n := copy(u.buffers[u.current][u.filled:], array)
		array = array[n:]
		u.filled += n
		if len(array) == 0 {
			clear(u.buffers[u.current][u.filled : u.filled+padding]) // buffers are whole units
			u.filled += padding
		}
		if u.filled == uploadBytes {
			if err := u.submit(); err != nil {
				return err
			}
		}
	}
	return nil
}

// submit starts the copy of the current buffer and takes the other one.
func (u *uploader) submit() error {
	var s steps
	s.copyIn(u.to, u.buffers[u.current][:u.filled])
	s.record(u.copied[u.current])
	if err := s.submit(u.stream); err != nil {
		return deviceError("copying to the device", err)
	}
	u.to += abi.Pointer(u.filled)
	u.used[u.current] = true
	u.current, u.filled = 1-u.current, 0
	if u.used[u.current] {
		if err := wait(u.copied[u.current]); err != nil {
			return deviceError("copying to the device", err)
		}
	}
	return nil
}

// writeIn copies an array into so many units of the device, at least what it needs; the rest is filled with zeros.
func (u *uploader) writeIn(array []byte, room int64) error {
	if err := u.write(array); err != nil {
		return err
	}
	return u.skip(room - abi.Units(len(array)))
}

// skip fills units with zeros.
func (u *uploader) skip(room int64) error {
	for n := room * abi.UnitBytes; n > 0; {
		m := min(n, int64(uploadBytes-u.filled))
		clear(u.buffers[u.current][u.filled:][:m])
		u.filled += int(m)
		n -= m
		if u.filled == uploadBytes {
			if err := u.submit(); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush copies what is left and waits for all.
func (u *uploader) flush() error {
	if u.filled > 0 {
		if err := u.submit(); err != nil {
			return err
		}
	}
	return deviceError("copying to the device", u.stream.Synchronize())
}

func (u *uploader) close() error {
	if u == nil {
		return nil
	}
	var errs []error
	if u.stream != (cu.Stream{}) {
		errs = append(errs, u.stream.Synchronize(), u.stream.Destroy())
	}
	for i := range u.buffers {
		if u.copied[i] != (cu.Event{}) {
			errs = append(errs, cu.DestroyEvent(&u.copied[i]))
		}
		errs = append(errs, u.buffers[i].free())
	}
	return deviceError("ending the copy to the device", errs...)
}

// tables copies arrays to their offsets of some memory.
func (u *uploader) tables(memory abi.Pointer, at map[int64][]byte) error {
	for offset, array := range at {
		if err := u.whole(memory+abi.Pointer(offset), array); err != nil {
			return err
		}
	}
	return nil
}

// whole copies one array to a place of its own.
func (u *uploader) whole(to abi.Pointer, array []byte) error {
	u.begin(to)
	if err := u.write(array); err != nil {
		return err
	}
	return u.flush()
}
