package plan

import (
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
)

// A Device is what planning knows of a device: numbers that whoever opens it reads from the driver and from the loaded kernels.
// It is a plain value, so that a plan can be made for any device anywhere.
type Device struct {
	Processors int // multiprocessors
	// Tile are the variants of the (query, tile) kernel that the device can launch, in the order in which a query prefers them.
	// The last one holds every count.
	Tile []TileVariant
	// Sliced are those of the shared-decode kernel, none where a block has too little shared memory.
	Sliced []SlicedVariant
	// BoundColumns is how many attributes the bound takes at most; 0: the device has no such kernel.
	BoundColumns int
	// MaxPattern is the longest pattern that the device compares with texts, in symbols.
	MaxPattern int
	// ScanObjects is how many texts a block of a scan takes, ScanFarthest the largest distance that it computes.
	ScanObjects, ScanFarthest int

	Profile *profile.Profile
}

// A TileVariant is a variant of the (query, tile) kernel: the width of its counters, and how many blocks share a tile.
type TileVariant struct {
	Bits, Blocks int
}

// tileVariant is the position of the first variant whose counters hold bound.
func (d *Device) tileVariant(bound uint32) int {
	for i := range d.Tile {
		if bound <= uint32(1<<d.Tile[i].Bits-1) {
			return i
		}
	}
	return len(d.Tile) - 1
}

// A SlicedVariant is a variant of the shared-decode kernel: the width of its counters, and how its warps are used.
type SlicedVariant struct {
	Planes      int // of a counter
	Warps       int // of a block that count
	Slots       int // queries of such a warp
	Decoders    int // further warps of a block
	StageOctets int // that a block's shared memory holds decoded
}

// slicedBlocks is how queries are dealt to query blocks.
type slicedBlocks struct {
	Blocks, PerBlock int
}

func (v *SlicedVariant) blocks(queries int) slicedBlocks {
	most := min(v.Warps*v.Slots, abi.MaxBlockQueries)
	blocks := (queries + most - 1) / most
	return slicedBlocks{blocks, (queries + blocks - 1) / blocks}
}

// columns is how many blocks share the groups of a query block. Groups are taken in ascending order by blocks that
// run, and a block waits only for lower groups, so blocks that have not started hold nobody up.
func (v *SlicedVariant) columns(blocks, processors, groups int) int {
	return max(1, min(processors/blocks, groups))
}
