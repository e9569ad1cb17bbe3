package abi

import "math"

// Of kernels/bound.cuh, the bound and its recount.

// Numbers of the bound.
const (
	MaxCodes         = 254 // of a column: the missing value is one more, and 255 is of no object
	MaskCodes        = 32  // bits of a mask
	ChunkColumns     = 64  // a row is so many bytes, or a multiple
	StepColumns      = 8   // of a step of the matrix product
	BoundQueries     = 128 // of a query block
	StepBytes        = BoundQueries * StepColumns * MaskCodes / 8
	BoundTile        = 64                     // objects of one matrix product
	BoundMarks       = 1 << 18                // of a query: a bit per object, or per several where a wave has more
	BoundWave        = BoundMarks * BoundTile // objects of a wave, at most
	BoundMarkBytes   = BoundMarks / 8
	BoundRoom        = 256            // candidates of a query beside 2 k
	GivenUp          = math.MaxUint32 // State.Threshold of a query that was given up
	BoundCodeThreads = 256            // of a block of bound_codes: a divisor of a group's objects
)

// BoundCodes is the argument of bound_codes.
type BoundCodes struct {
	Planes, Columns, Codes                        Pointer
	PlanesOfGroup, Objects, ColumnCount, RowBytes uint32
}

// BoundPlan is the argument of bound_plan.
type BoundPlan struct {
	Queries, Spans, CodeOf, ColumnOf, Masks, Ranges Pointer
	FirstQuery, QueriesOfBatch, RowBytes, KSteps    uint32
}

// BoundMatch is the argument of bound_match and bound_recount.
type BoundMatch struct {
	Codes, Masks, Ranges, Queries, States, Entries, Marks Pointer
	RowBytes, KSteps                                      uint32
	FirstQuery, QueriesOfBatch                            uint32
	FirstObject, Objects, Base, Most                      uint32
}
