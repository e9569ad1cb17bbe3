package nearest

import (
	"math/bits"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/tree"
)

// A Tree is the tree of a column as it lies on a device beside the column's rows or texts (kernels/descent.cuh).
type Tree struct {
	tree.Arrays
	Column  *Column
	Objects []uint32 // [position] object of the index
	Measure uint32   // abi.DescentValue ...
}

// NewTree is the tree of a column; nil where there is none that the device goes down: a pivot tree of lp wants roots that only the host computes, and one on which
// there is only a range of the objects is scanned. ids are the objects that have a value, nil: all.
func NewTree(c *Column, ids []uint32) *Tree {
	if c == nil || c.Of.Tree() == nil || c.Of.Tree().Len() == 0 || c.Objects < c.Of.Objects {
		return nil
	}
	t := &Tree{Arrays: c.Of.Tree().Arrays(), Column: c}
	switch kind := c.Of.Metric.Kind; {
	case kind == metric.L2 || kind == metric.Geo:
		t.Measure = abi.DescentRoot
	case c.Angles():
		t.Measure = abi.DescentChord
	case kind == metric.Lp && t.Pivots != nil:
		return nil
	}
	t.Objects = t.Order
	if ids != nil {
		t.Objects = make([]uint32, len(t.Order))
		for at, object := range t.Order {
			t.Objects[at] = ids[object]
		}
	}
	return t
}

// nodes is how many a depth has.
func (t *Tree) nodes(depth int) int64 { return int64(t.Levels[depth+1] - t.Levels[depth]) }

// A DescentPiece is some queries of a batch that go down a tree together, and where everything of theirs lies.
//
//	arena (device)   queries | vectors | sets | levels | work | progress | states | answers | candidates | buffers of levels | lists
//	in (pinned)      queries | vectors | sets | levels | work | progress | states
//	out (pinned)                                                progress | states | answers
//
// # Bound of the buffers
//
// A level of depth d has room for min(entries, queries * nodes of depth d) entries. A round takes Most = floor(entries / capacity) of these of the deepest level that has any, so
// they lead to Most * capacity <= entries of the level below, which is empty; and no query enters a node twice. So it holds as long as
// entries >= capacity, for any batch and a single query, whatever is pruned. A list has room for the most that a round takes, and a query for its k and what Leaves leaves
// append (kernels/descent.cuh). All of it is chosen by the memory of a lane: a query alone needs capacity entries a level and one leaf.
type DescentPiece struct {
	Piece
	Tree *Tree

	Most, Leaves, ListRoom int
	Rooms                  []int // entries of each level
	// Offsets.
	Levels, Work, Progress                        int64
	Bounds, Distances, Queries, Nodes             []int64 // of each level
	Lists, Places, Grouped, Bins, Admitted, Seeds int64
	Used                                          int64 // all of it
}

// layout lays the buffers of levels and lists out from an offset on, for so many entries, and returns the end.
func (p *DescentPiece) layout(at int64, entries int) int64 {
	t, n := p.Tree, int64(len(p.Asks))
	take := func(bytes int64) (offset int64) {
		offset = abi.Align(at)
		at = offset + bytes
		return offset
	}
	p.Most, p.ListRoom = entries/t.Capacity, 0
	p.Rooms, p.Bounds, p.Distances, p.Queries, p.Nodes = p.Rooms[:0], p.Bounds[:0], p.Distances[:0], p.Queries[:0], p.Nodes[:0]
	for depth := range t.Height + 1 {
		room := min(int64(entries), n*t.nodes(depth))
		p.Rooms = append(p.Rooms, int(room))
		p.Bounds = append(p.Bounds, take(8*room))
		levels := int64(depth)
		if t.Pivots == nil {
			levels = 0
		}
		p.Distances = append(p.Distances, take(8*room*levels))
		p.Queries, p.Nodes = append(p.Queries, take(abi.WordBytes*room)), append(p.Nodes, take(abi.WordBytes*room))
		taken := int(room)
		if depth < t.Height {
			taken = min(taken, p.Most)
		}
		p.ListRoom = max(p.ListRoom, taken)
	}
	list := abi.WordBytes * int64(p.ListRoom)
	p.Lists, p.Places, p.Grouped = take(2*list), take(list), take(list)
	p.Bins, p.Admitted, p.Seeds = take(abi.WordBytes*abi.DescentBins), take(abi.WordBytes*n), take(abi.WordBytes*abi.DescentSeeds*n)
	return at
}

// head is what levels, work and progress take.
func (t *Tree) head() int64 {
	return abi.Align(abi.DescentLevelBytes*int64(t.Height+1)) + abi.Align(abi.DescentWorkBytes) + abi.Align(abi.DescentStateBytes)
}

// leastBuffers is the memory of the smallest buffers for so many queries.
func (t *Tree) leastBuffers(queries int) int64 {
	p := DescentPiece{Tree: t}
	p.Asks = make([]Ask, queries)
	return p.layout(0, t.Capacity) + t.head() + slack
}

// Cost is the memory of the device that a query takes at least.
func (t *Tree) Cost(q *distance.Query) int64 {
	arena, _, _ := t.Column.need(t.Column.hits(q), int64(t.Leaf), 0)
	if q.Filter != nil {
		arena += t.Column.setBytes()
	}
	return arena + slack + t.leastBuffers(1)
}

// Fits says whether a query can be executed alone.
func (t *Tree) Fits(q *distance.Query, room plan.Room, waves *profile.NearWaves) bool {
	if t.Column.texts != nil && !t.Column.texts.takes(q.Text) {
		return false
	}
	room = plan.Room{Arena: room.Arena - t.Column.setBytes(), In: room.In - t.Column.setBytes(), Out: room.Out}
	return len(t.Plan([]Ask{{Query: q, Set: -1}}, room, waves).Asks) == 1
}

// Plan makes a piece of the first asks, as many as fit; of none, if not even the first does. Of several, queries and candidates take half of the memory at most.
func (t *Tree) Plan(asks []Ask, room plan.Room, waves *profile.NearWaves) *DescentPiece {
	p := &DescentPiece{Tree: t, Piece: Piece{Column: t.Column, waves: waves, listed: true}}
	p.fit(asks, plan.Room{Arena: slack, In: slack + t.head(), Out: slack + t.head()}, int64(t.Leaf), nil, func(n int) plan.Room {
		own := room
		if own.Arena = room.Arena - t.leastBuffers(1); n > 1 {
			own.Arena = min(room.Arena/2, room.Arena-t.leastBuffers(n))
		}
		return own
	})
	if len(p.Asks) > 0 {
		p.fill(room.Arena)
	}
	return p
}

// fill places everything, in the memory that there is.
func (p *DescentPiece) fill(arena int64) {
	t, n := p.Tree, int64(len(p.Asks))
	least := t.leastBuffers(int(n))
	p.Leaves = min((len(t.Order)+t.Leaf-1)/t.Leaf, p.waves.Leaves)
	for p.Leaves > 1 {
		p.placeQueries()
		if p.end()+least <= arena*3/4 {
			break
		}
		p.Leaves /= 2
	}
	p.placeQueries()
	most := int64(t.Capacity)
	for depth := range t.Height + 1 {
		most = max(most, n*t.nodes(depth)*int64(t.Capacity))
	}
	lo, hi := t.Capacity, int(min(most, 1<<28))+1 // lo fits
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; p.layout(p.end(), mid) <= arena {
			lo = mid
		} else {
			hi = mid
		}
	}
	p.Used = p.layout(p.end(), lo)
}

// placeQueries places what is of queries, with candidates for so many leaves.
func (p *DescentPiece) placeQueries() {
	p.place(min(int64(p.Leaves)*int64(p.Tree.Leaf), int64(len(p.Tree.Order))))
	p.Levels = abi.Align(p.Sets + int64(len(p.sets))*p.Column.setBytes())
	p.Work = p.Levels + abi.Align(abi.DescentLevelBytes*int64(p.Tree.Height+1))
	p.Progress = p.Work + abi.Align(abi.DescentWorkBytes)
	p.States = p.Progress + abi.Align(abi.DescentStateBytes)
	p.placeDerived(p.InBytes())
}

// end is where candidates end.
func (p *DescentPiece) end() int64 { return p.Piece.End() }

// OutBytes is what is copied back, from Progress on.
func (p *DescentPiece) OutBytes() int64 {
	return p.Answers + p.answers*abi.NearEntryBytes - p.Progress
}

// EncodeAt fills what is copied to the device, for an arena.
func (p *DescentPiece) EncodeAt(in []byte, arena abi.Pointer) {
	p.Piece.Encode(in, nil)
	at := func(offset int64) abi.Pointer { return arena + abi.Pointer(offset) }
	levels := abi.Array[abi.DescentLevel](in, p.Levels, p.Tree.Height+1)
	for depth := range levels {
		levels[depth] = abi.DescentLevel{
			Bounds: at(p.Bounds[depth]), Distances: at(p.Distances[depth]), Queries: at(p.Queries[depth]), Nodes: at(p.Nodes[depth]), Room: uint32(p.Rooms[depth]),
		}
	}
	shift := max(0, bits.Len(uint(len(p.Tree.Begin)-1))-bits.Len(uint(abi.DescentBins-1)))
	abi.Array[abi.DescentWork](in, p.Work, 1)[0] = abi.DescentWork{
		Lists: at(p.Lists), Places: at(p.Places), Grouped: at(p.Grouped), Bins: at(p.Bins), Admitted: at(p.Admitted), Seeds: at(p.Seeds),
		ListRoom: uint32(p.ListRoom), Most: uint32(p.Most), Leaves: uint32(p.Leaves), BinShift: uint32(shift),
	}
	abi.Array[abi.DescentState](in, p.Progress, 1)[0] = abi.DescentState{}
}

// Done says whether a piece whose rounds came back is answered.
func (p *DescentPiece) Done(out []byte) bool {
	return abi.Array[abi.DescentState](out, 0, 1)[0].Done != 0
}

// DecodeDone is Decode of what came back from Progress on.
func (p *DescentPiece) DecodeDone(out []byte, each Each,
	told func(a *Ask, hits []metric.Hit, did *distance.Answer, passed uint64)) (again []Ask, err error) {
	return p.Piece.Decode(out[p.States-p.Progress:], each, told)
}
