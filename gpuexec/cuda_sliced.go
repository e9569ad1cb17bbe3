//go:build cuda

package gpuexec

import (
	"fmt"
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
	slicedStages     = 3
	minStageOctets   = 32 // a unit must fit
	maxBlockQueries  = 256
	slicedPlanThread = 512
	slicedLoadThread = 512
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
	if k.slicedPlan, err = modules["sliced_plan"].function("sliced_plan", slicedPlanThread, 0); err != nil {
		return deviceError("finding kernel sliced_plan", err)
	}
	k.slicedPlanes, err = modules["sliced_load"].function("sliced_planes", slicedLoadThread, slicedKeptPlanes*slicedPlaneBytes)
	return deviceError("finding kernel sliced_planes", err)
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

// slicedIndex are the planes on the device.
type slicedIndex struct {
	*slicedLayout
	memory devicePointer
	at     slicedPlaces
}

// loadSliced makes the planes from the postings, which are on the device.
func (r *resident) loadSliced(u *uploader, layout *slicedLayout) (err error) {
	s := &slicedIndex{slicedLayout: layout, at: layout.places()}
	r.sliced = s // freed with the resident
	if s.memory, err = allocDevice(s.at.end); err != nil {
		return deviceError("allocating the bit-sliced attributes", err)
	}
	place := s.memory + devicePointer(s.at.codeOf)
	keywords := make([]uint32, len(layout.attributes))
	for i, a := range r.index.Attributes() {
		keywords[i] = a.Keywords
	}
	for _, a := range layout.sliced {
		layout.attributes[a].codeOf = place
		place += devicePointer(4 * len(layout.codeOf[a]))
	}
	codes := make([]uint32, 0, (s.at.planes-s.at.codeOf)/4)
	for _, a := range layout.sliced {
		codes = append(codes, layout.codeOf[a]...)
	}
	for _, array := range []struct {
		at    int64
		bytes []byte
	}{
		{0, arrayBytes(layout.attributes)}, {s.at.units, arrayBytes(layout.unitAttribute)}, {s.at.keywords, arrayBytes(keywords)},
		{s.at.attributesOf, arrayBytes(layout.sliced)}, {s.at.codeOf, arrayBytes(codes)},
	} {
		u.begin(s.memory + devicePointer(array.at))
		if err := u.write(array.bytes); err != nil {
			return err
		}
		if err := u.flush(); err != nil {
			return err
		}
	}
	kernel := r.kernels.slicedPlanes
	kernel.shared = min(layout.mostPlanes, slicedKeptPlanes) * slicedPlaneBytes
	var list steps
	for i := range r.parts {
		part := &r.parts[i]
		load := deviceSlicedLoad{
			data: r.dataOf(i), sections: r.sections, keywords: s.memory + devicePointer(s.at.keywords), table: s.memory,
			planes:       s.planesFrom(part.firstTile * (index.TileObjects / groupObjects)),
			attributesOf: s.memory + devicePointer(s.at.attributesOf),
			attributes:   uint32(r.attributes), planesOfGroup: uint32(layout.planesOfGroup),
			firstTile: uint32(part.firstTile), tiles: uint32(r.tiles.len()), objects: r.objects(),
		}
		launch(&list, kernel, part.tiles, len(layout.sliced), &load)
	}
	return deviceError("making the bit-sliced attributes", list.run(u.stream, u.copied[0]))
}

func (s *slicedIndex) planesFrom(group int) devicePointer {
	return s.memory + devicePointer(s.at.planes) + devicePointer(int64(group)*int64(s.planesOfGroup)*128)
}

func (s *slicedIndex) free() error {
	if s == nil || s.memory == 0 {
		return nil
	}
	p := s.memory
	s.memory = 0
	return deviceError("freeing the bit-sliced attributes", freeDevice(p))
}

// A slicedRun is one launch of the shared-decode kernel: queries of a piece whose counters have one width.
type slicedRun struct {
	variant      *cudaSliced
	first, count int // queries of the piece
	slicedBlocks
	columns                                         int
	firstWave, waveGroups                           int // groups
	maxRows, maxChunks, maxTrees, maxTasks, maxList int
	// Places in the scratch; programs come first.
	lists, lengths, records, biases, chunks, tasks, rows, counts, units, waves, tickets, end int64
}

// newSlicedRun sizes a launch. The bounds are those of kernels/sliced.cuh, with the rows counted.
func newSlicedRun(v *cudaSliced, queries []laneQuery, first int, s *slicedLayout, processors int) slicedRun {
	r := slicedRun{variant: v, first: first, count: len(queries), slicedBlocks: v.blocks(len(queries))}
	r.columns = v.columns(r.blocks, processors, s.groups)
	var weights uint32
	for b := range r.blocks {
		rows := 0
		for i := b * r.perBlock; i < min((b+1)*r.perBlock, len(queries)); i++ {
			rows += int(queries[i].rows)
			weights |= queries[i].weights
		}
		r.maxRows = max(r.maxRows, rows)
	}
	r.maxRows = max(1, r.maxRows)
	levels := bits.OnesCount32(weights | 1)
	units := rowKinds * len(s.unitAttribute)
	used := min(units, r.maxRows)
	r.maxChunks = levels*used + 1
	r.maxTrees = levels*(used+r.maxRows/8) + 1
	r.maxTasks = levels*4*used + 1
	r.maxList = r.maxTasks + r.maxChunks + 1

	n := int64(r.blocks)
	at := int64(0)
	place := func(bytes int64) int64 {
		here := at
		at = alignUp(at + n*bytes)
		return here
	}
	place(16)
	r.lists = place(16 * int64(v.decoders) * int64(r.maxList))
	r.lengths = place(4 * int64(v.decoders))
	r.chunks = place(8 * int64(r.maxChunks))
	r.tasks = place(16 * int64(r.maxTasks))
	r.records = place(int64(r.maxTrees) * int64(v.warps) * 16 * int64(1+v.slots))
	r.biases = place(4 * int64(v.warps*v.slots))
	r.rows = place(8 * int64(r.maxRows))
	r.counts = place(4 * 256 * int64(units))
	r.units = place(16 * int64(units))
	r.waves = place(32 * int64(v.warps))
	r.tickets = place(4)
	r.end = at
	return r
}

// slicedEntries is the candidates that a query may have between waves of groups: gate.cuh has the proof.
func slicedEntries(k, waveGroups int) int64 {
	return 2*int64(k) + int64(waveGroups)*int64(min(k, groupObjects))
}

// launch records the planning, the clearing and the match. scratch is memory of r.end bytes.
func (r *slicedRun) launch(l *lane, at *pieceLayout, scratch devicePointer) {
	s, k := l.resident.sliced, l.resident.kernels
	place := func(offset int64) devicePointer { return scratch + devicePointer(offset) }
	plan := devicePlan{
		queries: l.arena, spans: l.arena + devicePointer(at.spans), attributes: s.memory,
		unitAttribute: s.memory + devicePointer(s.at.units),
		programs:      scratch, lists: place(r.lists), lengths: place(r.lengths), records: place(r.records), biases: place(r.biases),
		chunks: place(r.chunks), tasks: place(r.tasks), rows: place(r.rows), counts: place(r.counts), units: place(r.units),
		firstQuery: uint32(r.first), queriesOfBatch: uint32(r.count), perBlock: uint32(r.perBlock),
		warps: uint32(r.variant.warps), slots: uint32(r.variant.slots), decoders: uint32(r.variant.decoders),
		unitsOfKind: uint32(len(s.unitAttribute)), stageOctets: uint32(r.variant.stageOctets),
		maxRows: uint32(r.maxRows), maxChunks: uint32(r.maxChunks), maxTrees: uint32(r.maxTrees), maxTasks: uint32(r.maxTasks),
		maxList: uint32(r.maxList),
	}
	match := deviceSliced{
		planes: s.planesFrom(0), programs: plan.programs, lists: plan.lists, lengths: plan.lengths, records: plan.records,
		biases: plan.biases, queries: plan.queries, states: l.arena + devicePointer(at.states),
		entries: l.arena + devicePointer(at.candidates), waves: place(r.waves), tickets: place(r.tickets),
		planesOfGroup: uint32(s.planesOfGroup), groups: uint32(s.groups), firstWave: uint32(r.firstWave), waveGroups: uint32(r.waveGroups),
		base: l.resident.tiles.base(), firstQuery: plan.firstQuery, queriesOfBatch: plan.queriesOfBatch, perBlock: plan.perBlock,
		stages: slicedStages, stageOctets: plan.stageOctets, maxTrees: plan.maxTrees, maxList: plan.maxList,
	}
	l.mark(stagePlan)
	l.steps.fill(place(r.waves), r.end-r.waves)
	launch(&l.steps, k.slicedPlan, r.blocks, 1, &plan)
	l.mark(stageMatch)
	launch(&l.steps, r.variant.function, r.blocks, r.columns, &match)
}
