//go:build cuda

package device

import (
	"math/bits"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index"
)

// slicedLayout says where the planes of an index's bit-sliced attributes lie on the device (kernels/sliced.cuh). Which
// attributes are, the index file says (index.LayoutSliced). The device wants the planes of all attributes of a group
// together, where the file has them attribute by attribute.
type slicedLayout struct {
	attributes    []abi.SlicedAttribute // of every attribute; planes = 0: not sliced, or no object has a keyword
	sliced        []uint32              // attributes with planes
	codes         []index.Codes         // by attribute
	unitAttribute []uint32
	octets        int // of all attributes, for one kind of row
	planesOfGroup int
	groups        int
	// Objects of the index in all, before the tiles that are here, and before their end.
	objects, before, end uint64
}

// tileGroups is how many groups a tile has.
const tileGroups = index.TileObjects / abi.GroupObjects

// The kernels are compiled for the index's tiles and groups.
var (
	_ = [1]struct{}{}[index.TileObjects-abi.TileObjects]
	_ = [1]struct{}{}[index.GroupObjects-abi.GroupObjects]
)

// newSlicedLayout returns nil where nothing is sliced.
func newSlicedLayout(x *index.Index, tiles run.Tiles) *slicedLayout {
	attributes := x.Attributes()
	l := &slicedLayout{
		attributes: make([]abi.SlicedAttribute, len(attributes)), codes: make([]index.Codes, len(attributes)),
		groups:  groupsOf(tiles.Objects(x.Objects())),
		objects: uint64(x.Objects()), before: uint64(tiles.Base()), end: uint64(tiles.Base()) + uint64(tiles.Objects(x.Objects())),
	}
	for a := range attributes {
		if attributes[a].Layout != index.LayoutSliced || x.Codes(a).Len() == 0 {
			continue
		}
		l.codes[a] = x.Codes(a)
		codes := uint32(l.codes[a].Len())
		planes := bits.Len32(codes)
		l.attributes[a] = abi.SlicedAttribute{
			Plane: uint32(l.planesOfGroup), Planes: uint32(planes), Codes: codes, Unit: uint32(len(l.unitAttribute)),
		}
		l.planesOfGroup += planes
		l.octets += int(codes)/8 + 1
		for range codes/abi.UnitCodes + 1 {
			l.unitAttribute = append(l.unitAttribute, uint32(a))
		}
		l.sliced = append(l.sliced, uint32(a))
	}
	if len(l.sliced) == 0 {
		return nil
	}
	return l
}

func groupsOf(objects uint32) int {
	return (int(objects) + index.GroupObjects - 1) / index.GroupObjects
}

// has says whether an attribute has planes.
func (l *slicedLayout) has(attribute int) bool { return l != nil && l.attributes[attribute].Planes > 0 }

// units is the device memory of the planes of so many groups.
func (l *slicedLayout) units(groups int) int64 {
	if l == nil {
		return 0
	}
	return int64(groups) * int64(l.planesOfGroup) * abi.RowUnits
}

// slicedPlaces divide the device memory of what belongs to the planes of all parts, which is one piece.
type slicedPlaces struct {
	units, codeOf, end int64 // the table of attributes comes first
}

func (l *slicedLayout) places(x *index.Index) (at slicedPlaces) {
	at.units = alignUp(int64(len(l.attributes)) * abi.SlicedAttributeBytes)
	at.codeOf = alignUp(at.units + 4*int64(len(l.unitAttribute)))
	at.end = at.codeOf
	for _, a := range l.sliced {
		at.end += 4 * (int64(x.Attributes()[a].Keywords) + 1)
	}
	at.end = alignUp(at.end)
	return at
}

// share estimates how many of so many postings of the index are here: the share of the range's objects, such that the shares
// of all ranges add up.
func (l *slicedLayout) share(postings uint64) uint64 {
	before := func(objects uint64) uint64 {
		hi, lo := bits.Mul64(postings, objects)
		n, _ := bits.Div64(hi, lo, l.objects) // fits: objects <= l.objects
		return n
	}
	if l.end-l.before == l.objects {
		return postings
	}
	return before(l.end) - before(l.before)
}

// postingsBefore returns, by keyword up to their number, how many postings the keywords before it have in the index. It is the
// directory of the codes (index.Codes) made flat for planning: one look-up takes one load, and neighbours share a line.
// The device has a table of the same size (codeOf).
func postingsBefore(codes index.Codes, keywords uint32) []uint32 {
	before := make([]uint32, keywords+1)
	for keyword := range before {
		before[keyword] = uint32(codes.Before(codes.Of(uint32(keyword))))
	}
	return before
}
