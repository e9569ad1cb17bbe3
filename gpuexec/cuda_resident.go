//go:build cuda

package gpuexec

import (
	"context"
	"errors"
	"fmt"
	"math"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/geniemq/geniemq/index"
)

// resident is an index on the device: the postings of each tile and attribute as they lie in the file, but for the order
// of ids within a list, and a table that says where. Everything of a tile lies together, so a part of an index is one
// contiguous piece.
type resident struct {
	index      *index.Index
	kernels    *cudaKernels
	data       devicePointer
	sections   devicePointer
	bytes      int64
	attributes int
	// repeats is, by attribute, the most times that one object has one keyword. It is derived on the device when the
	// index is loaded, and makes count bounds tight.
	repeats []uint32
	// roundSpans: so many spans of a query have less than 2^31 postings in a tile.
	roundSpans int
}

// residentLayout says where on the device the parts of an index come to lie.
type residentLayout struct {
	sections   []deviceSection // by tile x attributes + attribute
	units      int64           // of the data
	longest    int             // most postings of a section
	attributes int
}

func units(bytes int) int64 { return (int64(bytes) + unitBytes - 1) / unitBytes }

func newResidentLayout(x *index.Index) *residentLayout {
	attributes := len(x.Attributes())
	l := &residentLayout{sections: make([]deviceSection, 0, x.Tiles()*attributes), attributes: attributes}
	place := func(bytes int) uint32 {
		at := l.units
		l.units += units(bytes)
		return uint32(at) // checked by loadResident
	}
	for tile := range x.Tiles() {
		for a := range attributes {
			words, starts, ids := x.Postings(tile, a).Arrays()
			l.sections = append(l.sections, deviceSection{
				words:  place(8 * len(words)),
				starts: place(4 * len(starts)),
				ids:    place(2 * len(ids)),
				lists:  uint32(len(starts) - 1),
			})
			l.longest = max(l.longest, len(ids))
		}
	}
	return l
}

// deviceBytes is the memory of the resident index.
func (l *residentLayout) deviceBytes() int64 {
	const alignment = 256 * 3
	return l.units*unitBytes + int64(len(l.sections))*sectionBytes + int64(l.attributes)*4 + alignment
}

// loadResident copies an index onto the device. It must run on a thread with a context.
func loadResident(ctx context.Context, x *index.Index, layout *residentLayout, k *cudaKernels, u *uploader) (_ *resident, err error) {
	if layout.units > math.MaxUint32 {
		return nil, fmt.Errorf("the index has %d GiB of postings, more than the 64 GiB that one part can have", layout.units*unitBytes>>30)
	}
	const roundPostings = 1<<31 - 17
	if layout.longest > roundPostings {
		return nil, fmt.Errorf("%d postings of an attribute in 64,512 objects are more than the %d that the device counts", layout.longest, roundPostings)
	}
	r := &resident{index: x, kernels: k, bytes: layout.deviceBytes(), attributes: layout.attributes, repeats: make([]uint32, layout.attributes),
		// The parts of units that belong to neighbours count too.
		roundSpans: roundPostings / (layout.longest + 16)}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.free())
		}
	}()
	if r.data, err = allocDevice(max(layout.units, 1) * unitBytes); err != nil {
		return nil, deviceError("allocating the postings", err)
	}
	if r.sections, err = allocDevice(int64(max(len(layout.sections), 1)) * sectionBytes); err != nil {
		return nil, deviceError("allocating the table of sections", err)
	}
	u.begin(r.data)
	for tile := range x.Tiles() {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		for a := range layout.attributes {
			words, starts, ids := x.Postings(tile, a).Arrays()
			for _, part := range [][]byte{arrayBytes(words), arrayBytes(starts), arrayBytes(ids)} {
				if err := u.write(part); err != nil {
					return nil, err
				}
			}
		}
	}
	if err := u.flush(); err != nil {
		return nil, err
	}
	u.begin(r.sections)
	if err := u.write(arrayBytes(layout.sections)); err != nil {
		return nil, err
	}
	if err := u.flush(); err != nil {
		return nil, err
	}
	return r, r.survey(u, len(layout.sections))
}

// survey derives repeats, and then arranges the lists for the match kernel (kernels/load.cu).
func (r *resident) survey(u *uploader, sections int) (err error) {
	for a := range r.repeats {
		r.repeats[a] = 1
	}
	if sections == 0 {
		return nil
	}
	repeats, err := allocDevice(units(4*len(r.repeats)) * unitBytes)
	if err != nil {
		return deviceError("allocating the survey", err)
	}
	defer func() { err = errors.Join(err, deviceError("freeing the survey", freeDevice(repeats))) }()
	u.begin(repeats)
	if err := u.write(arrayBytes(r.repeats)); err != nil {
		return err
	}
	if err := u.flush(); err != nil {
		return err
	}
	host := u.buffers[0][:len(r.repeats)*4]
	const slices = 16
	var s steps
	survey := deviceSurvey{data: r.data, sections: r.sections, repeats: repeats, attributes: uint32(r.attributes)}
	launch(&s, r.kernels.surveyRepeats, sections, slices, &survey)
	launch(&s, r.kernels.arrange, sections, slices, &survey)
	s.copyOut(host, repeats)
	if err := s.run(u.stream, u.copied[0]); err != nil {
		return deviceError("surveying the index", err)
	}
	copy(r.repeats, pinnedArray[uint32](host, 0, len(r.repeats)))
	return nil
}

func (r *resident) free() error {
	var errs []error
	for _, p := range []*devicePointer{&r.data, &r.sections} {
		if *p != 0 {
			errs = append(errs, deviceError("freeing an index", freeDevice(*p)))
			*p = 0
		}
	}
	return errors.Join(errs...)
}

// arrayBytes is the memory of an array of plain numbers.
func arrayBytes[T any](array []T) []byte {
	var t T
	if len(array) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(array))), len(array)*int(unsafe.Sizeof(t)))
}

// An uploader copies pieces of host memory to consecutive units of the device through two pinned buffers: while
// one is copied the other is filled. A copy from memory that is not pinned runs at a fraction of the speed.
type uploader struct {
	stream  cu.Stream
	buffers [2]pinned
	copied  [2]cu.Event // the buffer may be filled again
	used    [2]bool
	current int
	filled  int
	to      devicePointer // of the buffer's first byte
}

const uploadBytes = 32 << 20 // a multiple of unitBytes

func newUploader() (u *uploader, err error) {
	u = &uploader{}
	defer func() {
		if err != nil {
			err = errors.Join(deviceError("preparing to copy to the device", err), u.close())
		}
	}()
	if u.stream, err = cu.MakeStream(cu.NonBlocking); err != nil {
		return nil, err
	}
	for i := range u.buffers {
		if u.copied[i], err = cu.MakeEvent(cu.BlockingSyncEvent | cu.DisableTiming); err != nil {
			return nil, err
		}
		if u.buffers[i], err = allocPinned(uploadBytes); err != nil {
			return nil, err
		}
	}
	return u, nil
}

// begin sets where the next pieces go.
func (u *uploader) begin(to devicePointer) { u.to = to }

// write copies a piece and fills its last unit up with zeros.
func (u *uploader) write(piece []byte) error {
	padding := int(units(len(piece))*unitBytes) - len(piece)
	for len(piece) > 0 {
		n := copy(u.buffers[u.current][u.filled:], piece)
		piece = piece[n:]
		u.filled += n
		if len(piece) == 0 {
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
	u.to += devicePointer(u.filled)
	u.used[u.current] = true
	u.current, u.filled = 1-u.current, 0
	if u.used[u.current] {
		if err := wait(u.copied[u.current]); err != nil {
			return deviceError("copying to the device", err)
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
	return deviceError("ending the copy to the device", errors.Join(errs...))
}
