package plan

import (
	"fmt"
	"math"
	"slices"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/filters"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
)

// A Resident says where on the device the parts of an index come to lie. A part is
//
//	planes of its groups | for each tile: for each attribute: directory words | starts | ids
//
// Attributes that the file has as postings have them there too, those with rare keywords the postings of their frequent
// keywords. Those that are sliced have planes, and where the memory has room also postings over all keywords, because
// single queries and short lists are faster on these. An index that is streamed has them as planes only: what it is
// copied costs most.
//
// The lists of rare keywords are not cut by tiles and stay on the device as a whole, with the directory that finds them.
type Resident struct {
	Lists      *postings.Lists
	Tiles      run.Tiles     // that are here: tiles, groups and objects are counted from its beginning
	Sections   []abi.Section // by tile x Attributes + attribute; offsets from the beginning of the part
	Parts      []Part
	Units      int64 // of all parts
	Attributes int
	Streamed   bool
	Planes     *Planes // nil: nothing is sliced
	Decoded    bool    // what is sliced has postings too
	Numbers    filters.Numbers
	Rare       []int64 // by attribute: the unit where its rare keywords begin (RareAt), -1 where it has none
	RareUnits  int64

	longest int // most postings of a section
}

// A Part is a run of an index's tiles. Offsets in the table of sections count from the beginning of a part, so a part is
// what is copied, and what a kernel sees, as a whole.
type Part struct {
	FirstTile, Tiles int
	Groups           int // of its tiles
	Units            int64
	At               int64 // of an index that stays on the device: its first unit there
}

// cutParts cuts an index into parts of at most so many units, given those of its tiles. It is nil when a tile does not fit.
func cutParts(tileUnits []int64, most int64) []Part {
	var parts []Part
	var at int64
	for tile, units := range tileUnits {
		if units > most {
			return nil
		}
		if last := len(parts) - 1; last >= 0 && parts[last].Units+units <= most {
			parts[last].Units += units
			parts[last].Tiles++
		} else {
			parts = append(parts, Part{FirstTile: tile, Tiles: 1, Units: units, At: at})
		}
		at += units
	}
	return parts
}

// streamedPart is how large the parts of a streamed index may be, given its tiles and the memory for two.
func streamedPart(tileUnits []int64, memory, most int64) int64 {
	for _, units := range tileUnits {
		most = max(most, units*abi.UnitBytes)
	}
	return min(most, memory/2)
}

// Limits bound what an index takes of a device.
type Limits struct {
	Memory int64 // bytes that are free
	// What tests ask for.
	PartBytes  int64 // unless 0: stream, in parts of at most so much
	PlanesOnly bool  // no postings of what is sliced

	streamPart int64 // PieceSizes.StreamedPart
	stored     filter.Stored
}

const (
	// maxPartUnits is what an offset in the table of sections can tell apart: 64 GiB.
	maxPartUnits = math.MaxUint32 &^ (abi.RowUnits - 1)
	// maxRareUnits is what a span can tell apart (kernels/rare.cuh): 32 GiB.
	maxRareUnits  = math.MaxUint32 >> 1
	roundPostings = 1<<31 - 17
)

// newResident lays a range of an index's tiles out for so much memory: with all its forms, else without the postings of
// what is sliced, else streamed in parts, as large as two buffers allow, up to PieceSizes.StreamedPart.
func newResident(x *postings.Lists, tiles run.Tiles, limits Limits) (*Resident, error) {
	attributes := len(x.Attributes())
	r := &Resident{Lists: x, Tiles: tiles, Attributes: attributes, Planes: newPlanes(x, tiles), Rare: make([]int64, attributes)}
	for a := range r.Rare {
		r.Rare[a] = -1
		if x.Attributes()[a].Layout == schema.LayoutRare {
			r.Rare[a] = r.RareUnits
			r.RareUnits = r.RareAt(a).End
		}
	}
	if r.RareUnits > maxRareUnits {
		return nil, fmt.Errorf("the lists of rare keywords take %d MiB, more than the %d that the device can tell apart",
			r.RareUnits*abi.UnitBytes>>20, maxRareUnits*abi.UnitBytes>>20)
	}
	r.Numbers = filters.NewNumbers(x, tiles, limits.stored)
	whole := func(decoded bool) bool {
		r.Decoded = decoded
		tileUnits := r.measure()
		r.Parts = cutParts(tileUnits, maxPartUnits)
		return len(r.Parts)+len(tileUnits) == 0 || r.Parts != nil && r.DeviceBytes() <= limits.Memory
	}
	if limits.PartBytes > 0 || !(r.Planes != nil && !limits.PlanesOnly && whole(true)) && !whole(false) {
		if err := r.stream(limits); err != nil {
			return nil, err
		}
	}
	if r.longest > roundPostings {
		return nil, fmt.Errorf("%d postings of an attribute in 64,512 objects are more than the %d that the device counts", r.longest, roundPostings)
	}
	r.locate()
	return r, nil
}

// stream cuts the index into parts that two buffers have room for.
func (r *Resident) stream(limits Limits) error {
	r.Streamed, r.Decoded = true, false
	tileUnits := r.measure()
	bytes := limits.PartBytes
	if bytes == 0 {
		bytes = streamedPart(tileUnits, limits.Memory-r.FixedBytes(), limits.streamPart)
	}
	r.Parts = cutParts(tileUnits, min(bytes/abi.UnitBytes, maxPartUnits))
	if r.Parts == nil && len(tileUnits) > 0 {
		return &gpuexec.DeviceError{Op: "placing the index", OutOfMemory: true, Err: fmt.Errorf(
			"%d MiB are free, tables and rare keywords need %d, and a tile of %d objects needs %d twice", limits.Memory>>20,
			r.FixedBytes()>>20, run.TileObjects, slices.Max(tileUnits)*abi.UnitBytes>>20)}
	}
	return nil
}

// SectionUnits is the room of a section's arrays: what they need, or where they will be decoded a bound of it.
type SectionUnits struct {
	Words, Starts, Ids int64
	postings           int
}

func (s SectionUnits) All() int64 { return s.Words + s.Starts + s.Ids }

// Section is the room of the section of a tile of the range.
func (r *Resident) Section(tile, attribute int) SectionUnits {
	x := r.Lists
	tile += r.Tiles.First
	if x.Attributes()[attribute].Layout == schema.LayoutSliced {
		if !r.Decoded || !r.Planes.Has(attribute) {
			return SectionUnits{}
		}
		// An object has at most one keyword.
		words, starts := x.Codes(attribute).Arrays()
		n := x.TileLen(tile)
		return SectionUnits{abi.Units(8 * len(words)), abi.Units(4 * min(len(starts), n+1)), abi.Units(2 * n), n}
	}
	words, starts, ids := x.Postings(tile, attribute).Arrays()
	return SectionUnits{abi.Units(8 * len(words)), abi.Units(4 * len(starts)), abi.Units(2 * len(ids)), len(ids)}
}

// measure returns the units of each tile, a multiple of a plane's row, and sets those of all and the longest section.
func (r *Resident) measure() []int64 {
	tileUnits := make([]int64, r.Tiles.Len())
	r.Units, r.longest = 0, 0
	for tile := range tileUnits {
		for a := range r.Attributes {
			size := r.Section(tile, a)
			tileUnits[tile] += size.All()
			r.longest = max(r.longest, size.postings)
		}
		tileUnits[tile] = abi.AlignRow(tileUnits[tile]) + r.Planes.Units(r.GroupsOf(tile))
		r.Units += tileUnits[tile]
	}
	return tileUnits
}

// GroupsOf is the number of groups of a tile of the range.
func (r *Resident) GroupsOf(tile int) int {
	return groupsOf(uint32(r.Lists.TileLen(r.Tiles.First + tile)))
}

// locate fills the table of sections.
func (r *Resident) locate() {
	r.Sections = make([]abi.Section, 0, r.Tiles.Len()*r.Attributes)
	for i := range r.Parts {
		part := &r.Parts[i]
		for tile := part.FirstTile; tile < part.FirstTile+part.Tiles; tile++ {
			part.Groups += r.GroupsOf(tile)
		}
		at := r.Planes.Units(part.Groups)
		for tile := part.FirstTile; tile < part.FirstTile+part.Tiles; tile++ {
			for a := range r.Attributes {
				size := r.Section(tile, a)
				if size == (SectionUnits{}) {
					r.Sections = append(r.Sections, abi.Section{})
					continue
				}
				_, starts, _ := r.Lists.Postings(r.Tiles.First+tile, a).Arrays()
				r.Sections = append(r.Sections, abi.Section{
					Words: uint32(at), Starts: uint32(at + size.Words), Ids: uint32(at + size.Words + size.Starts),
					Lists: uint32(max(len(starts), 1) - 1), // of what is decoded it comes with the lists
				})
				at += size.All()
			}
			at = abi.AlignRow(at)
		}
	}
}

// RoundSpans: so many spans of a query have less than 2^31 postings in a tile.
func (r *Resident) RoundSpans() int {
	return roundPostings / (r.longest + 16) // the parts of units that belong to neighbours count too
}

// TableBytes is the device memory of the tables and the survey.
func (r *Resident) TableBytes() int64 {
	const alignment = 256 * 7
	bytes := int64(r.Tiles.Len()*r.Attributes)*abi.SectionBytes + int64(r.Attributes)*(4+abi.FormBytes) + alignment
	if r.Planes != nil {
		bytes += r.Planes.Tables.End
	}
	return bytes
}

// FixedBytes is the device memory of the tables, the survey, the rare lists and stored numbers.
func (r *Resident) FixedBytes() int64 {
	return r.TableBytes() + r.RareUnits*abi.UnitBytes + r.Numbers.End
}

// BufferBytes is the size of a buffer that parts are streamed through.
func (r *Resident) BufferBytes() int64 {
	most := int64(0)
	for _, part := range r.Parts {
		most = max(most, part.Units*abi.UnitBytes)
	}
	return most
}

// DeviceBytes is the memory of the resident index.
func (r *Resident) DeviceBytes() int64 {
	if r.Streamed {
		return r.FixedBytes() + 2*r.BufferBytes()
	}
	return r.FixedBytes() + r.Units*abi.UnitBytes
}

// Objects is the number of objects that are here.
func (r *Resident) Objects() uint32 { return r.Tiles.Objects(r.Lists.Objects()) }

// RareOffsets are where the rare keywords of an attribute lie, in units of the memory of all rare lists.
type RareOffsets struct{ Ids, Words, Starts, End int64 }

// RareAt is where those of an attribute lie.
func (r *Resident) RareAt(attribute int) RareOffsets {
	words, starts, ids := r.Lists.Rare(attribute).Arrays()
	at := RareOffsets{Ids: r.Rare[attribute]}
	at.Words = at.Ids + abi.Units(4*len(ids))
	at.Starts = at.Words + abi.Units(8*len(words))
	at.End = at.Starts + abi.Units(4*len(starts))
	return at
}

// slots is how many spans the device makes of one, at most (Index.Slots).
func (r *Resident) slots() int {
	n := 0
	for a := range r.Attributes {
		switch {
		case r.Rare[a] >= 0:
			n = 2
		case r.Planes.Has(a) && !r.Decoded:
			n = max(n, 1)
		}
	}
	return n
}

// Forms is the table that says how each attribute lies on the device, for rare lists that begin at rare. The planes'
// tables must lie somewhere already (Planes.CodeOf). It is nil where spans need not be resolved.
func (r *Resident) Forms(rare abi.Pointer) []abi.Form {
	if r.slots() == 0 {
		return nil
	}
	forms := make([]abi.Form, r.Attributes)
	for a := range forms {
		switch {
		case r.Rare[a] >= 0:
			at := r.RareAt(a)
			forms[a] = abi.Form{
				Words: rare + abi.Pointer(at.Words*abi.UnitBytes), Table: rare + abi.Pointer(at.Starts*abi.UnitBytes),
				Kind: abi.FormRare, Place: uint32(at.Ids) << 1,
			}
		case r.Planes.Has(a) && !r.Decoded:
			at := &r.Planes.Attributes[a]
			forms[a] = abi.Form{Table: at.CodeOf, Kind: abi.FormPlanes, Place: at.Plane<<8 | at.Planes}
		}
	}
	return forms
}
