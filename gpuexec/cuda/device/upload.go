//go:build cuda

package device

import (
	"gorgonia.org/cu"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
)

// An uploader copies arrays of host memory to consecutive units of the device through two pinned buffers: while
// one is copied the other is filled. A copy from memory that is not pinned runs at a fraction of the speed.
//
// An error stays until begin: what is written after it is dropped, and flush returns it.
type uploader struct {
	own     owned
	stream  cu.Stream
	buffers [2]pinned
	copied  [2]cu.Event // the buffer may be filled again
	used    [2]bool
	current int
	filled  int
	to      abi.Pointer // of the buffer's first byte
	err     error
}

// uploadBytes is a multiple of abi.UnitBytes. The device copies one thing at a time, so a batch that comes while an index is
// loaded waits for one or two copies of that size: 0.1 to 0.2 ms.
const uploadBytes = 4 << 20

// newUploader makes an uploader, which is to be closed after an error too.
func newUploader() (*uploader, error) {
	u := &uploader{}
	u.stream = u.own.stream(patient)
	for i := range u.buffers {
		u.copied[i], u.buffers[i] = u.own.event(cu.BlockingSyncEvent|cu.DisableTiming), u.own.pinned(uploadBytes)
	}
	return u, deviceError("preparing to copy to the device", u.own.err)
}

// begin sets where the next arrays go. What was written before and not flushed is dropped: it is of a load that has failed.
func (u *uploader) begin(to abi.Pointer) { u.to, u.filled, u.err = to, 0, nil }

// write copies an array and fills its last unit up with zeros.
func (u *uploader) write(array []byte) {
	u.append(array)
	u.zeros(int(abi.Units(len(array))*abi.UnitBytes) - len(array))
}

// writeIn copies an array into so many units of the device, at least what it needs; the rest is filled with zeros.
func (u *uploader) writeIn(array []byte, room int64) {
	u.append(array)
	u.zeros(int(room*abi.UnitBytes) - len(array))
}

// skip fills units with zeros.
func (u *uploader) skip(room int64) { u.zeros(int(room * abi.UnitBytes)) }

// append copies an array, so that the next one follows it at once. What is written after it must be whole units again.
func (u *uploader) append(array []byte) {
	for len(array) > 0 && u.err == nil {
		n := copy(u.buffers[u.current][u.filled:], array)
		array = array[n:]
		u.add(n)
	}
}

func (u *uploader) zeros(n int) {
	for n > 0 && u.err == nil {
		m := min(n, uploadBytes-u.filled)
		clear(u.buffers[u.current][u.filled:][:m])
		n -= m
		u.add(m)
	}
}

// add counts bytes that were written to the current buffer.
func (u *uploader) add(n int) {
	if u.filled += n; u.filled == uploadBytes {
		u.submit()
	}
}

// submit starts the copy of the current buffer and takes the other one.
func (u *uploader) submit() {
	var s steps
	s.copyIn(u.to, u.buffers[u.current][:u.filled])
	s.record(u.copied[u.current])
	u.err = s.submit(u.stream)
	u.to += abi.Pointer(u.filled)
	u.used[u.current] = true
	u.current, u.filled = 1-u.current, 0
	if u.err == nil && u.used[u.current] {
		u.err = wait(u.copied[u.current])
	}
}

// flush copies what is left and waits for all.
func (u *uploader) flush() error {
	if u.filled > 0 && u.err == nil {
		u.submit()
	}
	if u.err == nil {
		u.err = u.stream.Synchronize()
	}
	return deviceError("copying to the device", u.err)
}

func (u *uploader) close() error {
	return deviceError("ending the copy to the device", u.own.close())
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
	u.write(array)
	return u.flush()
}
