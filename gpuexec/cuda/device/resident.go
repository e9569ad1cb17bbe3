//go:build cuda

package device

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index"
)

// resident is an index on the device: for each tile and attribute its postings, or its planes, or both, and a table that
// says where (residentLayout). The postings lie as in the file but for the order of ids within a list. Everything of a
// tile lies together, so a part of an index is one contiguous piece. Beside the parts lie the lists of rare keywords. An
// index for which the memory does not suffice stays on the host but for tables and rare keywords, and is streamed
// (partStream).
type resident struct {
	index      *index.Index
	tiles      run.Tiles // that are here: tiles, groups and objects are counted from its beginning
	kernels    *cudaKernels
	parts      []part
	data       abi.Pointer // of the parts, unless they are streamed
	stream     *partStream // nil unless the parts are streamed
	sections   abi.Pointer
	sliced     *slicedIndex   // nil where nothing is
	codes      *residentCodes // nil where there are none
	postings   bool           // what is sliced has postings too
	rare       abi.Pointer
	forms      *residentForms // nil where all attributes lie as postings of all keywords
	texts      *residentTexts // nil where they are on the host only
	attributes int
	// repeats is, by attribute, the most times that one object has one keyword. It is derived when the index is loaded, and
	// makes count bounds tight.
	repeats []uint32
	// roundSpans: so many spans of a query have less than 2^31 postings in a tile.
	roundSpans int
	planner    *planner
}

// A loader copies an index onto the device.
type loader struct {
	*resident
	layout *residentLayout
	upload *uploader
	crew   *run.Crew
	// decoders have one worker's memory each: so many sections are decoded at a time.
	decoders [64]index.Decoder
	decoded  [64]index.Postings
}

// newResident makes the resident of an index of which nothing is on the device yet.
func newResident(x *index.Index, layout *residentLayout, k *cudaKernels) *resident {
	return &resident{index: x, tiles: layout.tiles, kernels: k, parts: layout.parts, attributes: layout.attributes,
		postings: layout.postings, repeats: make([]uint32, layout.attributes),
		// The parts of units that belong to neighbours count too.
		roundSpans: roundPostings / (layout.longest + 16)}
}

// load copies the index onto the device. It must run on a thread with a context. What there is after an error, free frees.
func (r *resident) load(ctx context.Context, p *placement, u *uploader, c *run.Crew) (err error) {
	layout := p.layout
	if layout.streamed {
		if r.stream, err = newPartStream(max(1, layout.bufferBytes())); err != nil {
			return err
		}
	} else if r.data, err = allocDevice(max(layout.units, 1) * abi.UnitBytes); err != nil {
		return deviceError("allocating the index", err)
	}
	if r.sections, err = allocDevice(int64(max(len(layout.sections), 1)) * abi.SectionBytes); err != nil {
		return deviceError("allocating the table of sections", err)
	}
	load := &loader{resident: r, layout: layout, upload: u, crew: c}
	if err := load.rareLists(); err != nil {
		return err
	}
	survey, err := newRepeatSurvey(r, u)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, survey.free()) }()
	for i := range r.parts {
		if err := load.part(ctx, i); err != nil {
			return err
		}
		if err := survey.part(r, u, i); err != nil {
			return err
		}
	}
	if err := survey.finish(r, u); err != nil {
		return err
	}
	if layout.sliced != nil {
		if err := r.loadSliced(u, layout.sliced); err != nil {
			return err
		}
	}
	if err := r.loadForms(u, layout); err != nil {
		return err
	}
	r.planner = newPlanner(r)
	if p.texts != nil {
		if err := r.loadTexts(ctx, u, p.texts, c); err != nil {
			return err
		}
	}
	if p.codes != nil {
		return r.loadCodes(u, p.codes)
	}
	return nil
}

// part copies a part and its table of sections.
func (l *loader) part(ctx context.Context, i int) (err error) {
	part := &l.parts[i]
	x, u := l.index, l.upload
	u.begin(l.dataOf(i))
	if err := l.planes(part); err != nil {
		return err
	}
	first := part.firstTile * l.attributes
	sections := l.layout.sections[first : first+part.tiles*l.attributes]
	at := l.layout.sliced.units(part.groups)
	for tile := range part.tiles {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		decoded := 0 // attributes whose postings are decoded, in their order
		for a := range l.attributes {
			size, _ := l.layout.size(x, part.firstTile+tile, a)
			if size == (sectionSize{}) {
				continue
			}
			postings := x.Postings(l.tiles.First+part.firstTile+tile, a)
			if l.layout.sliced.has(a) {
				if decoded%len(l.decoders) == 0 {
					if err := l.decode(ctx, part.firstTile+tile, decoded); err != nil {
						return err
					}
				}
				postings = l.decoded[decoded%len(l.decoders)]
				decoded++
				sections[tile*l.attributes+a].Lists = uint32(postings.Lists())
			}
			words, starts, ids := postings.Arrays()
			for _, piece := range []struct {
				bytes []byte
				room  int64
			}{{arrayBytes(words), size.words}, {arrayBytes(starts), size.starts}, {arrayBytes(ids), size.ids}} {
				if err := u.writeIn(piece.bytes, piece.room); err != nil {
					return err
				}
			}
			at += size.units()
		}
		if err := u.skip(alignRow(at) - at); err != nil {
			return err
		}
		at = alignRow(at)
	}
	if err := u.flush(); err != nil {
		return err
	}
	if err := u.whole(l.sections+abi.Pointer(first*abi.SectionBytes), arrayBytes(sections)); err != nil {
		return err
	}
	if l.stream != nil {
		if part.host, err = allocPinned(max(1, part.units) * abi.UnitBytes); err != nil {
			// Not deviceError: the driver calls this out of memory too, but it is not the device's.
			return &gpuexec.DeviceError{Op: "placing an index that is streamed", Err: fmt.Errorf(
				"locking %d MiB of the host's memory, which must hold all of it (with more device memory the index need not be streamed): %w", l.layout.units*abi.UnitBytes>>20, err)}
		}
	}
	return nil
}

// planes copies the planes of a part: of each group, all attributes' together.
func (l *loader) planes(part *part) error {
	s := l.layout.sliced
	if s == nil {
		return nil
	}
	words := make([][]uint32, len(s.sliced))
	for tile := part.firstTile; tile < part.firstTile+part.tiles; tile++ {
		for i, a := range s.sliced {
			words[i] = l.index.Planes(l.tiles.First+tile, int(a)).Words()
		}
		for range l.layout.groupsOf(l.index, tile) {
			for i, a := range s.sliced {
				n := int(s.attributes[a].Planes) * abi.RowBytes / 4
				if err := l.upload.write(arrayBytes(words[i][:n])); err != nil {
					return err
				}
				words[i] = words[i][n:]
			}
		}
	}
	return nil
}

// decode makes the postings of the next sliced attributes of a tile, as many as there are decoders.
func (l *loader) decode(ctx context.Context, tile, first int) error {
	attributes := l.layout.sliced.sliced[first:]
	return l.crew.Run(ctx, min(len(attributes), len(l.decoders)), func(_ *run.Shift, i int) {
		l.decoded[i] = l.decoders[i].Postings(l.index, l.tiles.First+tile, int(attributes[i]))
	})
}

// rareLists copies the lists of rare keywords with their directories, and finds their repeats.
func (l *loader) rareLists() (err error) {
	for a := range l.repeats {
		l.repeats[a] = 1
	}
	if l.layout.rareUnits > 0 {
		if l.rare, err = allocDevice(l.layout.rareUnits * abi.UnitBytes); err != nil {
			return deviceError("allocating the rare keywords", err)
		}
	}
	l.upload.begin(l.rare)
	for a, unit := range l.layout.rare {
		if unit < 0 {
			continue
		}
		words, starts, ids := l.index.Rare(a).Arrays()
		l.repeats[a] = longestRun(starts, ids)
		for _, piece := range [][]byte{arrayBytes(ids), arrayBytes(words), arrayBytes(starts)} { // rareAt
			if err := l.upload.write(piece); err != nil {
				return err
			}
		}
	}
	return l.upload.flush()
}

// longestRun is the most times that one id is in a list, at least 1.
func longestRun(starts, ids []uint32) uint32 {
	longest := uint32(1)
	for i := range len(starts) - 1 {
		run := uint32(1)
		for j := starts[i] + 1; j < starts[i+1]; j++ {
			if run++; ids[j] != ids[j-1] {
				run = 1
			}
			longest = max(longest, run)
		}
	}
	return longest
}

// A repeatSurvey derives repeats, and arranges the lists for the match kernel (kernels/load.cu), part by part.
type repeatSurvey struct{ repeats abi.Pointer }

func newRepeatSurvey(r *resident, u *uploader) (s *repeatSurvey, err error) {
	s = &repeatSurvey{}
	if s.repeats, err = allocDevice(max(1, units(4*len(r.repeats))) * abi.UnitBytes); err != nil {
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
func (s *repeatSurvey) part(r *resident, u *uploader, i int) error {
	const slices = 16
	part := &r.parts[i]
	sections := part.tiles * r.attributes
	if sections == 0 {
		return nil
	}
	argument := abi.Survey{
		Data: r.dataOf(i), Sections: r.sections + abi.Pointer(part.firstTile*r.attributes*abi.SectionBytes), Repeats: s.repeats,
		Attributes: uint32(r.attributes),
	}
	var list steps
	launch(&list, r.kernels.surveyRepeats, sections, slices, &argument)
	launch(&list, r.kernels.arrange, sections, slices, &argument)
	if part.host != nil {
		list.copyOut(part.host[:part.units*abi.UnitBytes], r.dataOf(i))
	}
	return deviceError("surveying the index", list.run(u.stream, u.copied[0]))
}

func (s *repeatSurvey) finish(r *resident, u *uploader) error {
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

func (s *repeatSurvey) free() error { return deviceError("freeing the survey", freeDevice(s.repeats)) }

func (r *resident) free() error {
	var errs []error
	for _, p := range []*abi.Pointer{&r.data, &r.sections, &r.rare} {
		if *p != 0 {
			errs = append(errs, deviceError("freeing an index", freeDevice(*p)))
			*p = 0
		}
	}
	errs = append(errs, r.stream.close(), r.sliced.free(), r.codes.free(), r.forms.free(), r.texts.free())
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
