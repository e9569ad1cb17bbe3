package plan

import (
	"context"
	"fmt"
	"slices"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/filters"
	"github.com/geniemq/geniemq/gpuexec/cuda/rescoring"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/index/postings"
)

// A Piece is the queries of a batch that are executed together, in one pass over the index: which, by which kernels, and where
// everything of theirs lies in the memory that a batch has.
//
//	arena (device)   queries | spans | rescoring | filters | states | totals | answers | scores | what scores are put in order of |
//	                 resolved spans | what passes | candidates | scratch of the other kernels
//	in (pinned)      queries | spans | rescoring | filters | states | totals    one copy to the device
//	out (pinned)     states | totals | answers | scores                         one copy back
//
// What is rescored, and scores, are there when candidates are compared on the device (package rescoring), filters, totals and what passes
// when queries have filters (package filters).
//
// planPiece makes it of queries and the room that there is, and of nothing else: it asks no device and changes none of what it
// is given, so that the same plan comes out wherever it is made. What it guarantees:
//
//   - The queries are the first of those given, at least one; a query that fits alone by Index.Cost is executed.
//   - Every array has the room that the kernels may need of it, whatever the data: candidates are bounded before anything is
//     launched (waveEntries, slicedEntries, boundEntries).
//   - All of it lies within the room.
type Piece struct {
	Queries []Query // by kernel, then by the width of counters
	Tiled   int     // so many of them, the first, are for the (query, tile) kernel
	Tile    []TileLaunch
	Sliced  []SlicedLaunch // those after them, for the shared-decode kernel
	Bound   BoundLaunch    // the last ones

	Scores  rescoring.Layout
	Filters filters.Layout
	Offsets
	FirstWave, TileWave int // tiles of the first wave of the (query, tile) kernel, and for which candidates have room

	groupWave int // groups for which candidates have room
	spanCount int
	rested    bool // Policy.choose
}

// A TileLaunch is queries of a piece whose counters have one width in the (query, tile) kernel.
type TileLaunch struct {
	Variant      int // Device.Tile
	Filtered     bool
	First, Count int
}

// Offsets are where the arrays of a piece lie in the arena; queries come first.
type Offsets struct {
	Spans, Tasks, States, Totals, Answers, Scored, Resolved, Candidates, Scratch int64
	End                                                                          int64 // of all
}

// Room is the memory of a batch in bytes: on the device, and for what is copied to it and back.
type Room struct {
	Arena, In, Out int64
}

// slack is more than what the alignment of arrays takes.
const slack = 8 * 256

// waveEntries is how many candidates a tile can append, at most k per block; match.cu has the proof.
func waveEntries(k, blocks int) int64 {
	return int64(blocks) * int64(min(k, run.TileObjects/blocks))
}

// queryNeed is the device memory of a query: itself, its spans, state and answer, and candidates for waves of one tile.
func queryNeed(spans, k, blocks int) int64 {
	return abi.QueryBytes + abi.SpanBytes*int64(spans) + abi.StateBytes + topk.EntryBytes*(2*int64(k)+waveEntries(k, blocks))
}

// Cost is the device memory that a plan needs at least (gpuexec.Searcher).
func (x *Index) Cost(p *gpuexec.Plan) int64 {
	k := max(0, min(p.Candidates(), int(x.Lists.Objects())))
	spans := 0 // items may share theirs
	if q, ok := p.Query.(*postings.MatchQuery); ok && q != nil {
		for i := range q.Items {
			spans += int(q.Items[i].Count)
		}
	}
	need := queryNeed(x.spanRoom(spans), k, x.device.Tile[len(x.device.Tile)-1].Blocks)
	if q, ok := p.Query.(*postings.MatchQuery); ok && q != nil {
		need += filters.Cost(q.Filter, x.Tiles)
	}
	scored := x.Originals.Share(&run.Job{K: k, Rescore: p.Rescore, Orderable: true}, x.device.MaxPattern)
	in, out, inner := scored.Need()
	return need + in + out + inner
}

// fitting is how many of the queries fit the room, in the (query, tile) kernel, which can execute every query. Where not even
// the first does, the error is that query's.
func (x *Index) fitting(queries []Query, room Room) (int, error) {
	need, in, out := int64(slack), int64(slack), int64(slack)
	seen := false
	defer func() {
		for i := range queries {
			if f := queries[i].filter; f != nil && seen {
				f.Forget()
			}
		}
	}()
	for i := range queries {
		q := &queries[i]
		n := queryNeed(x.spanRoom(int(q.spans)), q.K, x.device.Tile[q.variant].Blocks)
		nIn := abi.QueryBytes + abi.StateBytes + abi.SpanBytes*int64(q.spans)
		nOut := abi.StateBytes + topk.EntryBytes*int64(q.K)
		if q.Ordered() {
			nOut = abi.StateBytes
		}
		scoreIn, scoreOut, inner := q.Need()
		n, nIn, nOut = n+scoreIn+scoreOut+inner, nIn+scoreIn, nOut+scoreOut
		if seen { // the number of each query's filter
			n, nIn = n+abi.WordBytes, nIn+abi.WordBytes
		}
		if f := q.filter; f != nil && f.See() {
			if !seen { // those of the queries before too, and alignment
				words := abi.WordBytes*int64(i+1) + filters.Slack
				n, nIn, seen = n+words, nIn+words, true
			}
			n, nIn, nOut = n+filters.PassingBytes(x.Tiles)+f.Sent()+abi.TotalBytes, nIn+f.Sent()+abi.TotalBytes, nOut+abi.TotalBytes
		}
		if need+n > room.Arena || in+nIn > room.In || out+nOut > room.Out {
			if i > 0 {
				return i, nil
			}
			return 0, &gpuexec.DeviceError{Op: "executing a query", OutOfMemory: true, Err: fmt.Errorf(
				"k %d and %d sets of keywords need %d MiB on the device, a batch has %d MiB", q.K, q.spans, max(n, nIn)>>20, room.Arena>>20)}
		}
		need, in, out = need+n, in+nIn, out+nOut
	}
	return len(queries), nil
}

// planPiece plans as many of the first queries as fit. Where the kernels chosen need more memory than there is, the piece becomes
// smaller, as long as they pay for so few queries too, and the rest is for a later piece. Else all of it goes to the (query, tile)
// kernel. Where not even the first query fits, the error is that query's. p had an older piece, whose memory it uses.
func (x *Index) planPiece(p *Piece, queries []Query, room Room, policy *Policy) error {
	most, err := x.fitting(queries, room)
	if err != nil {
		return err
	}
	p.rested = false
	tiled := most // queries of the whole that are the (query, tile) kernel's
	for n := most; n == most || n >= policy.Profile.Pieces.Smallest; n /= 2 {
		p.take(x, queries[:n])
		p.rested = policy.choose(x, p.Queries, n < most) || p.rested
		fits := p.divide(x, room, policy)
		if n == most {
			tiled = p.Tiled
		}
		// A piece of (query, tile) queries alone is not worth copying a streamed index for.
		if fits && (p.Tiled < n || n == most || n <= tiled && !x.Streamed) {
			return nil
		} else if p.Tiled == n {
			break
		}
	}
	p.take(x, queries[:most])
	p.divide(x, room, policy)
	return nil
}

// take makes the piece one of these queries, for the (query, tile) kernel, and places the arrays whose sizes do not depend on the
// kernels.
func (p *Piece) take(x *Index, queries []Query) {
	p.Queries = append(p.Queries[:0], queries...)
	var spans, answers int64
	p.Scores.Begin(&x.Originals)
	for i := range p.Queries {
		p.Queries[i].kernel = kernelTile
		spans += int64(p.Queries[i].spans)
		if !p.Queries[i].Ordered() {
			answers += int64(p.Queries[i].K)
		}
		p.Scores.Add(&p.Queries[i].Share)
	}
	p.spanCount = int(spans)
	n := int64(len(p.Queries))
	at := &p.Offsets
	at.Spans = abi.Align(n * abi.QueryBytes)
	at.Tasks = abi.Align(at.Spans + spans*abi.SpanBytes)
	p.takeFilters()
	at.States = abi.Align(p.Filters.Send(p.Scores.Send(at.Tasks), len(p.Queries)))
	at.Totals = at.States + n*abi.StateBytes
	p.Filters.Totals = at.Totals
	at.Answers = at.Totals + abi.TotalBytes*int64(p.Filters.Count)
	var end int64
	at.Scored, end = p.Scores.Return(at.Answers + answers*topk.EntryBytes)
	at.Resolved = abi.Align(end)
	at.Candidates = abi.Align(p.Filters.Pass(abi.Align(at.Resolved+int64(x.spanRoom(int(spans))-int(spans))*abi.SpanBytes), x.Tiles))
}

// divide orders the piece by kernels, (query, tile) queries first, and divides the memory from Candidates on. It is false
// when the other kernels need more than there is.
func (p *Piece) divide(x *Index, room Room, policy *Policy) bool {
	for i := 1; i < len(p.Queries); i++ {
		if p.Queries[i].order() < p.Queries[i-1].order() {
			slices.SortStableFunc(p.Queries, func(a, b Query) int { return a.order() - b.order() })
			break
		}
	}
	p.launchTile()
	bounded := p.Tiled
	for bounded < len(p.Queries) && p.Queries[bounded].kernel == kernelSliced {
		bounded++
	}
	scratch, fits := p.launchSliced(x, p.Queries[:bounded], policy)
	if !fits {
		return false
	}
	p.Bound = newBoundLaunch(bounded, len(p.Queries)-bounded, x.Codes, x.device.Processors)
	p.Bound.Scratch = scratch
	scratch += p.Bound.End
	candidates := p.divideCandidates(x, room.Arena-p.Candidates-scratch, policy)

	p.Scratch = abi.Align(p.Candidates + candidates)
	for i := range p.Sliced {
		s := &p.Sliced[i]
		s.Scratch += p.Scratch
		s.WaveGroups = p.groupWave
		s.FirstWave = min(p.groupWave, policy.Profile.Waves.FirstGroups*s.Columns)
	}
	p.Bound.Scratch += p.Scratch
	p.End = p.Candidates + candidates
	if scratch > 0 {
		p.End = p.Scratch + scratch
	}
	return p.Tiled == len(p.Queries) || p.End <= room.Arena
}

// launchTile finds the launches of the (query, tile) kernel.
func (p *Piece) launchTile() {
	p.Tiled, p.Tile = 0, p.Tile[:0]
	for ; p.Tiled < len(p.Queries) && p.Queries[p.Tiled].kernel == kernelTile; p.Tiled++ {
		variant, filtered := int(p.Queries[p.Tiled].variant), p.Queries[p.Tiled].filter != nil
		if last := len(p.Tile) - 1; last < 0 || p.Tile[last].Variant != variant || p.Tile[last].Filtered != filtered {
			p.Tile = append(p.Tile, TileLaunch{Variant: variant, Filtered: filtered, First: p.Tiled})
		}
		p.Tile[len(p.Tile)-1].Count++
	}
}

// launchSliced finds the launches of the shared-decode kernel, for the queries from Tiled to the end of these, and the memory that
// they take. It is false where the kernels cannot tell apart all that there would be.
func (p *Piece) launchSliced(x *Index, queries []Query, policy *Policy) (scratch int64, ok bool) {
	p.Sliced, p.groupWave = p.Sliced[:0], 1
	for first := p.Tiled; first < len(queries); {
		v := queries[first].counters
		end := first + 1
		for end < len(queries) && queries[end].counters == v {
			end++
		}
		s := newSlicedLaunch(x.device, int(v), queries[first:end], first, x.Planes)
		if !s.addressable() {
			return 0, false
		}
		p.groupWave = max(p.groupWave, policy.Profile.Waves.Groups*s.Columns)
		s.Scratch = scratch
		scratch += abi.Align(s.End)
		p.Sliced = append(p.Sliced, s)
		first = end
	}
	return scratch, true
}

// divideCandidates makes waves as wide as so many bytes for all candidates allow, and returns how many these take. The candidates
// of (query, tile) queries take what the others leave.
func (p *Piece) divideCandidates(x *Index, bytes int64, policy *Policy) int64 {
	var bounded int64
	for i := range p.Bound.Count {
		bounded += topk.EntryBytes * boundEntries(p.Queries[p.Bound.First+i].K)
	}
	bytes -= bounded
	sliced := func(wave int) (entries int64) {
		for i := p.Tiled; i < len(p.Queries)-p.Bound.Count; i++ {
			entries += slicedEntries(p.Queries[i].K, wave)
		}
		return entries * topk.EntryBytes
	}
	var kept, tile int64
	for i := range p.Queries[:p.Tiled] {
		q := &p.Queries[i]
		kept += int64(q.K)
		tile += waveEntries(q.K, x.device.Tile[q.variant].Blocks)
	}
	for p.groupWave > 1 && sliced(p.groupWave)+(kept+tile)*topk.EntryBytes > bytes {
		p.groupWave /= 2
	}
	sizes := &policy.Profile.Pieces
	wanted := max(int64(sizes.Candidates)*int64(max(p.Tiled, sizes.SmallBatch)), (kept+int64(sizes.WaveTiles)*tile)*topk.EntryBytes)
	bytes = min(bytes-sliced(p.groupWave), wanted)
	p.TileWave, p.FirstWave = 1, 0
	if tiles := x.Tiles.Len(); p.Tiled > 0 {
		p.TileWave = int(max(1, min((bytes/topk.EntryBytes-kept)/tile, int64(tiles))))
		p.FirstWave = policy.Profile.Waves.First(x.device.Processors, p.Tiled, tiles, p.TileWave)
	}
	return (kept+tile*int64(p.TileWave))*topk.EntryBytes + sliced(p.groupWave) + bounded
}

// room is the number of candidates of a query.
func (p *Piece) room(x *Index, q *Query) uint64 {
	switch q.kernel {
	case kernelBound:
		return uint64(boundEntries(q.K))
	case kernelSliced:
		return uint64(slicedEntries(q.K, p.groupWave))
	default:
		return uint64(q.K) + uint64(p.TileWave)*uint64(waveEntries(q.K, x.device.Tile[q.variant].Blocks))
	}
}

// InBytes is how much of the pinned input is copied to the beginning of the arena.
func (p *Piece) InBytes() int64 { return p.Answers }

// OutBytes is how much is copied back, from States on.
func (p *Piece) OutBytes() int64 { return p.Scored - p.States }

// encode fills the pinned input, on several cores where there is much.
func (p *Piece) encode(x *Index, in []byte, crew *run.Crew, span int) error {
	n := len(p.Queries)
	queries := abi.Array[abi.Query](in, 0, n)
	flat := abi.Array[abi.Span](in, p.Spans, p.spanCount)
	states := abi.Array[abi.State](in, p.States, n)
	var first uint32
	var candidates uint64
	answers := [...]uint64{0, p.Scores.Orders.Answers(p.Answers)} // of those that come back, and of those that do not
	scores := p.Scores.Encoder(&x.Originals, in)
	for i := range p.Queries {
		q := &p.Queries[i]
		answer := &answers[0]
		if q.Ordered() {
			answer = &answers[1]
		}
		queries[i] = abi.Query{First: first, Spans: q.spans, K: uint32(q.K), Bound: q.Bound, Entries: candidates, Out: *answer}
		scores.Add(&q.Share, uint32(q.K), uint32(i), uint32(*answer))
		states[i] = abi.State{Threshold: q.minCount}
		first += q.spans
		candidates += p.room(x, q)
		*answer += uint64(q.K)
	}
	scores.Done()
	costs := &x.device.Profile.Host
	work := p.spanCount*span + p.Scores.AskWork(costs.AskWord, costs.AskQuery) + costs.PlanFilter*p.Filters.Count
	return crew.Each(context.Background(), n+p.Filters.Count, work, func(i int) {
		if i >= n {
			p.Filters.Encode(in, i-n, x.empty)
			return
		}
		q := &p.Queries[i]
		x.encodeSpans(flat[queries[i].First:][:q.spans], queryOf(q.Job))
		p.Scores.Ask(&x.Originals, in, &q.Share, q.Job)
		p.encodeFilterOf(in, i)
	})
}
