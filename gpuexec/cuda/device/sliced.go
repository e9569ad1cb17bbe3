//go:build cuda

package device

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/index"
)

// cudaSliced is a variant of the shared-decode kernel that the device can launch: the width of its counters.
type cudaSliced struct {
	function
	planes      int // of a counter
	warps       int // of a block that count
	slots       int // queries of such a warp
	decoders    int // further warps of a block
	stageOctets int
}

const (
	slicedStages   = 3
	minStageOctets = 32 // a unit must fit
)

// loadSliced finds the variants for which a block has enough shared memory; none is no error.
func (k *cudaKernels) loadSliced(modules map[string]module, limit int) (err error) {
	match, ok := modules["sliced_match"]
	if !ok {
		return nil
	}
	for _, planes := range []int{8, 16, 32} {
		v := cudaSliced{planes: planes}
		name := fmt.Sprintf("sliced_match_%d", planes)
		var slots, counters, decoders, shared uint32
		for _, c := range []struct {
			name string
			to   *uint32
		}{{"_slots", &slots}, {"_counters", &counters}, {"_decoders", &decoders}, {"_shared", &shared}} {
			if *c.to, err = match.constant(name + c.name); err != nil {
				return deviceError("reading "+name+c.name, err)
			}
		}
		v.slots, v.warps, v.decoders = int(slots), int(counters), int(decoders)
		v.stageOctets = ((limit-int(shared))/slicedStages - 128) / 1024
		if v.stageOctets < minStageOctets {
			k.sliced = nil
			return nil
		}
		if v.function, err = match.function(name, (v.warps+v.decoders)*32, int(shared)+slicedStages*(128+v.stageOctets*1024)); err != nil {
			return deviceError("finding kernel "+name, err)
		}
		k.sliced = append(k.sliced, v)
	}
	k.slicedPlan, err = modules["sliced_plan"].function("sliced_plan", abi.SlicedPlanThreads, 0)
	return deviceError("finding kernel sliced_plan", err)
}

// slicedBlocks is how queries are dealt to query blocks.
type slicedBlocks struct {
	blocks, perBlock int
}

func (v *cudaSliced) blocks(queries int) slicedBlocks {
	most := min(v.warps*v.slots, abi.MaxBlockQueries)
	blocks := (queries + most - 1) / most
	return slicedBlocks{blocks, (queries + blocks - 1) / blocks}
}

// columns is how many blocks share the groups of a query block. Groups are taken in ascending order by blocks that
// run, and a block waits only for lower groups, so blocks that have not started hold nobody up.
func (v *cudaSliced) columns(blocks, processors, groups int) int {
	return max(1, min(processors/blocks, groups))
}

// slicedIndex are the tables that belong to the planes, which lie in the parts.
type slicedIndex struct {
	*slicedLayout
	memory abi.Pointer
	at     slicedPlaces
}

// loadSliced copies the tables.
func (r *resident) loadSliced(u *uploader, layout *slicedLayout) (err error) {
	s := &slicedIndex{slicedLayout: layout, at: layout.places(r.index)}
	r.sliced = s // freed with the resident
	if s.memory, err = allocDevice(s.at.end); err != nil {
		return deviceError("allocating the tables of the bit-sliced attributes", err)
	}
	var codeOf []uint32
	for _, a := range layout.sliced {
		layout.attributes[a].CodeOf = s.memory + abi.Pointer(s.at.codeOf) + abi.Pointer(4*len(codeOf))
		for keyword := range r.index.Attributes()[a].Keywords + 1 {
			codeOf = append(codeOf, layout.codes[a].Of(keyword))
		}
	}
	if err := u.whole(s.memory, arrayBytes(layout.attributes)); err != nil {
		return err
	}
	if err := u.whole(s.memory+abi.Pointer(s.at.units), arrayBytes(layout.unitAttribute)); err != nil {
		return err
	}
	return u.whole(s.memory+abi.Pointer(s.at.codeOf), arrayBytes(codeOf))
}

func (s *slicedIndex) free() error {
	if s == nil || s.memory == 0 {
		return nil
	}
	p := s.memory
	s.memory = 0
	return deviceError("freeing the tables of the bit-sliced attributes", freeDevice(p))
}

// A slicedLaunch is one launch of the shared-decode kernel a part of the index: queries of a piece whose counters have one width.
type slicedLaunch struct {
	variant      *cudaSliced
	first, count int // queries of the piece
	slicedBlocks
	columns                                         int
	firstWave, waveGroups                           int // groups
	maxRows, maxChunks, maxTrees, maxTasks, maxList int
	unitsOfBlock                                    int
	// Places in the scratch; programs come first.
	lists, lengths, records, biases, chunks, tasks, rows, counts, units, waves, tickets, end int64
	scratch                                                                                  abi.Pointer
}

// newSlicedLaunch sizes a launch. The bounds are those of kernels/sliced.cuh, with the rows counted.
func newSlicedLaunch(v *cudaSliced, queries []laneQuery, first int, s *slicedLayout, processors int) slicedLaunch {
	r := slicedLaunch{variant: v, first: first, count: len(queries), slicedBlocks: v.blocks(len(queries))}
	r.columns = v.columns(r.blocks, processors, s.groups)
	var weights uint32
	crowded := 0
	for b := range r.blocks {
		rows, trees := 0, 0
		for i := b * r.perBlock; i < min((b+1)*r.perBlock, len(queries)); i++ {
			rows += int(queries[i].rows)
			trees += int(queries[i].crowded)
			weights |= queries[i].weights
		}
		r.maxRows, crowded = max(r.maxRows, rows), max(crowded, trees)
	}
	r.maxRows = max(1, r.maxRows)
	levels := bits.OnesCount32(weights | 1)
	r.unitsOfBlock = abi.RowKinds * len(s.unitAttribute)
	used := min(r.unitsOfBlock, r.maxRows)
	r.maxChunks = levels*used + 1
	r.maxTrees = levels*(used+crowded) + 1
	r.maxTasks = levels*abi.UnitTasks*used + 1
	r.maxList = r.maxTasks + r.maxChunks + 1

	n := int64(r.blocks)
	at := int64(0)
	place := func(bytes int64) int64 {
		here := at
		at = alignUp(at + n*bytes)
		return here
	}
	place(abi.ProgramBytes)
	r.lists = place(abi.TaskBytes * int64(v.decoders) * int64(r.maxList))
	r.lengths = place(abi.WordBytes * int64(v.decoders))
	r.chunks = place(abi.ChunkBytes * int64(r.maxChunks))
	r.tasks = place(abi.TaskBytes * int64(r.maxTasks))
	r.records = place(r.recordsOfBlock())
	r.biases = place(abi.WordBytes * int64(v.warps*v.slots))
	r.rows = place(abi.PlanRowBytes * int64(r.maxRows))
	r.counts = place(abi.WordBytes * abi.UnitCodes * int64(r.unitsOfBlock))
	r.units = place(abi.PlanUnitBytes * int64(r.unitsOfBlock))
	r.waves = place(abi.WaveBytes * int64(v.warps))
	r.tickets = place(abi.WordBytes)
	r.end = at
	return r
}

// addressable says whether the kernels can tell the units of a query block apart, which a row names by 24 bits, and the
// records, whose bytes are counted in 32.
func (r *slicedLaunch) addressable() bool {
	return r.unitsOfBlock <= 1<<24 && r.recordsOfBlock() <= math.MaxUint32
}

// recordsOfBlock is the bytes of a query block's records: one for each tree and warp.
func (r *slicedLaunch) recordsOfBlock() int64 {
	return int64(r.maxTrees) * int64(r.variant.warps) * abi.RecordHeadBytes * int64(1+r.variant.slots)
}

// slicedEntries is the candidates that a query may have between waves of groups: gate.cuh has the proof.
func slicedEntries(k, waveGroups int) int64 {
	return 2*int64(k) + int64(waveGroups)*int64(min(k, index.GroupObjects))
}

// plan records the planning. scratch is memory of r.end bytes, which the run needs until its last match.
func (r *slicedLaunch) plan(l *lane, at *pieceLayout, scratch abi.Pointer) {
	s, k := l.resident.sliced, l.resident.kernels
	r.scratch = scratch
	plan := abi.Plan{
		Queries: l.arena, Spans: l.arena + abi.Pointer(at.spans), Attributes: s.memory,
		UnitAttribute: s.memory + abi.Pointer(s.at.units),
		Programs:      scratch, Lists: r.placed(r.lists), Lengths: r.placed(r.lengths), Records: r.placed(r.records), Biases: r.placed(r.biases),
		Chunks: r.placed(r.chunks), Tasks: r.placed(r.tasks), Rows: r.placed(r.rows), Counts: r.placed(r.counts), Units: r.placed(r.units),
		FirstQuery: uint32(r.first), QueriesOfBatch: uint32(r.count), PerBlock: uint32(r.perBlock),
		Warps: uint32(r.variant.warps), Slots: uint32(r.variant.slots), Decoders: uint32(r.variant.decoders),
		UnitsOfKind: uint32(len(s.unitAttribute)), StageOctets: uint32(r.variant.stageOctets),
		MaxRows: uint32(r.maxRows), MaxChunks: uint32(r.maxChunks), MaxTrees: uint32(r.maxTrees), MaxTasks: uint32(r.maxTasks),
		MaxList: uint32(r.maxList),
	}
	l.mark(stagePlan)
	launch(&l.steps, k.slicedPlan, r.blocks, 1, &plan)
}

func (r *slicedLaunch) placed(offset int64) abi.Pointer { return r.scratch + abi.Pointer(offset) }

// match records the match on a part. Between parts the queries must be compacted: a launch begins with at most k entries a
// query, and with the thresholds of the parts before.
func (r *slicedLaunch) match(l *lane, at *pieceLayout, part *part, planes abi.Pointer) {
	s := l.resident.sliced
	first := part.firstTile * tileGroups
	match := abi.Sliced{
		Planes: planes, Programs: r.scratch, Lists: r.placed(r.lists), Lengths: r.placed(r.lengths), Records: r.placed(r.records),
		Biases: r.placed(r.biases), Queries: l.arena, States: l.arena + abi.Pointer(at.states),
		Entries: l.arena + abi.Pointer(at.candidates), Waves: r.placed(r.waves), Tickets: r.placed(r.tickets),
		PlanesOfGroup: uint32(s.planesOfGroup), ResidentGroup: uint32(first), FirstGroup: uint32(first), Groups: uint32(part.groups),
		FirstWave: uint32(r.firstWave), WaveGroups: uint32(r.waveGroups),
		Base: l.resident.tiles.Base(), FirstQuery: uint32(r.first), QueriesOfBatch: uint32(r.count), PerBlock: uint32(r.perBlock),
		Stages: slicedStages, StageOctets: uint32(r.variant.stageOctets), MaxTrees: uint32(r.maxTrees), MaxList: uint32(r.maxList),
	}
	if first > 0 {
		match.FirstWave = match.WaveGroups
	}
	l.steps.fill(r.placed(r.waves), r.end-r.waves)
	launch(&l.steps, r.variant.function, r.blocks, r.columns, &match)
}
