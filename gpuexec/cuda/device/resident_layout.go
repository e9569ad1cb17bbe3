//go:build cuda

package device

import (
	"fmt"
	"math"
	"slices"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index"
)

// residentLayout says where on the device the parts of an index come to lie. A part is
//
//	planes of its groups | for each tile: for each attribute: directory words | starts | ids
//
// Attributes in LayoutPostings have their postings there as in the file, those in LayoutRare the postings of their frequent
// keywords. Those in LayoutSliced have planes, and where the memory has room also postings over all keywords, because
// single queries and short lists are faster on these. An index that is streamed has them as planes only: what it is
// copied costs most.
//
// The lists of rare keywords are not cut by tiles and stay on the device as a whole, with the directory that finds them.
type residentLayout struct {
	tiles      run.Tiles
	sections   []abi.Section // by tile x attributes + attribute; offsets from the beginning of the part
	parts      []part
	units      int64 // of all parts
	longest    int   // most postings of a section
	attributes int
	streamed   bool
	sliced     *slicedLayout // nil: nothing is
	postings   bool          // what is sliced has postings too
	rare       []int64       // by attribute: the unit where its rare keywords begin (rareAt), -1 where it has none
	rareUnits  int64
	tables     int64 // bytes of the tables that belong to the planes
}

// residentLimits bound a layout.
type residentLimits struct {
	memory     int64
	partBytes  int64 // unless 0: stream, in parts of at most so much (tests)
	planesOnly bool  // no postings of what is sliced
	narrow     int   // unless 0: so many narrow attributes are enough for codes (tests)
}

func units(bytes int) int64 { return (int64(bytes) + abi.UnitBytes - 1) / abi.UnitBytes }

const (
	// maxPartUnits is what an offset in the table of sections can tell apart: 64 GiB.
	maxPartUnits = math.MaxUint32 &^ (abi.RowUnits - 1)
	// maxRareUnits is what a span can tell apart (kernels/rare.cuh): 32 GiB.
	maxRareUnits  = math.MaxUint32 >> 1
	roundPostings = 1<<31 - 17
	// streamedBytes is how large a part of a streamed index is at most, unless a tile is larger. To copy it takes 5 ms: much longer
	// than the launch and the compaction that a part costs, and kernels wait so long for the first one. Larger parts would only
	// take memory that other indexes may need.
	streamedBytes = 256 << 20
)

// layoutResident lays a range of an index's tiles out for so much memory: with all its forms, else without the postings of
// what is sliced, else streamed in parts, as large as two buffers allow, up to streamedBytes.
func layoutResident(x *index.Index, tiles run.Tiles, limits residentLimits) (*residentLayout, error) {
	attributes := len(x.Attributes())
	l := &residentLayout{tiles: tiles, attributes: attributes, sliced: newSlicedLayout(x, tiles), rare: make([]int64, attributes)}
	if l.sliced != nil {
		l.tables = l.sliced.places(x).end
	}
	for a := range l.rare {
		l.rare[a] = -1
		if x.Attributes()[a].Layout == index.LayoutRare {
			l.rare[a] = l.rareUnits
			l.rareUnits = l.rareAt(x, a).end
		}
	}
	if l.rareUnits > maxRareUnits {
		return nil, fmt.Errorf("the lists of rare keywords take %d MiB, more than the %d that the device can tell apart",
			l.rareUnits*abi.UnitBytes>>20, maxRareUnits*abi.UnitBytes>>20)
	}
	whole := func(postings bool) bool {
		l.postings = postings
		tileUnits := l.measure(x)
		l.parts = cutParts(tileUnits, maxPartUnits)
		return len(l.parts)+len(tileUnits) == 0 || l.parts != nil && l.deviceBytes() <= limits.memory
	}
	if limits.partBytes > 0 || !(l.sliced != nil && !limits.planesOnly && whole(true)) && !whole(false) {
		l.streamed, l.postings = true, false
		tileUnits := l.measure(x)
		partBytes := limits.partBytes
		if partBytes == 0 {
			partBytes = streamedPart(tileUnits, limits.memory-l.fixedBytes())
		}
		l.parts = cutParts(tileUnits, min(partBytes/abi.UnitBytes, maxPartUnits))
		if l.parts == nil && len(tileUnits) > 0 {
			return nil, &gpuexec.DeviceError{Op: "placing the index", OutOfMemory: true, Err: fmt.Errorf(
				"%d MiB are free, tables and rare keywords need %d, and a tile of %d objects needs %d twice", limits.memory>>20,
				l.fixedBytes()>>20, index.TileObjects, slices.Max(tileUnits)*abi.UnitBytes>>20)}
		}
	}
	if l.longest > roundPostings {
		return nil, fmt.Errorf("%d postings of an attribute in 64,512 objects are more than the %d that the device counts", l.longest, roundPostings)
	}
	l.place(x)
	return l, nil
}

// streamedPart is how large the parts of a streamed index may be, given its tiles and the memory for two.
func streamedPart(tileUnits []int64, memory int64) int64 {
	largest := int64(streamedBytes)
	for _, units := range tileUnits {
		largest = max(largest, units*abi.UnitBytes)
	}
	return min(largest, memory/2)
}

// sectionSize is the room of a section's arrays: what they need, or where they will be decoded a bound of it.
type sectionSize struct{ words, starts, ids int64 }

func (s sectionSize) units() int64 { return s.words + s.starts + s.ids }

// size of the section of a tile of the range.
func (l *residentLayout) size(x *index.Index, tile, attribute int) (s sectionSize, postings int) {
	tile += l.tiles.First
	if x.Attributes()[attribute].Layout == index.LayoutSliced {
		if !l.postings || !l.sliced.has(attribute) {
			return s, 0
		}
		// An object has at most one keyword.
		words, starts := x.Codes(attribute).Arrays()
		postings = x.TileLen(tile)
		return sectionSize{units(8 * len(words)), units(4 * min(len(starts), postings+1)), units(2 * postings)}, postings
	}
	words, starts, ids := x.Postings(tile, attribute).Arrays()
	return sectionSize{units(8 * len(words)), units(4 * len(starts)), units(2 * len(ids))}, len(ids)
}

// measure returns the units of each tile, a multiple of rowUnits, and sets those of all and the longest section.
func (l *residentLayout) measure(x *index.Index) []int64 {
	tileUnits := make([]int64, l.tiles.Len())
	l.units, l.longest = 0, 0
	for tile := range tileUnits {
		for a := range l.attributes {
			size, postings := l.size(x, tile, a)
			tileUnits[tile] += size.units()
			l.longest = max(l.longest, postings)
		}
		tileUnits[tile] = alignRow(tileUnits[tile]) + l.sliced.units(l.groupsOf(x, tile))
		l.units += tileUnits[tile]
	}
	return tileUnits
}

func (l *residentLayout) groupsOf(x *index.Index, tile int) int {
	return groupsOf(uint32(x.TileLen(l.tiles.First + tile)))
}

// alignRow rounds units up so that planes after them are aligned.
func alignRow(units int64) int64 { return (units + abi.RowUnits - 1) &^ (abi.RowUnits - 1) }

// place fills the table of sections.
func (l *residentLayout) place(x *index.Index) {
	l.sections = make([]abi.Section, 0, l.tiles.Len()*l.attributes)
	for i := range l.parts {
		part := &l.parts[i]
		for tile := part.firstTile; tile < part.firstTile+part.tiles; tile++ {
			part.groups += l.groupsOf(x, tile)
		}
		at := l.sliced.units(part.groups)
		for tile := part.firstTile; tile < part.firstTile+part.tiles; tile++ {
			for a := range l.attributes {
				size, _ := l.size(x, tile, a)
				if size == (sectionSize{}) {
					l.sections = append(l.sections, abi.Section{})
					continue
				}
				_, starts, _ := x.Postings(l.tiles.First+tile, a).Arrays()
				l.sections = append(l.sections, abi.Section{
					Words: uint32(at), Starts: uint32(at + size.words), Ids: uint32(at + size.words + size.starts),
					Lists: uint32(max(len(starts), 1) - 1), // of what is decoded it comes with the lists
				})
				at += size.units()
			}
			at = alignRow(at)
		}
	}
}

// fixedBytes is the memory of the tables, the survey and the rare lists.
func (l *residentLayout) fixedBytes() int64 {
	const alignment = 256 * 7
	return int64(l.tiles.Len()*l.attributes)*abi.SectionBytes + int64(l.attributes)*(4+abi.FormBytes) + l.rareUnits*abi.UnitBytes + l.tables + alignment
}

// bufferBytes is the size of a buffer that parts are streamed through.
func (l *residentLayout) bufferBytes() int64 {
	var most int64
	for _, part := range l.parts {
		most = max(most, part.units)
	}
	return most * abi.UnitBytes
}

// deviceBytes is the memory of the resident index.
func (l *residentLayout) deviceBytes() int64 {
	if l.streamed {
		return l.fixedBytes() + 2*l.bufferBytes()
	}
	return l.fixedBytes() + l.units*abi.UnitBytes
}
