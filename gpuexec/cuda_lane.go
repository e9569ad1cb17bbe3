//go:build cuda

package gpuexec

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gorgonia.org/cu"

	"github.com/geniemq/geniemq/index"
)

// A lane executes one batch at a time. It is a thread, a stream and the memory of a batch, made once:
//
//	arena (device)   queries | spans | states | answers | candidates
//	in (pinned)      queries | spans | states              one copy to the device
//	out (pinned)                        states | answers   one copy back
type lane struct {
	resident *resident // of the batch at hand
	thread   *cudaThread
	stream   cu.Stream
	done     cu.Event
	arena    devicePointer
	bytes    int64 // of the arena
	in, out  pinned

	waves   wavePolicy
	pieces  []laneQuery // of the piece at hand, in the order of the device's queries
	steps   steps
	profile *laneProfile // nil unless the stages are timed
}

// laneQuery is a job in a piece of a batch.
type laneQuery struct {
	job     *matchJob
	variant int    // of the match kernel
	bound   uint32 // tighter than the job's
	spans   int
}

// Sizes of the pinned buffers. A query that needs more than inBytes fails; answers that need more than outBytes are
// copied in parts.
const (
	inBytes  = 32 << 20
	outBytes = 32 << 20
)

func newLane(e *cudaEngine) (*lane, error) {
	thread, err := startThread(e.context)
	if err != nil {
		return nil, err
	}
	l := &lane{thread: thread, waves: defaultWaves, bytes: e.opts.BatchMemory}
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

// match executes jobs on an index, in pieces that fit the lane.
func (l *lane) match(ctx context.Context, r *resident, jobs []*matchJob) error {
	return l.thread.do(func() error {
		l.resident = r
		defer func() { l.resident = nil }()
		for len(jobs) > 0 {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			n := l.cut(jobs)
			if len(l.pieces) > 0 {
				if err := l.execute(); err != nil {
					return err
				}
			}
			jobs = jobs[n:]
		}
		return nil
	})
}

// queryNeed is the device memory of a query: itself, its spans, state and answer, and candidates for waves of w tiles.
func queryNeed(spans, k, w, parts int) int64 {
	return queryBytes + spanBytes*int64(spans) + stateBytes + entryBytes*(2*int64(k)+waveEntries(k, parts)*int64(w))
}

// waveEntries is how many candidates a tile can append, at most k a part; match.cu has the proof.
func waveEntries(k, parts int) int64 {
	return int64(parts) * int64(min(k, index.TileObjects/parts))
}

// cut takes as many jobs as fit, at least one, and returns how many it took; a job that does not fit alone gets its
// error and no piece.
func (l *lane) cut(jobs []*matchJob) int {
	const slack = 5 * 256 // the parts of the arena are aligned
	l.pieces = l.pieces[:0]
	need, in, out := int64(slack), int64(slack), int64(slack)
	for i, job := range jobs {
		q := l.plan(job)
		alone := len(l.pieces) == 0
		n := queryNeed(q.spans, job.k, 1, l.resident.kernels.matches[q.variant].Parts)
		nIn := queryBytes + stateBytes + spanBytes*int64(q.spans)
		nOut := stateBytes + entryBytes*int64(job.k)
		if need+n > l.bytes || in+nIn > inBytes || out+nOut > outBytes && !alone {
			if !alone {
				return i
			}
			job.err = &DeviceError{Op: "executing a query", OutOfMemory: true, Err: fmt.Errorf(
				"k %d and %d sets of keywords need %d MiB on the device, a batch has %d MiB", job.k, q.spans, max(n, nIn)>>20, l.bytes>>20)}
			return i + 1
		}
		need, in, out = need+n, in+nIn, out+nOut
		l.pieces = append(l.pieces, q)
	}
	return len(jobs)
}

// plan chooses the counters of a job.
func (l *lane) plan(job *matchJob) laneQuery {
	attributes := l.resident.index.Attributes()
	q := laneQuery{job: job}
	var bound uint64
	for _, item := range job.query.Items {
		var keywords uint64
		for _, span := range job.query.ItemSpans(item) {
			keywords += uint64(span.Hi - span.Lo)
		}
		if keywords == 0 {
			continue
		}
		q.spans += int(item.Count)
		most := min(uint64(attributes[item.Attr].MaxPerObject), keywords*uint64(l.resident.repeats[item.Attr]))
		bound += uint64(item.Weight) * most
	}
	q.bound = uint32(min(bound, uint64(job.bound)))
	q.variant = l.resident.kernels.variant(q.bound)
	return q
}

// pieceLayout says where a piece's arrays lie in the arena.
type pieceLayout struct {
	queries, spans, states, answers, candidates, end int64
}

func alignUp(n int64) int64 { return (n + 255) &^ 255 }

// execute runs the piece and hands the results to its jobs.
func (l *lane) execute() error {
	slices.SortStableFunc(l.pieces, func(a, b laneQuery) int { return a.variant - b.variant })
	l.profile.begin()
	var spans int
	var answers int64
	for i := range l.pieces {
		spans += l.pieces[i].spans
		answers += int64(l.pieces[i].job.k)
	}
	n := len(l.pieces)
	var at pieceLayout
	at.spans = alignUp(int64(n) * queryBytes)
	at.states = alignUp(at.spans + int64(spans)*spanBytes)
	at.answers = at.states + int64(n)*stateBytes
	at.candidates = alignUp(at.answers + answers*entryBytes)
	w := l.waveTiles(l.bytes - at.candidates)
	l.encode(&at, spans, w)

	// Answers that are too large for the pinned buffer are copied after the run, in parts.
	outEnd := at.answers + answers*entryBytes
	whole := outEnd-at.states <= outBytes
	if !whole {
		outEnd = at.states + stateBytes*int64(n)
	}

	l.steps = l.steps[:0]
	l.mark(stageUpload)
	l.steps.copyIn(l.arena, l.in[:at.states+stateBytes*int64(n)])
	l.launchWaves(&at, w)
	l.mark(stageDownload)
	l.steps.copyOut(l.out[:outEnd-at.states], l.arena+devicePointer(at.states))
	l.mark(stageEnd)
	l.profile.host(hostEncode)
	if err := l.steps.run(l.stream, l.done); err != nil {
		return deviceError("executing a batch", err)
	}
	l.profile.host(hostRun)
	if err := l.profile.end(); err != nil {
		return err
	}
	err := l.decode(&at, whole)
	l.profile.host(hostDecode)
	return err
}

// waveTiles is the most tiles of a wave for which bytes hold all candidates; cut has made sure of one.
func (l *lane) waveTiles(bytes int64) int {
	var kept, tile int64
	for i := range l.pieces {
		k := l.pieces[i].job.k
		kept += int64(k)
		tile += waveEntries(k, l.resident.kernels.matches[l.pieces[i].variant].Parts)
	}
	w := (bytes/entryBytes - kept) / tile
	return int(max(1, min(w, int64(l.resident.index.Tiles()))))
}

// encode fills the pinned input.
func (l *lane) encode(at *pieceLayout, spans, w int) {
	n := len(l.pieces)
	queries := pinnedArray[deviceQuery](l.in, 0, n)
	flat := pinnedArray[deviceSpan](l.in, at.spans, spans)
	states := pinnedArray[deviceState](l.in, at.states, n)
	var first uint32
	var candidates, answers uint64
	for i := range l.pieces {
		q := &l.pieces[i]
		job := q.job
		queries[i] = deviceQuery{
			first: first, spans: uint32(q.spans), k: uint32(job.k), bound: q.bound, entries: candidates, out: answers,
		}
		states[i] = deviceState{threshold: job.minCount}
		for _, item := range job.query.Items {
			for _, span := range job.query.ItemSpans(item) {
				flat[first] = deviceSpan{item.Attr, span.Lo, span.Hi, item.Weight}
				first++
			}
		}
		candidates += uint64(job.k) + uint64(w)*uint64(waveEntries(job.k, l.resident.kernels.matches[q.variant].Parts))
		answers += uint64(job.k)
	}
}

// launchWaves records the kernels: tiles in waves of at most w.
func (l *lane) launchWaves(at *pieceLayout, w int) {
	k, n := l.resident.kernels, len(l.pieces)
	tiles := l.resident.index.Tiles()
	b := deviceBatch{
		data: l.resident.data, sections: l.resident.sections,
		queries: l.arena, spans: l.arena + devicePointer(at.spans), states: l.arena + devicePointer(at.states),
		entries: l.arena + devicePointer(at.candidates), out: l.arena + devicePointer(at.answers),
		attributes: uint32(l.resident.attributes), objects: l.resident.index.Objects(),
		roundSpans: uint32(max(1, l.resident.roundSpans)),
	}
	width := l.waves.first(k.processors, n, tiles, w)
	for tile := 0; tile < tiles; {
		count := min(width, w, tiles-tile)
		l.mark(stageMatch)
		b.firstTile = uint32(tile)
		for first := 0; first < n; {
			variant := l.pieces[first].variant
			end := first + 1
			for end < n && l.pieces[end].variant == variant {
				end++
			}
			b.firstQuery = uint32(first)
			m := &k.matches[variant]
			for done := 0; done < count; {
				step := min(count-done, maxGridY/m.Parts)
				b.firstTile = uint32(tile + done)
				launch(&l.steps, m.function, end-first, step*m.Parts, &b)
				done += step
			}
			first = end
		}
		tile += count
		l.mark(stageSelect)
		b.firstQuery = 0
		if tile < tiles {
			launch(&l.steps, k.compact, n, 1, &b)
		}
		width *= l.waves.growth
	}
	launch(&l.steps, k.answer, n, 1, &b)
}

const maxGridY = 65535

// A wavePolicy says how tiles are cut into waves. Waves grow: the first gives a threshold cheaply, and later ones profit
// from it. The end of a wave leaves multiprocessors idle, so there should not be many.
type wavePolicy struct {
	blocks int // of the first wave, a multiprocessor
	growth int // from wave to wave
}

var defaultWaves = wavePolicy{blocks: 8, growth: 6}

// first is the number of tiles of the first wave. Few queries run in one wave: their blocks would not fill the
// device, and compactions cost latency.
func (p wavePolicy) first(processors, queries, tiles, w int) int {
	first := (processors*p.blocks + queries - 1) / queries
	if first*2 >= tiles {
		return tiles
	}
	return min(first, w)
}

// decode hands the answers to the jobs.
func (l *lane) decode(at *pieceLayout, whole bool) error {
	n := len(l.pieces)
	states := pinnedArray[deviceState](l.out, 0, n)
	var place int64
	for i := range l.pieces {
		job, state := l.pieces[i].job, states[i]
		job.postings += state.postings
		job.candidates += state.passed
		stored := int(state.kept)
		if stored > job.k {
			return &DeviceError{Op: "reading the answers", Sticky: true, Err: fmt.Errorf("query %d of %d has %d hits for k %d", i, n, stored, job.k)}
		}
		if whole {
			answers := pinnedArray[entry](l.out, at.answers-at.states+place*entryBytes, stored)
			job.entries = append(job.entries[:0], answers...)
		} else if err := l.fetch(job, at.answers+place*entryBytes, stored); err != nil {
			return err
		}
		if stored > l.resident.kernels.sortedOnDevice {
			slices.Sort(job.entries)
		}
		place += int64(job.k)
	}
	return nil
}

// fetch copies a large answer in parts.
func (l *lane) fetch(job *matchJob, offset int64, stored int) error {
	const entries = outBytes / entryBytes / 2 // the states stay where they are
	part := l.out[outBytes/2:]
	job.entries = slices.Grow(job.entries[:0], stored)
	for stored > 0 {
		n := min(stored, entries)
		var s steps
		s.copyOut(part[:n*entryBytes], l.arena+devicePointer(offset))
		if err := s.run(l.stream, l.done); err != nil {
			return deviceError("copying an answer from the device", err)
		}
		job.entries = append(job.entries, pinnedArray[entry](part, 0, n)...)
		stored -= n
		offset += int64(n) * entryBytes
	}
	return nil
}
