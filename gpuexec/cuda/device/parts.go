//go:build cuda

package device

import (
	"errors"

	"gorgonia.org/cu"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
)

// An index is cut by tiles into parts. Offsets in the table of sections count from the beginning of a part, so a part is
// what is copied, and what a kernel sees, as a whole.
type part struct {
	firstTile, tiles int
	groups           int // of its tiles
	units            int64
	at               int64  // of an index that stays on the device: its first unit there
	host             pinned // of one that is streamed: what is copied, as the kernels want it
}

// cutParts cuts an index into parts of at most so many units, given those of its tiles. It is nil when a tile does not fit.
func cutParts(tileUnits []int64, most int64) []part {
	var parts []part
	var at int64
	for tile, units := range tileUnits {
		if units > most {
			return nil
		}
		if last := len(parts) - 1; last >= 0 && parts[last].units+units <= most {
			parts[last].units += units
			parts[last].tiles++
		} else {
			parts = append(parts, part{firstTile: tile, tiles: 1, units: units, at: at})
		}
		at += units
	}
	return parts
}

// A partStream is multiple loading (the paper's section V): an index that is larger than the memory for it lies in
// pinned host memory, and each batch copies part after part into two buffers, on a stream of its own: while the kernels
// read one buffer the other is filled. Parts come in ascending order of ids, so the queries' states and thresholds go on
// from part to part, and the answer is the same as that of an index that stays.
//
// The buffers belong to the batch whose turn it is (lanePool). That batch waits for its own stream only: its last kernel on a
// buffer comes after the buffer's copy, so nothing is under way when its turn ends well. After an error the next batch's
// copies still wait for the kernels before them.
//
// All methods work for a nil partStream, of an index that stays, and do nothing then.
type partStream struct {
	stream   cu.Stream
	buffers  [2]abi.Pointer
	begun    cu.Event    // the queries are on the device; the parts must not hold them up
	copied   [2]cu.Event // the buffer is full
	released [2]cu.Event // the kernels have read the buffer
}

// newPartStream makes a stream with buffers of so many bytes. It is to be closed after an error too.
func newPartStream(bytes int64) (s *partStream, err error) {
	s = &partStream{}
	defer func() { err = deviceError("allocating the buffers that the index streams through", err) }()
	if s.stream, err = cu.MakeStream(cu.NonBlocking); err != nil {
		return s, err
	}
	if s.begun, err = cu.MakeEvent(cu.DisableTiming); err != nil {
		return s, err
	}
	for i := range s.buffers {
		if s.buffers[i], err = allocDevice(bytes); err != nil {
			return s, err
		}
		if s.copied[i], err = cu.MakeEvent(cu.DisableTiming); err != nil {
			return s, err
		}
		if s.released[i], err = cu.MakeEvent(cu.DisableTiming); err != nil {
			return s, err
		}
	}
	return s, nil
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
	if i+1 < len(r.parts) {
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
	list.copyIn(s.buffers[i%2], r.parts[i].host[:r.parts[i].units*abi.UnitBytes])
	list.record(s.copied[i%2])
	list.on(s.stream, first)
}

func (s *partStream) close() error {
	if s == nil {
		return nil
	}
	var errs []error
	if s.stream != (cu.Stream{}) {
		errs = append(errs, s.stream.Synchronize(), s.stream.Destroy())
		s.stream = cu.Stream{}
	}
	if s.begun != (cu.Event{}) {
		errs = append(errs, cu.DestroyEvent(&s.begun))
		s.begun = cu.Event{}
	}
	for i := range s.buffers {
		if s.buffers[i] != 0 {
			errs = append(errs, freeDevice(s.buffers[i]))
			s.buffers[i] = 0
		}
		for _, e := range []*cu.Event{&s.copied[i], &s.released[i]} {
			if *e != (cu.Event{}) {
				errs = append(errs, cu.DestroyEvent(e))
				*e = cu.Event{}
			}
		}
	}
	return deviceError("freeing the buffers that the index streams through", errors.Join(errs...))
}

// dataOf is where the kernels find a part.
func (r *resident) dataOf(i int) abi.Pointer {
	if r.stream != nil {
		return r.stream.buffers[i%2]
	}
	return r.data + abi.Pointer(r.parts[i].at*abi.UnitBytes)
}

// copied is how many bytes a batch copies to see all of the index.
func (r *resident) copied() (bytes int64) {
	if r.stream == nil {
		return 0
	}
	for i := range r.parts {
		bytes += r.parts[i].units * abi.UnitBytes
	}
	return bytes
}

func (r *resident) objects() uint32 { return r.tiles.Objects(r.index.Objects()) }

func (r *resident) groups() int { return groupsOf(r.objects()) }

func (r *resident) slicedLayout() *slicedLayout {
	if r.sliced == nil {
		return nil
	}
	return r.sliced.slicedLayout
}
