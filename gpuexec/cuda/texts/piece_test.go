package texts

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// shaped is a column of so many texts, whose lengths are given by how many have each.
func shaped(rng *rand.Rand, lengths int, most int) *ByLength {
	x := &ByLength{Symbols: &Symbols{Count: 30}, First: make([]uint32, 1, lengths+1)}
	n := 0
	for length := range lengths {
		own := rng.IntN(most + 1)
		x.Units += int64(own) * abi.Units(abi.TextHead+length)
		n += own
		x.First = append(x.First, uint32(n))
	}
	x.Order, x.objects = make([]uint32, n), uint32(n)
	if rng.IntN(4) == 0 {
		x.Beyond = abi.MaxText + 1 + rng.IntN(50)
	}
	return x
}

func randomAsk(rng *rand.Rand, x *ByLength) Ask {
	a := Ask{
		Pattern: make([]rune, []int{0, 1, rng.IntN(20), 32, 63, 64, 65, rng.IntN(300), abi.MaxPattern}[rng.IntN(9)]),
		K:       []int{0, 1, 10, rng.IntN(2000), 65_536}[rng.IntN(5)], Most: rng.IntN(30) - 1, Total: rng.IntN(2) == 0, Filter: rng.IntN(4) - 1,
	}
	if rng.IntN(2) == 0 {
		a.Most = abi.TextFarthest
	}
	if a.Filter >= 0 {
		a.Passing = make([]byte, x.PassingBytes())
	}
	return a
}

// TestPieces: whatever the memory of a lane, the pieces of a batch are all its searches, in order; each has room for what any texts could make of it, in waves that a
// launch can have, and what fits alone is executed.
func TestPieces(t *testing.T) {
	rng := seeded.Rand(t)
	refused, several := 0, 0
	for range 200 {
		x := shaped(rng, 1+rng.IntN(80), 1<<rng.IntN(15))
		memory := int64(16<<10) << rng.IntN(15)
		room := Room{Arena: memory, In: min(memory, 1<<20<<rng.IntN(6)), Out: min(memory, 1<<20<<rng.IntN(6))}
		sizes := Sizes{Processors: 1 + rng.IntN(132), Blocks: 2, Growth: 4, Wave: 1 + rng.IntN(16), Work: 1 << (20 + rng.IntN(15))}
		asks := make([]Ask, 1+rng.IntN(60))
		for i := range asks {
			asks[i] = randomAsk(rng, x)
		}
		asks = slices.DeleteFunc(asks, func(a Ask) bool {
			fits := x.Takes(a.Pattern, a.K, a.Most, a.Filter >= 0, room)
			reaches := x.Beyond > 0 && (a.Most == abi.TextFarthest || len(a.Pattern)+a.Most >= x.Beyond)
			alone := x.Plan([]Ask{a}, room, sizes)
			if fits != (!reaches && len(alone.Asks) == 1) {
				t.Fatalf("%d bytes: fits %v, and alone there are %d: %+v", memory, fits, len(alone.Asks), a)
			}
			if cost := x.Cost(a.K, len(a.Pattern), a.Filter >= 0); !fits && !reaches && cost+4*slack < min(room.Arena, room.In, room.Out) {
				t.Fatalf("k %d, which costs %d, does not fit %+v", a.K, cost, room)
			}
			if !fits {
				refused++
			}
			return !fits
		})
		order := Sort(asks)
		if len(order) != len(asks) || !slices.IsSortedFunc(asks, func(a, b Ask) int { return PairClass(len(a.Pattern)) - PairClass(len(b.Pattern)) }) {
			t.Fatalf("asks are not in the order of their classes")
		}
		in := make([]byte, room.In)
		for len(asks) > 0 {
			p := x.Plan(asks, room, sizes)
			n := len(p.Asks)
			if n == 0 {
				t.Fatalf("%+v does not fit %+v", asks[0], room)
			}
			if n > 1 {
				several++
			}
			p.check(t, rng, room, in)
			asks = asks[n:]
		}
	}
	if refused == 0 || several == 0 {
		t.Errorf("%d refused, %d pieces of several", refused, several)
	}
}

// check holds a piece against what its kernels may write.
func (p *Piece) check(t *testing.T, rng *rand.Rand, room Room, in []byte) {
	t.Helper()
	for i := range in[:min(len(in), int(p.InBytes()))] {
		in[i] = 0xa5
	}
	if p.End() > room.Arena || p.InBytes() > room.In || p.OutBytes() > room.Out {
		t.Fatalf("%d bytes, %d in, %d out, of %+v", p.End(), p.InBytes(), p.OutBytes(), room)
	}
	p.Encode(in)
	n := len(p.Asks)
	queries, asked := abi.Array[abi.Query](in, 0, n), abi.Array[abi.TextQuery](in, p.Asked, n)
	states, counts := abi.Array[abi.State](in, p.States, n), abi.Array[abi.TextCounts](in, p.Counts, n)
	var entries, answers, symbols uint64
	most := 0
	for i := range p.Asks {
		a, q := &p.Asks[i], &asked[i]
		k := max(1, min(a.K, p.column.Len()))
		blocks := int(q.High - q.Low)
		if queries[i].Entries != entries || queries[i].Out != answers || int(queries[i].K) != k || uint64(q.Pattern) != symbols || int(q.Length) != len(a.Pattern) {
			t.Fatalf("search %d: %+v, %+v", i, queries[i], q)
		}
		from, to := p.column.Span(len(a.Pattern), min(a.Most, abi.TextFarthest))
		if from < to && (int(q.Low)*abi.TextBlock > from || int(q.High)*abi.TextBlock < to || q.Home < q.Low || q.Home >= q.High) || from >= to && blocks != 0 {
			t.Fatalf("search %d has blocks %d to %d from %d on, of positions %d to %d", i, q.Low, q.High, q.Home, from, to)
		}
		limit := int(abi.TextFarthest + 1 - states[i].Threshold) // what passes at first
		if stores := a.K > 0 && a.Most >= 0; stores && limit != a.Most || !stores && states[i].Threshold <= abi.TextFarthest+1 {
			t.Fatalf("search %d stores up to %d, wanted are %d within %d", i, limit, a.K, a.Most)
		}
		if counts[i] != (abi.TextCounts{}) || states[i].Stored != 0 || (q.Flags == abi.TextTotal) != a.Total || (q.Filter == abi.NoFilter) != (a.Filter < 0) {
			t.Fatalf("search %d: %+v, %+v, %+v", i, counts[i], states[i], q)
		}
		if q.Filter != abi.NoFilter && p.Passing+int64(q.Filter+1)*p.PassingBytes > p.States {
			t.Fatalf("filter %d lies beyond the states", q.Filter)
		}
		entries += uint64(k + abi.TextBlock*min(p.Wave, blocks)) // what a wave may append to what is kept
		answers += uint64(k)
		symbols += uint64(len(a.Pattern))
		most = max(most, blocks)
	}
	if p.Candidates+topk.EntryBytes*int64(entries) > room.Arena || p.Answers+topk.EntryBytes*int64(answers) > p.Candidates ||
		p.Patterns+abi.SymbolBytes*int64(symbols) > p.Passing || p.Wave < 1 || p.Wave > abi.MaxGridY {
		t.Fatalf("%d entries, %d answers, %d symbols, waves of %d: %+v", entries, answers, symbols, p.Wave, p)
	}
	next := 0
	p.Waves(func(first, count int) {
		if first != next || count < 1 || count > p.Wave {
			t.Fatalf("a wave of %d ranks from %d on, of %d", count, first, p.Wave)
		}
		next = first + count
	})
	if next != most {
		t.Fatalf("waves end at rank %d of %d", next, most)
	}
	covered := 0
	for _, c := range p.Classes {
		if c.First != covered || c.Lanes != 1<<PairClass(len(p.Asks[c.First].Pattern)) || c.Ranks > most {
			t.Fatalf("classes %+v", p.Classes)
		}
		covered += c.Count
	}
	if covered != n {
		t.Fatalf("%d of %d searches are of some class", covered, n)
	}
	p.checkDecoded(t, rng)
}

// checkDecoded hands a piece what a device might.
func (p *Piece) checkDecoded(t *testing.T, rng *rand.Rand) {
	t.Helper()
	out := make([]byte, p.OutBytes())
	states := abi.Array[abi.State](out, 0, len(p.Asks))
	counts := abi.Array[abi.TextCounts](out, p.Counts-p.States, len(p.Asks))
	at := p.Answers - p.States
	for i := range p.Asks {
		k := p.column.kept(&p.Asks[i])
		states[i].Kept = uint32(rng.IntN(k + 1))
		counts[i] = abi.TextCounts{Within: uint64(i), Distances: 7, Blocks: 3}
		abi.Array[topk.Entry](out, at, k)[0] = topk.NewEntry(uint32(i), 5)
		at += topk.EntryBytes * int64(k)
	}
	next := 0
	p.Decode(out, func(i int, f Found) {
		within := uint64(0)
		if p.Asks[i].Total {
			within = uint64(i)
		}
		if i != next || len(f.Entries) != int(states[i].Kept) || len(f.Entries) > 0 && f.Entries[0] != topk.NewEntry(uint32(i), 5) || f.Within != within || f.Distances != 7 || f.Blocks != 3 {
			t.Fatalf("search %d: %+v", i, f)
		}
		next++
	})
	if next != len(p.Asks) {
		t.Fatalf("%d of %d searches were decoded", next, len(p.Asks))
	}
}

// TestTakesNothingTooLong: patterns that the device does not compare are the host's.
func TestTakesNothingTooLong(t *testing.T) {
	x := shaped(seeded.Rand(t), 5, 10)
	room := Room{math.MaxInt64, math.MaxInt64, math.MaxInt64}
	x.Beyond = 0
	if !x.Takes(make([]rune, abi.MaxPattern), 1, 3, false, room) || x.Takes(make([]rune, abi.MaxPattern+1), 1, 3, false, room) {
		t.Error("patterns are taken by another length")
	}
}
