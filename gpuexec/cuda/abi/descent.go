package abi

import "unsafe"

// Of kernels/descent.cuh, descents of trees.

// Numbers of a descent.
const (
	DescentLevels = 33   // depths of a tree, at most
	DescentSeeds  = 8    // leaves that a query looks at before the first round
	DescentBins   = 1024 // groups of leaves
)

// What a distance is of a value (enum DescentMeasure).
const (
	DescentValue uint32 = iota
	DescentRoot
	DescentChord
)

// Sizes in bytes.
const (
	DescentTreeBytes  = 144
	DescentLevelBytes = 40
	DescentStateBytes = 172
	DescentWorkBytes  = 64
	DescentPlaceBytes = 16
)

var (
	_ = [1]struct{}{}[unsafe.Sizeof(DescentTree{})-DescentTreeBytes]
	_ = [1]struct{}{}[unsafe.Sizeof(DescentLevel{})-DescentLevelBytes]
	_ = [1]struct{}{}[unsafe.Sizeof(DescentState{})-DescentStateBytes]
	_ = [1]struct{}{}[unsafe.Sizeof(DescentWork{})-DescentWorkBytes]
)

// DescentTree is a tree on the device.
type DescentTree struct {
	First, Begin, Count, Parent, Pivots, Lo, Hi, Boxes, Path, Objects, Starts Pointer
	Share, Lost, Ulps, Square                                                 float64
	Nodes, Height, Positions, Measure                                         uint32
	Symbols, _                                                                uint32
}

// DescentLevel is the buffer of a level.
type DescentLevel struct {
	Bounds, Distances, Queries, Nodes Pointer
	Room, _                           uint32
}

// DescentState is where a batch is.
type DescentState struct {
	Counts              [DescentLevels]uint32
	Fed                 uint32
	Level, Begin, Taken uint32
	Current             uint32
	Listed              [2]uint32
	Admitted            uint32
	Rounds, Done        uint32
}

// DescentWork is the memory of a batch.
type DescentWork struct {
	Lists, Places, Grouped, Bins, Admitted, Seeds Pointer
	ListRoom, Most, Leaves, BinShift              uint32
}

// Descent is the argument of the kernels.
type Descent struct {
	Near                      Near
	Tree, Levels, State, Work Pointer
	FirstSeed, Seeds          uint32
}

// DescentDepth is the argument of the kernels of descent_depth.cu.
type DescentDepth struct {
	Near         Near
	Tree, Stacks Pointer
	StackRoom, _ uint32
}
