//go:build cuda

package device

import (
	"context"
	"errors"
	"fmt"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/postings"
)

// A loader copies a placed index onto the device: for each tile and attribute its postings, or its planes, or both, and a table
// that says where. The postings lie as in the file but for the order of ids within a list. Everything of a
// tile lies together, so a part of an index is one contiguous copy. Beside the parts lie the lists of rare keywords.
//
// It runs bound to the device. What there is after an error, resident.free frees.
type loader struct {
	*resident
	plan.Placement
	upload *uploader
	crew   *run.Crew
	// repeats is, by attribute, the most times that one object has one keyword: found here.
	repeats []uint32
	// decoders have one worker's memory each: so many sections are decoded at a time.
	decoders [64]postings.Decoder
	decoded  [64]postings.Postings
}

// load copies a placed index onto the device.
func (r *resident) load(ctx context.Context, p plan.Placement, u *uploader, c *run.Crew) error {
	l := &loader{resident: r, Placement: p, upload: u, crew: c, repeats: make([]uint32, p.Attributes)}
	r.Index = &plan.Index{Placement: p} // until it is known what planning needs
	for _, step := range []func(context.Context) error{l.allocate, l.rareLists, l.storedNumbers, l.parts, l.tables, l.originals, l.codes} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	r.Index = plan.NewIndex(&r.kernels.Device, p, l.repeats)
	return nil
}

// allocate allocates what the placement says, but for what depends on what is there then.
func (l *loader) allocate(context.Context) (err error) {
	r, p, own := l.resident, &l.Placement, &l.resident.own
	if p.Streamed {
		r.hosts = make([]pinned, len(p.Parts))
		if r.partStream, err = newPartStream(max(1, p.BufferBytes())); err != nil {
			return err
		}
	} else {
		r.data = own.memory(max(p.Units, 1) * abi.UnitBytes)
	}
	r.sections = own.memory(int64(max(len(p.Sections), 1)) * abi.SectionBytes)
	r.rare, r.numbers = own.memory(p.RareUnits*abi.UnitBytes), own.memory(p.Numbers.End)
	if p.Planes != nil {
		r.tables = own.memory(p.Planes.Tables.End)
	}
	r.texts, r.codes = own.memory(p.Texts.DeviceBytes()), own.memory(p.Codes.DeviceBytes())
	for _, t := range p.Terms {
		r.terms = append(r.terms, own.memory(t.DeviceBytes()))
	}
	return deviceError("allocating the index", own.err)
}

// parts copies the parts, and surveys each.
func (l *loader) parts(ctx context.Context) (err error) {
	var own owned
	defer func() { err = errors.Join(err, deviceError("freeing the survey", own.close())) }()
	repeats := own.memory(max(1, abi.Units(4*len(l.repeats))) * abi.UnitBytes)
	if own.err != nil {
		return deviceError("allocating the survey", own.err)
	}
	if err := l.upload.whole(repeats, abi.Bytes(l.repeats)); err != nil {
		return err
	}
	for i := range l.Placement.Parts {
		if err := l.part(ctx, i); err != nil {
			return err
		}
		if err := l.survey(i, repeats); err != nil {
			return err
		}
	}
	return l.surveyed(repeats)
}

// part copies a part and its table of sections.
func (l *loader) part(ctx context.Context, i int) error {
	p, u := l.Placement.Resident, l.upload
	part := &p.Parts[i]
	u.begin(l.dataOf(i))
	l.planes(part)
	at := p.Planes.Units(part.Groups)
	for tile := part.FirstTile; tile < part.FirstTile+part.Tiles && u.err == nil; tile++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		units, err := l.tile(ctx, tile)
		if err != nil {
			return err
		}
		at += units
		u.skip(abi.AlignRow(at) - at)
		at = abi.AlignRow(at)
	}
	if err := u.flush(); err != nil {
		return err
	}
	first := part.FirstTile * p.Attributes
	sections := p.Sections[first : first+part.Tiles*p.Attributes]
	if err := u.whole(l.sections+abi.Pointer(first*abi.SectionBytes), abi.Bytes(sections)); err != nil {
		return err
	}
	if p.Streamed {
		if l.hosts[i] = l.own.pinned(max(1, part.Units) * abi.UnitBytes); l.own.err != nil {
			// Not deviceError: the driver calls this out of memory too, but it is not the device's.
			return &gpuexec.DeviceError{Op: "placing an index that is streamed", Err: fmt.Errorf(
				"locking %d MiB of the host's memory, which must hold all of it (with more device memory the index need not be streamed): %w",
				p.Units*abi.UnitBytes>>20, l.own.err)}
		}
	}
	return nil
}

// tile copies the postings of a tile and returns the units that they take.
func (l *loader) tile(ctx context.Context, tile int) (units int64, err error) {
	p, u := l.Placement.Resident, l.upload
	decoded := 0 // attributes whose postings are decoded, in their order
	for a := range p.Attributes {
		size := p.Section(tile, a)
		if size == (plan.SectionUnits{}) {
			continue
		}
		postings := p.Lists.Postings(p.Tiles.First+tile, a)
		if p.Planes.Has(a) {
			if decoded%len(l.decoders) == 0 {
				if err := l.decode(ctx, tile, decoded); err != nil {
					return 0, err
				}
			}
			postings = l.decoded[decoded%len(l.decoders)]
			decoded++
			p.Sections[tile*p.Attributes+a].Lists = uint32(postings.Lists())
		}
		words, starts, ids := postings.Arrays()
		u.writeIn(abi.Bytes(words), size.Words)
		u.writeIn(abi.Bytes(starts), size.Starts)
		u.writeIn(abi.Bytes(ids), size.Ids)
		units += size.All()
	}
	return units, nil
}

// planes copies the planes of a part: of each group, all attributes' together.
func (l *loader) planes(part *plan.Part) {
	p, s := l.Placement.Resident, l.Placement.Planes
	if s == nil {
		return
	}
	words := make([][]uint32, len(s.Sliced))
	for tile := part.FirstTile; tile < part.FirstTile+part.Tiles && l.upload.err == nil; tile++ {
		for i, a := range s.Sliced {
			words[i] = p.Lists.Planes(p.Tiles.First+tile, int(a)).Words()
		}
		for range p.GroupsOf(tile) {
			for i, a := range s.Sliced {
				n := int(s.Attributes[a].Planes) * abi.RowBytes / 4
				l.upload.write(abi.Bytes(words[i][:n]))
				words[i] = words[i][n:]
			}
		}
	}
}

// decode makes the postings of the next sliced attributes of a tile, as many as there are decoders.
func (l *loader) decode(ctx context.Context, tile, first int) error {
	p := l.Placement.Resident
	attributes := p.Planes.Sliced[first:]
	return l.crew.Run(ctx, min(len(attributes), len(l.decoders)), func(_ *run.Shift, i int) {
		l.decoded[i] = l.decoders[i].Postings(p.Lists, p.Tiles.First+tile, int(attributes[i]))
	})
}

// rareLists copies the lists of rare keywords with their directories, and finds their repeats.
func (l *loader) rareLists(context.Context) error {
	p := l.Placement.Resident
	for a := range l.repeats {
		l.repeats[a] = 1
	}
	l.upload.begin(l.rare)
	for a, unit := range p.Rare {
		if unit < 0 {
			continue
		}
		words, starts, ids := p.Lists.Rare(a).Arrays()
		l.repeats[a] = plan.LongestRun(starts, ids)
		for _, array := range [][]byte{abi.Bytes(ids), abi.Bytes(words), abi.Bytes(starts)} { // Resident.RareAt
			l.upload.write(array)
		}
	}
	return l.upload.flush()
}

// storedNumbers copies the values that filters look at.
func (l *loader) storedNumbers(context.Context) error {
	r, u, n := l.resident, l.upload, &l.Placement.Numbers
	if n.End == 0 {
		return nil
	}
	if err := u.whole(r.numbers, abi.Bytes(n.Table(r.numbers))); err != nil {
		return err
	}
	for i := range n.Attributes {
		own := &n.Attributes[i]
		if own.Starts > 0 {
			if err := u.whole(r.numbers+abi.Pointer(own.Starts), abi.Bytes(n.Starts(own))); err != nil {
				return err
			}
		}
		u.begin(r.numbers + abi.Pointer(own.Values))
		n.EachTile(own, func(values []float64) { u.append(abi.Bytes(values)) })
		if err := u.flush(); err != nil {
			return err
		}
	}
	return nil
}

// tables copies the tables that belong to the planes, and that of the forms, which points into them.
func (l *loader) tables(context.Context) error {
	r, u, s := l.resident, l.upload, l.Placement.Planes
	if s != nil {
		codeOf := s.CodeOf(r.tables, l.Placement.Lists)
		if err := u.tables(r.tables, map[int64][]byte{
			0: abi.Bytes(s.Attributes), s.Tables.Units: abi.Bytes(s.UnitAttribute), s.Tables.CodeOf: abi.Bytes(codeOf),
		}); err != nil {
			return err
		}
	}
	forms := l.Placement.Forms(r.rare)
	if forms == nil {
		return nil
	}
	if r.forms = r.own.memory(abi.Units(abi.FormBytes*len(forms)) * abi.UnitBytes); r.own.err != nil {
		return deviceError("allocating the table of forms", r.own.err)
	}
	return u.whole(r.forms, abi.Bytes(forms))
}

// originals copies what candidates are compared by.
func (l *loader) originals(ctx context.Context) (err error) {
	u := l.upload
	if t := l.Placement.Texts; t != nil {
		u.begin(l.resident.texts)
		if err = t.Each(ctx, l.crew, u.write); err == nil {
			err = u.flush()
		}
	}
	for i, t := range l.Placement.Terms {
		if err == nil {
			u.begin(l.resident.terms[i])
			t.Each(u.write)
			err = u.flush()
		}
	}
	return err
}

// codes derives the codes from planes that have been loaded.
func (l *loader) codes(context.Context) error {
	r, c, s := l.resident, l.Placement.Codes, l.Placement.Planes
	if c == nil {
		return nil
	}
	columns, codeOf := make([]uint32, len(c.Columns)), make([]abi.Pointer, len(s.Attributes))
	for i, a := range c.Columns {
		columns[i] = s.Attributes[a].Plane<<8 | s.Attributes[a].Planes
	}
	for a := range codeOf {
		codeOf[a] = s.Attributes[a].CodeOf
	}
	if err := l.upload.tables(r.codes, map[int64][]byte{
		0: abi.Bytes(columns), c.CodeOf: abi.Bytes(codeOf), c.ColumnOfAt: abi.Bytes(c.ColumnOf),
	}); err != nil {
		return err
	}
	var list steps
	for i := range l.Placement.Parts {
		part := &l.Placement.Parts[i]
		if part.Groups == 0 {
			continue
		}
		objects := part.Groups * abi.GroupObjects
		launch(&list, r.kernels.boundCodes, objects/r.kernels.boundCodes.threads, c.RowBytes()/abi.ChunkColumns, &abi.BoundCodes{
			Planes: r.dataOf(i), Columns: r.codes, Codes: r.codes + abi.Pointer(c.Row(part.FirstTile*run.TileObjects)),
			PlanesOfGroup: uint32(s.OfGroup), Objects: uint32(objects), ColumnCount: uint32(len(c.Columns)), RowBytes: uint32(c.RowBytes()),
		})
	}
	return deviceError("deriving the codes", list.run(l.upload.stream, l.upload.copied[0]))
}
