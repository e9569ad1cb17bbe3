package plan

import (
	"math"
	"math/bits"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
)

// A SlicedLaunch is one launch of the shared-decode kernel for each part of the index: queries of a piece whose counters have one
// width.
type SlicedLaunch struct {
	Counters     int // variant (Device.Sliced)
	First, Count int // queries of the piece
	slicedBlocks
	Columns                                         int
	FirstWave, WaveGroups                           int // groups
	MaxRows, MaxChunks, MaxTrees, MaxTasks, MaxList int
	// Offsets in its memory, which begins at Scratch of the arena; programs come first.
	Scratch                                                                                  int64
	Lists, Lengths, Records, Biases, Chunks, Tasks, Rows, Counts, Units, Waves, Tickets, End int64

	unitsOfBlock int
	variant      *SlicedVariant
}

// newSlicedLaunch sizes a launch. The bounds are those of kernels/sliced.cuh, with the rows counted.
func newSlicedLaunch(d *Device, variant int, queries []Query, first int, p *Planes) SlicedLaunch {
	v := &d.Sliced[variant]
	r := SlicedLaunch{variant: v, Counters: variant, First: first, Count: len(queries), slicedBlocks: v.blocks(len(queries))}
	r.Columns = v.columns(r.Blocks, d.Processors, p.groups)
	var weights uint32
	crowded := 0
	for b := range r.Blocks {
		rows, trees := 0, 0
		for i := b * r.PerBlock; i < min((b+1)*r.PerBlock, len(queries)); i++ {
			rows += int(queries[i].rows)
			trees += int(queries[i].crowded)
			weights |= queries[i].weights
		}
		r.MaxRows, crowded = max(r.MaxRows, rows), max(crowded, trees)
	}
	r.MaxRows = max(1, r.MaxRows)
	levels := bits.OnesCount32(weights | 1)
	r.unitsOfBlock = abi.RowKinds * len(p.UnitAttribute)
	used := min(r.unitsOfBlock, r.MaxRows)
	r.MaxChunks = levels*used + 1
	r.MaxTrees = levels*(used+crowded) + 1
	r.MaxTasks = levels*abi.UnitTasks*used + 1
	r.MaxList = r.MaxTasks + r.MaxChunks + 1
	r.divide()
	return r
}

// divide finds the offsets.
func (r *SlicedLaunch) divide() {
	v, at := r.variant, int64(0)
	next := func(bytes int64) int64 { // of a query block
		here := at
		at = abi.Align(at + int64(r.Blocks)*bytes)
		return here
	}
	next(abi.ProgramBytes)
	r.Lists = next(abi.TaskBytes * int64(v.Decoders) * int64(r.MaxList))
	r.Lengths = next(abi.WordBytes * int64(v.Decoders))
	r.Chunks = next(abi.ChunkBytes * int64(r.MaxChunks))
	r.Tasks = next(abi.TaskBytes * int64(r.MaxTasks))
	r.Records = next(r.recordsOfBlock())
	r.Biases = next(abi.WordBytes * int64(v.Warps*v.Slots))
	r.Rows = next(abi.PlanRowBytes * int64(r.MaxRows))
	r.Counts = next(abi.WordBytes * abi.UnitCodes * int64(r.unitsOfBlock))
	r.Units = next(abi.PlanUnitBytes * int64(r.unitsOfBlock))
	r.Waves = next(abi.WaveBytes * int64(v.Warps))
	r.Tickets = next(abi.WordBytes)
	r.End = at
}

// addressable says whether the kernels can tell the units of a query block apart, which a row names by 24 bits, and the
// records, whose bytes are counted in 32.
func (r *SlicedLaunch) addressable() bool {
	return r.unitsOfBlock <= 1<<24 && r.recordsOfBlock() <= math.MaxUint32
}

// recordsOfBlock is the bytes of a query block's records: one for each tree and warp.
func (r *SlicedLaunch) recordsOfBlock() int64 {
	return int64(r.MaxTrees) * int64(r.variant.Warps) * abi.RecordHeadBytes * int64(1+r.variant.Slots)
}

// slicedEntries is the candidates that a query may have between waves of groups: gate.cuh has the proof.
func slicedEntries(k, waveGroups int) int64 {
	return 2*int64(k) + int64(waveGroups)*int64(min(k, abi.GroupObjects))
}
