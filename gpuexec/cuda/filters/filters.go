// Package filters says how the filters of a batch are sent to a device, and how the values lie there that edges are held against.
// kernels/filter.cu reads both.
package filters

import (
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/filter"
)

// A Planned is a filter that queries of a batch have: one for all that are equal.
type Planned struct {
	*filter.Filter
	Clauses, Spans, Ranges int // on the device; spans with those of edges

	number uint32 // in the Layout that has it there
	// Of what is sent: where its own begin.
	clause, span, rng uint32
	seen              bool
}

// See is true when it is called first; Forget makes the next call the first. So who plans a batch finds out what its filters take together.
func (p *Planned) See() (first bool) {
	first, p.seen = !p.seen, true
	return first
}

// Forget is for what See says next.
func (p *Planned) Forget() { p.seen = false }

// Plan says what a filter asks of a device. It may be one that no engine would execute.
func Plan(f *filter.Filter) Planned {
	p := Planned{Filter: f}
	for _, g := range f.Groups {
		p.Clauses += max(1, int(g.Count))
		if uint64(g.First)+uint64(g.Count) > uint64(len(f.Clauses)) {
			continue
		}
		for _, c := range f.GroupClauses(g) { // which groups may share
			p.Spans += int(c.Spans.Count) + int(c.Edges.Count)
			p.Ranges += int(c.Ranges.Count)
		}
	}
	return p
}

// Sent is what is copied to a device for a filter, beside four bytes for each query of a piece with filters.
func (p *Planned) Sent() int64 {
	return abi.FilterHeadBytes + abi.ClauseBytes*int64(p.Clauses) + abi.SpanBytes*int64(p.Spans) + abi.RangeBytes*int64(p.Ranges)
}

// PassingBytes is the memory of what passes a filter in some tiles: a bit per object, and how many pass in each tile.
func PassingBytes(tiles run.Tiles) int64 {
	return int64(tiles.Len()) * (abi.WordBytes*abi.TileWords + abi.WordBytes)
}

// Slack is what aligning the arrays of filters takes.
const Slack = 6 * 256

// Cost is the memory that a query's filter takes, 0 without one.
func Cost(f *filter.Filter, tiles run.Tiles) int64 {
	if f == nil {
		return 0
	}
	p := Plan(f)
	return PassingBytes(tiles) + abi.TotalBytes + abi.WordBytes + Slack + p.Sent()
}

// A Layout is the distinct filters of a piece, and where what concerns them lies in its arena. What is sent to the device lies beside
// the queries, totals lie behind the states. All is empty where no query has a filter.
type Layout struct {
	Count int
	Only  bool // some query asks for nothing else
	// Offsets in the arena.
	Clauses, Spans, Ranges, Heads, Of int64
	Totals                            int64
	Passing, PassingOfTile            int64

	Planned []*Planned // by number
}

// Begin forgets the filters of another piece.
func (l *Layout) Begin() {
	clear(l.Planned)
	*l = Layout{Planned: l.Planned[:0]}
}

// Number is that of a filter in the piece; only says that a query asks for nothing else.
func (l *Layout) Number(p *Planned, only bool) uint32 {
	l.Only = l.Only || only
	if int(p.number) >= l.Count || l.Planned[p.number] != p {
		p.number = uint32(l.Count)
		l.Planned = append(l.Planned, p)
		l.Count++
	}
	return p.number
}

// Send places what is sent from an offset on, for so many queries, and returns the end.
func (l *Layout) Send(at int64, queries int) int64 {
	if l.Count == 0 {
		return at
	}
	var clauses, spans, ranges int64
	for _, p := range l.Planned {
		p.clause, p.span, p.rng = uint32(clauses), uint32(spans), uint32(ranges)
		clauses += int64(p.Clauses)
		spans += int64(p.Spans)
		ranges += int64(p.Ranges)
	}
	l.Clauses = abi.Align(at)
	l.Spans = l.Clauses + abi.ClauseBytes*clauses
	l.Ranges = l.Spans + abi.SpanBytes*spans
	l.Heads = l.Ranges + abi.RangeBytes*ranges
	l.Of = l.Heads + abi.FilterHeadBytes*int64(l.Count)
	return l.Of + abi.WordBytes*int64(queries)
}

// Pass places what passes in some tiles from an offset on, and returns the end.
func (l *Layout) Pass(at int64, tiles run.Tiles) int64 {
	l.Passing = at
	l.PassingOfTile = at + int64(l.Count)*int64(tiles.Len())*abi.WordBytes*abi.TileWords
	return at + int64(l.Count)*PassingBytes(tiles)
}

// Encode fills what is sent of the filter of a number: filters lie anywhere in memory, so a batch of many has them encoded on several cores. Its total
// begins at zero. Spans of attributes in which no object has a keyword are left out.
func (l *Layout) Encode(in []byte, number int, empty func(attr uint32) bool) {
	p := l.Planned[number]
	abi.Array[uint64](in, l.Totals, l.Count)[number] = 0
	to := encoder{
		empty:   empty,
		clauses: abi.Array[abi.Clause](in, l.Clauses, int(l.Spans-l.Clauses)/abi.ClauseBytes),
		spans:   abi.Array[abi.Span](in, l.Spans, int(l.Ranges-l.Spans)/abi.SpanBytes),
		ranges:  abi.Array[filter.Range](in, l.Ranges, int(l.Heads-l.Ranges)/abi.RangeBytes),
		clause:  p.clause, span: p.span, rng: p.rng,
	}
	to.filter(p)
	abi.Array[abi.FilterHead](in, l.Heads, l.Count)[number] = abi.FilterHead{First: p.clause, Clauses: to.clause - p.clause}
}

// OfQueries is where it is sent which filter each query has: a number, abi.NoFilter, or a number with abi.FilterOnly.
func (l *Layout) OfQueries(in []byte, queries int) []uint32 {
	return abi.Array[uint32](in, l.Of, queries)
}

// An encoder writes a filter as the device reads it.
type encoder struct {
	empty   func(attr uint32) bool
	clauses []abi.Clause
	spans   []abi.Span
	ranges  []filter.Range

	clause, span, rng uint32 // that come next
}

func (e *encoder) filter(p *Planned) {
	for _, g := range p.Groups {
		clauses := p.GroupClauses(g)
		if len(clauses) == 0 && g.Negated { // passes nobody: a clause that is met by none
			e.clauses[e.clause] = abi.Clause{Flags: abi.ClauseFirst | abi.ClauseLast, First: e.span, FirstRange: e.rng}
			e.clause++
		}
		for i, c := range clauses {
			to := abi.Clause{Attribute: c.Attr, First: e.span, FirstRange: e.rng}
			if i == 0 {
				to.Flags |= abi.ClauseFirst
			}
			if i == len(clauses)-1 {
				to.Flags |= abi.ClauseLast
				if g.Negated {
					to.Flags |= abi.ClauseNot
				}
			}
			to.Spans = e.add(c.Attr, p.ClauseSpans(c))
			to.Edges = e.add(c.Attr, p.ClauseEdges(c))
			ranges := p.ClauseRanges(c)
			e.rng += uint32(copy(e.ranges[e.rng:], ranges))
			to.Ranges = uint32(len(ranges))
			e.clauses[e.clause] = to
			e.clause++
		}
	}
}

// add writes spans of an attribute.
func (e *encoder) add(attr uint32, spans []filter.Span) uint32 {
	if e.empty(attr) {
		return 0
	}
	for _, s := range spans {
		e.spans[e.span] = abi.Span{Attribute: attr, Lo: s.Lo, Hi: s.Hi}
		e.span++
	}
	return uint32(len(spans))
}
