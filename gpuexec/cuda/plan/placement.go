package plan

import (
	"math"
	"strings"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index"
)

// A Placement is what of an index, or of a range of its tiles, comes onto a device.
//
// What an index must have comes first: itself, whole where there is room, else streamed through buffers of bounded size. Forms
// that only make it faster take what is left, in this order: postings of what is sliced, texts, codes. They leave room for
// what indexes must have that will be loaded later, because to be streamed costs an index much more than these forms bring.
// They are not given back: for an index that nobody has announced there is what the others have left. Before an announced one
// has no place at all an index is streamed, through buffers as small as need be.
//
// Loads at the same time are placed one after the other, each in the memory that those before it have left: who places holds
// the memory until it has taken what the placement says.
type Placement struct {
	*Resident
	Texts *Texts // nil: on the host
	Codes *Codes // nil: none
}

// DeviceBytes is the memory of all that is placed.
func (p *Placement) DeviceBytes() int64 {
	return p.Resident.DeviceBytes() + p.Texts.DeviceBytes() + p.Codes.DeviceBytes()
}

// Place decides what of an index comes onto a device of which Limits.Memory bytes are free, with its texts if they are given and
// there is room. later are announced.
func Place(d *Device, own run.Extent, texts *Texts, later []run.Extent, limits Limits) (p Placement, err error) {
	limits.streamPart = d.Profile.Pieces.StreamedPart
	free, bare := limits.Memory, limits
	bare.PlanesOnly = true
	for _, next := range later {
		bare.Memory -= leastBytes(next)
	}
	if p.Resident, err = newResident(own.Index, own.Tiles, bare); err != nil {
		bare.Memory = free // not enough for all
		if p.Resident, err = newResident(own.Index, own.Tiles, bare); err != nil {
			return p, err
		}
	}
	left := free - p.Resident.DeviceBytes() // for what only makes the index faster
	for _, next := range later {
		// What will not fit then leaves no room now either.
		if r, err := newResident(next.Index, next.Tiles, Limits{Memory: left, PlanesOnly: true, streamPart: limits.streamPart}); err == nil {
			left -= r.DeviceBytes()
		}
	}
	if p.Planes != nil && !p.Streamed && !limits.PlanesOnly {
		needed := p.Resident.DeviceBytes()
		more := limits
		more.Memory = needed + left
		if p.Resident, err = newResident(own.Index, own.Tiles, more); err != nil {
			return p, err
		}
		left -= p.Resident.DeviceBytes() - needed
	}
	if bytes := texts.DeviceBytes(); !p.Streamed && bytes <= left {
		p.Texts = texts
		left -= bytes
	}
	if codes := newCodes(p.Resident, d.BoundColumns, limits.Narrow); codes.DeviceBytes() <= left {
		p.Codes = codes
	}
	return p, nil
}

// leastBytes is the memory without which an index has no place: of all that it must have, or of tables and two buffers for a
// tile. It is 0 of one that no memory is enough for.
func leastBytes(x run.Extent) int64 {
	r, err := newResident(x.Index, x.Tiles, Limits{Memory: math.MaxInt64, PlanesOnly: true})
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
	FormTables   = "tables"
	FormBuffers  = "streamed buffers"
)

// Description is Capacity.Form: where the index lies, and in which forms.
func (p *Placement) Description() string {
	has := make(map[index.Layout]bool)
	for _, a := range p.Index.Attributes() {
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
		{has[index.LayoutPostings] || has[index.LayoutRare], FormPostings},
		{has[index.LayoutRare], FormRare},
		{p.Planes != nil, FormPlanes},
		{p.Planes != nil && p.Decoded, FormDecoded},
		{p.Codes != nil, FormCodes},
		{p.Texts != nil, FormTexts},
	} {
		if form.there {
			forms = append(forms, form.name)
		}
	}
	return where + ": " + strings.Join(forms, ", ")
}

// A Holding is a form of a placed index and what it takes of the device.
type Holding struct {
	Form   string
	Bytes  int64
	Needed bool // else it makes the index faster, and nothing more
}

// Holdings are what the placement takes, all of DeviceBytes.
func (p *Placement) Holdings() []Holding {
	tables := Holding{FormTables, p.TableBytes(), true}
	all := []Holding{tables, {FormRare, p.RareUnits * abi.UnitBytes, true}}
	if p.Streamed {
		all = append(all, Holding{FormBuffers, 2 * p.BufferBytes(), true})
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
		all = append(all, Holding{FormPlanes, planes * abi.UnitBytes, true}, Holding{FormDecoded, decoded * abi.UnitBytes, false},
			Holding{FormPostings, (p.Units - planes - decoded) * abi.UnitBytes, true})
	}
	all = append(all, Holding{FormTexts, p.Texts.DeviceBytes(), false}, Holding{FormCodes, p.Codes.DeviceBytes(), false})
	held := all[:0]
	for _, h := range all {
		if h.Bytes > 0 {
			held = append(held, h)
		}
	}
	return held
}
