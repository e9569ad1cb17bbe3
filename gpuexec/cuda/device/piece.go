//go:build cuda

package device

import (
	"fmt"
	"slices"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/index"
)

// queryNeed is the device memory of a query: itself, its spans, state and answer, and candidates for waves of w tiles.
func queryNeed(spans, k, w, parts int) int64 {
	return abi.QueryBytes + abi.SpanBytes*int64(spans) + abi.StateBytes + topk.EntryBytes*(2*int64(k)+waveEntries(k, parts)*int64(w))
}

// waveEntries is how many candidates a tile can append, at most k a part; match.cu has the proof.
func waveEntries(k, parts int) int64 {
	return int64(parts) * int64(min(k, index.TileObjects/parts))
}

// cut takes as many queries as fit, at least one, and returns how many it took; a query that does not fit alone gets its
// error and no piece. What fits is decided for the (query, tile) kernel, which can execute every query.
func (l *lane) cut(queries []laneQuery) int {
	l.pieces = nil
	need, in, out := int64(arenaSlack), int64(arenaSlack), int64(arenaSlack)
	for i := range queries {
		q := &queries[i]
		job := q.job
		n := queryNeed(l.resident.spanRoom(q.spans), job.K, 1, l.resident.kernels.matches[q.variant].Parts)
		nIn := abi.QueryBytes + abi.StateBytes + abi.SpanBytes*int64(q.spans)
		nOut := abi.StateBytes + topk.EntryBytes*int64(job.K)
		verifyIn, verifyOut := l.resident.verifyNeed(job)
		n, nIn, nOut = n+verifyIn+verifyOut, nIn+verifyIn, nOut+verifyOut
		if need+n > l.bytes || in+nIn > inBytes || out+nOut > outBytes {
			if i > 0 {
				return i
			}
			job.Err = &gpuexec.DeviceError{Op: "executing a query", OutOfMemory: true, Err: fmt.Errorf(
				"k %d and %d sets of keywords need %d MiB on the device, a batch has %d MiB", job.K, q.spans, max(n, nIn)>>20, l.bytes>>20)}
			return 1
		}
		need, in, out = need+n, in+nIn, out+nOut
		l.pieces = queries[:i+1]
	}
	return len(queries)
}

// pieceLayout says where a piece's arrays lie in the arena.
type pieceLayout struct {
	spans, verify, states, answers, distances, resolved, candidates, programs int64 // queries come first
	tileWave, groupWave                                                       int   // widths for which candidates have room
	end                                                                       int64 // of all
}

// Waves of the (query, tile) kernel get narrower where wide ones would take more memory for candidates than this, for each
// query of a batch and for smallBatch queries; but not narrower than waveTiles for the sake of that, since what a wave has found
// is compacted at its end, with the k that are kept: with 10,000 hits, waves of one tile take up to five times the time of the
// widest (docs/benchmarks/history/2026-11-21-h200-policy.md).
const (
	queryCandidates = 48 << 10
	smallBatch      = 256
	waveTiles       = 16
)

// smallestPiece is as small as pieces become for the sake of kernels whose queries share the work: about a block of queries.
const smallestPiece = 128

func alignUp(n int64) int64 { return (n + 255) &^ 255 }

// arenaSlack is more than what the alignment of the parts of an arena takes.
const arenaSlack = 8 * 256

// layout chooses the kernels of the piece, orders it by them, and places its arrays. Where the kernels chosen need more memory
// than there is, the piece becomes smaller, as long as they pay for so few queries too, and the rest is for a later piece. Else
// all of it goes to the (query, tile) kernel, for which cut has made sure of the memory.
func (l *lane) layout() (at pieceLayout, check verifyRun) {
	whole, tiled := l.pieces, len(l.pieces) // tiled: queries of the whole that are the (query, tile) kernel's, the first ones
	for n := len(whole); n == len(whole) || n >= smallestPiece; n /= 2 {
		l.pieces = whole[:n]
		at, check = l.offsets()
		l.choose(n < len(whole))
		fits := l.place(&at)
		if n == len(whole) {
			tiled = l.tiled
		}
		// A piece of (query, tile) queries alone is not worth copying a streamed index for.
		if fits && (l.tiled < n || n == len(whole) || n <= tiled && l.resident.stream == nil) {
			return at, check
		} else if l.tiled == n {
			break
		}
	}
	l.pieces = whole
	at, check = l.offsets()
	for i := range l.pieces {
		l.pieces[i].sliced, l.pieces[i].filter = false, false
	}
	l.place(&at)
	return at, check
}

// offsets places the arrays whose sizes do not depend on the kernels.
func (l *lane) offsets() (at pieceLayout, check verifyRun) {
	var spans, answers int64
	for i := range l.pieces {
		spans += int64(l.pieces[i].spans)
		answers += int64(l.pieces[i].job.K)
	}
	check = l.verifyRun()
	n := int64(len(l.pieces))
	at.spans = alignUp(n * abi.QueryBytes)
	at.verify = alignUp(at.spans + spans*abi.SpanBytes)
	at.states = alignUp(at.verify + check.bytes)
	at.answers = at.states + n*abi.StateBytes
	at.distances = at.answers + answers*topk.EntryBytes
	at.resolved = alignUp(at.distances + check.distancesBytes())
	at.candidates = alignUp(at.resolved + int64(l.resident.spanRoom(int(spans))-int(spans))*abi.SpanBytes)
	return at, check
}

// choose chooses the kernels. A piece that is only a part of what would fit the (query, tile) kernel has a streamed index copied
// once more.
func (l *lane) choose(part bool) {
	for i := range l.pieces {
		l.pieces[i].sliced, l.pieces[i].filter = false, false
	}
	r := l.resident
	device := policyDevice{processors: r.kernels.processors, tiles: r.tiles.Len(), groups: r.groups(), parts: len(r.parts)}
	if part {
		device.copied = r.copied()
	}
	l.policy.choose(l.pieces, r.slicedLayout(), r.kernels.sliced, device)
	l.filters.choose(l, r.codes, device)
}

// place orders the piece by kernels, (query, tile) queries first, and divides the memory from at.candidates on. It is false
// when the other kernels need more than there is.
func (l *lane) place(at *pieceLayout) bool {
	slices.SortStableFunc(l.pieces, func(a, b laneQuery) int { return a.order() - b.order() })
	k := l.resident.kernels
	l.runs = l.runs[:0]
	for l.tiled = 0; l.tiled < len(l.pieces) && !l.pieces[l.tiled].sliced; {
		l.tiled++
	}
	filtered := l.tiled
	for filtered < len(l.pieces) && !l.pieces[filtered].filter {
		filtered++
	}
	at.groupWave = 1
	var programs int64
	for first := l.tiled; first < filtered; {
		v := l.pieces[first].counters
		end := first + 1
		for end < filtered && l.pieces[end].counters == v {
			end++
		}
		run := newSlicedLaunch(&k.sliced[v], l.pieces[first:end], first, l.resident.sliced.slicedLayout, k.processors)
		if !run.addressable() {
			return false
		}
		at.groupWave = max(at.groupWave, l.waves.groups*run.columns)
		programs += alignUp(run.end)
		l.runs = append(l.runs, run)
		first = end
	}
	l.filter = newFilterLaunch(filtered, len(l.pieces)-filtered, l.resident.codes, k.processors)
	programs += l.filter.end
	// Candidates: those of (query, tile) queries take what the others leave.
	var filter int64
	for i := filtered; i < len(l.pieces); i++ {
		filter += topk.EntryBytes * filterEntries(l.pieces[i].job.K)
	}
	bytes := l.bytes - at.candidates - programs - filter
	sliced := func(wave int) (entries int64) {
		for i := l.tiled; i < filtered; i++ {
			entries += slicedEntries(l.pieces[i].job.K, wave)
		}
		return entries * topk.EntryBytes
	}
	var kept, tile int64
	for i := range l.pieces[:l.tiled] {
		q := &l.pieces[i]
		kept += int64(q.job.K)
		tile += waveEntries(q.job.K, k.matches[q.variant].Parts)
	}
	for at.groupWave > 1 && sliced(at.groupWave)+(kept+tile)*topk.EntryBytes > bytes {
		at.groupWave /= 2
	}
	wanted := max(queryCandidates*int64(max(l.tiled, smallBatch)), (kept+waveTiles*tile)*topk.EntryBytes)
	bytes = min(bytes-sliced(at.groupWave), wanted)
	at.tileWave = 1
	if l.tiled > 0 {
		at.tileWave = int(max(1, min((bytes/topk.EntryBytes-kept)/tile, int64(l.resident.tiles.Len()))))
	}
	candidates := (kept+tile*int64(at.tileWave))*topk.EntryBytes + sliced(at.groupWave) + filter
	at.programs = alignUp(at.candidates + candidates)
	for i := range l.runs {
		l.runs[i].waveGroups = at.groupWave
		l.runs[i].firstWave = min(at.groupWave, l.waves.firstGroups*l.runs[i].columns)
	}
	at.end = at.candidates + candidates
	if programs > 0 {
		at.end = at.programs + programs
	}
	return l.tiled == len(l.pieces) || at.end <= l.bytes
}

// order is by kernel, then by the width of counters.
func (q *laneQuery) order() int {
	if q.filter {
		return 1 << 17
	}
	if q.sliced {
		return 1<<16 + q.counters
	}
	return q.variant
}

// room is the number of candidates of a query.
func (l *lane) room(q *laneQuery, at *pieceLayout) uint64 {
	if q.filter {
		return uint64(filterEntries(q.job.K))
	}
	if q.sliced {
		return uint64(slicedEntries(q.job.K, at.groupWave))
	}
	return uint64(q.job.K) + uint64(at.tileWave)*uint64(waveEntries(q.job.K, l.resident.kernels.matches[q.variant].Parts))
}
