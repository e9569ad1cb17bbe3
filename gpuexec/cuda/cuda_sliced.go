//go:build cuda

package cuda

import (
	"fmt"
	"math"
	"math/bits"

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
	slicedStages      = 3
	minStageOctets    = 32 // a unit must fit
	maxBlockQueries   = 256
	slicedPlanThreads = 512

	// Sizes of what kernels/sliced.cuh and sliced_plan.cu have in a launch's scratch.
	programBytes  = 16
	taskBytes     = 16 // in a decoder's list too
	chunkBytes    = 8
	recordBytes   = 16 // its head, and the part of each slot
	planRowBytes  = 8
	planUnitBytes = 16
	waveBytes     = 32
	wordBytes     = 4
	unitTasks     = unitCodes / 8 / 8 // of eight octets each
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
	k.slicedPlan, err = modules["sliced_plan"].function("sliced_plan", slicedPlanThreads, 0)
	return deviceError("finding kernel sliced_plan", err)
}

// slicedBlocks is how queries are dealt to query blocks.
type slicedBlocks struct {
	blocks, perBlock int
}

func (v *cudaSliced) blocks(queries int) slicedBlocks {
	most := min(v.warps*v.slots, maxBlockQueries)
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
	memory devicePointer
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
		layout.attributes[a].codeOf = s.memory + devicePointer(s.at.codeOf) + devicePointer(4*len(codeOf))
		for keyword := range r.index.Attributes()[a].Keywords + 1 {
			codeOf = append(codeOf, layout.codes[a].Of(keyword))
		}
	}
	if err := u.whole(s.memory, arrayBytes(layout.attributes)); err != nil {
		return err
	}
	if err := u.whole(s.memory+devicePointer(s.at.units), arrayBytes(layout.unitAttribute)); err != nil {
		return err
	}
	return u.whole(s.memory+devicePointer(s.at.codeOf), arrayBytes(codeOf))
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
	scratch                                                                                  devicePointer
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
	r.unitsOfBlock = rowKinds * len(s.unitAttribute)
	used := min(r.unitsOfBlock, r.maxRows)
	r.maxChunks = levels*used + 1
	r.maxTrees = levels*(used+crowded) + 1
	r.maxTasks = levels*unitTasks*used + 1
	r.maxList = r.maxTasks + r.maxChunks + 1

	n := int64(r.blocks)
	at := int64(0)
	place := func(bytes int64) int64 {
		here := at
		at = alignUp(at + n*bytes)
		return here
	}
	place(programBytes)
	r.lists = place(taskBytes * int64(v.decoders) * int64(r.maxList))
	r.lengths = place(wordBytes * int64(v.decoders))
	r.chunks = place(chunkBytes * int64(r.maxChunks))
	r.tasks = place(taskBytes * int64(r.maxTasks))
	r.records = place(r.recordsOfBlock())
	r.biases = place(wordBytes * int64(v.warps*v.slots))
	r.rows = place(planRowBytes * int64(r.maxRows))
	r.counts = place(wordBytes * unitCodes * int64(r.unitsOfBlock))
	r.units = place(planUnitBytes * int64(r.unitsOfBlock))
	r.waves = place(waveBytes * int64(v.warps))
	r.tickets = place(wordBytes)
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
	return int64(r.maxTrees) * int64(r.variant.warps) * recordBytes * int64(1+r.variant.slots)
}

// slicedEntries is the candidates that a query may have between waves of groups: gate.cuh has the proof.
func slicedEntries(k, waveGroups int) int64 {
	return 2*int64(k) + int64(waveGroups)*int64(min(k, index.GroupObjects))
}

// plan records the planning. scratch is memory of r.end bytes, which the run needs until its last match.
func (r *slicedLaunch) plan(l *lane, at *pieceLayout, scratch devicePointer) {
	s, k := l.resident.sliced, l.resident.kernels
	r.scratch = scratch
	plan := devicePlan{
		queries: l.arena, spans: l.arena + devicePointer(at.spans), attributes: s.memory,
		unitAttribute: s.memory + devicePointer(s.at.units),
		programs:      scratch, lists: r.placed(r.lists), lengths: r.placed(r.lengths), records: r.placed(r.records), biases: r.placed(r.biases),
		chunks: r.placed(r.chunks), tasks: r.placed(r.tasks), rows: r.placed(r.rows), counts: r.placed(r.counts), units: r.placed(r.units),
		firstQuery: uint32(r.first), queriesOfBatch: uint32(r.count), perBlock: uint32(r.perBlock),
		warps: uint32(r.variant.warps), slots: uint32(r.variant.slots), decoders: uint32(r.variant.decoders),
		unitsOfKind: uint32(len(s.unitAttribute)), stageOctets: uint32(r.variant.stageOctets),
		maxRows: uint32(r.maxRows), maxChunks: uint32(r.maxChunks), maxTrees: uint32(r.maxTrees), maxTasks: uint32(r.maxTasks),
		maxList: uint32(r.maxList),
	}
	l.mark(stagePlan)
	launch(&l.steps, k.slicedPlan, r.blocks, 1, &plan)
}

func (r *slicedLaunch) placed(offset int64) devicePointer { return r.scratch + devicePointer(offset) }

// match records the match on a part. Between parts the queries must be compacted: a launch begins with at most k entries a
// query, and with the thresholds of the parts before.
func (r *slicedLaunch) match(l *lane, at *pieceLayout, part *part, planes devicePointer) {
	s := l.resident.sliced
	first := part.firstTile * tileGroups
	match := deviceSliced{
		planes: planes, programs: r.scratch, lists: r.placed(r.lists), lengths: r.placed(r.lengths), records: r.placed(r.records),
		biases: r.placed(r.biases), queries: l.arena, states: l.arena + devicePointer(at.states),
		entries: l.arena + devicePointer(at.candidates), waves: r.placed(r.waves), tickets: r.placed(r.tickets),
		planesOfGroup: uint32(s.planesOfGroup), residentGroup: uint32(first), firstGroup: uint32(first), groups: uint32(part.groups),
		firstWave: uint32(r.firstWave), waveGroups: uint32(r.waveGroups),
		base: l.resident.tiles.Base(), firstQuery: uint32(r.first), queriesOfBatch: uint32(r.count), perBlock: uint32(r.perBlock),
		stages: slicedStages, stageOctets: uint32(r.variant.stageOctets), maxTrees: uint32(r.maxTrees), maxList: uint32(r.maxList),
	}
	if first > 0 {
		match.firstWave = match.waveGroups
	}
	l.steps.fill(r.placed(r.waves), r.end-r.waves)
	launch(&l.steps, r.variant.function, r.blocks, r.columns, &match)
}
