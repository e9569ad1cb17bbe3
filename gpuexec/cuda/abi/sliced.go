package abi

// Of kernels/sliced.cuh and sliced_plan.cu, the shared-decode kernel.

// Numbers of the shared-decode kernel.
const (
	GroupObjects    = 1024
	RowBytes        = 128 // of a plane of a group
	RowUnits        = RowBytes / UnitBytes
	OctetRows       = 8
	OctetBytes      = OctetRows * RowBytes
	UnitCodes       = 256 // of a unit of rows
	UnitOctets      = UnitCodes / OctetRows
	UnitTasks       = UnitOctets / 8 // of eight octets each
	RowKinds        = 3
	TreeRows        = 8
	MaxBlockQueries = 256
	SlicedStages    = 3          // of decoded octets, of a block
	MinStageOctets  = UnitOctets // a unit must fit a stage

	SlicedPlanThreads = 512 // of a block of sliced_plan
)

// SlicedAttribute says where the planes of an attribute lie.
type SlicedAttribute struct {
	CodeOf                     Pointer
	Plane, Planes, Codes, Unit uint32
}

// Plan is the argument of sliced_plan.
type Plan struct {
	Queries, Spans, Attributes, UnitAttribute       Pointer
	Programs, Lists, Lengths, Records, Biases       Pointer
	Chunks, Tasks, Rows, Counts, Units              Pointer
	FirstQuery, QueriesOfBatch, PerBlock            uint32
	Warps, Slots, Decoders                          uint32
	UnitsOfKind, StageOctets                        uint32
	MaxRows, MaxChunks, MaxTrees, MaxTasks, MaxList uint32
	_                                               uint32
}

// Sliced is the argument of sliced_match.
type Sliced struct {
	Planes, Programs, Lists, Lengths, Records, Biases Pointer
	Queries, States, Entries, Waves, Tickets          Pointer
	PlanesOfGroup, ResidentGroup                      uint32
	FirstGroup, Groups, FirstWave, WaveGroups, Base   uint32
	FirstQuery, QueriesOfBatch, PerBlock              uint32
	Stages, StageOctets                               uint32
	MaxTrees, MaxList                                 uint32
}
