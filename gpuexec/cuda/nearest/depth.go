package nearest

import (
	"time"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
	"github.com/geniemq/geniemq/index/distance"
)

// A DepthPiece is some queries of a batch that go down a tree with boxes depth first, and where everything of theirs lies.
//
//	arena (device)   as a Piece without candidates | stacks
//
// # Bound of the stacks
//
// What lies on one are children of the inner nodes from the root to the one that is at hand, at most Capacity of each of Height: so it has that many places
// (kernels/descent_depth.cu). Hits lie in shared memory, which has room for abi.WarpHits.
type DepthPiece struct {
	Piece
	Tree   *Tree
	Stacks int64 // offset
	Used   int64 // all of it
}

// Depth says whether a query goes down depth first.
func (t *Tree) Depth(q *distance.Query) bool {
	return len(t.Boxes) > 0 && t.Column.hits(q) <= abi.WarpHits
}

// StackRoom is how many places the stack of a query has.
func (t *Tree) StackRoom() int { return max(1, t.Capacity*t.Height) }

// stackBytes are those of the stack of a query.
func (t *Tree) stackBytes() int64 { return abi.DescentPlaceBytes * int64(t.StackRoom()) }

// DepthCost is the memory of the device that a query takes at least.
func (t *Tree) DepthCost(q *distance.Query) int64 {
	arena, _, _ := t.Column.need(t.Column.hits(q), 0, 0)
	if q.Filter != nil {
		arena += t.Column.setBytes()
	}
	return arena + slack + t.stackBytes()
}

// DepthFits says whether a query can be executed alone.
func (t *Tree) DepthFits(q *distance.Query, room plan.Room) bool {
	arena, in, out := t.Column.need(t.Column.hits(q), 0, 0)
	set := t.Column.setBytes()
	return slack+arena+t.stackBytes()+set <= room.Arena && slack+in+set <= room.In && slack+out <= room.Out
}

// DepthPrice is what a query takes together with so many: each has a warp, which waits for memory at every node and every 32 objects.
func (t *Tree) DepthPrice(q *distance.Query, queries, processors int, waves *profile.NearWaves) time.Duration {
	n := max(1, queries)
	w := t.Column.Of.Tree().Expect(q.Want()).Work
	steps := w.Nodes + w.Blocks + w.Distances/abi.WarpLanes
	return time.Duration(waves.Batch/float64(n) + steps*waves.Deep/float64(min(n, processors*waves.DeepWarps)))
}

// PlanDepth makes a piece of the first asks, as many as fit; of none, if not even the first does.
func (t *Tree) PlanDepth(asks []Ask, room plan.Room, waves *profile.NearWaves) *DepthPiece {
	p := &DepthPiece{Tree: t, Piece: Piece{Column: t.Column, waves: waves, listed: true}}
	p.fit(asks, plan.Room{Arena: slack, In: slack, Out: slack}, 0, func(int) (arena, in int64) { return t.stackBytes(), 0 }, func(int) plan.Room { return room })
	p.place(0)
	p.Stacks = p.Candidates
	p.Used = p.Stacks + int64(len(p.Asks))*t.stackBytes()
	return p
}
