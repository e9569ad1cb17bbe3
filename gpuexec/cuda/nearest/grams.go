package nearest

import (
	"github.com/geniemq/geniemq/gpuexec/cpu/nearest"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
	"github.com/geniemq/geniemq/index/distance"
)

// mostLists is how many lists a query may count: a counter is a byte.
const mostLists = 255

// A GramPiece is some queries of a batch that count n-grams together, and where everything of theirs lies: what they count, and then what a Piece has, whose lists get what is to be
// compared. Who finds more than a list has room for is given up.
//
//	arena (device)   what is counted | numbers of lists | a Piece
//
// Its bounds are those of a Piece whose queries have a list each, and candidates for all of it.
type GramPiece struct {
	Piece
	Heads   int64 // offset of what each counts, an abi.GramAsk
	Numbers int64 // and of the numbers

	counted []nearest.Counted // by ask
}

// CountsGrams says whether the device counts for a query, which counts so.
func (c *Column) CountsGrams(q *distance.Query, counted *nearest.Counted) bool {
	return len(counted.Frequent)+len(counted.Rare) <= mostLists && c.texts.takes(q.Text)
}

// GramsCost is the memory of the device that a query takes at least that counts n-grams, GramsFit whether it can be executed alone.
func (c *Column) GramsCost(q *distance.Query, waves *profile.NearWaves) int64 {
	arena, _, _ := c.need(c.hits(q), int64(waves.List), 0)
	return 2*slack + arena + abi.WordBytes*int64(waves.List) + abi.GramAskBytes + abi.WordBytes*mostLists + c.setBytes()
}
func (c *Column) GramsFit(q *distance.Query, room plan.Room, waves *profile.NearWaves) bool {
	_, in, out := c.need(c.hits(q), 0, 0)
	return c.GramsCost(q, waves) <= room.Arena && 2*slack+in+abi.GramAskBytes+abi.WordBytes*mostLists+c.setBytes() <= room.In && slack+out <= room.Out
}

// PlanGrams makes a piece of the first asks, as many as fit; of none, if not even the first does. counted says what each counts.
func (c *Column) PlanGrams(asks []Ask, counted []nearest.Counted, room plan.Room, waves *profile.NearWaves) *GramPiece {
	p := &GramPiece{Piece: Piece{Column: c, waves: waves, listed: true}}
	wave := int64(waves.List)
	p.fit(asks, plan.Room{Arena: 2 * slack, In: 2 * slack, Out: slack}, wave, func(i int) (arena, in int64) {
		in = abi.GramAskBytes + abi.WordBytes*int64(len(counted[i].Frequent)+len(counted[i].Rare))
		return in + abi.WordBytes*wave, in
	}, func(int) plan.Room { return room })
	p.counted, p.ListRoom = counted[:len(p.Asks)], waves.List
	numbers := 0
	for i := range p.counted {
		numbers += len(p.counted[i].Frequent) + len(p.counted[i].Rare)
	}
	p.Numbers = abi.Align(abi.GramAskBytes * int64(len(p.Asks)))
	p.placeSent(abi.Align(p.Numbers + abi.WordBytes*int64(numbers)))
	p.placeDerived(p.InBytes())
	p.waved(wave)
	return p
}

// Encode fills what is copied to the device.
func (p *GramPiece) Encode(in []byte) {
	heads, first := abi.Array[abi.GramAsk](in, p.Heads, len(p.Asks)), 0
	for i := range p.counted {
		c := &p.counted[i]
		heads[i] = abi.GramAsk{First: uint32(first), Frequent: uint32(len(c.Frequent)), Rare: uint32(len(c.Rare)), Least: uint32(c.Least)}
		to := abi.Array[uint32](in, p.Numbers+abi.WordBytes*int64(first), len(c.Frequent)+len(c.Rare))
		copy(to[copy(to, c.Frequent):], c.Rare)
		first += len(to)
	}
	p.Piece.Encode(in)
}

// Told is what a search says that has counted n-grams, as one core does (gpuexec/cpu/nearest, gramSearch): did is what Decode says of it.
func (p *GramPiece) Told(a *Ask, counted *nearest.Counted, did *distance.Answer) distance.Answer {
	told := distance.Answer{Method: distance.Ngram, Exact: true, Counted: did.Counted, Within: did.Within, Distances: did.Distances}
	if len(counted.Frequent)+len(counted.Rare) > 0 {
		told.Blocks = uint64(p.Column.Tiles.Len())
	}
	return told
}
