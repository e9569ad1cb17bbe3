//go:build cuda

package gpuexec

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/geniemq/geniemq/index"
)

// resident is an index on the device: the postings of each tile and attribute as they lie in the file, but for the order
// of ids within a list, and a table that says where. Everything of a tile lies together, so a part of an index is one
// contiguous piece. Beside them some attributes have bit planes (slicedLayout). An index for which the memory does
// not suffice stays on the host but for the table, and is streamed (partStream).
type resident struct {
	index      *index.Index
	tiles      tileRange // that are here: tiles, groups and objects are counted from its beginning
	kernels    *cudaKernels
	parts      []part
	data       devicePointer // of the parts, unless they are streamed
	stream     *partStream   // nil unless the parts are streamed
	sections   devicePointer
	sliced     *slicedIndex // nil where nothing is
	bytes      int64        // on the device
	attributes int
	// repeats is, by attribute, the most times that one object has one keyword. It is derived on the device when the
	// index is loaded, and makes count bounds tight.
	repeats []uint32
	// roundSpans: so many spans of a query have less than 2^31 postings in a tile.
	roundSpans int
}

// residentLayout says where on the device the parts of an index come to lie.
type residentLayout struct {
	tiles      tileRange
	sections   []deviceSection // by tile x attributes + attribute; offsets from the beginning of the part
	parts      []part
	units      int64 // of all parts
	longest    int   // most postings of a section
	attributes int
	sliced     *slicedLayout // nil: nothing
	streamed   bool
}

func units(bytes int) int64 { return (int64(bytes) + unitBytes - 1) / unitBytes }

// maxPartUnits is what an offset in the table of sections can tell apart: 64 GiB.
const maxPartUnits = math.MaxUint32

// layoutResident lays tiles of an index out for so much memory: with bit planes, else without, else streamed in parts that
// are as large as two buffers allow. partBytes, unless 0, bounds a part and makes it stream.
func layoutResident(x *index.Index, tiles tileRange, memory, partBytes int64) (*residentLayout, error) {
	attributes := len(x.Attributes())
	l := &residentLayout{tiles: tiles, sections: make([]deviceSection, 0, tiles.len()*attributes), attributes: attributes}
	tileUnits := make([]int64, tiles.len())
	for tile := range tileUnits {
		for a := range attributes {
			words, starts, ids := x.Postings(tiles.first+tile, a).Arrays()
			tileUnits[tile] += units(8*len(words)) + units(4*len(starts)) + units(2*len(ids))
			l.longest = max(l.longest, len(ids))
		}
		l.units += tileUnits[tile]
	}
	const roundPostings = 1<<31 - 17
	if l.longest > roundPostings {
		return nil, fmt.Errorf("%d postings of an attribute in 64,512 objects are more than the %d that the device counts", l.longest, roundPostings)
	}
	l.parts = cutParts(tileUnits, maxPartUnits)
	fixed := l.fixedBytes()
	if partBytes > 0 || fixed+l.units*unitBytes > memory {
		l.streamed = true
		if partBytes == 0 {
			partBytes = (memory - fixed) / 2
		}
		l.parts = cutParts(tileUnits, min(partBytes/unitBytes, maxPartUnits))
	}
	if l.parts == nil && len(tileUnits) > 0 {
		return nil, &DeviceError{Op: "placing the index", OutOfMemory: true, Err: fmt.Errorf(
			"%d MiB are free, and a tile of %d objects needs %d MiB twice", memory>>20, index.TileObjects, slices.Max(tileUnits)*unitBytes>>20)}
	}
	for _, part := range l.parts {
		var at int64
		place := func(bytes int) uint32 {
			here := at
			at += units(bytes)
			return uint32(here)
		}
		for tile := part.firstTile; tile < part.firstTile+part.tiles; tile++ {
			for a := range attributes {
				words, starts, ids := x.Postings(tiles.first+tile, a).Arrays()
				l.sections = append(l.sections, deviceSection{
					words:  place(8 * len(words)),
					starts: place(4 * len(starts)),
					ids:    place(2 * len(ids)),
					lists:  uint32(len(starts) - 1),
				})
			}
		}
	}
	if !l.streamed {
		if l.sliced = newSlicedLayout(x, tiles); l.sliced != nil && l.deviceBytes() > memory {
			l.sliced = nil
		}
	}
	return l, nil
}

// fixedBytes is the memory of the table of sections and the survey.
func (l *residentLayout) fixedBytes() int64 {
	const alignment = 256 * 4
	sections := 0
	for _, part := range l.parts {
		sections += part.tiles * l.attributes
	}
	return int64(sections)*sectionBytes + int64(l.attributes)*4 + alignment
}

// bufferBytes is the size of a buffer that parts are streamed through.
func (l *residentLayout) bufferBytes() int64 {
	var most int64
	for _, part := range l.parts {
		most = max(most, part.units)
	}
	return most * unitBytes
}

// deviceBytes is the memory of the resident index.
func (l *residentLayout) deviceBytes() int64 {
	bytes := l.fixedBytes()
	if l.streamed {
		return bytes + 2*l.bufferBytes()
	}
	bytes += l.units * unitBytes
	if l.sliced != nil {
		bytes += l.sliced.places().end
	}
	return bytes
}

// loadResident copies an index onto the device. It must run on a thread with a context.
func loadResident(ctx context.Context, x *index.Index, layout *residentLayout, k *cudaKernels, u *uploader) (_ *resident, err error) {
	tiles := layout.tiles
	r := &resident{index: x, tiles: tiles, kernels: k, parts: layout.parts, bytes: layout.deviceBytes(), attributes: layout.attributes,
		repeats: make([]uint32, layout.attributes),
		// The parts of units that belong to neighbours count too.
		roundSpans: (1<<31 - 17) / (layout.longest + 16)}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.free())
		}
	}()
	if layout.streamed {
		if r.stream, err = newPartStream(max(1, layout.bufferBytes())); err != nil {
			return nil, err
		}
	} else if r.data, err = allocDevice(max(layout.units, 1) * unitBytes); err != nil {
		return nil, deviceError("allocating the postings", err)
	}
	if r.sections, err = allocDevice(int64(max(len(layout.sections), 1)) * sectionBytes); err != nil {
		return nil, deviceError("allocating the table of sections", err)
	}
	u.begin(r.sections)
	if err := u.write(arrayBytes(layout.sections)); err != nil {
		return nil, err
	}
	if err := u.flush(); err != nil {
		return nil, err
	}
	survey, err := newSurvey(r, u)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, survey.free()) }()
	for i := range r.parts {
		part := &r.parts[i]
		u.begin(r.dataOf(i))
		for tile := part.firstTile; tile < part.firstTile+part.tiles; tile++ {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			for a := range layout.attributes {
				words, starts, ids := x.Postings(tiles.first+tile, a).Arrays()
				for _, piece := range [][]byte{arrayBytes(words), arrayBytes(starts), arrayBytes(ids)} {
					if err := u.write(piece); err != nil {
						return nil, err
					}
				}
			}
		}
		if err := u.flush(); err != nil {
			return nil, err
		}
		if layout.streamed {
			if part.host, err = allocPinned(max(1, part.units) * unitBytes); err != nil {
				return nil, deviceError("allocating host memory for an index that is streamed", err)
			}
		}
		if err := survey.part(r, u, i); err != nil {
			return nil, err
		}
	}
	if err := survey.finish(r, u); err != nil {
		return nil, err
	}
	if layout.sliced != nil && len(k.sliced) > 0 {
		return r, r.loadSliced(u, layout.sliced)
	}
	return r, nil
}

// A survey derives repeats, and arranges the lists for the match kernel (kernels/load.cu), part by part.
type survey struct{ repeats devicePointer }

func newSurvey(r *resident, u *uploader) (s *survey, err error) {
	for a := range r.repeats {
		r.repeats[a] = 1
	}
	s = &survey{}
	if s.repeats, err = allocDevice(max(1, units(4*len(r.repeats))) * unitBytes); err != nil {
		return nil, deviceError("allocating the survey", err)
	}
	u.begin(s.repeats)
	if err := u.write(arrayBytes(r.repeats)); err != nil {
		return nil, errors.Join(err, s.free())
	}
	if err := u.flush(); err != nil {
		return nil, errors.Join(err, s.free())
	}
	return s, nil
}

// part surveys a part that has been copied, and takes it back to the host where it is streamed.
func (s *survey) part(r *resident, u *uploader, i int) error {
	const slices = 16
	part := &r.parts[i]
	sections := part.tiles * r.attributes
	if sections == 0 {
		return nil
	}
	argument := deviceSurvey{
		data: r.dataOf(i), sections: r.sections + devicePointer(part.firstTile*r.attributes*sectionBytes), repeats: s.repeats,
		attributes: uint32(r.attributes),
	}
	var list steps
	launch(&list, r.kernels.surveyRepeats, sections, slices, &argument)
	launch(&list, r.kernels.arrange, sections, slices, &argument)
	if part.host != nil {
		list.copyOut(part.host[:part.units*unitBytes], r.dataOf(i))
	}
	return deviceError("surveying the index", list.run(u.stream, u.copied[0]))
}

func (s *survey) finish(r *resident, u *uploader) error {
	if len(r.repeats) == 0 {
		return nil
	}
	host := u.buffers[0][:len(r.repeats)*4]
	var list steps
	list.copyOut(host, s.repeats)
	if err := list.run(u.stream, u.copied[0]); err != nil {
		return deviceError("surveying the index", err)
	}
	copy(r.repeats, pinnedArray[uint32](host, 0, len(r.repeats)))
	return nil
}

func (s *survey) free() error { return deviceError("freeing the survey", freeDevice(s.repeats)) }

func (r *resident) free() error {
	var errs []error
	for _, p := range []*devicePointer{&r.data, &r.sections} {
		if *p != 0 {
			errs = append(errs, deviceError("freeing an index", freeDevice(*p)))
			*p = 0
		}
	}
	errs = append(errs, r.stream.close(), r.sliced.free())
	for i := range r.parts {
		errs = append(errs, deviceError("freeing an index", r.parts[i].host.free()))
		r.parts[i].host = nil
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
