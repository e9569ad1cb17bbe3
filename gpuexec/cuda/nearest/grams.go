package nearest

import (
	"time"

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
}

// CountsGrams says whether the device counts for a query, so many lists.
func (c *Column) CountsGrams(q *distance.Query, lists int) bool {
	return lists <= mostLists && c.texts.takes(q.Text)
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

// GramsPrice is what a query takes that counts n-grams together with so many, on the host too, which looks them up.
func (c *Column) GramsPrice(q *distance.Query, queries int, waves *profile.NearWaves) time.Duration {
	return time.Duration(waves.Batch/float64(max(1, queries)) + waves.GramLook + waves.GramTile*float64(c.Tiles.Len()) + waves.Place*float64(c.hits(q)))
}

// PlanGrams makes a piece of the first asks, as many as fit; of none, if not even the first does.
func (c *Column) PlanGrams(asks []Ask, room plan.Room, waves *profile.NearWaves) *GramPiece {
	p := &GramPiece{Piece: Piece{Column: c, waves: waves, listed: true}}
	wave := int64(waves.List)
	p.fit(asks, plan.Room{Arena: 2 * slack, In: 2 * slack, Out: slack}, wave, func(i int) (arena, in int64) {
		in = abi.GramAskBytes + abi.WordBytes*int64(asks[i].Counted.Lists())
		return in + abi.WordBytes*wave, in
	}, func(int) plan.Room { return room })
	p.ListRoom = waves.List
	numbers := 0
	for i := range p.Asks {
		numbers += p.Asks[i].Counted.Lists()
	}
	p.Numbers = abi.Align(abi.GramAskBytes * int64(len(p.Asks)))
	p.placeSent(abi.Align(p.Numbers + abi.WordBytes*int64(numbers)))
	p.placeDerived(p.InBytes())
	p.waved(wave)
	return p
}

// Encode fills what is copied to the device.
func (p *GramPiece) Encode(in []byte, each Each) {
	heads, first := abi.Array[abi.GramAsk](in, p.Heads, len(p.Asks)), 0
	for i := range p.Asks {
		c := p.Asks[i].Counted
		heads[i] = abi.GramAsk{First: uint32(first), Frequent: uint32(len(c.Frequent)), Rare: uint32(len(c.Rare)), Least: uint32(c.Least)}
		to := abi.Array[uint32](in, p.Numbers+abi.WordBytes*int64(first), c.Lists())
		copy(to[copy(to, c.Frequent):], c.Rare)
		first += len(to)
	}
	p.Piece.Encode(in, each)
}

// Told is what a search says that has counted n-grams, as one core does (gpuexec/cpu/nearest, gramSearch): did is what Decode says of it.
func (p *GramPiece) Told(a *Ask, did *distance.Answer) distance.Answer {
	told := distance.Answer{Method: distance.Ngram, Exact: true, Counted: did.Counted, Within: did.Within, Distances: did.Distances}
	if a.Counted.Lists() > 0 {
		told.Blocks = uint64(p.Column.Tiles.Len())
	}
	return told
}
