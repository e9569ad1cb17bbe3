//go:build cuda

package device

import (
	"iter"
	"math"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/index"
)

// cudaFilter are the kernels of the filter (kernels/bound.cuh): binary tensor cores bound the counts of 128 queries at a time
// from above, and what reaches a query's threshold is counted exactly.
type cudaFilter struct {
	codes, plan, match, recount function
	matchShared                 int // bytes of shared memory beside the masks
	columns                     int // of a row, at most; 0: the device has no such kernels
}

// maxColumns is about what shared memory has room for.
const maxColumns = 448

// loadFilter finds the kernels; that the device has none is no error.
func (k *cudaKernels) loadFilter(modules map[string]module, limit int) (err error) {
	match, ok := modules["bound_match"]
	if !ok {
		return nil
	}
	plan := modules["bound_plan"]
	var f cudaFilter
	var queries, shared, threads, recounts, plans uint32
	for _, c := range []struct {
		of   module
		name string
		to   *uint32
	}{
		{match, "bound_match_queries", &queries}, {match, "bound_match_shared", &shared}, {match, "bound_match_threads", &threads},
		{match, "bound_recount_threads", &recounts}, {plan, "bound_plan_threads", &plans},
	} {
		if *c.to, err = c.of.constant(c.name); err != nil {
			return deviceError("reading "+c.name, err)
		}
	}
	steps := (limit - int(shared)) / abi.StepBytes &^ 1
	if queries != abi.BoundQueries || steps < 2 {
		return nil
	}
	f.matchShared, f.columns = int(shared), min(steps*abi.StepColumns, maxColumns)
	for _, c := range []struct {
		of      module
		name    string
		threads uint32
		shared  int
		to      *function
	}{
		{plan, "bound_codes", plans, 0, &f.codes}, {plan, "bound_plan", plans, 0, &f.plan},
		{match, "bound_match", threads, f.shared(steps), &f.match}, {match, "bound_recount", recounts, 0, &f.recount},
	} {
		if *c.to, err = c.of.function(c.name, int(c.threads), c.shared); err != nil {
			return deviceError("finding kernel "+c.name, err)
		}
	}
	k.filter = f
	return nil
}

// shared is the shared memory of a block of filter_match.
func (f *cudaFilter) shared(steps int) int { return f.matchShared + steps*abi.StepBytes }

// filterable says whether the filter can count a query: its items ask for different columns, each by one span of weight 1.
// dense is how many bits the masks have of items whose attributes have more codes than a mask has bits.
func (c *codesLayout) filterable(q *index.Query) (ok bool, dense int) {
	var seen [maxColumns / 64]uint64
	for i := range q.Items {
		item := &q.Items[i]
		column := c.columnOf[item.Attr]
		if item.Count == 0 || column == nothingThere {
			continue
		}
		if column == noColumn || item.Weight != 1 || item.Count != 1 || seen[column/64]>>(column%64)&1 != 0 {
			return false, 0
		}
		seen[column/64] |= 1 << (column % 64)
		if c.wide[column] {
			span := q.Spans[item.First]
			dense += int(min(span.Hi-span.Lo, abi.MaskCodes))
		}
	}
	return true, dense
}

// A filterLaunch is the filter's part of a piece. The objects are taken in waves of ascending ids, each two launches:
// filter_match marks the objects whose count may reach the query's threshold, filter_recount counts these, stores
// those that do reach it, and raises the threshold to what k stored objects have reached. In the first wave everything that
// matches passes, so it is small, and each wave is as large as all before it, up to the most that the marks have room for.
//
// The candidates are bounded whatever the data: filter_recount cuts them to k whenever there is no room for the objects that
// it counts next. So is the work: when a query marks more than a share of a wave's objects it is abandoned. Nothing more is
// counted for it, and the lane executes it again, by another kernel.
type filterLaunch struct {
	first, count    int // queries of the piece
	blocks, columns int
	// Places in the scratch; masks come first.
	ranges, marks, end int64
}

// filterEntries is the candidates of a query.
func filterEntries(k int) int64 { return 2*int64(k) + abi.BoundRoom }

// newFilterLaunch sizes the launch of so many queries on codes; none is empty.
func newFilterLaunch(first, count int, c *residentCodes, processors int) (f filterLaunch) {
	if count == 0 {
		return f
	}
	f = filterLaunch{first: first, count: count, blocks: (count + abi.BoundQueries - 1) / abi.BoundQueries}
	f.columns = max(1, processors/f.blocks)
	f.ranges = alignUp(int64(f.blocks) * int64(c.steps()) * abi.StepBytes)
	f.marks = alignUp(f.ranges + int64(count)*2*int64(c.rowBytes()))
	f.end = alignUp(f.marks + int64(count)*abi.BoundMarkBytes)
	return f
}

// filterWaves are the waves over so many objects: the first of each, and how many it has.
func (p *wavePolicy) filterWaves(objects int) iter.Seq2[int, int] {
	return func(yield func(first, count int) bool) {
		for first, count := 0, p.filterFirst; first < objects; count = first {
			count = min(count, p.filterMost, objects-first)
			if !yield(first, count) {
				return
			}
			first += count
		}
	}
}

// record records the launches. scratch is memory of f.end bytes.
func (f *filterLaunch) record(l *lane, at *pieceLayout, scratch abi.Pointer) {
	if f.count == 0 {
		return
	}
	r, k := l.resident, &l.resident.kernels.filter
	c := r.codes
	ranges, marks := scratch+abi.Pointer(f.ranges), scratch+abi.Pointer(f.marks)
	l.mark(stagePlan)
	plan := abi.BoundPlan{
		Queries: l.arena, Spans: l.arena + abi.Pointer(at.spans), CodeOf: c.placed(c.codeOf), ColumnOf: c.placed(c.columnOfAt),
		Masks: scratch, Ranges: ranges, FirstQuery: uint32(f.first), QueriesOfBatch: uint32(f.count),
		RowBytes: uint32(c.rowBytes()), KSteps: uint32(c.steps()),
	}
	l.steps.fill(scratch, f.ranges)
	warps := k.plan.threads / abi.WarpLanes
	launch(&l.steps, k.plan, (f.count+warps-1)/warps, 1, &plan)
	l.mark(stageMatch)
	l.steps.fill(marks, f.end-f.marks)
	match := abi.BoundMatch{
		Codes: c.row(0), Masks: scratch, Ranges: ranges, Queries: l.arena, States: l.arena + abi.Pointer(at.states),
		Entries: l.arena + abi.Pointer(at.candidates), Marks: marks, RowBytes: plan.RowBytes, KSteps: plan.KSteps,
		FirstQuery: plan.FirstQuery, QueriesOfBatch: plan.QueriesOfBatch, Base: r.tiles.Base(),
	}
	filter := k.match
	filter.shared = k.shared(c.steps())
	for first, count := range l.waves.filterWaves(c.objects) {
		match.FirstObject, match.Objects, match.Most = uint32(first), uint32(count), uint32(count/l.waves.filterShare)
		launch(&l.steps, filter, f.blocks, f.columns, &match)
		launch(&l.steps, k.recount, f.count, 1, &match)
	}
}

// abandoned is true of a query that the filter has given up: its threshold is one that no count reaches.
func (q *laneQuery) abandoned(state *abi.State) bool {
	return q.filter && state.Threshold == math.MaxUint32
}

// takeAbandoned collects the queries that the filter has given up, for another piece, and takes notice of how many they are.
func (l *lane) takeAbandoned(states []abi.State) {
	f := &l.filter
	if f.count == 0 {
		return
	}
	n := 0
	for i := f.first; i < f.first+f.count; i++ {
		if q := &l.pieces[i]; q.abandoned(&states[i]) {
			n++
			l.again = append(l.again, *q)
			l.again[len(l.again)-1].filterable = false
		}
	}
	c := l.resident.codes
	l.filters.learn(c, f.count, n)
	if l.timed != nil {
		l.timed.Work.FilterSteps += uint64(f.blocks) * uint64(c.steps()) * uint64(c.objects/abi.BoundTile)
	}
}
