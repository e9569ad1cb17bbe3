//go:build cuda

package device

import (
	"context"
	"errors"
	"fmt"

	"gorgonia.org/cu"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/gpuexec/topk"
)

// A lane executes one batch at a time. It is a thread, a stream and the memory of a batch, made once:
//
//	arena (device)   queries | spans | verify | states | answers | distances | resolved spans | candidates | scratch of the other kernels
//	in (pinned)      queries | spans | verify | states                          one copy to the device
//	out (pinned)                                states | answers | distances    one copy back
//
// Verify and distances are there when sequences are compared on the device (verify.go).
type lane struct {
	resident *resident // of the batch at hand
	crew     *run.Crew // for encoding large batches
	thread   *cudaThread
	stream   cu.Stream
	done     cu.Event
	arena    abi.Pointer
	bytes    int64 // of the arena
	in, out  pinned

	waves   wavePolicy
	policy  launchPolicy
	filters filterPolicy
	pieces  []laneQuery    // of the piece at hand, in the order of the device's queries
	tiled   int            // so many of them, the first, are for the (query, tile) kernel
	runs    []slicedLaunch // those after them, for the shared-decode kernel
	filter  filterLaunch   // the last ones
	again   []laneQuery    // queries of the batch that the filter has given up
	steps   steps
	profile *laneProfile   // made when stages are first timed
	timed   *gpuexec.Trace // of the batch at hand, nil unless they are wanted
}

// Sizes of the pinned buffers. A query that needs more than inBytes fails; outBytes hold the answers of some queries of
// MaxK.
const (
	inBytes  = 32 << 20
	outBytes = 32 << 20
)

func newLane(e *cudaEngine) (*lane, error) {
	thread, err := startThread(e.context)
	if err != nil {
		return nil, err
	}
	l := &lane{crew: e.crew, thread: thread, waves: defaultWaves, policy: defaultPolicy, filters: defaultFilters, bytes: e.opts.BatchMemory}
	err = thread.do(func() (err error) {
		if l.stream, err = cu.MakeStream(cu.NonBlocking); err != nil {
			return err
		}
		if l.done, err = cu.MakeEvent(cu.BlockingSyncEvent | cu.DisableTiming); err != nil {
			return err
		}
		if l.arena, err = allocDevice(l.bytes); err != nil {
			return err
		}
		if l.in, err = allocPinned(inBytes); err != nil {
			return err
		}
		l.out, err = allocPinned(outBytes)
		return err
	})
	if err != nil {
		return nil, errors.Join(deviceError("allocating the memory of a batch", err), l.close())
	}
	return l, nil
}

func (l *lane) close() error {
	err := l.thread.do(func() error {
		var errs []error
		if l.stream != (cu.Stream{}) {
			errs = append(errs, l.stream.Synchronize(), l.stream.Destroy())
		}
		if l.done != (cu.Event{}) {
			errs = append(errs, cu.DestroyEvent(&l.done))
		}
		if l.arena != 0 {
			errs = append(errs, freeDevice(l.arena))
		}
		errs = append(errs, l.in.free(), l.out.free(), l.profile.close())
		return deviceError("freeing the memory of a batch", errors.Join(errs...))
	})
	l.thread.stop()
	return err
}

// onIndex does work on the lane's thread, with an index at hand.
func (l *lane) onIndex(r *resident, timed *gpuexec.Trace, work func() error) error {
	return l.thread.do(func() error {
		l.resident, l.timed = r, timed
		defer func() { l.resident, l.timed, l.pieces, l.again = nil, nil, nil, nil }()
		if timed != nil && l.profile == nil {
			l.profile = &laneProfile{}
		}
		return work()
	})
}

// match executes queries on an index, in pieces that fit the lane.
func (l *lane) match(ctx context.Context, r *resident, queries []laneQuery, timed *gpuexec.Trace) error {
	return l.onIndex(r, timed, func() error {
		for len(queries) > 0 {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			n := l.cut(queries)
			if len(l.pieces) > 0 {
				if err := l.execute(); err != nil {
					return err
				}
				n = len(l.pieces)
			}
			if queries = queries[n:]; len(queries) == 0 {
				queries, l.again = l.again, nil
			}
		}
		return nil
	})
}

// execute runs the piece and hands the results to its jobs.
func (l *lane) execute() error {
	l.profile.begin(l.timed != nil)
	at, check := l.layout()
	if at.end > l.bytes { // cut and layout see to it that this cannot be
		return fmt.Errorf("a piece of %d queries is laid out in %d bytes, a batch has %d", len(l.pieces), at.end, l.bytes)
	}
	if l.timed != nil {
		l.timed.Work.Used(at.end, len(l.pieces))
	}
	var spans int
	for i := range l.pieces {
		spans += l.pieces[i].spans
	}
	n := len(l.pieces)
	if err := l.encode(&at, spans); err != nil {
		return err
	}
	l.encodeVerify(&check, at.verify)

	outEnd := at.distances + check.distancesBytes()
	l.steps = l.steps[:0]
	l.mark(stageUpload)
	l.steps.copyIn(l.arena, l.in[:at.states+abi.StateBytes*int64(n)])
	l.launchParts(&at)
	l.mark(stageSelect)
	b := l.batch(&at)
	launch(&l.steps, l.resident.kernels.answer, n, 1, &b)
	l.launchVerify(&check, &at)
	l.mark(stageDownload)
	l.steps.copyOut(l.out[:outEnd-at.states], l.arena+abi.Pointer(at.states))
	l.mark(stageEnd)
	l.profile.encoded()
	if err := l.steps.run(l.stream, l.done); err != nil {
		return deviceError("executing a batch", err)
	}
	if err := l.profile.end(l.timed); err != nil {
		return err
	}
	return l.decode(&at)
}

// encode fills the pinned input.
func (l *lane) encode(at *pieceLayout, spans int) error {
	n := len(l.pieces)
	queries := pinnedArray[abi.Query](l.in, 0, n)
	flat := pinnedArray[abi.Span](l.in, at.spans, spans)
	states := pinnedArray[abi.State](l.in, at.states, n)
	var first uint32
	var candidates, answers uint64
	for i := range l.pieces {
		q := &l.pieces[i]
		queries[i] = q.deviceQuery()
		queries[i].First, queries[i].Entries, queries[i].Out = first, candidates, answers
		states[i] = abi.State{Threshold: q.job.MinCount}
		first += uint32(q.spans)
		candidates += l.room(q, at)
		answers += uint64(q.job.K)
	}
	const span = 4 // nanoseconds
	return l.crew.Each(context.Background(), n, spans*span, func(i int) {
		q := &l.pieces[i]
		l.resident.planner.encodeSpans(flat[queries[i].First:][:q.spans], queryOf(q.job))
	})
}

// batch is the argument of the kernels of match.cu and select.cu.
func (l *lane) batch(at *pieceLayout) abi.Batch {
	r := l.resident
	planesOfGroup := 0
	if r.sliced != nil {
		planesOfGroup = r.sliced.planesOfGroup
	}
	return abi.Batch{
		Rare: r.rare, PlanesOfGroup: uint32(planesOfGroup),
		Queries: l.arena, Spans: l.arena + abi.Pointer(at.spans), States: l.arena + abi.Pointer(at.states),
		Entries: l.arena + abi.Pointer(at.candidates), Out: l.arena + abi.Pointer(at.answers),
		Attributes: uint32(r.attributes), Objects: r.objects(), Base: r.tiles.Base(),
		RoundSpans: uint32(max(1, r.roundSpans)),
	}
}

// launchParts records the kernels, part after part. Thresholds carry over from part to part, since ids ascend.
func (l *lane) launchParts(at *pieceLayout) {
	r := l.resident
	scratch := l.arena + abi.Pointer(at.programs)
	for i := range l.runs {
		l.runs[i].plan(l, at, scratch)
		scratch += abi.Pointer(alignUp(l.runs[i].end))
	}
	b := l.batch(at)
	width := 0
	if l.tiled > 0 {
		width = l.waves.first(r.kernels.processors, l.tiled, r.tiles.Len(), at.tileWave)
	}
	l.resolve(at)
	r.stream.begin(&l.steps, r)
	for i := range r.parts {
		part := &r.parts[i]
		b.Data, b.ResidentTile = r.dataOf(i), uint32(part.firstTile)
		b.Sections = r.sections + abi.Pointer(part.firstTile*r.attributes*abi.SectionBytes)
		b.Planes = b.Data // where a part begins
		l.mark(stageMatch)
		r.stream.await(&l.steps, r, i)
		width = l.launchTiles(b, part, width, at.tileWave)
		if len(l.runs) > 0 && i > 0 {
			l.mark(stageSelect)
			b.FirstQuery = uint32(l.tiled)
			launch(&l.steps, r.kernels.compact, len(l.pieces)-l.tiled-l.filter.count, 1, &b)
			l.mark(stageMatch)
		}
		for j := range l.runs {
			l.runs[j].match(l, at, part, b.Planes)
		}
		r.stream.consumed(&l.steps, i)
	}
	l.filter.record(l, at, scratch)
}

// launchTiles records the (query, tile) kernel on a part, its tiles in waves, each but the last followed by a compaction.
// It returns the width of the wave that comes next.
func (l *lane) launchTiles(b abi.Batch, part *part, width, most int) int {
	r := l.resident
	tiles := r.tiles.Len()
	if l.tiled == 0 {
		return width
	}
	for tile, end := part.firstTile, part.firstTile+part.tiles; tile < end; {
		count := min(width, most, end-tile)
		l.launchWave(b, tile, count)
		tile += count
		if tile < tiles {
			l.mark(stageSelect)
			b.FirstQuery = 0
			launch(&l.steps, r.kernels.compact, l.tiled, 1, &b)
			l.mark(stageMatch)
		}
		width = min(width*l.waves.growth, tiles)
	}
	return width
}

// launchWave records a wave of tiles: a launch a counter width.
func (l *lane) launchWave(b abi.Batch, tile, count int) {
	for first := 0; first < l.tiled; {
		variant := l.pieces[first].variant
		end := first + 1
		for end < l.tiled && l.pieces[end].variant == variant {
			end++
		}
		b.FirstQuery = uint32(first)
		m := &l.resident.kernels.matches[variant]
		for done := 0; done < count; {
			step := min(count-done, maxGridY/m.Parts)
			b.FirstTile = uint32(tile + done)
			launch(&l.steps, m.function, end-first, step*m.Parts, &b)
			done += step
		}
		first = end
	}
}

const maxGridY = 65535

// A wavePolicy says how tiles are cut into waves. Waves grow: the first gives a threshold cheaply, and later ones profit
// from it. The end of a wave leaves multiprocessors idle, so there should not be many.
type wavePolicy struct {
	blocks int // of the first wave, a multiprocessor
	growth int // from wave to wave
	// Of the shared-decode kernel: groups of the first wave, and of the others, a block that shares them.
	firstGroups, groups int
	// Of the filter: objects of the first wave, and of any, multiples of 64. A query is abandoned that marks more than one of
	// filterShare objects of a wave.
	filterFirst, filterMost, filterShare int
}

var defaultWaves = wavePolicy{blocks: 8, growth: 6, firstGroups: 1, groups: 3, filterFirst: 1024, filterMost: 2 * abi.BoundMarks, filterShare: 32}

// first is the number of tiles of the first wave. Few queries run in one wave: their blocks would not fill the
// device, and compactions cost latency.
func (p wavePolicy) first(processors, queries, tiles, w int) int {
	first := (processors*p.blocks + queries - 1) / queries
	if first*2 >= tiles {
		return tiles
	}
	return min(first, w)
}

// decode hands the answers to the jobs, on several cores where these are long.
func (l *lane) decode(at *pieceLayout) error {
	n := len(l.pieces)
	states := pinnedArray[abi.State](l.out, 0, n)
	l.takeAbandoned(states)
	type place struct{ answer, distances int64 }
	places := make([]place, n)
	next := place{at.answers - at.states, at.distances - at.states}
	bytes := 0
	for i := range l.pieces {
		job, state := l.pieces[i].job, &states[i]
		if q := &l.pieces[i]; !q.abandoned(state) { // else it is executed again, and that counts
			job.Candidates += state.Passed
			job.Units += state.Postings
			if q.sliced {
				job.Units += q.postings
			}
			if l.timed != nil {
				countQuery(&l.timed.Work, q, state.Postings, l.resident.groups())
			}
		}
		if int(state.Kept) > job.K {
			return &gpuexec.DeviceError{Op: "reading the answers", Sticky: true, Err: fmt.Errorf("query %d of %d has %d hits for k %d", i, n, state.Kept, job.K)}
		}
		places[i] = next
		next.answer += topk.EntryBytes * int64(job.K)
		next.distances += abi.DistanceBytes * int64(l.resident.comparedOf(job))
		bytes += topk.EntryBytes * int(state.Kept)
	}
	const bytesANanosecond = 4
	return l.crew.Each(context.Background(), n, bytes/bytesANanosecond, func(i int) {
		job := l.pieces[i].job
		job.Entries = append(job.Entries[:0], pinnedArray[topk.Entry](l.out, places[i].answer, int(states[i].Kept))...)
		l.decodeDistances(job, places[i].distances)
	})
}
