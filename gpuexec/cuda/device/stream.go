//go:build cuda

package device

import (
	"gorgonia.org/cu"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
)

// A partStream is multiple loading (the paper's section V): an index that is larger than the memory for it lies in
// pinned host memory, and each batch copies part after part into two buffers, on a stream of its own: while the kernels
// read one buffer the other is filled. Parts come in ascending order of ids, so the queries' states and thresholds go on
// from part to part, and the answer is the same as that of an index that stays.
//
// The buffers belong to the batch whose turn it is (turns.Pool). That batch waits for its own stream only: its last kernel on a
// buffer comes after the buffer's copy, so nothing is under way when its turn ends well. After an error the next batch's
// copies still wait for the kernels before them.
//
// All methods work for a nil partStream, of an index that stays, and do nothing then.
type partStream struct {
	own      owned
	stream   cu.Stream
	buffers  [2]abi.Pointer
	begun    cu.Event    // the queries are on the device; the parts must not hold them up
	copied   [2]cu.Event // the buffer is full
	released [2]cu.Event // the kernels have read the buffer
}

// newPartStream makes a stream with buffers of so many bytes. It is to be closed after an error too.
func newPartStream(bytes int64) (*partStream, error) {
	s := &partStream{}
	s.stream, s.begun = s.own.stream(urgent), s.own.event(cu.DisableTiming)
	for i := range s.buffers {
		s.buffers[i] = s.own.memory(bytes)
		s.copied[i], s.released[i] = s.own.event(cu.DisableTiming), s.own.event(cu.DisableTiming)
	}
	return s, deviceError("allocating the buffers that the index streams through", s.own.err)
}

// begin records the copy of the first part, after what the batch's own stream does so far.
func (s *partStream) begin(list *steps, r *resident) {
	if s == nil {
		return
	}
	list.record(s.begun)
	first := len(*list)
	list.wait(s.begun)
	list.on(s.stream, first)
	s.copy(list, r, 0)
}

// await records the copy of the part after this one, and makes the kernels that follow wait for this one's.
func (s *partStream) await(list *steps, r *resident, i int) {
	if s == nil {
		return
	}
	if i+1 < len(r.Parts) {
		s.copy(list, r, i+1)
	}
	list.wait(s.copied[i%2])
}

// consumed records that the kernels have read a part.
func (s *partStream) consumed(list *steps, i int) {
	if s != nil {
		list.record(s.released[i%2])
	}
}

func (s *partStream) copy(list *steps, r *resident, i int) {
	first := len(*list)
	list.wait(s.released[i%2])
	list.copyIn(s.buffers[i%2], r.hosts[i][:r.Parts[i].Units*abi.UnitBytes])
	list.record(s.copied[i%2])
	list.on(s.stream, first)
}

func (s *partStream) close() error {
	if s == nil {
		return nil
	}
	return deviceError("freeing the buffers that the index streams through", s.own.close())
}
