// Package passing finds the objects of inverted lists that pass filters, a bit each, on the host's cores. The CPU engine meets these bits at
// its Gate; of a device's engine it is what a scan on the host asks.
package passing

import (
	"context"
	"math/bits"

	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/store"
)

// TileWords is the number of words of a tile: no two tiles share one.
const TileWords = store.TileObjects / 64

// mostTiles is the most tiles of a range of Objects.
const mostTiles = 64

// Index is what filters are held against.
type Index struct {
	Lists  *postings.Lists
	Stored filter.Stored // may be nil, where no filter has edges
	Runs   Runs          // may be nil
}

// Runs gives what is kept of sliced attributes beside their planes.
type Runs interface {
	// Run returns the objects of a tile with codes [lo, hi) of an attribute, codes ascending, and per code the objects; false where they are
	// not kept.
	Run(tile, attr int, lo, hi uint32) ([]uint16, bool)
}

// Pace is asked again and again while a filter is evaluated, several times a millisecond: work is what was done since, in postings. Its
// error ends the evaluation, until Resume.
type Pace func(work int) error

// grain is the work after which the pace is asked, in postings: some 30 us.
const grain = 1 << 16

// Evaluator evaluates filters, a tile at a time. It belongs to one goroutine and keeps its memory; the zero value needs Begin.
//
// A clause becomes a bitmap of the tile: of a list by setting a bit per posting, of planes by comparing 256 objects at a time, whichever
// costs less, of rare keywords by those of their postings that lie in the tile, which Resolve has dealt out. Bitmaps of clauses are joined word
// by word in the cache nearest to the core, and who counts in the tile next finds the result there. A filter that selects little costs
// little: two microseconds a tile, and a nanosecond a posting. Nothing is evaluated any more of a tile that is found to have no object left.
type Evaluator struct {
	index Index
	pace  Pace
	owed  int   // work that the pace has not been told of
	err   error // of the pace: nothing else is evaluated

	result, group, clause, edges Words
	decoder                      postings.Decoder
}

// Words are a bit per object of a tile, the first TileWords of them. There are as many as a uint16 can select, so that an index of that type
// needs no bounds check.
type Words [1 << 16 / 64]uint64

// Begin says what filters are held against from now on. pace may be nil.
func (e *Evaluator) Begin(x Index, pace Pace) { e.index, e.pace, e.owed, e.err = x, pace, 0, nil }

// Resume goes on after an error of the pace.
func (e *Evaluator) Resume() { e.err = nil }

// End forgets what Begin was told.
func (e *Evaluator) End() { e.index, e.pace = Index{}, nil }

// work tells the pace; false: it ends the evaluation.
func (e *Evaluator) work(work int) bool {
	if e.owed += work; e.owed >= grain && e.pace != nil && e.err == nil {
		e.err = e.pace(e.owed)
		e.owed = 0
	}
	return e.err == nil
}

// Pass returns the objects of a tile of the range that pass a filter, and how many there are. The words are the evaluator's and hold until it
// evaluates something else; those beyond the last object are zero.
func (e *Evaluator) Pass(r *Resolved, tile int) (words *Words, count int, err error) {
	f := r.filter
	decided, some := false, true // by e.result; whether it has an object
	for _, g := range f.Groups {
		for i, c := range f.GroupClauses(g) {
			switch number := int(g.First) + i; {
			case g.Negated || !some:
			case !decided:
				e.meet(&e.result, nil, r, number, c, tile)
				decided = true
			default:
				e.meet(&e.clause, &e.result, r, number, c, tile)
				some = e.result.and(&e.clause)
			}
			if e.err != nil {
				return nil, 0, e.err
			}
		}
	}
	if !decided {
		e.result.all(e.index.Lists.TileLen(tile))
	}
	for _, g := range f.Groups {
		if g.Negated && some {
			e.conjunction(r, g, tile)
			some = e.result.andNot(&e.group)
		}
		if e.err != nil {
			return nil, 0, e.err
		}
	}
	e.work(TileWords)
	return &e.result, e.result.len(), e.err
}

// conjunction sets e.group to the objects that meet all clauses of a group.
func (e *Evaluator) conjunction(r *Resolved, g filter.Group, tile int) {
	clauses := r.filter.GroupClauses(g)
	if len(clauses) == 0 {
		e.group.all(e.index.Lists.TileLen(tile))
	}
	for i, c := range clauses {
		if i == 0 {
			e.meet(&e.group, &e.result, r, int(g.First), c, tile)
			continue
		}
		e.meet(&e.clause, &e.group, r, int(g.First)+i, c, tile)
		if !e.group.and(&e.clause) || e.err != nil {
			return
		}
	}
}

func (t *Words) all(objects int) {
	clear(t[objects/64:])
	for i := range objects / 64 {
		t[i] = ^uint64(0)
	}
	if rest := objects % 64; rest > 0 {
		t[objects/64] = 1<<rest - 1
	}
}

// and tells whether anything is left.
func (t *Words) and(o *Words) bool {
	some := uint64(0)
	for i := range t {
		t[i] &= o[i]
		some |= t[i]
	}
	return some != 0
}

func (t *Words) andNot(o *Words) bool {
	some := uint64(0)
	for i := range t {
		t[i] &^= o[i]
		some |= t[i]
	}
	return some != 0
}

// len is how many objects a tile's words have: four sums, so that no addition waits for another.
func (t *Words) len() int {
	var a, b, c, d int
	for i := 0; i < len(t); i += 4 {
		s := (*[4]uint64)(t[i:])
		a, b = a+bits.OnesCount64(s[0]), b+bits.OnesCount64(s[1])
		c, d = c+bits.OnesCount64(s[2]), d+bits.OnesCount64(s[3])
	}
	return a + b + c + d
}

// Bit is 1 if an object is in the words, else 0; there is no branch.
func (t *Words) Bit(id uint) (bit int) {
	if t[id/64%uint(len(t))]&(1<<(id%64)) != 0 {
		bit = 1
	}
	return bit
}

func (t *Words) has(id uint16) bool { return t[id/64]>>(id%64)&1 != 0 }

// Objects are the objects of some tiles that pass a filter, which was checked, found on all cores of a crew: TileWords words a tile. It ends
// with ctx.
func Objects(ctx context.Context, crew *run.Crew, x Index, f *filter.Filter, tiles run.Tiles) (filter.Set, error) {
	set := make(filter.Set, tiles.Len()*TileWords)
	ranges := max(1, run.Splits(1, tiles.Len(), crew.Size()), (tiles.Len()+mostTiles-1)/mostTiles)
	failed := make([]error, ranges)
	err := crew.Run(ctx, ranges, func(s *run.Shift, r int) {
		own := run.Tiles{First: tiles.First + tiles.Len()*r/ranges, End: tiles.First + tiles.Len()*(r+1)/ranges}
		var e Evaluator
		e.Begin(x, func(work int) error {
			s.Spend(work)
			return context.Cause(ctx)
		})
		var resolved Resolved
		failed[r] = e.Resolve(&resolved, f, own)
		for tile := own.First; tile < own.End && failed[r] == nil; tile++ {
			var words *Words
			if words, _, failed[r] = e.Pass(&resolved, tile); failed[r] == nil {
				copy(set[(tile-tiles.First)*TileWords:], words[:TileWords])
			}
		}
	})
	for _, failure := range failed {
		if err == nil {
			err = failure
		}
	}
	return set, err
}

// Each calls visit for the objects in the words, ascending, until it is false.
func (t *Words) Each(visit func(id int) bool) {
	for w, word := range t {
		for ; word != 0; word &= word - 1 {
			if !visit(w*64 + bits.TrailingZeros64(word)) {
				return
			}
		}
	}
}
