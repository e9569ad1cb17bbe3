package plan

import (
	"math"
	"strings"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/rescoring"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
)

// A Placement is what of an index, or of a range of its tiles, comes onto a device.
//
// What an index must have comes first: itself, whole where there is room, else streamed through buffers of bounded size. Forms
// that only make it faster take what is left, in this order: postings of what is sliced, texts, terms, codes. They leave room for
// what indexes must have that will be loaded later, because to be streamed costs an index much more than these forms bring.
// They are not given back: for an index that nobody has announced there is what the others have left. Before an announced one
// has no place at all an index is streamed, through buffers as small as need be.
//
// Loads at the same time are placed one after the other, each in the memory that those before it have left: who places holds
// the memory until it has taken what the placement says.
type Placement struct {
	*Resident
	rescoring.Originals
	Codes *Codes // nil: none
}

// DeviceBytes is the memory of all that is placed.
func (p *Placement) DeviceBytes() int64 {
	return p.Resident.DeviceBytes() + p.Originals.DeviceBytes() + p.Codes.DeviceBytes()
}

// An Extent is a range of the tiles of an index.
type Extent struct {
	Lists  *postings.Lists
	Stored filter.Stored // what the index keeps beside its lists; may be nil
	Tiles  run.Tiles
}

// Place decides what of an index comes onto a device of which Limits.Memory bytes are free, with those of the originals
// for which there is room. later are announced.
func Place(d *Device, own Extent, originals rescoring.Originals, later []Extent, limits Limits) (p Placement, err error) {
	limits.streamPart, limits.stored = d.Profile.Pieces.StreamedPart, own.Stored
	free, bare := limits.Memory, limits
	bare.PlanesOnly = true
	for _, next := range later {
		bare.Memory -= leastBytes(next)
	}
	if p.Resident, err = newResident(own.Lists, own.Tiles, bare); err != nil {
		bare.Memory = free // not enough for all
		if p.Resident, err = newResident(own.Lists, own.Tiles, bare); err != nil {
			return p, err
		}
	}
	left := d.Left(free-p.Resident.DeviceBytes(), later) // for what only makes the index faster
	if p.Planes != nil && !p.Streamed && !limits.PlanesOnly {
		needed := p.Resident.DeviceBytes()
		more := limits
		more.Memory = needed + left
		if p.Resident, err = newResident(own.Lists, own.Tiles, more); err != nil {
			return p, err
		}
		left -= p.Resident.DeviceBytes() - needed
	}
	if !p.Streamed {
		p.Originals = originals.Fitting(left)
		left -= p.Originals.DeviceBytes()
	}
	if codes := newCodes(p.Resident, d.BoundColumns, d.Profile.Bound.Columns); codes.DeviceBytes() <= left {
		p.Codes = codes
	}
	return p, nil
}

// Left is what of so many free bytes is left beside what announced indexes must have. What will not fit then leaves no room now either.
func (d *Device) Left(free int64, later []Extent) int64 {
	for _, next := range later {
		r, err := newResident(next.Lists, next.Tiles, Limits{Memory: free, PlanesOnly: true, streamPart: d.Profile.Pieces.StreamedPart, stored: next.Stored})
		if err == nil {
			free -= r.DeviceBytes()
		}
	}
	return free
}

// leastBytes is the memory without which an index has no place: of all that it must have, or of tables and two buffers for a
// tile. It is 0 of one that no memory is enough for.
func leastBytes(x Extent) int64 {
	r, err := newResident(x.Lists, x.Tiles, Limits{Memory: math.MaxInt64, PlanesOnly: true, stored: x.Stored})
	if err != nil {
		return 0
	}
	tile := int64(0)
	for _, units := range r.measure() {
		tile = max(tile, units*abi.UnitBytes)
	}
	return min(r.DeviceBytes(), r.FixedBytes()+2*tile)
}

// PartsOfBatch is Capacity.Parts.
func (p *Placement) PartsOfBatch() int {
	if !p.Streamed {
		return 1 // one that stays has parts too where an offset in the table of sections ends
	}
	return max(1, len(p.Parts))
}

// The forms that an index has on a device, as they are said to people.
const (
	FormPostings = "postings"
	FormRare     = "rare lists"
	FormPlanes   = "planes"
	FormDecoded  = "decoded postings"
	FormCodes    = "byte codes"
	FormTexts    = "texts"
	FormTerms    = "terms"
	FormTables   = "tables"
	FormNumbers  = "stored numbers"
	FormBuffers  = "streamed buffers"
)

// Description is Capacity.Form: where the index lies, and in which forms.
func (p *Placement) Description() string {
	has := make(map[schema.Layout]bool)
	for _, a := range p.Lists.Attributes() {
		has[a.Layout] = true
	}
	where := "resident"
	if p.Streamed {
		where = "streamed"
	}
	var forms []string
	for _, form := range []struct {
		there bool
		name  string
	}{
		{has[schema.LayoutPostings] || has[schema.LayoutRare], FormPostings},
		{has[schema.LayoutRare], FormRare},
		{p.Planes != nil, FormPlanes},
		{p.Planes != nil && p.Decoded, FormDecoded},
		{p.Codes != nil, FormCodes},
		{p.Texts != nil, FormTexts},
		{len(p.Terms) > 0, FormTerms},
	} {
		if form.there {
			forms = append(forms, form.name)
		}
	}
	return where + ": " + strings.Join(forms, ", ")
}

// Holdings are what the placement takes for an owner, all of DeviceBytes. What the owner needs comes first.
func (p *Placement) Holdings(owner string) []gpuexec.Holding {
	var held []gpuexec.Holding
	add := func(form string, bytes int64, needed bool) {
		if bytes > 0 {
			held = append(held, gpuexec.Holding{Owner: owner, Form: form, Bytes: bytes, Needed: needed})
		}
	}
	add(FormTables, p.TableBytes(), true)
	add(FormRare, p.RareUnits*abi.UnitBytes, true)
	add(FormNumbers, p.Numbers.End, true)
	if p.Streamed {
		add(FormBuffers, 2*p.BufferBytes(), true)
	} else {
		var planes, decoded int64
		for i := range p.Parts {
			planes += p.Planes.Units(p.Parts[i].Groups)
		}
		if p.Decoded {
			for tile := range p.Tiles.Len() {
				for _, a := range p.Planes.Sliced {
					decoded += p.Section(tile, int(a)).All()
				}
			}
		}
		add(FormPlanes, planes*abi.UnitBytes, true)
		add(FormPostings, (p.Units-planes-decoded)*abi.UnitBytes, true)
		add(FormDecoded, decoded*abi.UnitBytes, false)
	}
	add(FormTexts, p.Texts.DeviceBytes(), false)
	add(FormTerms, p.TermsBytes(), false)
	add(FormCodes, p.Codes.DeviceBytes(), false)
	return held
}
