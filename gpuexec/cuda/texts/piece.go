package texts

import (
	"cmp"
	"math"
	"slices"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/topk"
)

// An Ask is one search of a column by edit distance.
type Ask struct {
	Pattern []rune
	K       int    // nearest objects that are wanted; 0: they are only counted
	Most    int    // distances beyond it are not wanted; below 0: none is
	Total   bool   // all within Most are counted, though there be more than K
	Filter  int    // the number of Passing, the same of all asks that have the same one; -1: everybody passes
	Passing []byte // a bit an object of the column's range
}

// Found is what a search has found.
type Found struct {
	Entries           []topk.Entry // the nearest one last; each an object's id and, as its count, abi.TextFarthest less its distance
	Within            uint64       // with Ask.Total
	Distances, Blocks uint64       // that were computed; pieces of the column that were looked at
}

// Room is the memory of a piece in bytes: on the device, and for what is copied to it and back.
type Room struct{ Arena, In, Out int64 }

// Sizes bound pieces and their waves.
type Sizes struct {
	Processors int   // multiprocessors of the device
	Blocks     int   // of the first wave, per multiprocessor
	Growth     int   // from wave to wave
	Wave       int   // blocks that every query of a piece of several has room for
	Work       int64 // bytes times lanes of a piece of several, and of a launch
}

// Piece is searches that are executed together, and where everything of theirs lies.
//
//	arena (device)   queries | asked | patterns | what passes | states | counts | answers | candidates
//	in (pinned)      queries | asked | patterns | what passes | states | counts           one copy to the device
//	out (pinned)                                                states | counts | answers  one copy back
//
// # Bound of its memory
//
// A query's candidates are the k that are kept and what a wave appends: an entry at most for each position of its blocks, which are TextBlock each and of which
// there are no more than its lengths allow (kernels/text_scan.cu). So k + Wave * TextBlock entries hold for any texts, where Wave is what the room
// allows, and one block is enough: what fits with one block is executed, whatever else there is.
type Piece struct {
	Asks    []Ask
	Classes []Class
	// Offsets of the arrays; queries come first.
	Asked, Patterns, Passing, States, Counts, Answers, Candidates int64
	PassingBytes                                                  int64 // of one filter, a multiple of 8
	FirstWave, Wave                                               int   // ranks

	column  *ByLength
	queries []abi.TextQuery
	filters map[int]int // by Ask.Filter: its place in the piece
	hits    int64
	ranks   int // of the query with the most blocks
	sizes   Sizes
}

// A Class is searches of a piece that follow each other and whose pairs take equally many of a warp's lanes.
type Class struct{ Lanes, First, Count, Ranks int }

// slack is more than what the alignment of arrays takes.
const slack = 8 * 256

// Sort puts asks into the order in which pieces want them, and says for each which one it was.
func Sort(asks []Ask) []int {
	order := make([]int, len(asks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Compare(PairClass(len(asks[i].Pattern)), PairClass(len(asks[j].Pattern)))
	})
	sorted := make([]Ask, len(asks))
	for i, at := range order {
		sorted[i] = asks[at]
	}
	copy(asks, sorted)
	return order
}

// kept is how many entries a search keeps at most, one at least: kernels that select want one.
func (x *ByLength) kept(a *Ask) int { return max(1, min(a.K, len(x.Order))) }

// blocks are those that a search may take by its limit alone, and its home among them.
func (x *ByLength) blocks(a *Ask) (home, low, high int) {
	from, to := x.Span(len(a.Pattern), min(a.Most, abi.TextFarthest))
	if from >= to {
		return 0, 0, 0
	}
	low, high = from/abi.TextBlock, (to+abi.TextBlock-1)/abi.TextBlock
	return min(max(x.Home(len(a.Pattern))/abi.TextBlock, low), high-1), low, high
}

// Cost is the memory of the device that a search needs at least: with waves of one block.
func (x *ByLength) Cost(k, pattern int, filtered bool) int64 {
	need := x.sent(pattern) + topk.EntryBytes*(2*int64(max(1, min(k, len(x.Order))))+abi.TextBlock) + slack
	if filtered {
		need += x.PassingBytes()
	}
	return need
}

// sent is what is sent of a search, but for what passes its filter.
func (x *ByLength) sent(pattern int) int64 {
	return abi.QueryBytes + abi.TextQueryBytes + abi.StateBytes + abi.TextCountsBytes + abi.SymbolBytes*int64(pattern)
}

// PassingBytes is a bit an object of the column's range, in whole words.
func (x *ByLength) PassingBytes() int64 { return (int64(x.objects) + 63) / 64 * 8 }

// fitting is how many of the searches fit. It is 0 where not even the first does.
func (x *ByLength) fitting(asks []Ask, room Room, sizes *Sizes) int {
	in, out, need, work := int64(slack), int64(slack), int64(slack), int64(0)
	filters := make(map[int]bool)
	for i := range asks {
		a := &asks[i]
		k := int64(x.kept(a))
		_, low, high := x.blocks(a)
		more := x.sent(len(a.Pattern))
		if a.Filter >= 0 && !filters[a.Filter] {
			filters[a.Filter] = true
			more += x.PassingBytes()
		}
		wave := 1
		if i > 0 {
			wave = sizes.Wave
		}
		in += more
		out += abi.StateBytes + abi.TextCountsBytes + topk.EntryBytes*k
		need += more + topk.EntryBytes*(2*k+abi.TextBlock*int64(min(wave, high-low)))
		if i == 1 { // what the first one gets in company
			_, low, high := x.blocks(&asks[0])
			need += topk.EntryBytes * abi.TextBlock * int64(max(0, min(wave, high-low)-1))
		}
		work += x.bytes(high-low) << PairClass(len(a.Pattern))
		if need > room.Arena || in > room.In || out > room.Out || i > 0 && work > sizes.Work {
			return i
		}
	}
	return len(asks)
}

// bytes are those of so many blocks, about.
func (x *ByLength) bytes(blocks int) int64 {
	return x.Units * abi.UnitBytes * int64(blocks) * abi.TextBlock / int64(max(1, len(x.Order)))
}

// Plan plans as many of the searches as fit, which are in the order of Sort. The piece has none where not even the first does.
func (x *ByLength) Plan(asks []Ask, room Room, sizes Sizes) *Piece {
	p := &Piece{Asks: asks[:x.fitting(asks, room, &sizes)], column: x, filters: make(map[int]int), sizes: sizes, PassingBytes: x.PassingBytes()}
	n := int64(len(p.Asks))
	if n == 0 {
		return p
	}
	var symbols, lanes int64
	for i := range p.Asks {
		a := &p.Asks[i]
		q := p.query(a, symbols)
		symbols += int64(len(a.Pattern))
		p.hits += int64(x.kept(a))
		own := 1 << PairClass(len(a.Pattern))
		lanes += int64(own)
		if last := len(p.Classes) - 1; last < 0 || p.Classes[last].Lanes != own {
			p.Classes = append(p.Classes, Class{Lanes: own, First: i})
		}
		c := &p.Classes[len(p.Classes)-1]
		c.Count++
		c.Ranks = max(c.Ranks, int(q.High-q.Low))
		p.ranks = max(p.ranks, c.Ranks)
		p.queries = append(p.queries, q)
	}
	p.Asked = abi.Align(n * abi.QueryBytes)
	p.Patterns = p.Asked + n*abi.TextQueryBytes
	p.Passing = abi.Align(p.Patterns + symbols*abi.SymbolBytes)
	p.States = abi.Align(p.Passing + int64(len(p.filters))*p.PassingBytes)
	p.Counts = p.States + n*abi.StateBytes
	p.Answers = p.Counts + n*abi.TextCountsBytes
	p.Candidates = abi.Align(p.Answers + p.hits*topk.EntryBytes)
	p.Wave = p.widest(room.Arena)
	if bytes := x.bytes(1); bytes*lanes > 0 {
		p.Wave = min(p.Wave, max(min(sizes.Wave, p.Wave), int(min(sizes.Work/(bytes*lanes), math.MaxInt32))))
	}
	p.FirstWave = max(1, sizes.Processors*sizes.Blocks/len(p.Asks))
	return p
}

// query is what the device is told of a search; pattern is where its symbols lie.
func (p *Piece) query(a *Ask, pattern int64) abi.TextQuery {
	home, low, high := p.column.blocks(a)
	q := abi.TextQuery{
		Pattern: uint32(pattern), Length: uint32(len(a.Pattern)), Most: uint32(max(0, min(a.Most, abi.TextFarthest))),
		Home: uint32(home), Low: uint32(low), High: uint32(high), Filter: abi.NoFilter,
	}
	for _, r := range a.Pattern {
		q.Signs |= p.column.Symbols.Sign(r)
	}
	if a.Total {
		q.Flags = abi.TextTotal
	}
	if a.Filter >= 0 {
		at, ok := p.filters[a.Filter]
		if !ok {
			at = len(p.filters)
			p.filters[a.Filter] = at
		}
		q.Filter = uint32(at)
	}
	return q
}

// widest is the most ranks for which the candidates of all searches have room: by bisection, since a search needs no more than its blocks.
func (p *Piece) widest(arena int64) int {
	lo, hi := 1, min(p.ranks, abi.MaxGridY)+1 // fitting has made sure of lo
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; p.Candidates+topk.EntryBytes*p.candidates(mid) <= arena {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// candidates are the entries that all searches have room for in waves of so many ranks.
func (p *Piece) candidates(wave int) (entries int64) {
	for i := range p.queries {
		entries += p.room(i, wave)
	}
	return entries
}

// room is that of one search.
func (p *Piece) room(i, wave int) int64 {
	q := &p.queries[i]
	return int64(p.column.kept(&p.Asks[i])) + abi.TextBlock*int64(min(wave, int(q.High-q.Low)))
}

// End is the memory of the device that the piece uses.
func (p *Piece) End() int64 { return p.Candidates + topk.EntryBytes*p.candidates(p.Wave) }

// InBytes is how much of the pinned input is copied to the beginning of the arena, OutBytes how much is copied back, from States on.
func (p *Piece) InBytes() int64  { return p.Answers }
func (p *Piece) OutBytes() int64 { return p.Answers + topk.EntryBytes*p.hits - p.States }

// Waves calls launch with each wave of a class: its first rank, and how many it has. Waves of all classes are numbered alike, so that after a wave every
// query can be compacted at once.
func (p *Piece) Waves(launch func(first, count int)) {
	for first, width := 0, p.FirstWave; first < p.ranks; width = min(width, math.MaxInt32) * p.sizes.Growth {
		width = min(width, p.Wave)
		launch(first, min(width, p.ranks-first))
		first += width
	}
}

// Encode fills the pinned input.
func (p *Piece) Encode(in []byte) {
	n := len(p.Asks)
	queries, states := abi.Array[abi.Query](in, 0, n), abi.Array[abi.State](in, p.States, n)
	copy(abi.Array[abi.TextQuery](in, p.Asked, n), p.queries)
	clear(abi.Array[abi.TextCounts](in, p.Counts, n))
	var candidates, answers uint64
	for i := range p.Asks {
		a, q := &p.Asks[i], &p.queries[i]
		k := p.column.kept(a)
		queries[i] = abi.Query{K: uint32(k), Bound: abi.TextFarthest, Entries: candidates, Out: answers}
		states[i] = abi.State{Threshold: abi.TextFarthest + 1 - q.Most}
		if a.K < 1 || a.Most < 0 {
			states[i].Threshold = math.MaxUint32 // nothing is stored
		}
		pattern := abi.Array[uint16](in, p.Patterns+abi.SymbolBytes*int64(q.Pattern), len(a.Pattern))
		for j, r := range a.Pattern {
			pattern[j] = p.column.Symbols.Of(r)
		}
		if q.Filter != abi.NoFilter {
			to := in[p.Passing+int64(q.Filter)*p.PassingBytes:][:p.PassingBytes]
			clear(to[copy(to, a.Passing):])
		}
		candidates += uint64(p.room(i, p.Wave))
		answers += uint64(k)
	}
}

// Decode calls found with what each search has found; its entries hold as long as out does.
func (p *Piece) Decode(out []byte, found func(i int, f Found)) {
	n := len(p.Asks)
	states, counts := abi.Array[abi.State](out, 0, n), abi.Array[abi.TextCounts](out, p.Counts-p.States, n)
	answer := p.Answers - p.States
	for i := range p.Asks {
		k := p.column.kept(&p.Asks[i])
		f := Found{Entries: abi.Array[topk.Entry](out, answer, min(k, int(states[i].Kept))), Distances: counts[i].Distances, Blocks: uint64(counts[i].Blocks)}
		if p.Asks[i].Total {
			f.Within = counts[i].Within
		}
		found(i, f)
		answer += topk.EntryBytes * int64(k)
	}
}

// Takes says whether the device answers a search: it compares patterns as long, has every text that can be a hit, and the search fits alone.
func (x *ByLength) Takes(pattern []rune, k, most int, filtered bool, room Room) bool {
	n := len(pattern)
	a := Ask{Pattern: pattern, K: k, Most: most, Filter: -1}
	if filtered {
		a.Filter = 0
	}
	return n <= abi.MaxPattern && !x.Reaches(n, most) && x.fitting([]Ask{a}, room, &Sizes{Wave: 1, Work: math.MaxInt64}) == 1
}
