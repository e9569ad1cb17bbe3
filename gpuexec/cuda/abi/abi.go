// Package abi is what the host and the kernels of the CUDA engine agree on: the structs that both read and write, their sizes,
// and the numbers that both name.
//
// Each struct here mirrors one of kernels/*.cuh or kernels/*.cu, which has the same name and explains the fields. A mirror
// has the same fields in the same order, with an upper-case first letter; what the kernels call unused is blank. The test of this
// package reads the kernels' sources and compares offset, width and name of every field, the sizes of all structs and the
// values of all constants. It needs neither a device nor a compiler, so that a field that changes its place on one side
// only does not pass CI anywhere.
//
// The words are the kernels' here: the lanes of a warp are lanes, where the rest of the engine calls a lane what
// executes one batch.
//
// The package imports nothing of ours and has no build tag: who plans for a device uses it where there is none.
package abi

import "unsafe"

// Pointer is an address in a device's memory.
type Pointer uint64

// Sizes in bytes.
const (
	UnitBytes    = 16 // offsets in a Section count these
	SectionBytes = 16
	SpanBytes    = 16
	QueryBytes   = 40
	StateBytes   = 32

	FormBytes            = 24
	SlicedAttributeBytes = 24
	VerifyTaskBytes      = 28
	ScanQueryBytes       = 16

	// Of what the kernels alone write and read, in memory that the host finds for it.
	ProgramBytes    = 16
	ChunkBytes      = 8
	TaskBytes       = 16
	RecordHeadBytes = 16 // as much as the part of each slot that follows it
	PlanRowBytes    = 8
	PlanUnitBytes   = 16
	WaveBytes       = 32
	WordBytes       = 4
)

var (
	_ = [1]struct{}{}[unsafe.Sizeof(Section{})-SectionBytes]
	_ = [1]struct{}{}[unsafe.Sizeof(Span{})-SpanBytes]
	_ = [1]struct{}{}[unsafe.Sizeof(Query{})-QueryBytes]
	_ = [1]struct{}{}[unsafe.Sizeof(State{})-StateBytes]
	_ = [1]struct{}{}[unsafe.Sizeof(Form{})-FormBytes]
	_ = [1]struct{}{}[unsafe.Sizeof(SlicedAttribute{})-SlicedAttributeBytes]
	_ = [1]struct{}{}[unsafe.Sizeof(VerifyTask{})-VerifyTaskBytes]
	_ = [1]struct{}{}[unsafe.Sizeof(ScanQuery{})-ScanQueryBytes]
	_ = [1]struct{}{}[unsafe.Sizeof(TermsTask{})-TermsTaskBytes]
	_ = [1]struct{}{}[unsafe.Sizeof(AskedTerm{})-AskedTermBytes]
)

// Of kernels/batch.cuh.

// TileObjects is how many consecutive objects a tile has.
const TileObjects = 64512

// TileGroups is how many groups of GroupObjects a tile has.
const TileGroups = TileObjects / GroupObjects

// WarpLanes is how many threads a warp has.
const WarpLanes = 32

// MaxGridY is how many blocks a launch has at most in its second dimension.
const MaxGridY = 65535

// Section says where the postings of a tile and attribute lie.
type Section struct {
	Words, Starts, Ids uint32 // in units
	Lists              uint32
}

// Span is a set of consecutive keywords of an attribute.
type Span struct {
	Attribute, Lo, Hi, Weight uint32
}

// Query is a query as the host sends it.
type Query struct {
	First, Spans          uint32
	K, Bound              uint32
	Entries, Out          uint64
	PlaneSpans, RareSpans uint32
}

// State is what the kernels know of a query.
type State struct {
	Threshold, Stored uint32
	Postings, Passed  uint64
	Kept, _           uint32
}

// Batch is the argument of the kernels of match.cu and select.cu.
type Batch struct {
	Data, Sections, Queries, Spans, States, Entries, Out Pointer
	Planes, Rare                                         Pointer
	Attributes, Objects                                  uint32
	FirstQuery, FirstTile, ResidentTile, Base            uint32
	RoundSpans, PlanesOfGroup                            uint32
}

// Of kernels/load.cu.

// Survey is the argument of both kernels.
type Survey struct {
	Data, Sections, Repeats Pointer
	Attributes, _           uint32
}

// Of kernels/resolve.cu.

// Form says how an attribute lies on the device.
type Form struct {
	Words, Table Pointer
	Kind, Place  uint32
}

// The kinds of a Form.
const (
	FormPostings uint32 = iota
	FormPlanes
	FormRare
)

// Resolve is the argument of the kernel.
type Resolve struct {
	Queries, Spans, Forms Pointer
	Resolved, Slots       uint32
}
