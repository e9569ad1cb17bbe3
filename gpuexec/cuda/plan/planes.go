package plan

import (
	"math/bits"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
)

// Planes say where the bit planes of an index's sliced attributes lie on the device (kernels/sliced.cuh). Which
// attributes are sliced, the index file says (schema.LayoutSliced). The device wants the planes of all attributes of a group
// together, where the file has them attribute by attribute.
type Planes struct {
	Attributes    []abi.SlicedAttribute // of every attribute; Planes = 0: not sliced, or no object has a keyword
	Sliced        []uint32              // attributes with planes
	UnitAttribute []uint32
	OfGroup       int // planes
	// Tables divide the device memory of what belongs to the planes of all parts; the table of attributes comes first.
	Tables struct{ Units, CodeOf, End int64 }

	codes  []postings.Codes // by attribute
	octets int              // of all attributes, for one kind of row
	groups int
	// Objects of the index in all, before the tiles that are here, and before their end.
	objects, before, end uint64
}

// newPlanes returns nil where nothing is sliced.
func newPlanes(x *postings.Lists, tiles run.Tiles) *Planes {
	attributes := x.Attributes()
	p := &Planes{
		Attributes: make([]abi.SlicedAttribute, len(attributes)), codes: make([]postings.Codes, len(attributes)),
		groups:  groupsOf(tiles.Objects(x.Objects())),
		objects: uint64(x.Objects()), before: uint64(tiles.Base()), end: uint64(tiles.Base()) + uint64(tiles.Objects(x.Objects())),
	}
	keywords := int64(0) // of sliced attributes, and one more of each
	for a := range attributes {
		if attributes[a].Layout != schema.LayoutSliced || x.Codes(a).Len() == 0 {
			continue
		}
		p.codes[a] = x.Codes(a)
		codes := uint32(p.codes[a].Len())
		planes := bits.Len32(codes)
		p.Attributes[a] = abi.SlicedAttribute{
			Plane: uint32(p.OfGroup), Planes: uint32(planes), Codes: codes, Unit: uint32(len(p.UnitAttribute)),
		}
		p.OfGroup += planes
		p.octets += int(codes)/8 + 1
		for range codes/abi.UnitCodes + 1 {
			p.UnitAttribute = append(p.UnitAttribute, uint32(a))
		}
		p.Sliced = append(p.Sliced, uint32(a))
		keywords += int64(attributes[a].Keywords) + 1
	}
	if len(p.Sliced) == 0 {
		return nil
	}
	p.Tables.Units = abi.Align(int64(len(p.Attributes)) * abi.SlicedAttributeBytes)
	p.Tables.CodeOf = abi.Align(p.Tables.Units + 4*int64(len(p.UnitAttribute)))
	p.Tables.End = abi.Align(p.Tables.CodeOf + 4*keywords)
	return p
}

// CodeOf is the table that says, by keyword of each sliced attribute, its code. It lies in the tables at memory, and the
// attributes know from now on where.
func (p *Planes) CodeOf(memory abi.Pointer, x *postings.Lists) []uint32 {
	var codeOf []uint32
	for _, a := range p.Sliced {
		p.Attributes[a].CodeOf = memory + abi.Pointer(p.Tables.CodeOf) + abi.Pointer(4*len(codeOf))
		for keyword := range x.Attributes()[a].Keywords + 1 {
			codeOf = append(codeOf, p.codes[a].Of(keyword))
		}
	}
	return codeOf
}

func groupsOf(objects uint32) int { return (int(objects) + abi.GroupObjects - 1) / abi.GroupObjects }

// Has says whether an attribute has planes.
func (p *Planes) Has(attribute int) bool { return p != nil && p.Attributes[attribute].Planes > 0 }

// Units is the device memory of the planes of so many groups.
func (p *Planes) Units(groups int) int64 {
	if p == nil {
		return 0
	}
	return int64(groups) * int64(p.OfGroup) * abi.RowUnits
}

// share estimates how many of so many postings of the index are here: the share of the range's objects, such that the shares
// of all ranges add up.
func (p *Planes) share(postings uint64) uint64 {
	before := func(objects uint64) uint64 {
		hi, lo := bits.Mul64(postings, objects)
		n, _ := bits.Div64(hi, lo, p.objects) // fits: objects <= p.objects
		return n
	}
	if p.end-p.before == p.objects {
		return postings
	}
	return before(p.end) - before(p.before)
}

// postingsBefore returns, by keyword up to their number, how many postings the keywords before it have in the index. It is the
// directory of the codes (postings.Codes) made flat for planning: one look-up takes one load, and neighbours share a line.
// The device has a table of the same size (CodeOf).
func postingsBefore(codes postings.Codes, keywords uint32) []uint32 {
	before := make([]uint32, keywords+1)
	for keyword := range before {
		before[keyword] = uint32(codes.Before(codes.Of(uint32(keyword))))
	}
	return before
}
